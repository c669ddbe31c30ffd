"""Relations from users' image transforms, one transform per severity.

A transform comes from albumentations, MONAI or TorchIO, or is a function; a ``Caller`` gives it the
arrays that it expects. A follow-up depends on its seed alone, not on the process or the order of
calls: the random states of the transform and of the process are seeded, and those of the process
are restored afterwards (``utils.other_code``). The libraries are not imported here.
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
from ..utils.other_code import load_object, naming, seeded
from .base import RelationDefaults, Rng, check_image
from .graded import to_bytes

CHANCES = ("p", "prob")
"""Arguments of albumentations and MONAI for the probability of any change. The default here is 1,
as an unchanged follow-up tests nothing."""


class Caller:
    """Adapter of a function image -> image; its parameter ``rng``, if any, is a numpy Generator.

    All adapters take and return images (H, W, C) of uint8. Albumentations expects the same, MONAI
    (C, H, W) and TorchIO (C, W, H, 1), both of float32 in [0, 1].
    """

    carries = False
    """True if masks can be transformed with the image."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def image(self, image: Image, seed: int) -> Image:
        """Return the changed image (H, W, C) of uint8."""
        with seeded(seed):
            return self._image(image.copy(), seed)

    def mask(self, mask: Mask, image: Image, seed: int) -> Mask:
        """Return a mask (H, W) of bool after the same transform as ``image``."""
        with seeded(seed):
            return np.asarray(self._mask(mask.astype(np.uint8), image.copy(), seed) > 0.5)

    def _image(self, image: Image, seed: int) -> Image:
        rng = {"rng": np.random.default_rng(seed)} if "rng" in _parameters(self.transform) else {}
        return np.asarray(self.transform(image, **rng))

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        raise TypeError(f"{type(self).__name__} moves no masks: see carries")


class Albumentations(Caller):
    """Adapter of albumentations, which transforms a mask with its image."""

    carries = True

    def _image(self, image: Image, seed: int) -> Image:
        self.transform.set_random_seed(seed)
        return np.asarray(self.transform(image=image)["image"])

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        self.transform.set_random_seed(seed)
        return self.transform(image=image, mask=mask)["mask"]


class Monai(Caller):
    """Adapter of MONAI's array transforms.

    Transforms of ``monai.transforms.spatial`` are applied to masks with nearest-pixel
    interpolation. Others, such as ``Compose``, may or may not move pixels, so masks are lost.
    """

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
    """Adapter of TorchIO: an image is a volume of one slice, and a mask is a label map."""

    carries = True

    def _image(self, image: Image, seed: int) -> Image:
        return to_bytes(255 * self._changed(image, None)["image"])

    def _mask(self, mask: Image, image: Image, seed: int) -> Any:
        return self._changed(image, mask)["mask"][..., 0]

    def _changed(self, image: Image, mask: Image | None) -> dict[str, Any]:
        """Return image and mask (H, W, C) after the transform."""
        import torch
        import torchio

        def volume(array: Any) -> Any:
            return torch.from_numpy(np.ascontiguousarray(array.T[..., None]))

        parts = {"image": torchio.ScalarImage(tensor=volume(image.astype(np.float32) / 255))}
        if mask is not None:
            parts["mask"] = torchio.LabelMap(tensor=volume(mask[..., None]))
        changed = self.transform(torchio.Subject(**parts))
        return {name: changed[name].numpy()[..., 0].T for name in parts}


_LIBRARIES = {"albumentations": Albumentations, "monai": Monai, "torchio": TorchIO}


def caller(transform: Any) -> Caller:
    """Return the adapter of a transform, by the library of its class or base classes."""
    packages = (base.__module__.partition(".")[0] for base in type(transform).__mro__)
    adapter = next((_LIBRARIES[name] for name in packages if name in _LIBRARIES), Caller)
    return adapter(transform)


def prepared(transform: Any, arguments: Mapping[str, Any], where: str) -> Any:
    """Return a transform with its arguments bound.

    Args:
        transform: Class, which is instantiated; function, to which ``functools.partial`` binds the
            arguments; or a transform object without arguments, which is returned unchanged.
        arguments: Arguments by name; lists become tuples.
        where: Beginning of error messages.

    Raises:
        InputError: It is not callable or does not take these arguments.
    """
    if not callable(transform):
        expected = "a transform or a function image -> image"
        raise unexpected(where, expected, type(transform).__name__)
    chance = {c: 1.0 for c in CHANCES if isclass(transform) and c in _parameters(transform)}
    options = {name: _tuples(value) for name, value in {**chance, **arguments}.items()}
    try:
        if isclass(transform):
            _check_arguments(transform, options)
            return transform(**options)
        if options:
            _check_arguments(partial(transform, None), options)
            return partial(transform, **options)
    except Exception as error:  # users' classes may raise anything
        raise InputError(f"{where}: {one_line(error)}") from error
    return transform


