"""Where every target stands: what is certified of it, and what is believed beside that."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...certify.further import Range
from ...certify.tracks import Track
from ...types import IDENTITY, SIDES, TargetId
from ..way_on import forecast
from .content import Content

if TYPE_CHECKING:
    from ...journal.facts import CertificateFacts

RATES = {
    "miss rate": "Miss rate: error where the concept is present",
    "false-alarm rate": "False-alarm rate: error where the concept is absent",
    "EFR": "Error finding rate (EFR) per concept",
    "error rate": "Error rate per concept",
    "violation rate": "Violation rate per concept",
    "mean distance": "Mean distance between grades, by true grade",
}
"""Rates of a concept, and their headings."""
KINDS = {
    "overall": "All questions",
    "relation": "Error rate per relation",
    "severity": "Error rate per relation and severity",
    **RATES,
    "relation, error": "Error rate per relation and concept",
    **{f"relation, {rate}": f"{rate[0].upper()}{rate[1:]} per relation" for rate in RATES},
    "slice": "Slices, found by the audit itself",
    "other": "Other targets",
}
"""Kinds of targets in the order of the page."""


@dataclass(frozen=True)
class Standing:
    """One target. ``label`` names it within its ``kind``.

    ``drawn`` is the estimate by the draws alone. ``raw`` is the mean loss of the questions seen
    and ``belief`` the answer GP's error rate, each None where there is none. ``side`` of the
    certificate's limit: "above", "below" or "open", None without a limit. ``contradicted``: nothing
    was left of its interval, which certifies nothing. ``settled``: all that was asked of it is
    reached, after ``settled_at`` calls (None: not yet), when
    ``settled_seen`` of its questions were seen. Of an audit that ended, the interval is what it
    journaled; of a running one, what its rows come to. The last three are known at the end only.
    """

    place: int
    id: TargetId
    kind: str
    label: str
    size: int
    questions: int
    estimate: float
    drawn: float
    lower: float
    upper: float
    certified: bool
    side: str | None
    contradicted: bool
    settled: bool
    settled_at: int | None
    settled_seen: int
    raw: float | None
    belief: float | None
    variance_ratio: float | None
    effective: float | None
    more_calls: Range | None

    @property
    def name(self) -> str:
        return self.id.name

    @property
    def half_width(self) -> float:
        return (self.upper - self.lower) / 2

    @property
    def astray(self) -> list[tuple[str, float, str]]:
        """Beliefs outside the interval: what (raw or belief), its value, above or below; none
        where the interval is contradicted itself."""
        found: list[tuple[str, float, str]] = []
        if self.contradicted:
            return found
        for what, value in (("raw", self.raw), ("belief", self.belief)):
            if value is not None and not self.lower <= value <= self.upper:
                found.append((what, value, "above" if value > self.upper else "below"))
        return found


def standings(
    content: Content, certificate: "CertificateFacts", rates: Mapping[tuple[int, int], float]
) -> list[Standing]:
    """One per target, in the order of the certificate.

    ``rates``: (concept, side) -> the error rate that the answer GPs imply, where they do.
    """
    believed, family = _believed(content, rates), shared(content.relations)
    stated = _stated(content) or [{}] * len(certificate.ids)
    return [
        _standing(
            k,
            (target, _kind(target), _label(target, content, family)),
            certificate,
            track,
            believed.get(target),
            row,
        )
        for k, (target, track, row) in enumerate(
            zip(certificate.ids, content.history, stated, strict=True)
        )
    ]


def ordered(found: list[Standing]) -> list[tuple[str, list[Standing]]]:
    """By kind, the highest estimate first."""
    groups = [(title, [s for s in found if s.kind == kind]) for kind, title in KINDS.items()]
    return [(t, sorted(part, key=lambda s: -s.estimate)) for t, part in groups if part]


def _standing(
    place: int,
    name: tuple[TargetId, str, str],
    certificate: "CertificateFacts",
    track: Track,
    belief: float | None,
    stated: dict[str, Any],
) -> Standing:
    lower = float(stated.get("lower", track.lower[-1]))
    upper = float(stated.get("upper", track.upper[-1]))
    contradicted = bool(stated.get("emptied", track.emptied))
    narrow = (upper - lower) / 2 <= certificate.aim
    certified = stated.get("certified", narrow and not contradicted)
    width, limit = certificate.half_width, certificate.at_most
    reached = np.ones(len(track.lower), bool)
    if width is not None:
        reached &= track.half_width <= width
    if certificate.decides:
        reached &= track.decided != 0
    elif limit is not None:
        reached &= (track.lower > limit) | (track.upper <= limit)
    side = _side(lower, upper, limit)
    if certificate.decides:
        side = _decided(stated, track)
    settled = (width is None or certified) and side != "open" and not contradicted
    moment = int(reached.argmax()) if reached.any() else len(reached) - 1
    return Standing(
        place,
        *name,
        size=certificate.sizes[place],
        questions=int(track.questions[-1]),
        estimate=stated.get("estimate", track.estimate),
        drawn=stated.get("pseudo_outcome_mean", track.estimate),
        lower=lower,
        upper=upper,
        certified=certified,
        side=side,
        contradicted=contradicted,
        settled=settled,
        settled_at=moment if settled else None,
        settled_seen=int(track.questions[moment if settled else -1]),
        raw=None if math.isnan(track.mean) else track.mean,
        belief=belief,
        variance_ratio=stated.get("variance_ratio"),
        effective=stated.get("effective_draws"),
        more_calls=forecast([stated]),
    )


def _stated(content: Content) -> list[dict[str, Any]]:
    """What the engine said of every target when the audit ended; [] while it is running."""
    return (content.facts.intervals or []) if content.facts.ended is not None else []


def _side(lower: float, upper: float, limit: float | None) -> str | None:
    if limit is None:
        return None
    if lower <= limit < upper:
        return "open"
    return "above" if lower > limit else "below"


def _decided(stated: dict[str, Any], track: Track) -> str:
    """The side decided by bets, as the engine said or as the rows come to."""
    now = {1: "above", -1: "below"}.get(int(track.decided[-1]), "open")
    return str(stated.get("decided", now))


def _kind(target: TargetId) -> str:
    """The key of KINDS under which the page shows a target."""
    if target.kind in ("overall", "misclassified"):
        return "overall"
    kind = {"concept": target.rate, "relation-concept": f"relation, {target.rate}"}.get(
        target.kind, target.kind
    )
    return kind if kind in KINDS else "other"


def _label(target: TargetId, content: Content, family: str) -> str:
    """The target's name without what its heading says, or all relations have in common."""
    relation = (target.relation or "").removeprefix(family)
    if _kind(target) == "other":
        return target.name
    if target.kind == "slice":
        return str(target.filter)
    if target.kind == "severity":
        return content.change(target.relation or "", target.severity or 0).removeprefix(family)
    return {
        "concept": str(target.concept),
        "relation": relation,
        "relation-concept": f"{relation}, {target.concept}",
    }.get(target.kind, target.name)


def _believed(content: Content, rates: Mapping[tuple[int, int], float]) -> dict[TargetId, float]:
    """The rates by target."""
    names = {side: rate for rate, side in SIDES.items()}
    return {
        TargetId("concept", content.concepts[concept], side, names[side]): rate
        for (concept, side), rate in rates.items()
    }


def shared(relations: list[str]) -> str:
    """The family that all relations are of, identity apart, with its slash; "" where several."""
    families = {name[: name.rfind("/") + 1] for name in relations if name != IDENTITY}
    return families.pop() if len(families) == 1 else ""
