"""Relations of other people's transforms: one callable image -> image per severity.

A transform is one of albumentations, MONAI or TorchIO, or a plain function; a ``Caller`` knows how
each is called. Which follow-up a question gets depends on the question alone: a call draws from
its seed, and so is the same picture in any process and any order. For that the transform's own
random state is set, and so are those of the process, which are put back (``utils.other_code``).
No library is imported before a transform of it is there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import isclass, signature
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ..errors import InputError, one_line, unexpected
from ..types import FollowUp, Image, Mask, Sample
from ..utils.options import Option
from ..utils.other_code import load_object, seeded
from .base import RelationDefaults
from .graded import to_bytes

CHANCES = ("p", "prob")
"""What albumentations and MONAI call the probability that anything is done at all. As a follow-up
that is its source tests nothing, it is 1 unless it is set."""


class Caller:
    """A function image -> image; one with a parameter ``rng`` is given a numpy Generator.

    Every caller takes and gives H x W x C of uint8, whatever the library wants: albumentations the
    same, MONAI C x H x W and TorchIO C x W x H x 1, both of float32 in [0, 1].
    """

    carries = False
    """Whether masks can be moved along with the image."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def image(self, image: Image, seed: int) -> Image:
        """Return the changed image, H x W x C of uint8."""
        with seeded(seed):
            return self._image(image.copy(), seed)

    def mask(self, mask: Mask, image: Image, seed: int) -> Mask:
        """Return where ``mask`` (H x W of bool) lies after the same change of ``image``."""
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
    """Return what calls ``transform``: an object of a class of these libraries, or a function."""
    for base in type(transform).__mro__:
        top = base.__module__.partition(".")[0]
        if top in _LIBRARIES:
            return _LIBRARIES[top](transform)
    return Caller(transform)


def prepared(transform: Any, arguments: Mapping[str, Any], where: str) -> Any:
    """Return what a name stands for, with its arguments: a class called with them, a function that
    will be, or, without any, an object as it is.

    Raises:
        InputError: for arguments that are not taken.
    """
    if not callable(transform):
        raise unexpected(
            where, "a transform or a function image -> image", type(transform).__name__
        )
    chance = {c: 1.0 for c in CHANCES if isclass(transform) and c in _parameters(transform)}
    given = {name: _tuples(value) for name, value in {**chance, **arguments}.items()}
    try:
        if isclass(transform):
            _bound(transform, given)
            return transform(**given)
        if given:
            _bound(partial(transform, None), given)
            return partial(transform, **given)
    except Exception as error:  # classes of other people may fail in any way at all
        raise InputError(f"{where}: {one_line(error)}") from error
    return transform


