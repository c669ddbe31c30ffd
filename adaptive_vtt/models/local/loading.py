"""Models by name: ``package.module:name`` or ``file.py:name``."""

import sys
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...utils.loading import load_object
from ..base import ModelUnderTest
from .python import Output, PythonModel, TorchModel


def load(target: str, *, base: Path | None = None, output: Output | None = None) -> ModelUnderTest:
    """The model named by ``target``, ``package.module:name`` or ``path/file.py:name``.

    ``name`` may be a callable (list of images -> n x C of P(yes)), a torch module (images
    -> logits), or anything that has ``ask``. ``base`` is where relative files are looked
    for (default: here). ``output`` says what the numbers of a callable or module are, where
    they are other than that. Raises InputError where nothing is found under the name.
    """
    return as_model(load_object(target, base), target, output)


def as_model(found: Any, target: str, output: Output | None = None) -> ModelUnderTest:
    """What was found under ``target``, as a model; raises InputError where it is none."""
    if isinstance(found, type):
        raise InputError(
            f"model {target!r}: expected a callable, a torch module or an object with 'ask', got "
            f"the class {found.__name__}; name an object made of it, or say kind = {target!r}"
        )
    if hasattr(found, "ask"):
        if output is not None:
            raise InputError(
                f"model {target!r}: expected output for a callable or a torch module, got it for "
                "an object whose 'ask' gives answers; leave it out"
            )
        return found
    if _is_torch_module(found):
        return TorchModel(found, name=target, output=output or "logits")
    if callable(found):
        return PythonModel(found, name=target, output=output or "probabilities")
    raise InputError(
        f"model {target!r}: expected a callable, a torch module or an object with 'ask', "
        f"got {type(found).__name__}; for a table of answers say kind = 'recorded'"
    )


def _is_torch_module(found: object) -> bool:
    torch = sys.modules.get("torch")  # a torch module cannot exist before torch is imported
    return torch is not None and isinstance(found, torch.nn.Module)