def _check_arguments(transform: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError for unknown arguments, since albumentations would only warn."""
    parameters = _parameters(transform)
    unknown = sorted(set(options) - set(parameters))
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise TypeError(f"takes no {unknown[0]!r}, but {', '.join(parameters)}")


def _parameters(transform: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return signature(transform).parameters
    except (TypeError, ValueError):  # some functions written in C have no signature
        return {}


def _tuples(value: Any) -> Any:
    """Return lists, also nested ones, as tuples, which these libraries read as ranges."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


SEEDS = 2**32
"""Seeds are smaller than this, the limit of numpy's legacy generator and of MONAI."""


@dataclass(frozen=True)
class Transformed(RelationDefaults):
    """Relation of users' transforms: ``transforms[k]`` makes the follow-ups of severity k + 1.

    Args:
        name: Name of the relation.
        transforms: Transforms of albumentations, MONAI (for arrays) or TorchIO, or functions from
            (H, W, C) of uint8 to the same, mildest first.
        concepts: Concepts that may be asked about, as the transforms do not change their answers;
            None: all.
        moves: For functions, whether objects change their position in the image; None: unknown.
        options: Options on which follow-ups depend, for the space's fingerprint.
        about: Description in one line.

    Raises:
        InputError: There is no transform, or ``moves`` is set though all transforms can be applied
            to masks.
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
        if self.moves is not None and all(adapter.carries for adapter in callers):
            library = type(callers[0]).__name__
            got = f"moves= for transforms of {library}, which move masks"
            raise unexpected(f"relation {self.name!r}", "moves= for functions alone", got)

    @property
    def severities(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, len(self.transforms) + 1))

    @property
    def fingerprint(self) -> str | None:
        return self.options

    @property
    def masks_lost(self) -> str:
        if self.moves is False or all(adapter.carries for adapter in self._callers):
            return ""
        if self.moves:
            return "it moves things to unknown places"
        return "it is unknown whether it moves things; moves = false says that it does not"

    def applies(self, concept: str) -> bool:
        return self.concepts is None or concept in self.concepts

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up of a sample at a severity.

        Raises:
            InputError: The severity does not exist, or the transform fails or returns no image.
        """
        self.check(severity)
        image, seed = sample.image, int(rng.integers(SEEDS))
        if image is None:
            return FollowUp(None)
        transform = self.transforms[severity - 1]
        function = getattr(transform, "func", transform)  # of a partial
        about = f" (relation {self.name!r}, severity {severity}, sample {sample.id!r})"
        with naming("relation", function, about=about):
            changed = self._callers[severity - 1].image(image, seed)
            if changed.ndim == 2:  # some transforms drop the axis of a single channel
                changed = changed[..., None]
            check_image(changed, image)
        details = {"source": image, "severity": severity, "seed": seed}
        return FollowUp(np.ascontiguousarray(changed), details)

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Return the mask after the follow-up's transform; raise InputError for lost masks."""
        if self.masks_lost:
            raise InputError(f"relation {self.name!r}: masks cannot go along: {self.masks_lost}")
        if self.moves is False or not follow_up.details:
            return mask
        details = follow_up.details
        return self._callers[details["severity"] - 1].mask(mask, details["source"], details["seed"])


def transformed(
    transform: Annotated[
        str,
        Option(
            "'package.module:name' or 'file.py:name': a transform of albumentations, MONAI or "
            "TorchIO, or a function from H x W x C of uint8 to the same"
        ),
    ],
    *,
    name: Annotated[str | None, Option("name of the relation (default: the transform's)")] = None,
    severities: Annotated[
        Sequence[Mapping[str, Any]],
        Option("the arguments of each severity, mildest first", min_length=1),
    ] = ({},),
    options: Annotated[Mapping[str, Any] | None, Option("the arguments of all severities")] = None,
    concepts: Annotated[
        Sequence[str] | None,
        Option(
            "the only concepts to ask about, whose answers it keeps (default: all)", min_length=1
        ),
    ] = None,
    moves: Annotated[
        bool | None, Option("of functions: false if things keep their place, so that masks do")
    ] = None,
    base: Path | None = None,
) -> Transformed:
    """Import a transform and return its relation.

    Args:
        transform: ``package.module:name``, or ``file.py:name`` relative to ``base``.
        name: Name of the relation; default: the name of the transform.
        severities: Arguments of each severity, mildest first.
        options: Arguments of all severities.
        concepts: See `Transformed`.
        moves: See `Transformed`.
        base: Folder of a relative path.

    Returns:
        The relation.

    Raises:
        InputError: The transform cannot be imported, or does not take these arguments.
    """
    loaded = load_object(transform, base, "transform")
    where = f"transform {transform!r}"
    arguments = [{**(options or {}), **changes} for changes in severities]
    return Transformed(
        name or transform.rpartition(":")[2],
        tuple(prepared(loaded, values, where) for values in arguments),
        None if concepts is None else tuple(concepts),
        moves,
        repr((transform, arguments, concepts, moves)),
        f"{transform}; severity: its arguments",
    )
