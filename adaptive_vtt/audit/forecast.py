"""How many draws certificates take: at least, likely and at most, without playing an audit.

With w the half-width, N a target's questions, M the calls that touch it, n the questions that one
call brings it, T all calls, and alpha_k the target's share of what may go wrong:

At least
    Bets lose at most a share c of their wealth, so that a draw multiplies it by no more than
    1 + c (m_hi - a) / (hi - m_hi) against the upper end of an interval, and likewise against the
    lower. Pseudo-outcomes a within [0, r], r = M n / N, that never vary let both ends be excluded
    soonest: then both factors are 1 + c g with g = 2 w / (r - 2 w), whatever the rate is. So
    ln(2 / alpha_k) / ln(1 + c g) draws, which is what a perfect predictor would take.
Likely
    A bet of Kelly's on draws with variance V takes 2 V ln(2 / alpha_k) / w^2, and ln(2 / alpha_k)
    / (2 c w) more as bets are capped (``certifier.RANGE``). ``MEASURED`` of the first: intervals
    stop when luck allows. Losses are coins of rate p that nobody foresees, V = p (1 - p) / N^2 sum
    of n / q over the target's calls under the proposal q. q is found by repeated reweighting of
    targets until none is further from its end than the others, mixed with the exploration, as the
    strategy ``certify`` does. Without replacement d draws of T are worth d / (1 - d / T).
At most
    A census: what the questions not asked yet still allow is no wider than 2 w once (1 - 2 w) N of
    them were asked, and T - 2 w N / n calls ask as many, in whatever order. All T where unanswered
    questions count both ways, and for a decision, which may have to wait for the last question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..certify.certifier import Certifier
from ..certify.further import draws
from ..certify.rules import MIN_AIM
from ..certify.strata import possible
from ..certify.targets import Target
from ..families import FAMILIES
from ..population import Population
from ..types import Bools, CallMode, Floats, Indices

MEASURED = 0.65
"""Draws that uniform audits took over those of Kelly's formula: 445 to 455 and 1,208 to 1,262 on
digits-severity (rate .29) to +-.05 and +-.03 (experiments.certificates)."""
ROUNDS = 60
"""Reweightings of targets, after which no target's draws change by as much as a hundredth."""
STEP = 0.5
TINY = 1e-300


@dataclass(frozen=True)
class Forecast:
    """Draws until a target is certified, or decided: ``likely`` by loss rate."""

    target: str
    at_least: int
    likely: dict[float, int]
    at_most: int


@dataclass(frozen=True)
class Calls:
    """All calls of a space by kind: ``number`` (c,) of each, and ``questions`` K x c that one
    brings each target."""

    number: Floats
    questions: Floats

    @property
    def total(self) -> int:
        """T."""
        return int(self.number.sum())


def forecasts(
    certifier: Certifier, exploration: float, both: bool, losses: Sequence[float]
) -> tuple[list[Forecast], Forecast]:
    """Of every target, and of all together, in audits that begin with this certifier.

    ``exploration``: the even share of the proposal; ``both``: whether unanswered questions count
    both ways; ``losses``: the rates that "likely" is asked for.
    """
    calls = calls_of(certifier.space, certifier.targets, certifier.answers)
    alpha = certifier.rules.alphas(len(certifier.targets))
    least, most = _least(certifier), _most(certifier, calls.total, both)
    least = np.minimum(least, most)
    likely = {
        p: np.clip(_likely(certifier, calls, alpha, exploration, p), least, most) for p in losses
    }
    rows = [
        Forecast(t.name, int(least[k]), {p: int(n[k]) for p, n in likely.items()}, int(most[k]))
        for k, t in enumerate(certifier.targets)
    ]
    first, last = int(min(_together(certifier, least), most.max())), int(most.max())
    together = {p: max(first, int(n.max())) for p, n in likely.items()}
    return rows, Forecast("all", first, together, last)


