"""As many distinct violations per call as possible, where a violation is one of an object.

A follow-up is worth what it may find that was not found: of the objects it retains or makes
disappear, those whose violation is not known yet, each with the rate at which things of its
name, and this one itself, were got wrong so far. An image that was not captioned costs its
source first, and whatever versions of that; it is worth the best rate per call that some few
follow-ups of it promise, as in the index of Gittins (Bandit Processes and Dynamic Allocation
Indices, J. R. Stat. Soc. B, 1979).
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Candidates, Floats

from .base import BeliefView
from .common import sharpened

if TYPE_CHECKING:
    from adaptive_vtt.oracles.caption_memory import CaptionMemory


def caption_memory(belief: BeliefView, name: str) -> "CaptionMemory":
    """The belief's memory of captions; raises InputError where it has none."""
    from adaptive_vtt.oracles.caption_memory import CaptionMemory

    if not isinstance(belief.memory, CaptionMemory):
        raise InputError(f"strategy {name!r}: needs an audit of captions (oracle.kind 'captions')")
    return belief.memory


class DistinctViolations:
    """Of captions: objects whose violation is not known yet, by their promise per call.

    ``power``: how concentrated on the best. ``ahead``: follow-ups of an image that was not
    captioned yet are looked at up to so many together.
    """

    def __init__(self, power: float = 16.0, ahead: int = 9) -> None:
        self.power = power
        self.ahead = ahead

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        memory = caption_memory(belief, "distinct-violations")
        rows, variants = memory.rows(candidates.sample), candidates.variant.numpy()
        checks = memory.checks(rows, variants)
        rates = memory.rates(rows) * memory.fresh(rows)[:, :, None]
        other = memory.surprise(rows, variants)
        known = memory.known(rows)
        rates = np.where(known[:, None, None], rates, rates * memory.named)
        worth = (checks * rates).sum(axis=(1, 2))
        late = self._per_call(checks, rates, other, memory)
        return sharpened(torch.from_numpy(np.where(known, worth, late)), self.power)

    def _per_call(
        self, checks: Floats, rates: Floats, other: Floats, memory: "CaptionMemory"
    ) -> Floats:
        """(n,): the best rate that 1 .. ahead follow-ups like this one promise per call, all
        calls about the source included; each check that finds nothing lets rates fade."""
        best, total = np.zeros(len(rates)), np.zeros(len(rates))
        for count in range(1, self.ahead + 1):
            total += (checks * rates).sum(axis=(1, 2)) + other
            best = np.maximum(best, total / (1 + memory.extra + count))
            left = (1 - rates) * memory.fading
            rates = rates * (1 - checks * (1 - left))
        return best
