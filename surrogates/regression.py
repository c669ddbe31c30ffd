"""Coordinates of the question GP: it regresses losses, or the margins behind them.

A loss of 0 or 1 does not show how close an answer was. Where a model gives probabilities, the logit
of the true answer's probability does, or score - threshold for graded oracles. Such a margin varies
smoothly with the look of the follow-up image. The GP is then on margins, and a logistic link turns
them into losses. Which coordinate predicts better differs by model, so ``QuestionGP`` tries both.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from .loss_mean import HIGHEST, LOWEST, Judged, Mean
from .unit_kernel import LOSSES, MARGINS, Factor, UnitKernel, Units, fit

SHRINK = 4.0
"""Pseudo-answers that pull a side's mean margin to the overall mean."""

RIDGE = 3.0
"""Prior precision of the weight of half a proxy's logit, in standard deviations of the margin."""

ROUNDS = 3
"""Rounds over sides and proxies, whose terms of the mean margin are fitted in turn."""

HARD = 1e-3
"""Least standard deviation, among right or among wrong answers, with which margins add something
to losses."""

PRIOR = (0.0, 1.0, 0.0), (0.1, 0.1, 10.0)
"""Mean and precision of the link's offset and slopes, by margin and by logit F."""


class Coordinate(Protocol):
    """A number per judged question for the GP to regress, and a link from it to losses.

    In its methods ``shift`` (n,) is the GP's prediction of the residual, and questions to predict
    are ``Judged`` without loss and margin.
    """

    medians: Mapping[str, float]

    def fit(self, judged: Judged) -> None:
        """Fit the mean that residuals are taken from."""

    def residual(self, judged: Judged) -> Tensor:
        """Return residuals (n,) of variance about 1; a larger one is a worse answer."""

    def calibrate(self, judged: Judged, shift: Tensor) -> None:
        """Fit the link to losses, given leave-one-out predictions of residuals."""

    def losses(self, judged: Judged, shift: Tensor) -> tuple[Tensor, Tensor]:
        """Return the expected loss in [LOWEST, HIGHEST] and its derivative by shift, (n,) each."""


