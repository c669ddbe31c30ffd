"""Relations for tests, and small spaces whose questions compare with a source image."""

from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.testing import tiny_dataset

RELATIONS = ("identity", "gaussian_noise", "rotation")


def space(samples: int = 5, **options: Any) -> QuestionSpace:
    options = {"oracle": Consistency(), "severities": [1, 2], **options}
    return QuestionSpace(tiny_dataset(samples, 2), RELATIONS, **options)


class Negative(LabelPreserving):
    """Relation to the negative image, about which every answer should be the opposite."""

    name = "negative"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        return 255 - image

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return 1 - truth


class Named(LabelPreserving):
    """Relation without images, which does not apply to one concept."""

    def __init__(self, name: str, severities: tuple[int, ...] = (1,), without: str = "") -> None:
        self.name, self.severities, self._without = name, severities, without

    def applies(self, concept: str) -> bool:
        return concept != self._without


def uneven(samples: int, seed: int = 0, concepts: str = "ab") -> QuestionSpace:
    """Return a space of two relations, of which "t" does not apply to "b", with unknown truths."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([0.0, 1.0, np.nan], (samples, len(concepts)), p=[0.55, 0.35, 0.1])
    labels[0], labels[1] = 0, 1
    table = pd.DataFrame(labels, index=[f"s{i}" for i in range(samples)], columns=list(concepts))
    sites = pd.DataFrame({"site": rng.choice(["x", "y"], samples)})
    dataset = from_table(None, table, metadata=sites)
    return QuestionSpace(dataset, [Named("r", (1, 2)), Named("t", without="b")])
