"""A relation of other people's transforms: one callable image -> image per severity.

Which follow-up a question gets depends on the question alone: its seed goes to the transform
(``libraries``), so that it is the same picture in any process and any order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ..errors import InputError, one_line
from ..types import FollowUp, Image, Mask, Sample
from ..utils.options import Option
from ..utils.other_code import load_object
from .base import RelationDefaults
from .libraries import Caller, caller, prepared

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
    def describe(self) -> str | None:
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
        """Raises InputError for a severity that does not exist, and for a transform that fails or
        gives no image."""
        if severity not in self.severities:
            raise InputError(
                f"{self.name}: expected a severity in {list(self.severities)}, got {severity}"
            )
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
        """Raises InputError where masks cannot be moved along."""
        if self.masks_lost:
            raise InputError(f"relation {self.name!r}: masks cannot go along: {self.masks_lost}")
        if self.moves is False or not follow_up.details:
            return mask
        told = follow_up.details
        return self._callers[told["severity"] - 1].mask(mask, told["source"], told["seed"])

    def _checked(self, changed: Any, image: Image) -> Image:
        if changed.ndim == 2:  # some drop the axis of a single channel
            changed = changed[..., None]
        if changed.dtype != np.uint8 or changed.ndim != 3 or changed.shape[2] != image.shape[2]:
            raise InputError(
                f"relation {self.name!r}: expected an image H x W x {image.shape[2]} of uint8, got "
                f"{' x '.join(map(str, changed.shape))} of {changed.dtype}"
            )
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
    """The relation of a transform by name: ``package.module:name`` or ``file.py:name``, which start
    at ``base``.

    ``concepts``, ``moves``: as `Transformed`. Raises InputError for what cannot be
    imported, and for arguments that it does not take.
    """
    found = load_object(transform, base, "transform")
    where = f"transform {transform!r}"
    arguments = [{**(options or {}), **own} for own in severities]
    return Transformed(
        name or transform.rpartition(":")[2],
        tuple(prepared(found, own, where) for own in arguments),
        None if concepts is None else tuple(concepts),
        moves,
        repr((transform, arguments, concepts, moves)),
        f"{transform}; severity: its arguments",
    )
