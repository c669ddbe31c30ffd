"""What the journal says and what follows from it, worked out once and shared by all sections: the
answer GPs that it teaches, and where every target stands.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...certify.status import TargetStatus
from ...certify.tracks import Track
from ...families import OfConcept, TargetId, in_short
from ...oracles.base import LABEL_ERROR
from ...types import SIDES, Floats
from ..beliefs import Beliefs
from ..derived import Bounds
from .content import Content, Failure, failures

if TYPE_CHECKING:
    from ...surrogates import AnswerGP

# -- answer GPs learnt again -----------------------------------------------------------------------


CHECKPOINTS = 200
"""Uncertainty is measured at most so often."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Replay:
    """T checkpoints: ``calls`` and ``questions`` so far (T,), and uncertainty T x C x 2.

    ``uncertainty`` is relative to the prior, NaN on a side where nothing is left to ask.
    ``mean``, ``deviation`` and ``counts`` are C x bins, at the end.
    """

    calls: Counts
    questions: Counts
    uncertainty: Floats
    grid: Floats
    mean: Floats
    deviation: Floats
    counts: Counts


def replay(content: Content) -> Replay:
    """Learns all answers in draw order."""
    from ...surrogates import AnswerGP

    form = content.settings.form
    gp = AnswerGP(len(content.concepts), form=form, device="cpu")
    calls, questions = _checkpoints(content)
    measured = list(_measured(gp, content, questions))
    return Replay(
        calls,
        questions,
        np.stack(measured),
        gp.grid.numpy(),
        gp.mean().numpy(),
        gp.variance().sqrt().numpy(),
        gp.counts.numpy().astype(np.int64),
    )


def implied_rates(content: Content, learnt: Replay) -> dict[tuple[str, int], float]:
    """(concept, side) -> the error rate the answer GP implies; sides never answered are left out.

    A bin's coordinate, (P(yes) + truth) / 2, tells both the side and whether the answer is wrong.
    The rate is the wrong share of the posterior mean summed over the side's bins: FP / (TN + FP)
    where the concept is absent (0), FN / (TP + FN) where it is present (1). The middle bin belongs
    to both sides, and is divided as the answers in it are.
    """
    told = content.table[content.table["answer"].notna()]
    mass, middle = np.maximum(learnt.mean, 0.0), learnt.mean.shape[1] // 2
    places = {name: i for i, name in enumerate(content.concepts)}
    rates: dict[tuple[str, int], float] = {}
    groups: Any = told.groupby(["concept", "truth"], sort=False)  # the stubs know no tuples
    for (name, side), part in groups:
        place, at = places[name], part["coordinate"].to_numpy(float)
        among = learnt.counts[place, middle]
        share = (np.abs(at - 0.5) <= 0.5 / (2 * middle)).sum() / among if among else 0.5
        # outwards from the middle: wrong answers first, then right ones
        half = mass[place, middle:] if side else mass[place, middle::-1]
        half = half * np.where(np.arange(middle + 1) == 0, min(share, 1.0), 1.0)
        wrong = half[: middle // 2].sum() + half[middle // 2] / 2
        if half.sum() > 0:
            rates[name, int(side)] = float(wrong / half.sum())
    return rates


def _checkpoints(content: Content) -> tuple[Counts, Counts]:
    """Calls answered, and questions judged by then, at each checkpoint; 0 and all included."""
    places = {row.call: row.draw for row in content.draws}
    draws = np.sort([places[c.call] for c in content.calls]).astype(np.int64)
    judged = np.searchsorted(content.table["draw"].to_numpy(np.int64), draws, side="right")
    calls = np.unique(np.linspace(0, len(draws), CHECKPOINTS).round().astype(np.int64))
    return calls, np.concatenate([[0], judged])[calls].astype(np.int64)


def _measured(gp: "AnswerGP", content: Content, questions: Counts) -> Iterator[Floats]:
    """C x 2 relative uncertainty after so many questions each."""
    table = content.table
    concept = table["concept"].map({c: i for i, c in enumerate(content.concepts)})
    concepts = np.asarray(concept, dtype=np.int64)
    truths = np.asarray(table["truth"], dtype=np.int64)
    coordinates = np.asarray(table["coordinate"], dtype=np.float64)
    left = np.array(content.facts.space.cell_counts, dtype=np.int64)
    start = 0
    for end in questions.tolist():
        part = slice(start, end)
        np.subtract.at(left, (concepts[part], truths[part]), 1)
        _learn(gp, concepts[part], coordinates[part])
        relative = gp.uncertainty().numpy() / gp.prior_uncertainty
        yield np.where(left > 0, relative, np.nan)
        start = end


def _learn(gp: "AnswerGP", concepts: Counts, coordinates: Floats) -> None:
    import torch

    from ...surrogates import AnswerPoints

    told = ~np.isnan(coordinates)
    points = AnswerPoints(torch.from_numpy(concepts[told]), torch.from_numpy(coordinates[told]))
    gp.observe(points)


# -- where targets stand ---------------------------------------------------------------------------


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
    **dict.fromkeys(
        ("relation, error", f"relation, {LABEL_ERROR}"), "Error rate per relation and concept"
    ),
    **{f"relation, {rate}": f"{rate[0].upper()}{rate[1:]} per relation" for rate in RATES},
    "slice": "Slices, found by the audit itself",
    "other": "Other targets",
}
"""Kinds of targets in the order of the page."""


