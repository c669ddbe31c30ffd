"""Diversity: far from everything that was asked.

Source: Gonzalez, Clustering to Minimize the Maximum Intercluster Distance (Theoretical
Computer Science 38, 1985), the greedy k-centre algorithm, farthest first; for active
learning Sener & Savarese, A Core-Set Approach (ICLR 2018). With a proposal in proportion to a
power of the distance it is the seeding of k-means++ (Arthur & Vassilvitskii, SODA 2007).

It looks at samples alone: all questions about a sample are equally far, and those about a
sample that was asked about already have weight 0 (all have the same weight once no sample
is new). Cost per draw: (samples among the candidates) x (samples asked) x features.
"""

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.surrogates import QuestionGP
from adaptive_vtt.types import UNKNOWN, Candidates

from .base import BeliefView
from .common import Power, once_per_call, sharpened

BLOCK = 1 << 22
"""Distances held at a time."""

SAME = 1e-6
"""Samples nearer than this are the same but for rounding."""


class KCentre:
    """Samples far from all that were asked about, by the distance to the nearest.

    Distances are Euclidean, in the question GP's features, or between truth vectors (unknown
    truths as 1/2) where there is no question GP or it has none. Before any answer all weigh alike.
    """

    def __init__(self, power: Power = 1.0) -> None:
        self.power = power

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        if not belief.asked:
            return torch.ones(len(candidates), dtype=torch.float64)
        samples, place = torch.unique(candidates.sample, return_inverse=True)
        asked = _features(torch.tensor(list(belief.asked)), belief)
        distance = _nearest(_features(samples, belief), asked)[place]
        # a call's questions share its one sample
        return once_per_call(candidates, sharpened(distance, self.power))


def _features(samples: Tensor, belief: BeliefView) -> Tensor:
    """(n, d) float64 on the CPU."""
    if isinstance(belief.losses, QuestionGP):
        features = belief.losses.features(samples).double().cpu()
        if features.shape[1]:
            return features
    concepts = np.arange(len(belief.space.concepts))
    truths = belief.space.dataset.truth(samples.numpy()[:, None], concepts[None, :])
    return torch.from_numpy(np.where(truths == UNKNOWN, 0.5, truths).astype(np.float64))


def _nearest(features: Tensor, asked: Tensor) -> Tensor:
    """(n,): distance to the nearest row of ``asked``."""
    rows = max(1, BLOCK // max(1, len(asked)))
    parts = [torch.cdist(part, asked).amin(1) for part in torch.split(features, rows)]
    distance = torch.cat(parts)
    return torch.where(distance > SAME, distance, 0.0)
