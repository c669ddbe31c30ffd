"""What the journal says and what follows from it, worked out once and shared by all sections: rows,
calls that went wrong, the answer GPs that the answers teach, and where every target stands.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...certify.further import Range, further, longest
from ...certify.status import TargetStatus
from ...certify.tracks import Track, members_of
from ...certify.verify_draws import Membership
from ...families import OfConcept, in_short
from ...journal import Journal, SQLiteJournal
from ...journal.files import JOURNAL
from ...journal.rows import AnswerRow, CallRow
from ...oracles.base import LABEL_ERROR
from ...types import IDENTITY, SIDES, Floats
from ...utils.figures import in_points, on_page
from ..advice import spec_named
from ..beliefs import Beliefs
from ..cautions import cautions
from ..derived import Bounds
from ..outcomes import FAILED, counting, sample_word, unanswered
from ..run import Run
from .answers import answers_of
from .beside_journal import baselines, said_of_realism

CHECKPOINTS = 200
"""Moments at which the uncertainty of the answer GPs is measured, at most."""
MOST = 500
"""Failing calls that are listed where everything was asked and no picture was kept."""
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

Counts = npt.NDArray[np.int64]


class Asked(NamedTuple):
    """What a question is about, as far as its number tells."""

    concept: str
    relation: str
    severity: int


class Failure(NamedTuple):
    """One call that went wrong.

    ``mistakes``: what was answered wrongly, or not at all, the surest first; ``right``: how many
    other answers there are. ``pictures``: PNGs of the source and the follow-up image, None where
    none were kept; ``targets``: places of the targets that a wrong answer of the call belongs to.
    """

    call: int
    sample: str
    about: Asked
    change: str
    pictures: tuple[bytes, bytes] | None
    mistakes: list[AnswerRow]
    right: int
    targets: frozenset[int]


@dataclass(frozen=True)
class Replay:
    """The answer GPs at T checkpoints: ``calls`` and ``questions`` so far (T,), and uncertainty
    T x C x 2, relative to the prior, NaN on a side where nothing is left to ask.

    ``mean``, ``deviation`` and ``counts`` are C x bins, at the end.
    """

    calls: Counts
    questions: Counts
    uncertainty: Floats
    grid: Floats
    mean: Floats
    deviation: Floats
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class Standing(TargetStatus):
    """A target's status on a page. ``label`` names it within its ``kind``, a key of KINDS.

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
        """Return beliefs outside the interval: what (raw or belief), its value, above or below;
        none where the interval is emptied itself."""
        return [
            (what, value, "above" if value > self.upper else "below")
            for what, value in (("raw", self.raw), ("belief", self.belief))
            if value is not None and not (self.emptied or self.lower <= value <= self.upper)
        ]


