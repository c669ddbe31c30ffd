"""Figures as functions of rates, and what they can be when the rates are known to intervals.

A monotone function takes its ends at corners of the box of intervals; that is exact for the
box. Cohen's kappa is not monotone where it is negative; its ends are found among C + 1
corners, see ``kappa``. No interval uses that rates hang together (that every class missed is
another one's false alarm): it holds, and is wider than it would have to be.

Classes 0..C-1 have N_c images each, N in all; a class is missed in a share ``miss`` of its own
images and said in a share ``alarm`` of the others: TP_c = N_c (1 - miss_c) and
FP_c = (N - N_c) alarm_c. An unanswered question is wrong about every class, by default.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Floats


@dataclass(frozen=True)
class Bounds:
    """An estimate and the interval it stands in: three numbers, or three arrays (C,)."""

    estimate: Any
    lower: Any
    upper: Any

    def minus(self, other: "Bounds") -> "Bounds":
        """The difference of two; exact for the box."""
        return Bounds(
            self.estimate - other.estimate, self.lower - other.upper, self.upper - other.lower
        )

    def over(self, divisor: float) -> "Bounds":
        """Divided by a number, whose sign turns the ends round where it is negative."""
        ends = sorted((self.lower / divisor, self.upper / divisor))
        return Bounds(self.estimate / divisor, *ends)

    def within(self, least: float, most: float) -> "Bounds":
        """Cut to what is possible, the estimate to the interval."""
        lower, upper = (float(np.clip(end, least, most)) for end in (self.lower, self.upper))
        return Bounds(float(np.clip(self.estimate, lower, upper)), lower, upper)


def stack(parts: list[Bounds]) -> Bounds:
    """Several as one, with arrays."""
    ends = np.array([(b.estimate, b.lower, b.upper) for b in parts], float)
    return Bounds(*ends.T)


def rising(function: Callable[..., float], *rates: Bounds) -> Bounds:
    """A function that falls in no rate."""
    return Bounds(
        function(*(r.estimate for r in rates)),
        function(*(r.lower for r in rates)),
        function(*(r.upper for r in rates)),
    )


def falling(function: Callable[..., float], *rates: Bounds) -> Bounds:
    """A function that rises in no rate."""
    return rising(function, *(Bounds(r.estimate, r.upper, r.lower) for r in rates))


def accuracy(sizes: Floats, miss: Floats) -> float:
    """The share of images whose class is said; falls in every rate."""
    return 1 - float(sizes @ miss / sizes.sum())


def recall(miss: Floats) -> float:
    """Macro recall, which is balanced accuracy; falls in every rate."""
    return 1 - float(np.mean(miss))


def precision(sizes: Floats, miss: Floats, alarm: Floats) -> float:
    """Macro precision; falls in every rate. A class never said has precision 0."""
    true, false = _said(sizes, miss, alarm)
    said = true + false
    return float(np.divide(true, said, out=np.zeros_like(said), where=said > 0).mean())


def f1(sizes: Floats, miss: Floats, alarm: Floats) -> float:
    """Macro F1, the mean over classes of 2 TP / (2 TP + FP + FN); falls in every rate."""
    true, false = _said(sizes, miss, alarm)
    return float(np.mean(2 * true / (true + false + sizes)))


def kappa(sizes: Floats, miss: Bounds, alarm: Bounds) -> Bounds:
    """Cohen's kappa, (po - pe) / (1 - pe) = 1 - (1 - po) / (1 - pe); exact for the box.

    With shares p = N_c / N of the classes, the ratio on the right is sum(p miss) over
    sum(p (1 - p) (1 - alarm) + p^2 miss). It rises in every alarm. For given alarms its
    extremes over the misses are at corners, and which end of miss_c makes it larger depends
    only on whether p_c is above or below 1 / ratio: all classes up to some size lie at
    one end and all larger ones at the other.
    """
    share = sizes / sizes.sum()
    small_first = np.argsort(np.argsort(share))

    def disagreement(missed: Floats, said: Floats) -> float:
        """(1 - po) / (1 - pe), and 1 where both are sure to agree by chance."""
        chance = share @ ((1 - share) * (1 - said) + share * missed)
        return float(share @ missed / chance) if chance > 0 else 1.0

    def corners(small: Floats, large: Floats, said: Floats) -> list[float]:
        cuts = range(len(share) + 1)
        return [disagreement(np.where(small_first < k, small, large), said) for k in cuts]

    return Bounds(
        1 - disagreement(miss.estimate, alarm.estimate),
        1 - max(corners(miss.upper, miss.lower, alarm.upper)),
        1 - min(corners(miss.lower, miss.upper, alarm.lower)),
    )


def _said(sizes: Floats, miss: Floats, alarm: Floats) -> tuple[Floats, Floats]:
    """TP and FP of every class."""
    return sizes * (1 - miss), (sizes.sum() - sizes) * alarm
