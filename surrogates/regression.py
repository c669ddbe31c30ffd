"""What the question GP regresses: the losses themselves, or the margins behind them.

A loss of 0 or 1 says little: which answers were close is lost. Where a model gives
probabilities, the logit of the one it gave to the truth (or, for graded oracles, score -
threshold) says how close, and varies smoothly with what the follow-up image looks like. The GP is
then on margins, and a logistic link makes losses of them. Which of the two is to be had, and
better, differs by model, so the question GP tries both (``QuestionGP``).
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol

import torch
from torch import Tensor

from .loss_mean import HIGHEST, LOWEST, Judged, Mean
from .unit_kernel import LOSSES, MARGINS, Factor, UnitKernel, Units, fit

SHRINK = 4.0
"""Number of pseudo-answers that draw a side's mean margin to that of all."""

RIDGE = 3.0
"""Prior precision of what half a proxy's logit is worth, in standard deviations of the margin."""

ROUNDS = 3
"""Passes over sides and proxies, whose parts of the mean margin are fitted in turn."""

HARD = 1e-3
"""Standard deviation, among right or among wrong answers, below which margins are no more than
losses."""

PRIOR = (0.0, 1.0, 0.0), (0.1, 0.1, 10.0)
"""Mean and precision of the link's offset and slopes, by margin and by logit F."""


