"""Diversity: samples far from all that were asked about.

Sources: Gonzalez, Clustering to Minimize the Maximum Intercluster Distance (Theoretical Computer
Science 38, 1985), the greedy k-centre algorithm; for active learning Sener & Savarese, A Core-Set
Approach (ICLR 2018). A proposal proportional to a power of the distance is the seeding of k-means++
(Arthur & Vassilvitskii, SODA 2007).

Distances are those of samples, so all questions about a sample are equally far. Samples that were
asked about have the weight 0; once no sample is new, all have the same weight. A draw costs
(samples among the candidates) x (samples asked about) x features.
"""

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.surrogates import QuestionGP
from adaptive_vtt.types import UNKNOWN, Candidates

from .base import BeliefView
from .common import Power, once_per_call, sharpened

BLOCK = 1 << 22
"""Most distances in memory."""

SAME = 1e-6
"""Largest distance that counts as rounding."""


class KCentre:
    """Samples far from all that were asked about, by the distance to the nearest.

    Distances are Euclidean, in the question GP's features. Without these they are between truth
    vectors, where an unknown truth is 1/2. Before any answer all samples have the same weight.
    """

    def __init__(self, power: Power = 1.0) -> None:
        self.power = power

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        if not belief.asked:
            return torch.ones(len(candidates), dtype=torch.float64)
        samples, place = torch.unique(candidates.sample, return_inverse=True)
        asked = _features(torch.tensor(list(belief.asked)), belief)
        blocks = torch.split(_features(samples, belief), max(1, BLOCK // max(1, len(asked))))
        distance = torch.cat([torch.cdist(block, asked).amin(1) for block in blocks])
        distance = torch.where(distance > SAME, distance, 0.0)[place]
        # all questions of a call are about one sample
        return once_per_call(candidates, sharpened(distance, self.power))


def _features(samples: Tensor, belief: BeliefView) -> Tensor:
    """Return the features of samples, (n, d) float64 on the CPU."""
    if isinstance(belief.losses, QuestionGP):
        features = belief.losses.features(samples).double().cpu()
        if features.shape[1]:
            return features
    concepts = np.arange(len(belief.space.concepts))
    truths = belief.space.dataset.truth(samples.numpy()[:, None], concepts[None, :])
    return torch.from_numpy(np.where(truths == UNKNOWN, 0.5, truths).astype(np.float64))
