"""The PyPI package medmnistc 0.1.0, patched at run time only as far as NumPy 2 needs.

The package is the reference of the parity and speed tables and of the golden arrays; it is
no dependency. Into a throw-away folder that stands on PYTHONPATH:

    pip install --no-deps --target REF medmnistc==0.1.0 Wand pillow scikit-image lazy_loader \
        torchvision
    apt-get install libmagickwand-6.q16-6      # what Wand binds to

Patches: binary ``numpy.fromstring`` (gone from NumPy 2) becomes ``frombuffer``; the impulse
noise, which expects its dataset manager to hand it a generator, is given one; integer ink
marks are cast to uint8. A torchvision whose compiled part does not fit the installed torch
is used without that part.
"""

import random
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from adaptive_vtt.types import Image


def registry() -> dict[str, dict[str, Any]]:
    """Dataset flag -> corruption -> the package's own object; ImportError where absent."""
    _torchvision()
    filters = import_module("medmnistc.corruptions.filter")
    table: dict[str, dict[str, Any]] = import_module(
        "medmnistc.corruptions.registry"
    ).CORRUPTIONS_DS
    filters.np = _numpy_with_fromstring()  # type: ignore[attr-defined]
    for corruptions in table.values():
        for corruption in corruptions.values():
            corruption.rng = np.random.default_rng(0)
            if type(corruption).__name__ == "StainDeposit":
                corruption._inks = {k: list(v.astype(np.uint8)) for k, v in corruption.inks.items()}
    return table


def apply(corruption: Any, image: Image, severity: int) -> Image:
    """What the package makes of one H x W x 3 image at a severity of 1 to 5."""
    pictures = import_module("PIL.Image")
    return np.asarray(corruption.apply(pictures.fromarray(image), severity - 1))


def seed(number: int) -> None:
    """Seeds the three global streams that the package draws from."""
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 - the package has no other way


def motion_at(corruption: Any, image: Image, severity: int, angle: float) -> Image:
    """The package's motion blur at a given angle in degrees."""
    drawn, holder = np.random.uniform, np.random
    holder.uniform = lambda *_: angle  # type: ignore[assignment]
    try:
        return apply(corruption, image, severity)
    finally:
        holder.uniform = drawn


def _numpy_with_fromstring() -> ModuleType:
    """NumPy under another name, its binary fromstring back."""
    patched = ModuleType("numpy_with_fromstring")
    patched.__dict__.update(np.__dict__)
    read: Callable[..., Any] = np.frombuffer
    patched.fromstring = read  # type: ignore[attr-defined]
    return patched


def _torchvision() -> None:
    try:
        import_module("torchvision.transforms.functional")
    except RuntimeError:  # the compiled operators do not fit this torch: pure Python only
        found = find_spec("torchvision")
        if found is None:
            raise
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        bare = ModuleType("torchvision")
        bare.__path__ = list(found.submodule_search_locations or [])
        sys.modules["torchvision"] = bare
