"""Define the errors and violations of a pair of captions whose faults are known.

No oracle is used. Names are those of the captioner's own dictionary, ``TemplateCaptioner.explain``
gives the object that each name stands for, and a scene's exact masks give the share of each object
that a follow-up shows. In REIC, inspectors judge captions against images (TSE 2024, section V-B).
Here these are the rules:

- A name is right if it stands for an object of its kind.
- A name of the source's caption has an *error* if it stands for another kind (1.1) or for nothing
  (3). If it is right, it has an error in two cases. Its object is in view (a share of at least
  ``up``), but the follow-up's caption takes it for another kind (1.2) or leaves it out (2.2). Or
  its object is gone (a share of at most ``down``), but the follow-up's caption has the name for
  another kind (1.2) or for nothing (3).
- A name that only the follow-up's caption has is an error, too. Either it stands for another kind
  (1.2) or for nothing (3). Or the source's caption takes the object for another kind (1.1) or
  leaves it out (2.1).
- An error is a *violation* if the two captions break the relation: the name's object is in view and
  not named again, or is gone and named again. If all objects that the source's caption names are in
  view, a name that only one caption has is a violation, too. The relation cannot show other errors,
  such as one that both captions make.

A report about a name is right if the name has an error, as for the inspectors. A name that is not
reported counts as missed only if it is a violation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from adaptive_vtt.relations.reduction import Crop, Rotate, Stretch, visible_shares
from adaptive_vtt.relations.reic import T_DOWN, T_UP
from adaptive_vtt.types import Image, Sample

from .photographs import NEW_WORDS
from .template_captioner import Explanation
from .vocabulary import EVERYDAY

KINDS_OF_WORDS: Mapping[str, str] = {
    form: name
    for name, words in {**EVERYDAY.words, **NEW_WORDS}.items()
    for forms in ((words.singular, words.plural), *words.others)
    for form in forms
}
"""Every word of the captioner, in singular and plural -> the kind that it is a name of."""


@dataclass(frozen=True)
class Unit:
    """A name of a pair of captions.

    Attributes:
        name: The name.
        new: Whether only the follow-up's caption has it.
        again: Whether the follow-up's caption names its kind, in any words.
        error: Type of its error, None without one.
        violation: Whether the relation is really broken.
    """

    name: str
    new: bool
    again: bool = True
    error: str | None = None
    violation: bool = False


@dataclass(frozen=True)
class _Pair:
    """The captions of a source and a follow-up, and the shares of kinds that the latter shows."""

    source: Explanation
    follow_up: Explanation
    shares: Mapping[str, float]
    down: float
    up: float

    def whole(self) -> bool:
        """Return whether the source's caption names objects, and all of them are in view."""
        things = [k for kinds in stands_for(self.source).values() for k in kinds if k]
        return bool(things) and all(self.shares.get(k, 0.0) >= self.up for k in things)

    def of_source(self, kind: str) -> tuple[str | None, bool]:
        """Return error and violation of a kind that the source's caption names."""
        kinds = stands_for(self.source)[kind]
        meant = stands_for(self.follow_up).get(kind)
        right = kind in kinds
        things = [kind] if right else [k for k in kinds if k]
        if not things:
            return "3", meant is None and self.whole()
        share = max(self.shares.get(k, 0.0) for k in things)
        error, broken = None if right else "1.1", False
        if share >= self.up and meant is None:
            broken = True
            error = error or ("1.2" if kind in self.follow_up.misclassified else "2.2")
        elif share <= self.down and meant is not None:
            wrong = None if kind in meant else "1.2" if any(meant) else "3"
            error = wrong or error
            broken = error is not None
        return error, broken

    def of_follow_up(self, kind: str) -> tuple[str, bool]:
        """Return error and violation of a kind that only the follow-up's caption names."""
        meant = stands_for(self.follow_up)[kind]
        if kind in meant:
            error = "1.1" if kind in self.source.misclassified else "2.1"
        else:
            error = "1.2" if any(meant) else "3"
        return error, self.whole()


def truth(
    source: Explanation,
    follow_up: Explanation,
    shares: Mapping[str, float],
    *,
    down: float = T_DOWN,
    up: float = T_UP,
) -> list[Unit]:
    """Return a unit for each name of the source's caption, and for those of the follow-up's alone.

    Args:
        source: Caption of the source.
        follow_up: Caption of the follow-up.
        shares: Kind -> share of it that the follow-up shows, 0..1.
        down: Largest share of an object that is gone.
        up: Least share of an object that is in view.
    """
    pair = _Pair(source, follow_up, shares, down, up)
    before, after = named(source), named(follow_up)
    units = [
        Unit(word, False, kind in after, *pair.of_source(kind)) for kind, word in before.items()
    ]
    return units + [
        Unit(word, True, True, *pair.of_follow_up(kind))
        for kind, word in after.items()
        if kind not in before
    ]


class Explaining(Protocol):
    """A captioner that explains its captions."""

    def explain(self, image: Image) -> Explanation: ...


def truths_of(
    captioner: Explaining, sample: Sample, reduction: Crop | Stretch | Rotate
) -> list[Unit]:
    """Return ``truth`` of the captions of a sample, which has exact masks, and of its follow-up."""
    masks = {kind: mask for kind, mask in sample.masks.items() if mask.any()}
    shares = visible_shares([*masks.values()], [reduction])[:, 0].tolist()
    image = sample.require_image()
    source, follow_up = captioner.explain(image), captioner.explain(reduction.image(image))
    return truth(source, follow_up, dict(zip(masks, shares, strict=True)))


def named(caption: Explanation) -> dict[str, str]:
    """Return kind -> its name in the caption."""
    return {KINDS_OF_WORDS[word]: word for word, _ in caption.named}


def stands_for(caption: Explanation) -> dict[str, set[str | None]]:
    """Return each kind that a caption names -> the kinds that it stands for, None for nothing."""
    kinds: dict[str, set[str | None]] = {}
    for word, kind in caption.named:
        kinds.setdefault(KINDS_OF_WORDS[word], set()).add(kind)
    return kinds