class Coordinate(Protocol):
    """A number per judged question that units' covariance is about, and the way back to losses.

    ``shift`` (n,) is what the GP adds, in units of ``residual``; ``Judged`` questions that are
    only to be predicted have neither loss nor margin.
    """

    medians: Mapping[str, float]

    def fit(self, judged: Judged) -> None:
        """Sets what residuals are taken from."""

    def residual(self, judged: Judged) -> Tensor:
        """(n,) of variance about 1; the larger, the worse the answer."""

    def calibrate(self, judged: Judged, shift: Tensor) -> None:
        """Fits the way back on the leave-one-out means of answers."""

    def losses(self, judged: Judged, shift: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) each: expected loss in [LOWEST, HIGHEST], and its derivative by the shift."""


class HardLosses:
    """(loss - F) / sqrt(F (1 - F)), by the logistic mean F of ``loss_mean``."""

    medians: Mapping[str, float] = LOSSES

    def __init__(self, mean: Mean) -> None:
        self.mean = mean

    def fit(self, judged: Judged) -> None:
        self.mean.fit(judged)

    def residual(self, judged: Judged) -> Tensor:
        expected = self._expected(judged)
        return (judged.loss - expected) / (expected * (1 - expected)).sqrt()

    def calibrate(self, judged: Judged, shift: Tensor) -> None:
        pass

    def losses(self, judged: Judged, shift: Tensor) -> tuple[Tensor, Tensor]:
        expected = self._expected(judged)
        spread = (expected * (1 - expected)).sqrt()
        return (expected + spread * shift).clamp(LOWEST, HIGHEST), spread

    def _expected(self, judged: Judged) -> Tensor:
        return self.mean.expected(judged.variant, judged.side, judged.features)


class Margins:
    """-margin, less the mean of its side and what proxies tell, per standard deviation.

    The loss is logistic in it, and in logit F: proxies that know which answers fail may know
    little of by how much. An answer without a margin (none came) is taken to stand where
    others stand that lost as much.
    """

    medians: Mapping[str, float] = MARGINS

    def __init__(self, mean: Mean, sides: int, columns: int) -> None:
        self.mean = mean
        self._sides, self._columns = sides, columns
        of: Any = {"dtype": torch.float64, "device": mean.device}
        self._centre = torch.zeros((), **of)
        self._scale = torch.ones((), **of)
        self._side = torch.zeros(sides, **of)
        self._column = torch.ones(columns, **of)
        self._beta = torch.zeros(0, **of)
        self._usual = torch.zeros(2, **of)
        self._link = torch.tensor(PRIOR[0], **of)

    @staticmethod
    def informative(judged: Judged) -> bool:
        """Whether margins tell more than losses do."""
        known = ~judged.margin.isnan()
        for failing in (False, True):
            margins = judged.margin[known & ((judged.loss >= 0.5) == failing)]
            if len(margins) > 1 and float(margins.std()) > HARD:
                return True
        return False

    def fit(self, judged: Judged) -> None:
        self.mean.fit(judged)
        known = judged[~judged.margin.isnan()]
        failed = known.loss >= 0.5
        y = -known.margin
        self._centre, self._scale = y.mean(), y.std().clamp(min=HARD)
        means = [self._mean(y[failed == side], side) for side in (False, True)]
        self._usual = torch.stack(means)
        y = self._bad(judged) - self._centre
        self._side, self._beta = torch.zeros_like(self._side), y.new_zeros(judged.features.shape[1])
        for _ in range(ROUNDS):
            self._fit_parts(judged, y)
        rest = (y - self._expected(judged)).square()
        total = torch.bincount(judged.column, rest, self._columns) + SHRINK * rest.mean()
        count = torch.bincount(judged.column, minlength=self._columns) + SHRINK
        self._column = (total / count).sqrt().clamp(min=HARD)

    def residual(self, judged: Judged) -> Tensor:
        rest = self._bad(judged) - self._centre - self._expected(judged)
        return rest / self._column[judged.column]

    def calibrate(self, judged: Judged, shift: Tensor) -> None:
        mean, precision = (self._link.new_tensor(p) for p in PRIOR)
        inputs = self._inputs(judged, shift, self.mean.left_out(judged))
        link = mean
        for _ in range(20):
            rate = torch.sigmoid(inputs @ link)
            slope = inputs.mT @ (judged.loss - rate) - precision * (link - mean)
            curvature = (inputs.mT * (rate * (1 - rate))) @ inputs + precision.diag()
            # never further than this at once: a logistic regression may overshoot
            step = torch.linalg.solve(curvature, slope).clamp(-1, 1)
            link = link + step
            if float(step.abs().max()) < 1e-6:
                break
        self._link = torch.cat([link[:1], link[1:].clamp(min=0)])

    def losses(self, judged: Judged, shift: Tensor) -> tuple[Tensor, Tensor]:
        rate = torch.sigmoid(self._inputs(judged, shift, self.mean.logits(judged)) @ self._link)
        worth = self._link[1] * self._column[judged.column] / self._scale
        return rate.clamp(LOWEST, HIGHEST), rate * (1 - rate) * worth

    def margins(self, judged: Judged, shift: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) each: mean and variance of margins, from those of residuals."""
        column = self._column[judged.column]
        mean = self._centre + self._expected(judged) + column * shift
        return -mean, column.square() * variance

    def _mean(self, values: Tensor, failed: bool) -> Tensor:
        if len(values):
            return values.mean()
        return self._centre + (self._scale if failed else -self._scale)

    def _bad(self, judged: Judged) -> Tensor:
        """-margin (n,), with the usual one of as much loss where there is none."""
        usual = self._usual[(judged.loss >= 0.5).long()]
        return torch.where(judged.margin.isnan(), usual, -judged.margin)

    def _fit_parts(self, judged: Judged, y: Tensor) -> None:
        features = judged.features / 2
        rest = y - features @ self._beta if len(self._beta) else y
        count = torch.bincount(judged.side, minlength=self._sides) + SHRINK
        self._side = torch.bincount(judged.side, rest, self._sides) / count
        if len(self._beta):
            precision = RIDGE * torch.eye(len(self._beta), dtype=y.dtype, device=y.device)
            right = features.mT @ (y - self._side[judged.side])
            self._beta = torch.linalg.solve(features.mT @ features + precision, right)

    def _expected(self, judged: Judged) -> Tensor:
        """(n,) over the centre: what side and proxies say."""
        side = self._side[judged.side]
        return side + judged.features / 2 @ self._beta if len(self._beta) else side

    def _inputs(self, judged: Judged, shift: Tensor, logits: Tensor) -> Tensor:
        """(n, 3): what the link reads."""
        margin = self._expected(judged) + self._column[judged.column] * shift
        return torch.stack([torch.ones_like(shift), margin / self._scale, logits], 1)


