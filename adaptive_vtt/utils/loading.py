"""Objects of other people's modules, named ``package.module:name`` or ``file.py:name``."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError, one_line, unknown


def load_object(target: str, base: Path | None = None, what: str = "model") -> Any:
    """What ``target`` names; a relative file starts at ``base`` (default: here).

    ``what``: the kind of thing, for messages. Raises InputError for a target of another form,
    a module that cannot be imported, and a name that it does not have.
    """
    where, colon, name = target.rpartition(":")
    if not (colon and where and name):
        raise InputError(
            f"{what}: expected 'package.module:name' or 'file.py:name', got {target!r}"
        )
    module = _module(where, base or Path(), what)
    if not hasattr(module, name):
        names = [n for n in vars(module) if not n.startswith("_")]
        raise unknown("name", name, names, f"{what}: {where}")
    return getattr(module, name)


def is_target(name: str) -> bool:
    """Whether a name is that of code: ``file.py:name`` or ``package.module:name``."""
    return ":" in name


def file_of(target: str, base: Path | None = None) -> Path | None:
    """The file that a target names; None where it names a package's module."""
    where = target.rpartition(":")[0]
    return (base or Path()) / where if where.endswith(".py") else None


def _module(where: str, base: Path, what: str) -> ModuleType:
    try:
        if where.endswith(".py"):
            return _from_file((base / where).resolve(), what)
        return importlib.import_module(where)
    except InputError:
        raise
    except Exception as error:  # a user's module may fail in any way at all
        raise InputError(
            f"{what}: cannot import {where!r}: {type(error).__name__}: {one_line(error)}"
        ) from error


def _from_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise InputError(f"{what}: file {str(path)!r} does not exist")
    spec = importlib.util.spec_from_file_location(f"avtt_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{what}: file {str(path)!r} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
