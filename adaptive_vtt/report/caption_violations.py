"""Captions that break a rule: both pictures with boxes, both captions, the object, the rule."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..oracles.caption_findings import found
from ..oracles.caption_findings import judged as read
from ..oracles.caption_rules import ERROR_TYPES, rule_of
from .evidence import Evidence
from .gallery import FIRST, MOST, Picture, picture
from .section import Section, fragment

OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""


@dataclass(frozen=True)
class Box:
    """A box in shares of its picture, in percent, and what is in it."""

    left: float
    top: float
    width: float
    height: float
    name: str
    wrong: bool


@dataclass(frozen=True)
class Shown:
    """A picture with boxes; None where the journal keeps none."""

    picture: Picture | None
    boxes: list[Box]
    ratio: float


@dataclass(frozen=True)
class Violation:
    """One object that breaks a rule."""

    name: str
    rule: str
    error: str
    status: str


@dataclass(frozen=True)
class Pair:
    """One follow-up with at least one violation."""

    sample: str
    relation: int
    change: str
    reduction: str
    source: Shown
    follow_up: Shown
    caption: str
    said: str
    violations: list[Violation]
    others: list[str]

    @property
    def types(self) -> list[str]:
        return sorted({v.error for v in self.violations})


def section(evidence: Evidence) -> Section | None:
    """None where no answer is a caption with findings."""
    figures = found(evidence.calls, evidence.draws)
    if figures is None:
        return None
    judged = read(evidence.calls)
    every = [_pair(evidence, a.question, a.details or {}) for a in judged if a.loss]
    pairs = list(_fitting(sorted((p for p in every if p), key=lambda p: p.source.picture is None)))
    kinds = [*ERROR_TYPES.items(), (OTHER, "of another kind")]
    html = fragment(
        "captions.html",
        pairs=pairs,
        broken=len(every),
        first=FIRST,
        figures=figures,
        table=_table(evidence, judged),
        kinds=[(kind, words) for kind, words in kinds if any(kind in p.types for p in pairs)],
        types=ERROR_TYPES,
        relations=[(i, evidence.relations[i]) for i in sorted({p.relation for p in pairs})],
    )
    return Section("Captions that break a rule", "captions", html)


def _fitting(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """The first pairs, as many as the size of the page allows."""
    sizes = (
        sum(len(s.picture.address) for s in (p.source, p.follow_up) if s.picture) + 1500
        for p in pairs
    )
    return (p for p, size in zip(pairs, accumulate(sizes), strict=True) if size <= MOST)


def _table(evidence: Evidence, judged: Sequence[Any]) -> list[tuple[str, list[int], int]]:
    """Per relation: violations by error type, and all of them."""
    found: dict[str, Counter[str]] = {name: Counter() for name in evidence.relations}
    for answer in judged:
        relation = evidence.asked(answer.question).relation
        for one in answer.details["objects"]:
            if one["rule"] is not None:
                found[relation][one["type"] or OTHER] += 1
    return [
        (name, [counts[kind] for kind in ERROR_TYPES], counts.total())
        for name, counts in found.items()
    ]


def _pair(evidence: Evidence, question: int, details: Mapping[str, Any]) -> Pair | None:
    wrong = [o for o in details["objects"] if o["rule"] is not None]
    if not wrong:
        return None
    asked = evidence.asked(question)
    sources, followed = evidence.pictures.get(evidence.answers[question].call, (None, None))
    return Pair(
        evidence.samples[evidence.answers[question].call],
        evidence.relations.index(asked.relation),
        evidence.change(asked.relation, asked.severity),
        details["reduction"],
        _shown(sources, details["objects"], "boxes", details["size"]),
        _shown(followed, details["objects"], "shown", details.get("shown_size")),
        details["source"],
        details["caption"],
        [_violation(o, asked.relation) for o in wrong],
        [_state(o) for o in details["objects"] if o["rule"] is None],
    )


def _violation(one: Mapping[str, Any], relation: str) -> Violation:
    share = "" if one["visible"] is None else f", {one['visible']:.0%} in view"
    return Violation(
        one["name"], rule_of(relation, one["rule"]), one["type"] or OTHER, f"{one['status']}{share}"
    )


def _state(one: Mapping[str, Any]) -> str:
    """An object that breaks no rule, in words."""
    share = "" if one["visible"] is None else f", {one['visible']:.0%} in view"
    return f"{one['name']} ({one['status']}{share})"


def _shown(
    png: bytes | None,
    objects: Sequence[Mapping[str, Any]],
    where: str,
    size: Sequence[int] | None,
) -> Shown:
    if not size:
        return Shown(picture(png) if png else None, [], 1.0)
    height, width = size
    boxes = [
        Box(
            100 * left / width,
            100 * top / height,
            100 * (right - left) / width,
            100 * (bottom - top) / height,
            one["name"],
            one["rule"] is not None,
        )
        for one in objects
        for left, top, right, bottom in one.get(where) or ()
    ]
    return Shown(picture(png) if png else None, boxes, width / height)
