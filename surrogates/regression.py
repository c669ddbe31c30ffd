"""A coordinate and the kernel of its covariance: what can be done with both on given units."""

from copy import deepcopy

import torch
from torch import Tensor

from .coordinates import Coordinate
from .loss_mean import Judged
from .unit_kernel import Factor, UnitKernel, Units, fit


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