class Regression:
    """A GP on one coordinate of the losses, C ``columns`` at once.

    ``Judged.unit`` numbers the units given along with the judged questions, 0 ... n - 1.
    """

    def __init__(self, coordinate: Coordinate, kernel: UnitKernel, columns: int) -> None:
        self.coordinate = coordinate
        self.kernel = kernel
        self.columns = columns

    def residuals(self, judged: Judged, start: int, count: int) -> tuple[Tensor, Tensor]:
        """count x C: mean residuals of units ``start`` ..., and which of them are known."""
        judged = judged[judged.unit >= start]
        residual = self.coordinate.residual(judged)
        place = (judged.unit - start).long() * self.columns + judged.column
        times = torch.bincount(place, minlength=count * self.columns)
        total = torch.bincount(place, residual, count * self.columns)
        shape = (count, self.columns)
        return (total / times.clamp(min=1)).reshape(shape), (times > 0).reshape(shape)

    def tune(self, units: Units, judged: Judged, steps: int) -> None:
        """Fits the kernel's weights in at most ``steps`` steps."""
        fit(self.kernel, units, *self.residuals(judged, 0, len(units)), steps)

    @torch.no_grad()
    def calibrate(self, units: Units, judged: Judged) -> None:
        """Fits the way back to losses on leave-one-out means."""
        self.coordinate.calibrate(judged, self.left_out(units, judged)[0])

    @torch.no_grad()
    def left_out(self, units: Units, judged: Judged) -> tuple[Tensor, Tensor]:
        """(n,) each: mean and variance of every residual as all other units predict it,
        r - alpha / diag(K^-1) and 1 / diag(K^-1).

        Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, section 5.4.2.
        """
        factor = self._factor(units, judged)
        scale = torch.cholesky_inverse(factor.lower).diagonal()[judged.unit]
        shift = factor.alpha[judged.unit, judged.column]
        return self.coordinate.residual(judged) - shift / scale, 1 / scale

    @torch.no_grad()
    def held_out(self, units: Units, judged: Judged) -> float:
        """Mean squared error of either half of the units, predicted from the other.

        Squares, since that is what an audit's variance is made of.
        """
        every = torch.arange(len(units), device=judged.unit.device)
        halves = [some(units, judged, every[part::2]) for part in (0, 1)]
        return sum(deepcopy(self)._error(*halves[k], *halves[1 - k]) for k in (0, 1)) / 2

    def _error(self, units: Units, judged: Judged, new_units: Units, new_judged: Judged) -> float:
        """Mean squared error on new questions, when all is learnt from others."""
        self.coordinate.fit(judged)
        self.calibrate(units, judged)
        cross = self.kernel.between(new_units, units)
        shift = (cross @ self._factor(units, judged).alpha)[new_judged.unit, new_judged.column]
        rate, _ = self.coordinate.losses(new_judged, shift)
        return float((new_judged.loss - rate).square().mean())

    def _factor(self, units: Units, judged: Judged) -> Factor:
        factor = Factor(len(units), self.columns, judged.loss.device)
        covariance = self.kernel.between(units, units)
        covariance.diagonal().add_(self.kernel.noise)
        residual, known = self.residuals(judged, 0, len(units))
        factor.append(covariance[:0], covariance, residual, known)
        return factor


def some(units: Units, judged: Judged, rows: Tensor) -> tuple[Units, Judged]:
    """The units ``rows`` (k,), ascending, and what was judged of them."""
    rows = rows.contiguous()
    judged = judged[torch.isin(judged.unit, rows)]
    return units[rows], judged.moved(torch.searchsorted(rows, judged.unit.long()))