class Evidence:
    """A journal's rows, with what the sections of the page make of them.

    ``table`` is its outcomes, one row per judged question; ``counted`` lacks the questions that
    turned out not to count. ``folder`` and ``spec`` are what commands call the run and its
    SPEC.toml, quoted. ``sample``: what one is called, image or item. ``adaptive``: whether earlier
    answers had a say in what was asked. ``cost``: of all answers, those about source images
    included; ``unconfirmed``: the part that may not have been charged. ``elapsed``: seconds until
    the last thing journaled.

    Args:
        source: Where an audit was begun.
        beside: The folder in which lies what random draws took, and what people said.

    Raises:
        JournalError: No audit was begun.
    """

    def __init__(self, source: Journal | Run, beside: Path | None = None) -> None:
        self.run = run = Run.of(source)
        self.facts = facts = run.facts
        self.settings, self.certificate, self.space = facts.settings, facts.certificate, facts.space
        self.concepts, self.variants = list(facts.space.concepts), list(facts.space.variants)
        self.relations = facts.space.relations
        self.place_of = {name: place for place, name in enumerate(self.concepts)}
        self.draws, self.calls, self.sources = run.draws, run.calls, run.sources
        self.pictures, self.head, self.table = run.pictures, run.head, run.table
        self.cost, self.unconfirmed = run.cost, run.unconfirmed
        self.folder, self.spec = _folder(run.journal), spec_named(facts)
        self.baselines = () if beside is None else baselines(beside)
        self.realism = None if beside is None else said_of_realism(beside, facts)
        # what follows from the rows
        self.answers = answers_of(facts.settings.oracle, self.calls)
        self.sample = sample_word(facts.space, self.pictures)
        self.drawn = {row.call: row for row in self.draws}
        self.call_of = {row.call: row for row in self.calls}
        self.answered = {a.question: a for call in self.calls for a in call.answers}
        self.counted = counting(self.table)
        self.adaptive = facts.settings.strategy != "random"
        self.rules = [on_page(in_points(rule)) for rule in facts.stop]
        reason = (facts.ended.reason if facts.ended else None) or "no reason was given"
        self.reason = on_page(in_points(reason))
        every: tuple[Sequence[Any], ...] = (self.draws, self.calls, self.sources)
        times = [row.elapsed for part in every for row in part]
        self.elapsed = max([*times, facts.ended.elapsed if facts.ended else 0.0])

    @cached_property
    def warnings(self) -> list[str]:
        """What to mind, without full stops."""
        return [warning.rstrip(".") for warning in cautions(self.run)]

    @cached_property
    def silent(self) -> Counter[str]:
        """How often each reason left a question without an answer."""
        return unanswered(self.calls)[1]

    # -- questions and calls -----------------------------------------------------------------------

    def asked(self, question: int) -> Asked:
        """Return what the question of this number is about."""
        _, variant, concept = self.space.numbering.parts(question)
        return Asked(self.concepts[concept], *self.variants[variant])

    def change(self, relation: str, severity: int) -> str:
        """Return relation and severity as one name; the severity only where there is a choice."""
        alone = sum(name == relation for name, _ in self.variants) == 1
        return relation if alone else f"{relation} {severity}"

    def question(self, number: int, sample: str) -> tuple[str, str, str]:
        """Return a question in words: what stands before, in and after bold type."""
        asked = self.asked(number)
        change = "" if asked.relation == IDENTITY else self.change(asked.relation, asked.severity)
        return self.answers.asked(asked.concept, sample, change, self.answered.get(number))

    def targets_of(self, call: int, questions: Iterable[int]) -> frozenset[int]:
        """Return the places of the targets to which any of a call's ``questions`` belongs."""
        if self.certificate is None:
            return frozenset()
        numbers = set(questions)
        if self.certificate.counted:
            if self._membership is None:
                return frozenset()
            inside = self._membership.inside(np.array([*numbers], np.int64))
            return frozenset(np.flatnonzero(inside.any(axis=0)).tolist())
        members = members_of(self.certificate, self.drawn[call], numbers)
        return frozenset(k for k, mine in enumerate(members) if not numbers.isdisjoint(mine))

    @cached_property
    def _membership(self) -> Membership | None:
        """Which targets questions belong to, where no draw says it."""
        population = self.facts.population
        return None if population is None else Membership(population, population["targets"])

    @cached_property
    def failures(self) -> list[Failure]:
        """Every call with a wrong answer: those with pictures first, then the surest mistakes.
        Where everything was asked only those with pictures, some per relation and severity."""
        wrong = [c for c in self.calls if any((a.loss or 0.0) >= FAILED for a in c.answers)]
        if self.certificate is not None and self.certificate.counted:
            wrong = [c for c in wrong if c.call in self.pictures] or wrong[:MOST]
        failures = map(self._failure, wrong)
        return sorted(failures, key=lambda f: (f.pictures is None, -_distance(f.mistakes[0])))

    def _failure(self, call: CallRow) -> Failure:
        wrong = [a for a in call.answers if a.loss is not None and a.loss >= FAILED]
        asked = self.asked(wrong[0].question)
        return Failure(
            call.call,
            self.drawn[call.call].sample,
            asked,
            self.change(asked.relation, asked.severity),
            self.pictures.get(call.call),
            sorted(wrong, key=lambda row: -_distance(row)),
            sum(a.loss is not None and not a.excluded for a in call.answers) - len(wrong),
            self.targets_of(call.call, (a.question for a in wrong)),
        )

    # -- beliefs -----------------------------------------------------------------------------------

    @cached_property
    def beliefs(self) -> Beliefs:
        """What was believed as the audit went on."""
        run = self.run
        rows = run.believed, run.belief_rows, run.draws, run.calls
        return Beliefs(run.facts, *rows, self.history)

    @cached_property
    def replay(self) -> Replay:
        """The answer GPs, learnt again from the first answer to the last."""
        from ...surrogates import AnswerGP

        gp = AnswerGP(len(self.concepts), form=self.settings.form, device="cpu")
        # calls answered, and questions judged by then, at each checkpoint; 0 and all included
        draws = np.sort([self.drawn[c.call].draw for c in self.calls]).astype(np.int64)
        judged_by = np.searchsorted(self.table["draw"].to_numpy(np.int64), draws, side="right")
        calls = np.unique(np.linspace(0, len(draws), CHECKPOINTS).round().astype(np.int64))
        questions = np.concatenate([[0], judged_by])[calls].astype(np.int64)
        uncertainty = np.stack([*self._learnt(gp, questions)])
        mean, deviation = gp.mean().numpy(), gp.variance().sqrt().numpy()
        counts = gp.counts.numpy().astype(np.int64)
        return Replay(calls, questions, uncertainty, gp.grid.numpy(), mean, deviation, counts)

    def _learnt(self, gp: Any, checkpoints: Counts) -> Iterator[Floats]:
        """Teach ``gp`` all answers; yield C x 2, its relative uncertainty at each checkpoint."""
        import torch

        from ...surrogates import AnswerPoints

        concepts = np.asarray(self.table["concept"].map(self.place_of), dtype=np.int64)
        truths = np.asarray(self.table["truth"], dtype=np.int64)
        coordinates = np.asarray(self.table["coordinate"], dtype=np.float64)
        left = np.array(self.space.cell_counts, dtype=np.int64)
        start = 0
        for end in checkpoints.tolist():
            part = np.arange(start, end)
            np.subtract.at(left, (concepts[part], truths[part]), 1)
            part = part[~np.isnan(coordinates[part])]
            gp.observe(AnswerPoints(*map(torch.from_numpy, (concepts[part], coordinates[part]))))
            yield np.where(left > 0, gp.uncertainty().numpy() / gp.prior_uncertainty, np.nan)
            start = end

    # -- targets -----------------------------------------------------------------------------------

    @property
    def history(self) -> list[Track]:
        """Every target's interval over the draws, in the order of the certificate."""
        return self.run.history

    @property
    def widest(self) -> Floats:
        """(T + 1,): the largest half-width after each draw, abandoned targets apart."""
        kept = [t for t in self.history if not t.emptied] or self.history
        return np.asarray(np.max([t.half_width for t in kept], axis=0))

    def calls_to(self, width: float) -> Range | None:
        """Return the calls, those made included, until every interval is within +-``width``: as
        they were, or by the forecast; None where nothing is certified or can be forecast."""
        game, made = self.run.played[0], len(self.widest) - 1
        if game is None:
            return None
        if self.widest[-1] <= width:
            first = int(np.argmax(self.widest <= width))
            return Range(first, first, first)
        left = self.facts.all_calls - made
        more = longest(further(game, left, width)) if left > 0 else None
        return None if more is None else more.after(made)

    @cached_property
    def standings(self) -> list[Standing]:
        """Where every target stands, in the order of the certificate; [] without one.

        Where classes are compared with each other, beliefs about one of them imply no rate.
        """
        if self.certificate is None:
            return []
        alone = self.space.concepts_are != "classes" and not self.certificate.counted
        rates = implied_rates(self) if alone else {}
        return [_standing(self, k, track, rates) for k, track in enumerate(self.history)]