class HardLosses:
    """Losses as (loss - F) / sqrt(F (1 - F)), with the logistic mean F of ``loss_mean``."""

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
    """Margins as -margin less the mean of its side and of proxies, over its standard deviation.

    The loss is logistic in this number and in logit F, since proxies that predict which answers
    fail may not predict by how much. An answer without a margin gets the mean margin of answers
    with as much loss.

    Args:
        mean: Model of F.
        sides: Number of sides, concept * 3 + truth.
        columns: Columns of the regression, each with its own standard deviation.
    """

    medians: Mapping[str, float] = MARGINS

    def __init__(self, mean: Mean, sides: int, columns: int) -> None:
        self.mean = mean
        self._sides, self._columns = sides, columns
        floats: Any = {"dtype": torch.float64, "device": mean.device}
        self._centre = torch.zeros((), **floats)
        self._scale = torch.ones((), **floats)
        self._side = torch.zeros(sides, **floats)  # mean of each side, less the centre
        self._column = torch.ones(columns, **floats)  # standard deviation of each column
        self._beta = torch.zeros(0, **floats)
        self._typical = torch.zeros(2, **floats)  # mean -margin of right and of wrong answers
        self._link = torch.tensor(PRIOR[0], **floats)

    @staticmethod
    def informative(judged: Judged) -> bool:
        """Return whether margins carry more information than losses."""
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
        means = []
        for side in (False, True):
            own = y[failed == side]
            default = self._centre + (self._scale if side else -self._scale)
            means.append(own.mean() if len(own) else default)
        self._typical = torch.stack(means)
        y = self._badness(judged) - self._centre
        self._side, self._beta = torch.zeros_like(self._side), y.new_zeros(judged.features.shape[1])
        for _ in range(ROUNDS):
            self._fit_parts(judged, y)
        squares = (y - self._expected(judged)).square()
        total = torch.bincount(judged.column, squares, self._columns) + SHRINK * squares.mean()
        count = torch.bincount(judged.column, minlength=self._columns) + SHRINK
        self._column = (total / count).sqrt().clamp(min=HARD)

    def residual(self, judged: Judged) -> Tensor:
        excess = self._badness(judged) - self._centre - self._expected(judged)
        return excess / self._column[judged.column]

    def calibrate(self, judged: Judged, shift: Tensor) -> None:
        mean, precision = (self._link.new_tensor(p) for p in PRIOR)
        inputs = self._inputs(judged, shift, self.mean.left_out(judged))
        link = mean
        for _ in range(20):
            rate = torch.sigmoid(inputs @ link)
            slope = inputs.mT @ (judged.loss - rate) - precision * (link - mean)
            curvature = (inputs.mT * (rate * (1 - rate))) @ inputs + precision.diag()
            # steps are bounded, since Newton's method may overshoot
            step = torch.linalg.solve(curvature, slope).clamp(-1, 1)
            link = link + step
            if float(step.abs().max()) < 1e-6:
                break
        self._link = torch.cat([link[:1], link[1:].clamp(min=0)])

    def losses(self, judged: Judged, shift: Tensor) -> tuple[Tensor, Tensor]:
        rate = torch.sigmoid(self._inputs(judged, shift, self.mean.logits(judged)) @ self._link)
        slope = self._link[1] * self._column[judged.column] / self._scale
        return rate.clamp(LOWEST, HIGHEST), rate * (1 - rate) * slope

    def margins(self, judged: Judged, shift: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of margins, (n,) each, from those of residuals."""
        column = self._column[judged.column]
        mean = self._centre + self._expected(judged) + column * shift
        return -mean, column.square() * variance

    def _badness(self, judged: Judged) -> Tensor:
        """Return -margin (n,), with the mean of answers with as much loss where there is none."""
        typical = self._typical[(judged.loss >= 0.5).long()]
        return torch.where(judged.margin.isnan(), typical, -judged.margin)

    def _fit_parts(self, judged: Judged, y: Tensor) -> None:
        """Fit the means of the sides, then the weights of the proxies, to y (n,)."""
        features = judged.features / 2
        of_sides = y - features @ self._beta if len(self._beta) else y
        count = torch.bincount(judged.side, minlength=self._sides) + SHRINK
        self._side = torch.bincount(judged.side, of_sides, self._sides) / count
        if len(self._beta):
            precision = RIDGE * torch.eye(len(self._beta), dtype=y.dtype, device=y.device)
            right = features.mT @ (y - self._side[judged.side])
            self._beta = torch.linalg.solve(features.mT @ features + precision, right)

    def _expected(self, judged: Judged) -> Tensor:
        """Return the mean by side and proxies, (n,), less the centre."""
        side = self._side[judged.side]
        return side + judged.features / 2 @ self._beta if len(self._beta) else side

    def _inputs(self, judged: Judged, shift: Tensor, logits: Tensor) -> Tensor:
        """Return the inputs of the link (n, 3): 1, scaled margin, logit F."""
        margin = self._expected(judged) + self._column[judged.column] * shift
        return torch.stack([torch.ones_like(shift), margin / self._scale, logits], 1)


class Regression:
    """GP on one coordinate of the losses, with C columns.

    In its methods ``Judged.unit`` is the place of a question's unit among the units given with it.
    """

    def __init__(self, coordinate: Coordinate, kernel: UnitKernel, columns: int) -> None:
        self.coordinate = coordinate
        self.kernel = kernel
        self.columns = columns

    def residuals(self, judged: Judged, start: int, count: int) -> tuple[Tensor, Tensor]:
        """Return mean residuals of ``count`` units from ``start``, and which are known, n x C."""
        judged = judged[judged.unit >= start]
        residual = self.coordinate.residual(judged)
        place = (judged.unit - start).long() * self.columns + judged.column
        times = torch.bincount(place, minlength=count * self.columns)
        total = torch.bincount(place, residual, count * self.columns)
        shape = (count, self.columns)
        return (total / times.clamp(min=1)).reshape(shape), (times > 0).reshape(shape)

    def tune(self, units: Units, judged: Judged, steps: int) -> None:
        """Fit the kernel's weights in at most ``steps`` steps."""
        fit(self.kernel, units, *self.residuals(judged, 0, len(units)), steps)

    @torch.no_grad()
    def calibrate(self, units: Units, judged: Judged) -> None:
        """Fit the link to losses on leave-one-out means."""
        self.coordinate.calibrate(judged, self.left_out(units, judged)[0])

    @torch.no_grad()
    def left_out(self, units: Units, judged: Judged) -> tuple[Tensor, Tensor]:
        """Return leave-one-out mean and variance of every residual, (n,) each.

        They are r - alpha / diag(K^-1) and 1 / diag(K^-1). Source: Rasmussen & Williams, Gaussian
        Processes for Machine Learning, section 5.4.2.
        """
        factor = self._factor(units, judged)
        scale = torch.cholesky_inverse(factor.lower).diagonal()[judged.unit]
        shift = factor.alpha[judged.unit, judged.column]
        return self.coordinate.residual(judged) - shift / scale, 1 / scale

    @torch.no_grad()
    def held_out(self, units: Units, judged: Judged) -> float:
        """Return the mean squared error of either half of the units, predicted from the other.

        Squared errors are the variance of an audit's pseudo-outcomes.
        """
        rows = torch.arange(len(units), device=judged.unit.device)
        even, odd = subset(units, judged, rows[::2]), subset(units, judged, rows[1::2])
        return (deepcopy(self)._error(*even, *odd) + deepcopy(self)._error(*odd, *even)) / 2

    def _error(self, units: Units, judged: Judged, new_units: Units, new_judged: Judged) -> float:
        """Return the mean squared error on new questions after learning from others."""
        self.coordinate.fit(judged)
        self.calibrate(units, judged)
        cross = self.kernel.between(new_units, units)
        shift = (cross @ self._factor(units, judged).alpha)[new_judged.unit, new_judged.column]
        rate, _ = self.coordinate.losses(new_judged, shift)
        return float((new_judged.loss - rate).square().mean())

    def _factor(self, units: Units, judged: Judged) -> Factor:
        """Return the Cholesky factor of these units' covariance, with their residuals."""
        factor = Factor(len(units), self.columns, judged.loss.device)
        covariance = self.kernel.between(units, units)
        covariance.diagonal().add_(self.kernel.noise)
        residual, known = self.residuals(judged, 0, len(units))
        factor.append(covariance[:0], covariance, residual, known)
        return factor


def subset(units: Units, judged: Judged, rows: Tensor) -> tuple[Units, Judged]:
    """Return the units at ``rows`` (k,), ascending, and the judged questions about them."""
    rows = rows.contiguous()
    judged = judged[torch.isin(judged.unit, rows)]
    return units[rows], replace(judged, unit=torch.searchsorted(rows, judged.unit.long()))
