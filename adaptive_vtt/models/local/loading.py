"""Models by name: ``package.module:name`` or ``file.py:name``."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import InputError, one_line, unknown
from ..base import ModelUnderTest
from .python import PythonModel, TorchModel


def load(target: str, *, base: Path | None = None) -> ModelUnderTest:
    """The model named by ``target``, ``package.module:name`` or ``path/file.py:name``.

    ``name`` may be a callable (list of images -> n x C of P(yes)), a torch module (images
    -> logits), or anything that has ``ask``. ``base`` is where relative files are looked
    for (default: here). Raises InputError where nothing is found under the name.
    """
    where, colon, name = target.partition(":")
    if not (colon and where and name):
        raise InputError(f"model: expected 'package.module:name' or 'file.py:name', got {target!r}")
    found = _attribute(_module(where, base or Path()), name, where)
    if hasattr(found, "ask"):
        return found
    if _is_torch_module(found):
        return TorchModel(found, name=target)
    if callable(found):
        return PythonModel(found, name=target)
    raise InputError(
        f"model {target!r}: expected a callable, a torch module or an object with 'ask', "
        f"got {type(found).__name__}"
    )


def _module(where: str, base: Path) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file((base / where).resolve())
        return importlib.import_module(where)
    except InputError:
        raise
    except Exception as error:  # a user's module may fail in any way at all
        raise InputError(
            f"model: cannot import {where!r}: {type(error).__name__}: {one_line(error)}"
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"model: file {str(path)!r} does not exist")
    spec = importlib.util.spec_from_file_location(f"avtt_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, name: str, where: str) -> Any:
    if not hasattr(module, name):
        names = [n for n in vars(module) if not n.startswith("_")]
        raise unknown("name", name, names, f"model: {where}")
    return getattr(module, name)


def _is_torch_module(found: object) -> bool:
    torch = sys.modules.get("torch")  # a torch module cannot exist before torch is imported
    return torch is not None and isinstance(found, torch.nn.Module)