@dataclass(frozen=True, kw_only=True)
class Standing(TargetStatus):
    """A target's status on a page. ``label`` names it within its ``heading``, a key of KINDS.

    ``raw`` is the mean loss of the questions seen and ``belief`` the answer GP's error rate, each
    None where there is none. ``settled``: all that was asked of it is reached, after ``settled_at``
    calls (None: not yet), when ``settled_seen`` of its questions were seen.
    """

    place: int
    kind: str
    label: str
    settled: bool
    settled_at: int | None
    settled_seen: int
    raw: float | None
    belief: float | None

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.estimate, self.lower, self.upper)

    @property
    def beliefs_outside(self) -> list[tuple[str, float, str]]:
        """Beliefs outside the interval: what (raw or belief), its value, above or below; none
        where the interval is emptied itself."""
        found: list[tuple[str, float, str]] = []
        if self.emptied:
            return found
        for what, value in (("raw", self.raw), ("belief", self.belief)):
            if value is not None and not self.lower <= value <= self.upper:
                found.append((what, value, "above" if value > self.upper else "below"))
        return found


def _standing(
    content: Content, place: int, track: Track, rates: Mapping[tuple[str, int], float]
) -> Standing:
    """``rates``: (concept, side) -> the error rate that the answer GPs imply, where they do."""
    certificate, status = content.certificate, content.statuses[place]
    assert certificate is not None
    target = status.id
    width, limit, side = certificate.half_width, certificate.at_most, status.decided
    reached = np.ones(len(track.lower), bool)
    if width is not None:
        reached &= track.half_width <= width
    if certificate.decides:
        reached &= track.decided != 0
    elif limit is not None:
        reached &= (track.lower > limit) | (track.upper <= limit)
        below = "open" if limit < status.upper else "below"
        side = "above" if status.lower > limit else below
    settled = (width is None or status.certified) and side != "open" and not status.emptied
    if certificate.counted:
        settled = status.certified
    moment = int(reached.argmax()) if reached.any() else len(reached) - 1
    about = (target.concept, target.side) if isinstance(target, OfConcept) else None
    return Standing(
        **{
            **vars(status),
            "decided": side,
            "drawn": status.estimate if status.drawn is None else status.drawn,
            "questions": int(track.questions[-1]),
        },
        place=place,
        kind=target.heading if target.heading in KINDS else "other",
        label=_label(target, content),
        settled=settled,
        settled_at=moment if settled else None,
        settled_seen=int(track.questions[moment if settled else -1]),
        raw=None if math.isnan(track.mean) else track.mean,
        belief=rates.get(about) if about and target.rate in SIDES else None,
    )


def ordered(found: list[Standing]) -> list[tuple[str, list[Standing]]]:
    """By kind, the highest estimate first."""
    groups = [(title, [s for s in found if s.kind == kind]) for kind, title in KINDS.items()]
    return [(t, sorted(part, key=lambda s: -s.estimate)) for t, part in groups if part]


def _label(target: TargetId, content: Content) -> str:
    """The target's name without what its heading says, or all relations have in common."""
    if target.heading not in KINDS:
        return target.name
    return in_short(target, content.variants)


# -- all of it -------------------------------------------------------------------------------------


class Evidence(Content):
    """A journal's content, the answer GPs that it teaches, and where every target stands."""

    @cached_property
    def replay(self) -> Replay:
        """The answer GPs, learnt again from the first answer to the last."""
        return replay(self)

    @cached_property
    def beliefs(self) -> Beliefs:
        """What was believed as the audit went on."""
        about, rows = self.believed, self.belief_rows
        return Beliefs(self.facts, about, rows, self.draws, self.calls, self.history)

    @cached_property
    def failures(self) -> list[Failure]:
        """Every call with a wrong answer, the surest mistakes first."""
        return failures(self)

    @property
    def bounds(self) -> dict[TargetId, Bounds]:
        """Every target's estimate and interval."""
        return {s.id: s.bounds for s in self.standings}

    @cached_property
    def standings(self) -> list[Standing]:
        """Where every target stands, in the order of the certificate; [] without one.

        Where classes are compared with each other, beliefs about one of them imply no rate.
        """
        if self.certificate is None:
            return []
        alone = self.facts.space.concepts_are != "classes" and not self.certificate.counted
        rates = implied_rates(self, self.replay) if alone else {}
        return [_standing(self, k, track, rates) for k, track in enumerate(self.history)]
