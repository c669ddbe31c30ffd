"""Check a journal's facts: fixed settings, slices, prices, cohort priors and beliefs.

Like ``verify``, this module shares no code with the engine. The settings of the game must not
change after the first draw. The order of the rows in the chain shows of each slice that

- it was written after the draws before ``since`` and before draw ``since``;
- it was not changed, moved or removed after that;
- its questions seen before are exactly those of earlier draws that its masks select.

The counts of beliefs are recomputed. Their predictions are not: they follow from a Gaussian
process, are sealed in the chain like every row, and no interval depends on them.
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
"""Fields of the fact "certificate" that must not change during an audit: how targets, slices and
the ends of intervals share alpha, the strata, and the constants that size bets."""


def check_fixed(journal: Journal) -> None:
    """Check that no field of the certificate that must stay fixed was changed.

    Raises:
        JournalError: A field was changed; the message names it with its values.
    """
    versions = [json.loads(r.value) for r in journal.fact_rows() if r.name == "certificate"]
    for name in FIXED:
        values = [version.get(name) for version in versions if version is not None]
        if any(value != values[0] for value in values):
            raise JournalError(
                f"verify: the certificate's {name!r} was changed after the audit began: "
                + ", then ".join(map(str, values))
            )


def check_slices(journal: Journal, facts: Facts, draws: list[DrawRow]) -> None:
    """Check when each slice was written, that it stayed as it was, and its questions seen before.

    Raises:
        JournalError: A slice is wrong; the message names it.
    """
    certificate = facts.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return
    rows = {row.position: row for row in journal.fact_rows()}
    links = journal.links()
    draws_before = [0, *accumulate(link.kind == "draw" for link in links)]
    versions = [
        (json.loads(rows[link.row].value), made)
        for link, made in zip(links, draws_before, strict=False)
        if link.kind == "fact" and rows[link.row].name == "slices"
    ]
    _check_order(versions)
    if facts.population and certificate.slices:
        before = draws[: max(certificate.since)]
        selected = members_of(facts.population, certificate, [draw.call for draw in before])
        for slice_, by_draw in zip(certificate.slices, selected, strict=True):
            seen = [question for part in by_draw[: slice_.since] for question in part]
            if seen != list(slice_.seen):
                raise JournalError(
                    f"verify: slice {slice_.name!r}: its questions that were seen before draw "
                    f"{slice_.since} are not those that it selects"
                )


def _check_order(versions: list[tuple[list[JsonObject], int]]) -> None:
    """Check the written versions of all slices, each with the number of draws made before it."""
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


# -- expected costs of calls; shares no code with ``engine.prices`` ------------------------------

PRIOR = 4.0
"""Calls that the first guess of each coefficient counts as."""
MAX_RATIO = 8.0
"""Largest factor between a call's cost and the expected or mean cost that the fit believes."""
AGREE = 1e-6
"""Largest relative difference between fits on two machines."""


