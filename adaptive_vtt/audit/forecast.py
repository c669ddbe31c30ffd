"""Forecast the number of draws that certificates take: at least, likely and at most.

Notation: w is the half-width. N is the number of a target's questions, M the number of calls with
some of them, n the number of them in one call. T is the number of all calls, and alpha_k the
target's share of alpha.

- At least: A bet loses at most a share c of its wealth. So a draw multiplies the wealth against the
  upper end of an interval by at most 1 + c (m_hi - a) / (hi - m_hi); the same holds for the lower
  end.

  Pseudo-outcomes a in [0, r], r = M n / N, exclude both ends soonest if they never vary, as with a
  perfect predictor. Both factors are then 1 + c g with g = 2 w / (r - 2 w), for any rate, which
  takes ln(2 / alpha_k) / ln(1 + c g) draws.
- Likely: A Kelly bet on draws with variance V takes 2 V ln(2 / alpha_k) / w^2 draws, and
  ln(2 / alpha_k) / (2 c w) more as bets are capped (``certifier.RANGE``). The first term is
  multiplied by ``MEASURED``, as an audit stops as soon as chance allows.

  Losses are modelled as Bernoulli variables of rate p without useful predictions. V is then
  p (1 - p) / N^2 times the sum of n / q over the target's calls under the proposal q. As in the
  strategy ``certify``, q mixes exploration with weights of targets, which are adjusted until all
  targets take the same number of draws. Without replacement d draws of T are worth d / (1 - d / T).
- At most: Once (1 - 2 w) N questions were asked, the others cannot make the interval wider than
  2 w. T - 2 w N / n calls in any order ask as many. All T calls are needed if unanswered questions
  count both ways, and for a decision, which may depend on the last question.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..certify.certifier import Certifier
from ..certify.further import draws
from ..certify.rules import MIN_AIM
from ..certify.strata import strata_of
from ..certify.targets import Target
from ..families import FAMILIES
from ..population import Population
from ..types import CallMode, Floats

MEASURED = 0.65
"""Measured number of draws of uniform audits, relative to Kelly's formula: 445 to 455, and 1,208 to
1,262, on digits-severity (rate .29) to +-.05 and +-.03 (experiments.certificates)."""
ROUNDS = 60
"""Number of adjustments of the weights, after which no forecast changes by more than 1 %."""
STEP = 0.5
"""Exponent of each adjustment."""
CANDIDATES = 4096
"""Number of questions that a draw of the audit considers."""
TINY = 1e-300


@dataclass(frozen=True)
class Forecast:
    """Number of draws until a target is certified or decided.

    Attributes:
        target: Name of the target.
        at_least: Lower bound.
        likely: Loss rate -> likely number.
        at_most: Upper bound.
    """

    target: str
    at_least: int
    likely: dict[float, int]
    at_most: int


@dataclass(frozen=True)
class Calls:
    """All calls of a space, grouped into c kinds.

    Attributes:
        number: Number of calls of each kind, (c,).
        questions: Number of questions of each target that one call contains, K x c.
    """

    number: Floats
    questions: Floats

    @property
    def total(self) -> int:
        """Number of all calls, T."""
        return int(self.number.sum())


def forecasts(
    certifier: Certifier, exploration: float, both: bool, losses: Sequence[float]
) -> tuple[list[Forecast], Forecast]:
    """Return forecasts for each target, and for all together.

    Args:
        certifier: The certifier of an audit that has not begun.
        exploration: The uniform share of the proposal.
        both: Whether unanswered questions count both ways.
        losses: Loss rates, in [0, 1], for the likely numbers.
    """
    targets, rules, sizes = certifier.targets, certifier.rules, certifier.sizes
    calls = calls_of(certifier.space, targets, certifier.answers)
    aims = _aims(certifier, None)
    # the share of questions that may be left unasked, as they cannot make intervals too wide
    spare = 0.0 if both or rules.limit is not None else 2 * rules.aim
    most = np.maximum(calls.total - np.floor(spare * sizes / certifier.largest), 1)
    # a perfect predictor, or asking everything if that takes fewer draws
    everything = np.ceil((1 - 2 * aims) * sizes / certifier.largest)
    least = np.maximum(np.minimum(certifier.fewest_draws(aims), everything), 1)
    least = np.minimum(least, most)
    likely = {p: np.clip(_likely(certifier, calls, exploration, p), least, most) for p in losses}
    rows = [
        Forecast(t.name, int(least[k]), {p: int(n[k]) for p, n in likely.items()}, int(most[k]))
        for k, t in enumerate(targets)
    ]
    first, limit = least.max(), max(1, CANDIDATES // len(certifier.space.concepts))
    strata = strata_of(certifier.space, targets, certifier.answers, limit)
    if strata is not None and not rules.set_aside:
        # If strata are drawn first, a draw moves at most one target of a disjoint family, such as
        # that of relations, so the draws of its targets add up.
        for family in (family for family in FAMILIES if family.disjoint):
            moved = [isinstance(target.id, family) for target in targets]
            if (strata.inside[moved].sum(axis=0) <= 1).all():
                first = max(first, least[moved].sum())
    start, last = int(min(first, most.max())), int(most.max())
    together = {p: max(start, int(n.max())) for p, n in likely.items()}
    return rows, Forecast("all", start, together, last)


def calls_of(space: Population, targets: Sequence[Target], answers: CallMode) -> Calls:
    """Return the calls of a space by kind; calls of one kind have the same number of questions of
    each target."""
    truths, copies = space.dataset.profile
    rows = np.array([np.ones(len(copies), bool) if t.rows is None else t.rows for t in targets])
    kinds = np.concatenate([np.array([t.variants for t in targets]).T, space.applicable], axis=1)
    variants, times = np.unique(kinds, axis=0, return_counts=True)
    columns, number = [], []
    for pattern, count in zip(variants, times, strict=True):
        asked = (truths >= 0) & pattern[len(targets) :].astype(bool)  # rows x C; -1: unknown
        parts = [asked & target.concepts & target.sides[truths] for target in targets]
        inside = (rows & pattern[: len(targets), None].astype(bool))[:, :, None]
        wanted = np.array(parts) & inside  # K x rows x C
        if answers == "all":
            wanted, asked = wanted.sum(axis=2, keepdims=True), asked.any(axis=1, keepdims=True)
        columns.append(wanted[:, asked])
        number.append(np.broadcast_to(copies[:, None] * count, asked.shape)[asked])
    kinds, place = np.unique(np.concatenate(columns, axis=1), axis=1, return_inverse=True)
    amount = np.bincount(place.ravel(), np.concatenate(number))
    return Calls(amount.astype(float), kinds.astype(float))


def _aims(certifier: Certifier, loss: float | None) -> Floats:
    """Return the half-width that each target needs, (K,).

    For a decision it is the distance between the limit and a rate of ``loss``, or the largest
    possible distance if ``loss`` is None.
    """
    rules, count = certifier.rules, len(certifier.targets)
    aim = np.full(count, rules.aim)
    if rules.limit is None:
        return aim
    away = max(rules.limit, 1 - rules.limit) / 2 if loss is None else abs(loss - rules.limit)
    near = np.full(count, max(away, MIN_AIM))
    return near if rules.by_distance else np.minimum(aim, near)


def _likely(certifier: Certifier, calls: Calls, exploration: float, loss: float) -> Floats:
    """Return the likely number of draws of each target, (K,); see the module's docstring."""
    aims, rules, count = _aims(certifier, loss), certifier.rules, len(certifier.targets)
    theta = rules.thetas(count)
    with np.errstate(divide="ignore"):  # of the end that decides: see ``sequences``
        evidence = np.log(1 / (np.maximum(theta, 1 - theta) * rules.alphas(count)))
    variance, reach = MEASURED * loss * (1 - loss), 1 / rules.bets.cap
    per_spread = draws(evidence, aims, aims, variance, reach)
    even, squares = calls.number / calls.number.sum(), certifier.sizes**2
    needed = weight = np.ones(count)
    for _ in range(ROUNDS):
        each = np.sqrt(weight @ (calls.questions / squares[:, None]) + TINY)
        chosen = calls.number * each / (calls.number @ each)
        proposal = exploration * even + (1 - exploration) * chosen
        needed = per_spread * (calls.questions @ (calls.number**2 / proposal) / squares)
        weight = weight * (needed / needed.max()) ** STEP
    return np.ceil(needed / (1 + needed / calls.total))