def implied_rates(evidence: Evidence) -> dict[tuple[str, int], float]:
    """Return (concept, side) -> the error rate the answer GP implies; sides never answered are left
    out.

    A bin's coordinate, (P(yes) + truth) / 2, tells both the side and whether the answer is wrong.
    The rate is the wrong share of the posterior mean summed over the side's bins: FP / (TN + FP)
    where the concept is absent (0), FN / (TP + FN) where it is present (1). The middle bin belongs
    to both sides, and is divided as the answers in it are.
    """
    answered, learnt = evidence.table[evidence.table["answer"].notna()], evidence.replay
    mass, middle = np.maximum(learnt.mean, 0.0), learnt.mean.shape[1] // 2
    rates: dict[tuple[str, int], float] = {}
    groups: Any = answered.groupby(["concept", "truth"], sort=False)  # the stubs know no tuples
    for (name, side), part in groups:
        place, at = evidence.place_of[name], part["coordinate"].to_numpy(float)
        among = learnt.counts[place, middle]
        share = (np.abs(at - 0.5) <= 0.5 / (2 * middle)).sum() / among if among else 0.5
        # outwards from the middle: wrong answers first, then right ones
        half = mass[place, middle:] if side else mass[place, middle::-1]
        half = half * np.where(np.arange(middle + 1) == 0, min(share, 1.0), 1.0)
        wrong = half[: middle // 2].sum() + half[middle // 2] / 2
        if half.sum() > 0:
            rates[name, int(side)] = float(wrong / half.sum())
    return rates


def _standing(
    evidence: Evidence, place: int, track: Track, rates: Mapping[tuple[str, int], float]
) -> Standing:
    """Return where the target at ``place`` stands. ``rates``: see ``implied_rates``."""
    certificate, status = evidence.certificate, evidence.run.statuses[place]
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
    known = target.heading in KINDS
    own = {
        "decided": side,
        "drawn": status.estimate if status.drawn is None else status.drawn,
        "questions": int(track.questions[-1]),
    }
    return Standing(
        **{**vars(status), **own},
        place=place,
        kind=target.heading if known else "other",
        label=in_short(target, evidence.variants) if known else target.name,
        settled=settled,
        settled_at=moment if settled else None,
        settled_seen=int(track.questions[moment if settled else -1]),
        raw=None if math.isnan(track.mean) else track.mean,
        belief=rates.get(about) if about and target.rate in SIDES else None,
    )


def ordered(standings: Sequence[Standing]) -> list[tuple[str, list[Standing]]]:
    """Return targets by kind, the highest estimate first."""
    groups = [(title, [s for s in standings if s.kind == kind]) for kind, title in KINDS.items()]
    return [(t, sorted(part, key=lambda s: -s.estimate)) for t, part in groups if part]


def _distance(row: AnswerRow) -> float:
    """Return how far the answer lies from the truth; an unanswered question comes last."""
    return -1.0 if row.answer is None else abs(row.answer - (row.truth or 0))


def _folder(journal: Journal) -> str:
    """Return the folder of a run from where one stands. Elsewhere, or of no run, "DIR": the page
    may be passed on, and tells no path of this machine."""
    if not isinstance(journal, SQLiteJournal) or journal.path.name != JOURNAL:
        return "DIR"
    folder, here = journal.path.parent, Path.cwd()
    if folder.is_relative_to(here):
        folder = folder.relative_to(here)
    return "DIR" if folder.is_absolute() else quote(str(folder))
