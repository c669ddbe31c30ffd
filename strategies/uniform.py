"""Uniform questioning: the baseline, strategy (a) of Concept-centric VTT."""

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates

from .base import BeliefView


class Random:
    """Every candidate alike: (a) of the paper, and the baseline."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return torch.ones(len(candidates), dtype=torch.float64)
