"""Models by name: ``package.module:name`` or ``file.py:name``."""

import sys
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...utils.loading import load_object
from ..base import ModelUnderTest
from .python import PythonModel, TorchModel


def load(target: str, *, base: Path | None = None) -> ModelUnderTest:
    """The model named by ``target``, ``package.module:name`` or ``path/file.py:name``.

    ``name`` may be a callable (list of images -> n x C of P(yes)), a torch module (images
    -> logits), or anything that has ``ask``. ``base`` is where relative files are looked
    for (default: here). Raises InputError where nothing is found under the name.
    """
    return as_model(load_object(target, base), target)


def as_model(found: Any, target: str) -> ModelUnderTest:
    """What was found under ``target``, as a model; raises InputError where it is none."""
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


def _is_torch_module(found: object) -> bool:
    torch = sys.modules.get("torch")  # a torch module cannot exist before torch is imported
    return torch is not None and isinstance(found, torch.nn.Module)
