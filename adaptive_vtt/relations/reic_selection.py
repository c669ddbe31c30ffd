"""Which follow-ups of an image are worth asking about: REIC's two scores.

After REIC (TSE 2024, section IV-D). A candidate that makes objects disappear says more than
one that leaves them half in view, of which nothing can be expected; and one that shows
another part of the image than those already chosen says more than one that shows the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..types import Floats
from .reduction import Reductions, Rotate

Ints = npt.NDArray[np.int64]

T_DOWN, T_UP = 0.2, 0.9
"""Shares of an object that stay in view: up to T_DOWN it has disappeared, from T_UP on it is
retained, in between it is ambiguous (REIC, section IV-D)."""


@dataclass(frozen=True)
class Counts:
    """How many objects each of n candidates retains, makes ambiguous, makes disappear: (n,)."""

    retained: Ints
    ambiguous: Ints
    disappeared: Ints


def statuses(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> npt.NDArray[np.int8]:
    """1 retained, 0 ambiguous, -1 disappeared, for visible shares of any shape."""
    return (shares >= up).astype(np.int8) - (shares <= down).astype(np.int8)


def counts(shares: Floats, down: float = T_DOWN, up: float = T_UP) -> Counts:
    """The counts of n candidates, given the visible shares m x n of m objects."""
    status = statuses(shares, down, up)
    return Counts(*(np.asarray((status == s).sum(axis=0), np.int64) for s in (1, 0, -1)))


def ambiguity(counted: Counts) -> Floats:
    """S_amb = N_disappear - N_ambiguous (n,); how many are retained does not count."""
    return (counted.disappeared - counted.ambiguous).astype(np.float64)


@dataclass(frozen=True)
class Spans:
    """What n candidates leave in view: of each of H rows one interval, first (n x H) and end
    (n x H, exclusive)."""

    first: Ints
    end: Ints

    def __getitem__(self, places: Any) -> "Spans":
        return Spans(self.first[places], self.end[places])


def spans(reductions: Reductions, height: int, width: int) -> Spans:
    """What each of n reductions leaves in view of an image of H x W."""
    first = np.zeros((len(reductions), height), np.int64)
    end = np.zeros_like(first)
    for row, reduction in enumerate(reductions):
        if isinstance(reduction, Rotate):
            first[row], end[row] = reduction.spans(height, width)
        else:
            left, top, right, bottom = reduction.rectangle(height, width)
            first[row, top:bottom], end[row, top:bottom] = left, right
    return Spans(first, end)


def differences(every: Spans, one: Spans) -> Floats:
    """Diff = 1 - |M_i and M_j| / |M_i or M_j| (n,), of each candidate from one (its row)."""
    both = np.minimum(every.end, one.end) - np.maximum(every.first, one.first)
    shared = np.maximum(both, 0).sum(axis=-1)
    areas = (every.end - every.first).sum(axis=-1)
    union = areas + (one.end - one.first).sum(axis=-1) - shared
    return np.asarray(1 - shared / np.maximum(union, 1), np.float64)


def normalised(scores: Floats) -> Floats:
    """Scores (n,) from 0 to 1; all 0 where they are all the same."""
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)


def select(
    scores: Floats,
    every: Spans,
    k: int,
    *,
    chosen: Sequence[int] = (),
    by_ambiguity: bool = True,
    by_diversity: bool = True,
    rng: np.random.Generator | None = None,
) -> list[int]:
    """Up to k places of candidates, best first, given S_amb (n,) and what each leaves in view.

    The first is the one with the highest S_amb, each later one the highest sum of S_amb and
    S_div, the difference from the nearest one chosen, both normalised over all candidates,
    those chosen included (the paper is silent on that). Ties go to the lowest place.
    ``chosen``: places that were chosen before. The paper's ablations: without ``by_ambiguity``
    the first is random (``rng``) and later ones go by diversity alone (Setting-1), without
    ``by_diversity`` all go by ambiguity alone (Setting-2).
    """
    taken = list(chosen)
    nearest = np.full(len(scores), np.inf)
    for place in taken:
        nearest = np.minimum(nearest, differences(every, every[place]))
    amb = normalised(scores) if len(scores) else scores
    found: list[int] = []
    while len(found) < min(k, len(scores) - len(chosen)):
        total = amb.copy() if by_ambiguity else np.zeros(len(scores))
        if taken and by_diversity:
            total += normalised(nearest)
        total[taken] = -np.inf
        if not taken and not by_ambiguity and rng is not None:
            place = int(rng.integers(len(scores)))
        else:
            place = int(np.argmax(total))
        found.append(place)
        taken.append(place)
        nearest = np.minimum(nearest, differences(every, every[place]))
    return found
