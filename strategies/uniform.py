"""Uniform questioning: the baseline, strategy (a) of Concept-centric VTT."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from adaptive_vtt.engine.belief import Belief
    from adaptive_vtt.types import Candidates


class Random:
    """Every candidate alike."""

    def weights(self, candidates: "Candidates", belief: "Belief") -> Tensor:
        return torch.ones(len(candidates), dtype=torch.float64)
