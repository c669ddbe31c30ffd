"""Protocol and base classes of metamorphic relations.

A relation makes a follow-up image from a source image, and gives the answer that is then expected.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from ..errors import brief, unexpected
from ..types import Ask, FollowUp, Image, Mask, Sample
from ..utils.other_code import Completed, naming

Rng = np.random.Generator
"""Generator of all random numbers of a follow-up."""
Rung = tuple[float, ...]
"""Parameters of one severity."""


class Relation(Protocol):
    """A metamorphic relation; ``RelationDefaults`` has the optional members."""

    @property
    def name(self) -> str:
        """The name of the relation in specs, journals and reports."""

    @property
    def severities(self) -> tuple[int, ...]:
        """The severities of the relation, mildest first."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up of ``sample``; depend on the arguments alone and change no input."""

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        """Return the true answer for the follow-up, given the true answer for the source."""


class RelationDefaults:
    """Defaults of the optional members: no answer changes, and nothing moves."""

    name: str
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    about: str = ""
    """Description in one line."""
    in_order: bool = True
    """True if a higher severity changes the image more."""
    adds: ClassVar[str] = ""
    """Object that the relation adds to the image: "text", "instrument", "feces", "blood" or ""."""
    reduces: ClassVar[bool] = False
    """True if the relation only removes the edges of the image, so that the visible part is
    known."""
    in_words: Literal["nothing", "also", "only"] = "nothing"
    """"also": the ``words`` of a follow-up repeat what is drawn; "only": they are the only change,
    so that the model must accept words; "nothing": there are no words."""
    needs_answer: bool = False
    """True if the follow-up depends on the model's answer about the source (``Sample.received``),
    which must then be asked first."""
    needs_region: ClassVar[bool] = False
    """True if the relation marks ``Sample.masks``, so that samples need a mask."""

    @property
    def fingerprint(self) -> str | None:
        """Options on which follow-ups depend, for the space's fingerprint; None: no options."""
        return None

    @property
    def masks_lost(self) -> str:
        """Reason why masks cannot be transformed with the image; "" if they can."""
        return ""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        raise TypeError(f"{type(self).__name__} defines no apply")

    def apply_between(self, sample: Sample, rng: Rng) -> FollowUp:
        """Return a follow-up at a random severity; ``Laddered`` relations draw the strength."""
        return self.apply(sample, self.severities[int(rng.integers(len(self.severities)))], rng)

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return truth

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Return the mask (H x W) of a concept in the follow-up, given its mask in the source."""
        return mask

    def applies(self, concept: str) -> bool:
        """Return whether questions about ``concept`` make sense after this relation."""
        return True

    def check(self, severity: int) -> None:
        """Raise InputError for a severity that does not exist."""
        if severity not in self.severities:
            raise unexpected(self.name, f"a severity in {list(self.severities)}", severity)


class Adapted(Completed, RelationDefaults):
    """Wrapper that adds the defaults to a relation of another class."""


def adapted_relation(relation: Relation) -> RelationDefaults:
    """Return a relation with all members of ``RelationDefaults``.

    Args:
        relation: Any relation.

    Returns:
        The relation itself if it inherits from ``RelationDefaults``, else a wrapper.
    """
    return relation if isinstance(relation, RelationDefaults) else Adapted(relation)


def follow_up_of(relation: RelationDefaults, sample: Sample, severity: int, rng: Rng) -> FollowUp:
    """Return the follow-up that a relation makes of a sample.

    Raises:
        InputError: The relation raises an error, or returns no image such as the source.
    """
    about = f" (severity {severity}, sample {sample.id!r})"
    with naming("relation", relation, "apply", about):
        follow_up = relation.apply(sample, severity, rng)
        if not isinstance(follow_up, FollowUp):
            raise unexpected("", "FollowUp(image)", brief(follow_up))
        if sample.image is not None:
            check_image(follow_up.image, sample.image)
    return follow_up


def check_image(image: Any, source: Image) -> None:
    """Raise InputError unless a relation returned an image such as the source."""
    channels, is_array = source.shape[2], isinstance(image, np.ndarray)
    if is_array and image.dtype == np.uint8 and image.shape[2:] == (channels,) and image.size:
        return
    size = " x ".join(map(str, image.shape)) if is_array else ""
    got = f"{size} of {image.dtype}" if size else brief(image)
    raise unexpected("", f"an image H x W x {channels} of uint8", got)


def truth_after(relation: RelationDefaults, truth: int, follow_up: FollowUp) -> int:
    """Return the true answer for a follow-up, 0 or 1, by the relation.

    Raises:
        InputError: The relation raises an error, or returns something else.
    """
    with naming("relation", relation, "expect"):
        expected = relation.expect(truth, follow_up)
        if expected not in (0, 1):
            raise unexpected("", "a true answer of 0 or 1", brief(expected))
        return int(expected)


class LabelPreserving(RelationDefaults):
    """Base class of relations that change the image but no answer."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        return FollowUp(self.transform(sample.image, severity, rng))

    def transform(self, image: Image, severity: int, rng: Rng) -> Image:
        """Return the changed image, a new array of the shape and type of ``image``."""
        raise TypeError(f"{type(self).__name__} defines no transform")


class Laddered(LabelPreserving):
    """Base class of relations whose severities are tuples of numeric parameters.

    Subclasses define ``made``.
    """

    ladder: tuple[Rung, ...]
    """Parameters of each severity, mildest first."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        parameters = self.rung(severity)
        return FollowUp(None) if sample.image is None else self.made(sample, parameters, rng)

    def apply_between(self, sample: Sample, rng: Rng) -> FollowUp:
        """Return a follow-up whose parameters are uniform between mildest and strongest severity.

        Source: MedMNIST-C, section 2.3. Parameters that are counts are truncated to integers.
        """
        ends = zip(self.ladder[0], self.ladder[-1], strict=True)
        drawn = tuple(first + (last - first) * float(rng.random()) for first, last in ends)
        return FollowUp(None) if sample.image is None else self.made(sample, drawn, rng)

    def rung(self, severity: int) -> Rung:
        """Return the parameters of a severity; raise InputError if it does not exist."""
        self.check(severity)
        return self.ladder[self.severities.index(severity)]

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        """Return the follow-up with these parameters of a sample that has an image."""
        raise TypeError(f"{type(self).__name__} defines no made")


@dataclass(frozen=True)
class Variant:
    """One severity of one relation."""

    relation: RelationDefaults
    severity: int

    @property
    def name(self) -> str:
        return f"{self.relation.name}:{self.severity}"


_BOX = re.compile(r"\[\s*\d+(?:\.\d+)?(?:\s*,\s*\d+(?:\.\d+)?){3}\s*\]")


def coordinates(ask: Ask) -> bool:
    """Return whether a question or one of its options contains a box [x1, y1, x2, y2]."""
    return any(_BOX.search(text) for text in (ask.text, *ask.options))


def moves(relation: RelationDefaults, follow_up: FollowUp, sample: Sample) -> bool:
    """Return whether positions in the image change from the source to the follow-up.

    The test is whether ``expect_mask`` changes a random mask.
    """
    if sample.image is None or follow_up.image is None:
        return False
    if follow_up.image.shape != sample.image.shape or relation.masks_lost:
        return True
    probe = np.random.default_rng(0).random(sample.image.shape[:2]) < 0.5
    return not np.array_equal(relation.expect_mask(probe, follow_up), probe)