def calls_of(space: Population, targets: Sequence[Target], answers: CallMode) -> Calls:
    """The calls of a space, those counted as one that bring the same to every target."""
    truths, copies = space.dataset.profile
    rows = np.array([np.ones(len(copies), bool) if t.rows is None else t.rows for t in targets])
    kinds = np.concatenate([np.array([t.variants for t in targets]).T, space.applicable], axis=1)
    variants, times = np.unique(kinds, axis=0, return_counts=True)
    asked = [(truths >= 0) & pattern[len(targets) :].astype(bool) for pattern in variants]
    found = []
    for pattern, there in zip(variants, asked, strict=True):
        wanted = np.array(
            [there & t.concepts & np.where(truths >= 0, t.sides[truths], False) for t in targets]
        )  # K x rows x C
        wanted &= (rows & pattern[: len(targets), None].astype(bool))[:, :, None]
        found.append(wanted)
    return _counted(found, asked, copies, times, answers)


def _counted(
    found: list[Bools], asked: list[Bools], copies: Indices, times: Indices, answers: CallMode
) -> Calls:
    columns, number = [], []
    for wanted, there, count in zip(found, asked, times, strict=True):
        if answers == "all":
            some = there.any(axis=1)
            columns.append(wanted.sum(axis=2)[:, some])
            number.append(copies[some] * count)
        else:
            columns.append(wanted[:, there])
            number.append(np.repeat(copies[:, None], there.shape[1], axis=1)[there] * count)
    kinds, place = np.unique(np.concatenate(columns, axis=1), axis=1, return_inverse=True)
    amount = np.bincount(place.ravel(), np.concatenate(number))
    return Calls(amount.astype(float), kinds.astype(float))


def _aims(certifier: Certifier, loss: float | None) -> Floats:
    """(K,): how near each rate has to be known: the half-width, or how far a rate of ``loss`` lies
    from the limit (None: as far as it may)."""
    rules, count = certifier.rules, len(certifier.targets)
    aim = np.full(count, rules.aim)
    if rules.limit is None:
        return aim
    away = max(rules.limit, 1 - rules.limit) / 2 if loss is None else abs(loss - rules.limit)
    near = np.full(count, max(away, MIN_AIM))
    return near if rules.by_distance else np.minimum(aim, near)


def _least(certifier: Certifier) -> Floats:
    """(K,): the draws of a perfect predictor, or a census where that takes fewer."""
    aims = _aims(certifier, None)
    bets = certifier.foreseen_draws(aims)
    census = np.ceil((1 - 2 * aims) * certifier.sizes / certifier.largest)
    return np.maximum(np.minimum(bets, census), 1)


def _together(certifier: Certifier, least: Floats) -> float:
    """Draws that all targets take at least: where a call answers one question, and strata are
    drawn first, a draw moves one relation and one concept at most."""
    if certifier.answers != "one" or not possible(certifier.targets):
        return float(least.max())
    ids = [t.id for t in certifier.targets]
    apart = [family for family in FAMILIES if family.disjoint]
    sums = [sum(n for id, n in zip(ids, least, strict=True) if isinstance(id, f)) for f in apart]
    return float(max(least.max(), *sums))


def _most(certifier: Certifier, total: int, both: bool) -> Floats:
    """(K,): calls after which the questions left matter no more, whatever they are."""
    spared = np.floor(2 * certifier.rules.aim * certifier.sizes / certifier.largest)
    if both or certifier.rules.limit is not None:
        spared = np.zeros_like(spared)
    return np.maximum(total - spared, 1)


def _likely(
    certifier: Certifier, calls: Calls, alpha: Floats, exploration: float, loss: float
) -> Floats:
    """(K,): see the module."""
    aims, cap = _aims(certifier, loss), certifier.rules.bets.cap
    theta = certifier.rules.thetas(len(alpha))
    with np.errstate(divide="ignore"):  # of the end that decides: see ``sequences``
        evidence = np.log(1 / (np.maximum(theta, 1 - theta) * alpha))
    per_spread = draws(evidence, aims, aims, MEASURED * loss * (1 - loss), 1 / cap)
    even = calls.number / calls.number.sum()
    weight = np.ones(len(certifier.targets))
    needed = weight
    for _ in range(ROUNDS):
        each = np.sqrt(weight @ (calls.questions / certifier.sizes[:, None] ** 2) + TINY)
        proposal = exploration * even + (1 - exploration) * calls.number * each / (
            calls.number @ each
        )
        spread = calls.questions @ (calls.number**2 / proposal) / certifier.sizes**2
        needed = per_spread * spread
        weight = weight * (needed / needed.max()) ** STEP
    return np.ceil(needed / (1 + needed / calls.total))
