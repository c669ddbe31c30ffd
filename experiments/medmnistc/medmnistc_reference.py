"""Use the PyPI package medmnistc 0.1.0, with the patches at run time that NumPy 2 needs.

The package is the reference of the parity and speed tables and of the golden arrays. It is no
dependency. Install it into a temporary folder that is on PYTHONPATH:

    pip install --no-deps --target REF medmnistc==0.1.0 Wand pillow scikit-image lazy_loader \
        torchvision
    apt-get install libmagickwand-6.q16-6      # the library behind Wand

The patches: ``frombuffer`` replaces the binary ``numpy.fromstring``, which NumPy 2 lacks; the
impulse noise gets a generator, which the package's dataset manager would set; integer ink marks are
cast to uint8. If the compiled part of torchvision does not fit the installed torch, torchvision is
used without it.
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
    """Return the package's corruptions by data set and name. Raise ImportError if it is missing."""
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
    """Return an H x W x 3 image as the package corrupts it, at a severity of 1 to 5."""
    pictures = import_module("PIL.Image")
    return np.asarray(corruption.apply(pictures.fromarray(image), severity - 1))


def seed(number: int) -> None:
    """Seed the global random streams that the package draws from."""
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 - the package has no other way


def motion_at(corruption: Any, image: Image, severity: int, angle: float) -> Image:
    """Return an image with the package's motion blur at this angle in degrees."""
    drawn, holder = np.random.uniform, np.random
    holder.uniform = lambda *_: angle  # type: ignore[assignment]
    try:
        return apply(corruption, image, severity)
    finally:
        holder.uniform = drawn


def _numpy_with_fromstring() -> ModuleType:
    """Return a copy of the module NumPy that has the binary ``fromstring``."""
    patched = ModuleType("numpy_with_fromstring")
    patched.__dict__.update(np.__dict__)
    read: Callable[..., Any] = np.frombuffer
    patched.fromstring = read  # type: ignore[attr-defined]
    return patched


def _torchvision() -> None:
    """Import torchvision, without its compiled operators if they do not fit the installed torch."""
    try:
        import_module("torchvision.transforms.functional")
    except RuntimeError:  # raised by the compiled operators
        spec = find_spec("torchvision")
        if spec is None:
            raise
        for name in [n for n in sys.modules if n.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        bare = ModuleType("torchvision")
        bare.__path__ = list(spec.submodule_search_locations or [])
        sys.modules["torchvision"] = bare
