"""Models by name: ``package.module:name`` or ``file.py:name``."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import InputError
from ...utils.loading import load_object
from ..base import ModelUnderTest
from .python import PythonModel, TorchModel
from .recorded import Recorded


def load(target: str, *, base: Path | None = None) -> ModelUnderTest:
    """The model named by ``target``, ``package.module:name`` or ``path/file.py:name``.

    ``name`` may be a callable (list of images -> n x C of P(yes)), a torch module (images
    -> logits), or anything that has ``ask``. ``base`` is where relative files are looked
    for (default: here). Raises InputError where nothing is found under the name.
    """
    return as_model(load_object(target, base), target)


def as_model(found: Any, target: str | None = None) -> ModelUnderTest:
    """A model of whatever may stand for one; raises InputError for anything else.

    An object with ``ask`` is one; a torch module (images -> logits) and any other callable (list of
    images -> n x C of P(yes)) are wrapped; a DataFrame holds recorded answers; a text names any of
    these. ``target``: the name under which it was found (default: its own).
    """
    if isinstance(found, type):
        raise InputError(
            f"model {target or found.__name__!r}: expected a model, got the class "
            f"{found.__name__}; make one of it, {found.__name__}(...)"
        )
    if hasattr(found, "ask"):
        return found
    if _is_torch_module(found):
        return TorchModel(found, name=target)
    if callable(found):
        return PythonModel(found, name=target)
    if isinstance(found, pd.DataFrame):
        return Recorded(found)
    if isinstance(found, str) and target is None:
        return load(found)
    where = "model" if target is None else f"model {target!r}"
    raise InputError(
        f"{where}: expected a callable, a torch module or an object with 'ask', "
        f"got {type(found).__name__}"
    )


def _is_torch_module(found: object) -> bool:
    torch = sys.modules.get("torch")  # a torch module cannot exist before torch is imported
    return torch is not None and isinstance(found, torch.nn.Module)
