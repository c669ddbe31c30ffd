"""The reported estimate of every target, from draws and predictions, weighted by precision.

There are two estimates of a target's mean loss R:

    P    The weighted mean of the pseudo-outcomes (``sequences``). It is unbiased whatever was
         predicted. But every draw counts with the prediction made for it, also early, poor ones.
    G    The mean of the losses seen and, for unseen questions, of today's predictions. These use
         all answers of all targets, but may be biased.

With V the estimated variance of P, and E the estimated squared error of G, the estimate is

    P + V / (V + E) (G - P)        with        E = max(u^2 e^2 / n, (P - G)^2 - APART V)

Here u is the share of the target's questions that are unseen, and n the number of seen ones. The
mean squared residual of the predictions for seen questions, weighted to represent the whole target,
is e^2. If G uses a sample of the unseen questions, its sampling variance is added.

Residuals cannot show an error that all unseen questions share, but P can: if G is farther from P
than P's own error explains, the difference is G's bias. (Green & Strawderman, JASA 86, 1991, have
APART = 1.) So no estimate moves by more than sqrt(APART V), and it hardly moves if G is far off.

P and G are first moved into the target's interval, which brings either one closer to R if the
interval holds R. Without a surrogate, a question is predicted by the mean loss of its smallest
target.

Nothing here enters draws, bets or intervals. It is computed when it is read, not per draw.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..certify import Certifier
from ..certify.status import TargetStatus
from ..types import Bools, Floats
from ..utils.random_streams import generator
from .candidates import columns
from .selector import Selector
from .tensors import candidates_of

APART = 2.0
"""Squared difference of P and G, in variances of P, that is not counted as G's bias. At 1, good
predictions are distrusted by chance. Without a bias term, predictions with a common error make
estimates 1.5 times as wrong as no predictions; at 2 it is 1.2 times."""
CREDIT = 10.0
"""Number of residuals that the variance f (1 - f), which predictions imply, counts as."""
TINY = 1e-300


@dataclass(frozen=True)
class Guesses:
    """P (``draws``), its variance V, G (``predictions``) and its squared error E of K targets.

    Each is (K,), with NaN where a target has none.
    """

    draws: Floats
    variance: Floats
    predictions: Floats
    error: Floats

    def combined(self) -> Floats:
        """Return the estimates (K,), weighted by precision; NaN if P or G is NaN."""
        difference = self.predictions - self.draws
        error = np.maximum(self.error, difference**2 - APART * self.variance)
        return self.draws + self.variance / np.maximum(self.variance + error, TINY) * difference


def statuses(selector: Selector, calls_per_draw: float = 1.0) -> list[TargetStatus]:
    """Return the status of every target, with estimates as explained on top of this file.

    ``drawn`` is P, the estimate from draws alone. Before the first draw both are equal.

    Args:
        selector: The audit's selector; if it asks everything, its counts are returned.
        calls_per_draw: Mean number of calls that a draw took so far.

    Returns:
        [] if nothing is certified.
    """
    if selector.exact:
        return selector.counted()
    if selector.certifier is None:
        return []
    rows = selector.certifier.table(calls_per_draw)
    combined = guesses(selector, selector.certifier).combined()
    return [
        replace(
            row,
            estimate=row.estimate if np.isnan(value) else row.id.measured(value),
            drawn=row.estimate,
        )
        for row, value in zip(rows, combined.tolist(), strict=True)
    ]


def guesses(selector: Selector, certifier: Certifier) -> Guesses:
    """Return both estimates of now, each within the intervals."""
    surrogate = selector.belief.losses
    # All questions; of a large space, a uniform sample that is the same every time.
    space, most = selector.space, selector.pool.limit
    ranks = np.arange(space.size)
    if space.size > most:
        ranks = np.unique(generator(selector.seed, "estimate").integers(space.size, size=most))
    questions = np.asarray(space.nth(ranks))
    unseen = questions[selector.unlearned(questions)]
    inside = certifier.members(unseen)
    if surrogate is None:
        predicted = _mean_of_smallest(certifier, inside)
    elif len(unseen):
        candidates = candidates_of((*columns(space, unseen), np.arange(len(unseen)), unseen))
        predicted = selector.belief.predict(candidates)
    else:
        predicted = np.zeros(0)
    mean, error = _by_predictions(certifier, inside, predicted)
    sequences = certifier.sequences
    ends = sequences.lower, sequences.upper
    variance = sequences.mean_variance
    return Guesses(sequences.mean.clip(*ends), variance, mean.clip(*ends), error)


def _mean_of_smallest(certifier: Certifier, inside: Bools) -> Floats:
    """Return the mean loss seen in the smallest target of each unseen question, (n,).

    The mean of the target with most answers counts as one answer more, and 1/2 as one there.
    """
    answered = certifier.sizes - certifier.waiting - certifier.out
    known, widest = (certifier.least + certifier.most) / 2, answered.argmax()
    common = (known[widest] + 0.5) / (answered[widest] + 1)
    sizes = np.where(inside, certifier.sizes[:, None], np.inf)
    return np.asarray(((known + common) / (answered + 1))[sizes.argmin(axis=0)])


def _by_predictions(
    certifier: Certifier, inside: Bools, predicted: Floats
) -> tuple[Floats, Floats]:
    """Return G and its squared error, (K,) each.

    Args:
        certifier: Has the losses seen.
        inside: (K, n) True where one of n unseen questions belongs to a target.
        predicted: (n,) their predicted losses.
    """
    count, waiting = inside.sum(axis=1), certifier.waiting
    answered = certifier.sizes - waiting
    counting = answered - certifier.out
    # Some waiting questions will turn out not to count; the draws estimate which share will.
    coming = certifier.sequences.share * waiting
    total = np.maximum(counting + coming, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(waiting > 0, inside @ predicted / count, 0.0)
        square = np.where(waiting > 0, inside @ predicted**2 / count, 0.0)
        missing = np.where(waiting > 0, 1 / count - 1 / waiting, 0.0)
    known = (certifier.least + certifier.most) / 2
    spread = (answered * certifier.residual + CREDIT * (mean - square)) / (answered + CREDIT)
    error = spread / np.maximum(answered, 1) + np.maximum(missing, 0) * (square - mean**2)
    return (known + coming * mean) / total, (coming / total) ** 2 * error
