"""Recompute what a journal holds apart from draws: slices, prices, cohort priors, and beliefs.

Code of its own, as in ``verify``. What the game is played for was not changed once it had begun.
What is checked of slices, by the order of the rows in the chain:

- a slice was written down after the draws before ``since`` and before draw ``since``;
- no slice was changed, moved or taken back after that;
- its questions that were seen before are those of the earlier draws that its masks select.

What was believed is counted anew, but not predicted anew: that follows from a Gaussian process, is
sealed like every row, and no interval depends on it.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..errors import JournalError
from ..journal import Journal
from ..journal.facts import Facts
from ..journal.rows import CallRow, DrawRow
from ..types import JsonObject
from .verify_draws import members_of

FIXED = ("confidence", "guarantee", "weights", "theta", "set_aside", "bets", "strata")
"""What the fact "certificate" may not say otherwise once an audit has begun: how alpha is shared
among targets, the ends of an interval and slices, and the constants that size bets."""


def check_fixed(journal: Journal) -> None:
    """Raises JournalError naming what was changed after the audit began."""
    versions = [json.loads(r.value) for r in journal.fact_rows() if r.name == "certificate"]
    for name in FIXED:
        values = [version.get(name) for version in versions if version is not None]
        if any(value != values[0] for value in values):
            raise JournalError(
                f"verify: the certificate's {name!r} was changed after the audit began: "
                + ", then ".join(map(str, values))
            )


def check_slices(journal: Journal, facts: Facts, draws: list[DrawRow]) -> None:
    """Raises JournalError naming the first thing that is wrong."""
    certificate = facts.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return
    rows = {row.position: row for row in journal.fact_rows()}
    links = journal.links()
    made = [0, *accumulate(link.kind == "draw" for link in links)]
    written = [
        (rows[link.row], count)
        for link, count in zip(links, made, strict=False)
        if link.kind == "fact"
    ]
    _check_order([(json.loads(row.value), count) for row, count in written if row.name == "slices"])
    if facts.population and certificate.slices:
        before = draws[: max(certificate.since)]
        drawn = members_of(facts.population, certificate, [draw.call for draw in before])
        for slice_, numbers in zip(certificate.slices, drawn, strict=True):
            seen = [question for part in numbers[: slice_.since] for question in part]
            if seen != list(slice_.seen):
                raise JournalError(
                    f"verify: slice {slice_.name!r}: its questions that were seen before draw "
                    f"{slice_.since} are not those that it selects"
                )


def _check_order(versions: list[tuple[list[JsonObject], int]]) -> None:
    """``versions``: the slices as they were written, and how many draws stood before."""
    before: list[JsonObject] = []
    for slices, made in versions:
        if slices[: len(before)] != before:
            raise JournalError("verify: a slice was altered after it was written down")
        for slice_ in slices[len(before) :]:
            if slice_["since"] != made:
                raise JournalError(
                    f"verify: slice {slice_['name']!r} starts with draw {slice_['since']}, but was "
                    f"written down before draw {made}"
                )
        before = slices


# -- what calls were expected to cost: code apart from ``engine.prices`` ------------------------

PRIOR = 4.0
MAX_RATIO = 8.0
AGREE = 1e-6
"""Relative: fits on two machines differ by rounding."""


def check_prices(
    guess: Mapping[str, float] | None, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Raises JournalError naming the first draw that says another expected cost than the answers
    that it knew come to, or that knew one that is not there.

    ``guess``: the settings' ``prices``, None where proposals did not go by them.
    """
    if guess is None:
        return
    costs = {call.call: call.cost for call in calls}
    table, known = _Table(guess), 0
    for draw in draws:
        for earlier in draws[known : draw.learned]:
            if earlier.call not in costs:
                raise JournalError(
                    f"verify: draw {draw.draw} knew the answer to draw {earlier.draw}, which has "
                    "none"
                )
            table.book(_sent(earlier), costs[earlier.call])
        known = max(known, draw.learned)
        expected, stated = table.expected(_sent(draw)), draw.why.get("expected_cost")
        if not isinstance(stated, float) or not abs(stated - expected) <= AGREE * expected:
            raise JournalError(
                f"verify: draw {draw.draw} should be expected to cost {expected:g}, got {stated}"
            )


