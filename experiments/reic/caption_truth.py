"""What is really wrong with a pair of captions, where every fault is known.

Nothing here comes from an oracle: names are those of the captioner's own dictionary, what they
stand for is what ``TemplateCaptioner.explain`` says, and how much of a thing a follow-up shows
is counted in the scene's exact masks. REIC's inspectors judge captions against images (TSE
2024, section V-B); here that is spelt out:

- A name is right where something of its kind is there and it stands for that.
- A name of the source's caption has an *error* if it stands for another kind (1.1) or nothing
  (3); else, if its thing is in view (a share of at least ``up``) and the follow-up does not
  name it, as it takes it for another (1.2) or leaves it out (2.2); or if its thing is gone (a
  share of at most ``down``), and the follow-up names it all the same, for another (1.2) or
  for nothing (3).
- A name of the follow-up's caption alone has one if it stands for another kind (1.2) or
  nothing (3); else the source's caption lacks it, as that takes the thing for another (1.1)
  or leaves it out (2.1).
- An error is a *violation* if the two captions break the relation, read with what is really
  there: the name's thing is in view and not named again, or gone and named all the same;
  where all things that the source names are in view, also a name that only one caption has.
  Other errors, such as one that both captions make, are none that the relation could show.

A report about a name is right where that has an error, as the inspectors see it; a name that
is not reported was missed only where it is a violation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from adaptive_vtt.relations.reduction import Crop, Rotate, Stretch, visible_shares
from adaptive_vtt.relations.reic import T_DOWN, T_UP
from adaptive_vtt.types import Image, Sample

from .photographs import NEW_WORDS
from .template_captioner import Told
from .vocabulary import EVERYDAY

KINDS_OF_WORDS: Mapping[str, str] = {
    form: name
    for name, words in {**EVERYDAY.words, **NEW_WORDS}.items()
    for forms in ((words.singular, words.plural), *words.others)
    for form in forms
}
"""Every word of the captioner, in singular and plural, and the kind it is a name of."""


@dataclass(frozen=True)
class Unit:
    """A name of the source's caption, or (``new``) of the follow-up's alone.

    ``again``: whether the follow-up names its kind, in whatever words. ``error``: its type,
    None where nothing is wrong. ``violation``: whether the relation is really broken.
    """

    name: str
    new: bool
    again: bool = True
    error: str | None = None
    violation: bool = False


@dataclass(frozen=True)
class _Pair:
    """Two captions, with the kinds that each kind named in them stands for, None for nothing."""

    source: Told
    follow_up: Told
    shares: Mapping[str, float]
    down: float
    up: float

    def whole(self) -> bool:
        """Return whether the source names anything, and all of it is in view."""
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
    source: Told,
    follow_up: Told,
    shares: Mapping[str, float],
    *,
    down: float = T_DOWN,
    up: float = T_UP,
) -> list[Unit]:
    """Return a unit per name of the source's caption, and per name that only the follow-up's has.

    ``shares`` is how much of each kind in the scene the follow-up shows, 0..1.
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
    """A captioner that explains what it meant."""

    def explain(self, image: Image) -> Told: ...


def truths_of(
    captioner: Explaining, sample: Sample, reduction: Crop | Stretch | Rotate
) -> list[Unit]:
    """Return ``truth`` of the captions of a sample, which has exact masks, and of its follow-up."""
    there = {kind: mask for kind, mask in sample.masks.items() if mask.any()}
    shares = visible_shares([*there.values()], [reduction])[:, 0].tolist()
    image = sample.require_image()
    source, follow_up = captioner.explain(image), captioner.explain(reduction.image(image))
    return truth(source, follow_up, dict(zip(there, shares, strict=True)))


def named(told: Told) -> dict[str, str]:
    """Return kind -> its name in the caption."""
    return {KINDS_OF_WORDS[word]: word for word, _ in told.named}


def stands_for(told: Told) -> dict[str, set[str | None]]:
    """Return kind named -> the kinds that it stands for, None for nothing."""
    found: dict[str, set[str | None]] = {}
    for word, kind in told.named:
        found.setdefault(KINDS_OF_WORDS[word], set()).add(kind)
    return found
