"""Captions that break a rule: both pictures with boxes, both captions, the object, the rule."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...oracles.caption_findings import found
from ...oracles.caption_findings import judged as read
from ...oracles.caption_rules import ERROR_TYPES, rule_of
from .evidence import Evidence
from .section import Section, fragment

OTHER = "other"
"""A broken rule for which the paper has no error type, as a number that changed."""


@dataclass(frozen=True)
class Shown:
    """A picture with boxes: left, top, width and height in percent of it, what is in it, and
    whether that breaks a rule. ``png`` None where the journal keeps none."""

    png: bytes | None
    boxes: list[tuple[float, float, float, float, str, bool]]
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

    call: int
    sample: str
    relation: str
    severity: int
    change: str
    source: Shown
    follow_up: Shown
    caption: str
    said: str
    violations: list[Violation]
    others: list[str]
    targets: frozenset[int]


def section(evidence: Evidence) -> Section | None:
    """How many objects were checked, and violations by relation and type of error; None where
    no answer is a caption with findings."""
    figures = found(evidence.calls, evidence.draws)
    if figures is None:
        return None
    table = _table(evidence, read(evidence.calls))
    html = fragment("captions.html", figures=figures, table=table, types=ERROR_TYPES)
    return Section("Captions that break a rule", "captions", html)


def pairs(evidence: Evidence) -> list[Pair]:
    """Every follow-up with a violation, those with pictures first."""
    every = [_pair(evidence, a.question, a.details or {}) for a in read(evidence.calls) if a.loss]
    return sorted((p for p in every if p), key=lambda p: p.source.png is None)


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
    asked, call = evidence.asked(question), evidence.answers[question].call
    sources, followed = evidence.pictures.get(call, (None, None))
    return Pair(
        call,
        evidence.drawn[call].sample,
        asked.relation,
        asked.severity,
        evidence.change(asked.relation, asked.severity),
        _shown(sources, details["objects"], "boxes", details["size"]),
        _shown(followed, details["objects"], "shown", details.get("shown_size")),
        details["source"],
        details["caption"],
        [_violation(o, asked.relation) for o in wrong],
        [_state(o) for o in details["objects"] if o["rule"] is None],
        evidence.targets_of(call, [question]),
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
        return Shown(png, [], 1.0)
    height, width = size
    boxes = [
        (
            100 * left / width,
            100 * top / height,
            100 * (right - left) / width,
            100 * (bottom - top) / height,
            str(one["name"]),
            one["rule"] is not None,
        )
        for one in objects
        for left, top, right, bottom in one.get(where) or ()
    ]
    return Shown(png, boxes, width / height)