class _Table:
    """The normal equations of all costs booked, and the sums of those and of the models asked."""

    def __init__(self, guess: Mapping[str, float]) -> None:
        first = [guess["call"], guess["pixels"], guess["characters"]]
        self.left = [[PRIOR * (i == j) for j in range(3)] for i in range(3)]
        self.right = [PRIOR * value for value in first]
        self.money, self.models = PRIOR * sum(first), PRIOR

    def expected(self, sent: Sequence[float]) -> float:
        fit = np.linalg.solve(np.array(self.left), np.array(self.right))
        share, mean = sent[0], self.money / self.models
        plain = sum(b * x for b, x in zip(fit.tolist(), sent, strict=True)) / share
        return share * max(mean / MAX_RATIO, min(plain, mean * MAX_RATIO))

    def book(self, sent: Sequence[float], cost: float) -> None:
        usual = self.expected(sent)
        cost = max(usual / MAX_RATIO, min(cost, usual * MAX_RATIO))
        for i, x in enumerate(sent):
            self.right[i] += cost * x
            for j, y in enumerate(sent):
                self.left[i][j] += x * y
        self.money, self.models = self.money + cost, self.models + sent[0]


def _sent(draw: DrawRow) -> list[float]:
    """Models asked, and theirs of pixels and characters; raises JournalError where a draw does not
    say."""
    values: list[Any] = [draw.why.get("models", 1.0), *map(draw.why.get, ("pixels", "characters"))]
    if not all(isinstance(value, float | int) and 0 <= value < np.inf for value in values):
        raise JournalError(f"verify: draw {draw.draw} does not say what its call sends")
    if not values[0] > 0:
        raise JournalError(f"verify: draw {draw.draw} asks no model")
    share, pixels, characters = values
    return [share, share * pixels, share * characters]


# -- the prior that was made of other models ----------------------------------------------------

MIN_MODELS = 3
WIDER, MIN_VARIANCE = 1.15, 1e-3
SAME = 1e-9


def check_cohort(facts: Facts) -> None:
    """Raises JournalError where an audit of the cohort has this audit's key, so that predictions
    knew the draws to come, and where the prior is not what its members come to.

    How each member follows from the others was worked out of losses that the journal names by
    their digest alone, so that is not repeated here. No interval rests on it.
    """
    cohort = facts.cohort
    if cohort is None:
        return
    for model, key in zip(cohort.models, cohort.keys, strict=True):
        if key is not None and key == facts.key:
            raise JournalError(
                f"verify: cohort: {model!r}: expected an audit with a key of its own, got this "
                f"audit's, {key}"
            )
    count = len(cohort.members)
    if count < MIN_MODELS or count != len(cohort.models):
        raise JournalError(
            f"verify: cohort: expected what {MIN_MODELS} models or more follow the others by, "
            f"each of {len(cohort.models)} once, got {count}"
        )
    columns = [[member[place] for member in cohort.members] for place in range(3)]
    mean = [math.fsum(column) / count for column in columns[:2]] + [0.0]
    sizes = (count - 1, count - 1, count)
    spread = [
        math.fsum((value - centre) ** 2 for value in column) / size
        for column, centre, size in zip(columns, mean, sizes, strict=True)
    ]
    variance = [WIDER * each + MIN_VARIANCE for each in spread]
    figures = (("mean", mean, cohort.mean), ("variance", variance, cohort.variance))
    for what, computed, stated in figures:
        if len(stated) != len(computed) or not all(map(_same, computed, stated)):
            raise JournalError(
                f"verify: cohort: expected the prior's {what} {computed}, as its members come to, "
                f"got {list(stated)}"
            )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME)


# -- what was believed ---------------------------------------------------------------------------

WRONG = 0.5


def check_beliefs(
    journal: Journal, facts: Facts, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Raises JournalError naming the first row of "beliefs" whose counts are not those of the
    answers to the draws it had learnt from."""
    answered, drawn, learnt = {c.call: c for c in calls}, [d.call for d in draws], 0
    asked, failed = Counter[int](), Counter[int]()
    variants, concepts = len(facts.space.variants), len(facts.space.concepts)
    for row in journal.beliefs():
        for call in drawn[learnt : row.draws]:
            for answer in answered[call].answers if call in answered else ():
                if answer.loss is None or answer.excluded:
                    continue
                image, concept = divmod(answer.question, concepts)
                asked[concept * variants + image % variants] += 1
                failed[concept * variants + image % variants] += answer.loss >= WRONG
        missing = [call for call in drawn[learnt : row.draws] if call not in answered]
        if missing or row.draws > len(drawn):
            raise JournalError(
                f"verify: what was believed after {row.draws} draws: expected answers to all of "
                f"them, got {len(drawn)} draws and none to {len(missing)} of those since the "
                "belief before"
            )
        learnt = row.draws
        for name, counts in (("asked", asked), ("failed", failed)):
            counted = [counts[cell] for cell in range(concepts * variants)]
            if row.figures.get(name) != counted:
                raise JournalError(
                    f"verify: what was believed after {row.draws} draws: {name!r} is not what the "
                    f"answers come to, {sum(counted)} questions in all"
                )