def _bound(transform: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise TypeError for arguments that ``transform`` does not take, of which albumentations would
    only warn."""
    taken = _parameters(transform)
    unknown = sorted(set(given) - set(taken))
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        raise TypeError(f"takes no {unknown[0]!r}, but {', '.join(taken)}")


def _parameters(transform: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return signature(transform).parameters
    except (TypeError, ValueError):  # of some that are written in C there is none
        return {}


def _tuples(value: Any) -> Any:
    """TOML has lists alone, and these libraries want ranges as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


SEEDS = 2**32
"""Seeds lie below it, as numpy's old generator and MONAI take no larger ones."""


@dataclass(frozen=True)
class Transformed(RelationDefaults):
    """``transforms[k]`` makes the follow-ups of severity k + 1, mildest first.

    Each is a transform of albumentations, MONAI (of arrays) or TorchIO, or a function from
    H x W x C of uint8 to the same. ``concepts``: those whose answers stay as they are under it,
    and no others are asked about; None: all. ``moves``: of functions and of what a library does
    not say, whether things change their place in the image; None: not known. Where masks cannot
    be moved along, ``fixed_masks`` says so. ``options``: what follow-ups depend on beside the
    name, for the space's fingerprint. Raises InputError without transforms, and for ``moves`` where
    the library knows.
    """

    name: str
    transforms: Sequence[Callable[..., Any]]
    concepts: tuple[str, ...] | None = None
    moves: bool | None = None
    options: str | None = None
    about: str = "a transform of another library, or a function"
    _callers: tuple[Caller, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if not self.transforms:
            raise InputError(f"relation {self.name!r}: expected at least one transform, got none")
        callers = tuple(map(caller, self.transforms))
        object.__setattr__(self, "_callers", callers)
        if self.moves is not None and all(each.carries for each in callers):
            raise InputError(
                f"relation {self.name!r}: moves is for functions; masks go through "
                f"{type(callers[0]).__name__}'s transforms themselves: leave it out"
            )

    @property
    def severities(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, len(self.transforms) + 1))

    @property
    def fingerprint(self) -> str | None:
        return self.options

    @property
    def masks_lost(self) -> str:
        if self.moves is False or all(each.carries for each in self._callers):
            return ""
        if self.moves:
            return "it moves things, and says nowhere where they go"
        return "nobody knows whether it moves things; moves = false says that it does not"

    def applies(self, concept: str) -> bool:
        return self.concepts is None or concept in self.concepts

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        """Raise InputError for a severity that does not exist, and for a transform that fails or
        gives no image."""
        self.check(severity)
        image, seed = sample.image, int(rng.integers(SEEDS))
        if image is None:
            return FollowUp(None)
        try:
            changed = self._callers[severity - 1].image(image, seed)
        except Exception as error:  # other people's code may fail in any way at all
            raise InputError(
                f"relation {self.name!r}, severity {severity}, sample {sample.id!r}: "
                f"{type(error).__name__}: {one_line(error)}"
            ) from error
        details = {"source": image, "severity": severity, "seed": seed}
        return FollowUp(self._checked(changed, image), details)

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Raise InputError where masks cannot be moved along."""
        if self.masks_lost:
            raise InputError(f"relation {self.name!r}: masks cannot go along: {self.masks_lost}")
        if self.moves is False or not follow_up.details:
            return mask
        details = follow_up.details
        return self._callers[details["severity"] - 1].mask(mask, details["source"], details["seed"])

    def _checked(self, changed: Any, image: Image) -> Image:
        if changed.ndim == 2:  # some drop the axis of a single channel
            changed = changed[..., None]
        if changed.dtype != np.uint8 or changed.ndim != 3 or changed.shape[2] != image.shape[2]:
            expected = f"an image H x W x {image.shape[2]} of uint8"
            got = f"{' x '.join(map(str, changed.shape))} of {changed.dtype}"
            raise unexpected(f"relation {self.name!r}", expected, got)
        return np.ascontiguousarray(changed)


def transformed(
    transform: Annotated[
        str,
        Option(
            "'package.module:name' or 'file.py:name': a transform of albumentations, MONAI or "
            "TorchIO, or a function from H x W x C of uint8 to the same"
        ),
    ],
    *,
    name: Annotated[
        str | None, Option("what the relation is called (the transform's name)")
    ] = None,
    severities: Annotated[
        Sequence[Mapping[str, Any]],
        Option("the arguments of each severity, mildest first", min_length=1),
    ] = ({},),
    options: Annotated[Mapping[str, Any] | None, Option("the arguments of all severities")] = None,
    concepts: Annotated[
        Sequence[str] | None,
        Option(
            "concepts whose answers stay as they are under it; no others are asked about "
            "(default: all)",
            min_length=1,
        ),
    ] = None,
    moves: Annotated[
        bool | None,
        Option(
            "of functions: whether things change their place; false lets masks stay as they are"
        ),
    ] = None,
    base: Path | None = None,
) -> Transformed:
    """Return the relation of a transform by name: ``package.module:name`` or ``file.py:name``,
    which start at ``base``.

    ``concepts``, ``moves``: as `Transformed`.

    Raises:
        InputError: for what cannot be imported, and for arguments that it does not take.
    """
    made = load_object(transform, base, "transform")
    where = f"transform {transform!r}"
    arguments = [{**(options or {}), **own} for own in severities]
    return Transformed(
        name or transform.rpartition(":")[2],
        tuple(prepared(made, own, where) for own in arguments),
        None if concepts is None else tuple(concepts),
        moves,
        repr((transform, arguments, concepts, moves)),
        f"{transform}; severity: its arguments",
    )
