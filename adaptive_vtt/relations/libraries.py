"""How the transforms of albumentations, MONAI and TorchIO, and plain functions, are called.

Each ``Caller`` takes and gives H x W x C of uint8, whatever the library wants: albumentations the
same, MONAI C x H x W and TorchIO C x W x H x 1, both of float32 in [0, 1]. A call draws from its
seed alone: the transform's own random state is set, and so are those of the process, which are
put back (``utils.other_code.seeded``). No library is imported before a transform of it is there.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import isclass, signature
from typing import Any

import numpy as np

from ..errors import InputError, one_line
from ..types import Image, Mask
from ..utils.other_code import seeded
from .graded import to_bytes

CHANCES = ("p", "prob")
"""What albumentations and MONAI call the probability that anything is done at all. As a follow-up
that is its source tests nothing, it is 1 unless it is set."""


class Caller:
    """A function image -> image; one with a parameter ``rng`` is given a numpy Generator."""

    carries = False
    """Whether masks can be moved along with the image."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def image(self, image: Image, seed: int) -> Image:
        """The changed image, H x W x C of uint8."""
        with seeded(seed):
            return self._image(image.copy(), seed)

    def mask(self, mask: Mask, image: Image, seed: int) -> Mask:
        """Where ``mask`` (H x W of bool) lies after the same change of ``image``."""
        with seeded(seed):
            return np.asarray(self._mask(mask.astype(np.uint8), image.copy(), seed) > 0.5)

    def _image(self, image: Image, seed: int) -> Image:
        given = {"rng": np.random.default_rng(seed)} if "rng" in _parameters(self.transform) else {}
        return np.asarray(self.transform(image, **given))

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        raise TypeError(f"{type(self).__name__} moves no masks: see carries")


class Albumentations(Caller):
    """Masks go through the transform beside the image."""

    carries = True

    def _image(self, image: Image, seed: int) -> Image:
        self.transform.set_random_seed(seed)
        return np.asarray(self.transform(image=image)["image"])

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        self.transform.set_random_seed(seed)
        return self.transform(image=image, mask=mask)["mask"]


class Monai(Caller):
    """An array transform. Those of ``monai.transforms.spatial`` move masks along, by their nearest
    pixels; what a ``Compose`` moves is not known."""

    @property
    def carries(self) -> bool:  # type: ignore[override]
        return type(self.transform).__module__.startswith("monai.transforms.spatial")

    def _image(self, image: Image, seed: int) -> Image:
        channels_first = np.moveaxis(image, -1, 0).astype(np.float32) / 255
        changed = np.asarray(self._called(channels_first, seed))
        return to_bytes(255 * np.moveaxis(changed, 0, -1))

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        nearest = {"mode": "nearest"} if "mode" in _parameters(self.transform.__call__) else {}
        return np.asarray(self._called(mask[None].astype(np.float32), seed, **nearest))[0]

    def _called(self, array: Any, seed: int, **options: Any) -> Any:
        if hasattr(self.transform, "set_random_state"):
            self.transform.set_random_state(seed=seed)
        return self.transform(array, **options)


class TorchIO(Caller):
    """A picture is a volume of one slice; masks go along as label maps."""

    carries = True

    def _image(self, image: Image, seed: int) -> Image:
        return to_bytes(255 * self._changed(image, None)["image"])

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        return self._changed(image, mask)["mask"][..., 0]

    def _changed(self, image: Image, mask: Image | None) -> dict[str, Any]:
        """H x W x C of each, after the transform."""
        import torch
        import torchio

        def volume(array: Any) -> Any:
            return torch.from_numpy(np.ascontiguousarray(array.T[..., None]))

        parts = {"image": torchio.ScalarImage(tensor=volume(image.astype(np.float32) / 255))}
        if mask is not None:
            parts["mask"] = torchio.LabelMap(tensor=volume(mask[..., None]))
        changed = self.transform(torchio.Subject(**parts))
        return {name: changed[name].numpy()[..., 0].T for name in parts}


_LIBRARIES: Mapping[str, type[Caller]] = {
    "albumentations": Albumentations,
    "monai": Monai,
    "torchio": TorchIO,
}


def caller(transform: Any) -> Caller:
    """What calls ``transform``: an object of a class of these libraries, or a function."""
    for base in type(transform).__mro__:
        top = base.__module__.partition(".")[0]
        if top in _LIBRARIES:
            return _LIBRARIES[top](transform)
    return Caller(transform)


def prepared(found: Any, arguments: Mapping[str, Any], where: str) -> Any:
    """What a name stands for, with its arguments: a class called with them, a function that will
    be, or, without any, an object as it is. Raises InputError for arguments that are not taken."""
    if not callable(found):
        raise InputError(
            f"{where}: expected a transform or a function image -> image, got "
            f"{type(found).__name__}"
        )
    chance = {c: 1.0 for c in CHANCES if isclass(found) and c in _parameters(found)}
    given = {name: _tuples(value) for name, value in {**chance, **arguments}.items()}
    try:
        if isclass(found):
            _bound(found, given)
            return found(**given)
        if given:
            _bound(partial(found, None), given)
            return partial(found, **given)
    except Exception as error:  # classes of other people may fail in any way at all
        raise InputError(f"{where}: {one_line(error)}") from error
    return found


def _bound(found: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raises TypeError for arguments that ``found`` does not take; albumentations would only warn
    of them."""
    taken = _parameters(found)
    unknown = sorted(set(given) - set(taken))
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        raise TypeError(f"takes no {unknown[0]!r}, but {', '.join(taken)}")


def _parameters(found: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return signature(found).parameters
    except (TypeError, ValueError):  # of some that are written in C there is none
        return {}


def _tuples(value: Any) -> Any:
    """TOML has lists alone, and these libraries want ranges as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