def check_prices(
    guess: Mapping[str, float] | None, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Check each draw's expected cost against the answers that it knew.

    Args:
        guess: The settings' ``prices``, the first guess of a call's cost by its parts; None where
            proposals ignored prices.
        draws: All draws in order.
        calls: All answered calls.

    Raises:
        JournalError: A draw states another cost, or knew an answer that the journal does not
            hold; the message names the first.
    """
    if guess is None:
        return
    costs = {call.call: call.cost for call in calls}
    fit, known = _CostFit(guess), 0
    for draw in draws:
        for earlier in draws[known : draw.learned]:
            if earlier.call not in costs:
                raise JournalError(
                    f"verify: draw {draw.draw} knew the answer to draw {earlier.draw}, which has "
                    "none"
                )
            fit.book(_sent(earlier), costs[earlier.call])
        known = max(known, draw.learned)
        expected, stated = fit.expected(_sent(draw)), draw.why.get("expected_cost")
        if not isinstance(stated, float) or not abs(stated - expected) <= AGREE * expected:
            raise JournalError(
                f"verify: draw {draw.draw} should be expected to cost {expected:g}, got {stated}"
            )


class _CostFit:
    """Least-squares fit of costs by models asked, pixels and characters."""

    def __init__(self, guess: Mapping[str, float]) -> None:
        first = [guess["call"], guess["pixels"], guess["characters"]]
        # the normal equations, and the sums of costs and of models for the mean cost
        self.left = [[PRIOR * (i == j) for j in range(3)] for i in range(3)]
        self.right = [PRIOR * value for value in first]
        self.money, self.models = PRIOR * sum(first), PRIOR

    def expected(self, sent: Sequence[float]) -> float:
        fit = np.linalg.solve(np.array(self.left), np.array(self.right))
        models, mean = sent[0], self.money / self.models
        fitted = sum(b * x for b, x in zip(fit.tolist(), sent, strict=True)) / models
        return models * max(mean / MAX_RATIO, min(fitted, mean * MAX_RATIO))

    def book(self, sent: Sequence[float], cost: float) -> None:
        usual = self.expected(sent)
        cost = max(usual / MAX_RATIO, min(cost, usual * MAX_RATIO))
        for i, x in enumerate(sent):
            self.right[i] += cost * x
            for j, y in enumerate(sent):
                self.left[i][j] += x * y
        self.money, self.models = self.money + cost, self.models + sent[0]


def _sent(draw: DrawRow) -> list[float]:
    """Return the models asked, and their pixels and characters in total, as the draw states."""
    values: list[Any] = [draw.why.get("models", 1.0), *map(draw.why.get, ("pixels", "characters"))]
    if not all(isinstance(value, float | int) and 0 <= value < np.inf for value in values):
        raise JournalError(f"verify: draw {draw.draw} does not say what its call sends")
    if not values[0] > 0:
        raise JournalError(f"verify: draw {draw.draw} asks no model")
    models, pixels, characters = values
    return [models, models * pixels, models * characters]


# -- the prior from a cohort of other models -----------------------------------------------------

MIN_MODELS = 3
"""Fewest models of a cohort."""
WIDER, MIN_VARIANCE = 1.15, 1e-3
"""Factor and term by which the prior is wider than the spread of its members."""
SAME = 1e-9
"""Largest difference between two computations of the prior, relative and absolute."""


def check_cohort(facts: Facts) -> None:
    """Check that the cohort's prior follows from its members, and that none shared this key.

    With a shared key, predictions would have known the draws to come. The regression of each
    member on the others is not repeated: the journal holds only the digest of the losses, and no
    interval rests on it.

    Raises:
        JournalError: A key is shared, or the prior does not follow.
    """
    cohort = facts.cohort
    if cohort is None:
        return
    for model, key in zip(cohort.models, cohort.keys, strict=True):
        if key is not None and key == facts.key:
            raise JournalError(
                f"verify: cohort: {model!r}: expected an audit with another key, got this audit's, "
                f"{key}"
            )
    count = len(cohort.members)
    if count < MIN_MODELS or count != len(cohort.models):
        raise JournalError(
            f"verify: cohort: expected regressions of {MIN_MODELS} models or more on the others, "
            f"one for each of {len(cohort.models)}, got {count}"
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
    for name, computed, stated in figures:
        if len(stated) != len(computed) or not np.allclose(stated, computed, rtol=SAME, atol=SAME):
            raise JournalError(
                f"verify: cohort: expected the prior's {name} {computed}, as its members come to, "
                f"got {list(stated)}"
            )


# -- beliefs -------------------------------------------------------------------------------------

WRONG = 0.5
"""Least loss of an answer that counts as failed."""


def check_beliefs(
    journal: Journal, facts: Facts, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Check that each row of "beliefs" counts the answers to the draws it had learnt from.

    Raises:
        JournalError: A row counts others; the message names the first.
    """
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
