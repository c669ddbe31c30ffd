"""The estimate that is reported for every target: draws and predictions, each by its precision.

Two guesses at a target's mean loss R:

    P    the weighted mean of the pseudo-outcomes (``sequences``): unbiased whatever was
         predicted, but every draw counts with the prediction made for it, early and poor ones too
    G    the losses seen, and for the unseen questions the mean of today's predictions, which
         know all answers and share them among targets, but may be biased

With V the estimated variance of P and E the estimated squared error of G, each counts by its
precision,

    estimate = P + V / (V + E) (G - P)
    E = max(u^2 e^2 / n, (P - G)^2 - APART V)

where u is the share of the target's questions that are unseen, n how many are seen, and e^2 the
mean squared residual of the predictions made for them, weighed to be that of the whole target.
(Where G looks at a part of the unseen questions only, its variance comes on top.) Residuals show no
error that all unseen questions share, but P does: where G is farther from it than P's own error
explains, the difference is G's bias (Green & Strawderman, JASA 86, 1991, have APART = 1). So no
estimate is moved by more than sqrt(APART V), and one whose G is far off hardly at all.

Nothing here enters draws, bets or intervals. It is worked out when it is read, never per draw.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..certify import Certifier
from ..certify.status import TargetStatus
from ..types import Bools, Floats, Indices
from ..utils.random_streams import generator
from .candidates import columns
from .selector import Selector
from .tensors import array, candidates_of

if TYPE_CHECKING:
    from ..surrogates import LossSurrogate

APART = 2.0
"""Squared difference of P and G, in variances of P, beyond which the rest counts as G's bias. At
1, good predictions are distrusted by chance; without it, predictions that are all wrong alike make
estimates 1.5 times as wrong as none (1.2 times at 2)."""
CREDIT = 10.0
"""Answers that the variance f (1 - f), which predictions imply, counts as among the residuals."""
TINY = 1e-300


@dataclass(frozen=True)
class Guesses:
    """Of K targets: P and its variance V, G and its squared error E; (K,) each. NaN where a target
    has no P or no G."""

    draws: Floats
    variance: Floats
    predictions: Floats
    error: Floats

    def combined(self) -> Floats:
        """(K,): P and G by precision; NaN where either is."""
        apart = self.predictions - self.draws
        error = np.maximum(self.error, apart**2 - APART * self.variance)
        return self.draws + self.variance / np.maximum(self.variance + error, TINY) * apart


def statuses(selector: Selector, calls_per_draw: float = 1.0) -> list[TargetStatus]:
    """Return the certifier's table with ``estimate`` as above, kept within its interval, and
    ``drawn``, the estimate by the draws alone; [] where nothing is certified. Where everything is
    asked, what is counted.

    Both are the same where nothing predicts losses, and before any draw.
    """
    if selector.exact:
        return selector.counted()
    if selector.certifier is None:
        return []
    rows, sequences = selector.certifier.table(calls_per_draw), selector.certifier.sequences
    both = guesses(selector)
    combined = np.full(len(rows), np.nan) if both is None else both.combined()
    kept = np.clip(combined, sequences.lower, sequences.upper)
    return [
        replace(
            row,
            estimate=row.estimate if np.isnan(value) else row.id.measured(value),
            drawn=row.estimate,
        )
        for row, value in zip(rows, kept.tolist(), strict=True)
    ]


def guesses(selector: Selector) -> Guesses | None:
    """What both come to now; None where nothing predicts losses, or nothing is certified."""
    certifier, surrogate = selector.certifier, selector.belief.losses
    if certifier is None or surrogate is None:
        return None
    unseen = _unseen(selector)
    predicted = _predicted(selector, surrogate, unseen) if len(unseen) else np.zeros(0)
    mean, error = _posterior(certifier, certifier.members(unseen), predicted)
    sequences = certifier.sequences
    return Guesses(sequences.mean, sequences.mean_variance, mean, error)


def _posterior(certifier: Certifier, inside: Bools, predicted: Floats) -> tuple[Floats, Floats]:
    """(K,) each: G, and its squared error; ``inside`` K x n, ``predicted`` (n,)."""
    count, waiting = inside.sum(axis=1), certifier.waiting
    answered = certifier.sizes - waiting
    counting = answered - certifier.out
    coming = certifier.sequences.share * waiting  # as many of those will count, by the draws
    total = np.maximum(counting + coming, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(waiting > 0, inside @ predicted / count, 0.0)
        square = np.where(waiting > 0, inside @ predicted**2 / count, 0.0)
        missing = np.where(waiting > 0, 1 / count - 1 / waiting, 0.0)
    known = (certifier.least + certifier.most) / 2
    spread = (answered * certifier.residual + CREDIT * (mean - square)) / (answered + CREDIT)
    error = spread / np.maximum(answered, 1) + np.maximum(missing, 0) * (square - mean**2)
    return (known + coming * mean) / total, (coming / total) ** 2 * error


def _predicted(selector: Selector, surrogate: "LossSurrogate", questions: Indices) -> Floats:
    """(n,): today's predictions."""
    table = columns(selector.space, questions)
    candidates = candidates_of((*table, np.arange(len(questions)), questions))
    return array(surrogate.posterior(candidates).mean)


def _unseen(selector: Selector) -> Indices:
    """The unseen ones among all questions, or, in a space of more than a draw looks at, among
    as many that are drawn evenly once and for all."""
    space, most = selector.space, selector.pool.limit
    if space.size <= most:
        places = np.arange(space.size)
    else:
        rng = generator(selector.seed, "estimate")
        places = np.unique(rng.integers(space.size, size=most))
    questions = np.asarray(space.nth(places))
    return questions[selector.pool.unseen(questions)]
