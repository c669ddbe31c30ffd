"""Relations: what makes a follow-up image, and what the answer should then be."""

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from ..errors import unexpected
from ..types import Ask, FollowUp, Image, Mask, Sample
from ..utils.other_code import Completed

Rng = np.random.Generator
"""The source of all random numbers of a follow-up."""
Rung = tuple[float, ...]
"""The parameters of a severity."""


class Relation(Protocol):
    """A metamorphic relation; ``RelationDefaults`` has the optional members."""

    @property
    def name(self) -> str:
        """The name of the relation in specs, journals and reports."""

    @property
    def severities(self) -> tuple[int, ...]:
        """The levels that exist, mildest first."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up of ``sample``; never modifies it, and depends only on the
        arguments."""

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        """Return the true answer about the follow-up, from that about the source."""


class RelationDefaults:
    """Defaults of the optional members: no answer changes, and nothing moves."""

    name: str
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    about: str = ""
    """A description in a line."""
    in_order: bool = True
    """True if images move further from the source with every severity."""
    adds: ClassVar[str] = ""
    """The thing it puts into the picture: "text", "instrument", "feces", "blood" or ""."""
    reduces: ClassVar[bool] = False
    """True if it only cuts off the picture's edges, so that the part in view is known."""
    in_words: Literal["nothing", "also", "only"] = "nothing"
    """"also" where a follow-up's ``words`` repeat what is drawn; "only" where they hold all that
    differs from the source, so that a model must take words."""
    needs_answer: bool = False
    """True if follow-ups are chosen by the audited model's answer about the source
    (``Sample.received``), which has to come first."""
    needs_region: ClassVar[bool] = False
    """True if it points at ``Sample.masks``; without a mask there is no follow-up."""

    @property
    def fingerprint(self) -> str | None:
        """The options on which follow-ups depend, for the space's fingerprint; None: no options."""
        return None

    @property
    def masks_lost(self) -> str:
        """The reason why masks cannot be moved with the image; "": they can, or nothing moves."""
        return ""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        raise TypeError(f"{type(self).__name__} defines no apply")

    def apply_between(self, sample: Sample, rng: Rng) -> FollowUp:
        """Return a follow-up at a random strength: by default at a severity drawn evenly.

        ``Laddered`` relations have strengths in between.
        """
        return self.apply(sample, self.severities[int(rng.integers(len(self.severities)))], rng)

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return truth

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Return the mask of a concept in the follow-up (H x W), from that in the source."""
        return mask

    def applies(self, concept: str) -> bool:
        """Return whether questions about ``concept`` make sense after this relation."""
        return True

    def check(self, severity: int) -> None:
        """Raise InputError for a severity that does not exist."""
        if severity not in self.severities:
            raise unexpected(self.name, f"a severity in {list(self.severities)}", severity)


class Adapted(Completed, RelationDefaults):
    """A relation that does not inherit from ``RelationDefaults``."""


def adapted_relation(relation: Relation) -> RelationDefaults:
    """Return a relation with all members of ``RelationDefaults``.

    Args:
        relation: Any relation.

    Returns:
        The relation itself if it has them, else one that adds the defaults.
    """
    return relation if isinstance(relation, RelationDefaults) else Adapted(relation)


class LabelPreserving(RelationDefaults):
    """Base of relations that change an image and leave every answer the same."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        return FollowUp(self.transform(sample.image, severity, rng))

    def transform(self, image: Image, severity: int, rng: Rng) -> Image:
        """Return the changed image: same shape and dtype as ``image``, which is left alone."""
        raise TypeError(f"{type(self).__name__} defines no transform")


class Laddered(LabelPreserving):
    """Base of relations whose strength is in numbers: a tuple of parameters per severity.

    Subclasses define ``made``.
    """

    ladder: tuple[Rung, ...]
    """Parameters by severity, mildest first."""

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        parameters = self.rung(severity)
        return FollowUp(None) if sample.image is None else self.made(sample, parameters, rng)

    def apply_between(self, sample: Sample, rng: Rng) -> FollowUp:
        """Return a follow-up; each parameter is drawn evenly between its first and last value.

        Source: MedMNIST-C, section 2.3. Parameters that count things are cut down to whole numbers.
        """
        ends = zip(self.ladder[0], self.ladder[-1], strict=True)
        drawn = tuple(first + (last - first) * float(rng.random()) for first, last in ends)
        return FollowUp(None) if sample.image is None else self.made(sample, drawn, rng)

    def rung(self, severity: int) -> Rung:
        """Return the parameters of a severity. Raise InputError for one that does not exist."""
        self.check(severity)
        return self.ladder[self.severities.index(severity)]

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        """Return the follow-up of a sample that has an image."""
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
    """Return whether a box [x1, y1, x2, y2] is named in the question or in an option."""
    return any(_BOX.search(text) for text in (ask.text, *ask.options))


def moves(relation: RelationDefaults, follow_up: FollowUp, sample: Sample) -> bool:
    """Return whether things change their place from the sample's image to the follow-up.

    A random mask, which differs at every place, shows it.
    """
    if sample.image is None or follow_up.image is None:
        return False
    if follow_up.image.shape != sample.image.shape or relation.masks_lost:
        return True
    probe = np.random.default_rng(0).random(sample.image.shape[:2]) < 0.5
    return not np.array_equal(relation.expect_mask(probe, follow_up), probe)
