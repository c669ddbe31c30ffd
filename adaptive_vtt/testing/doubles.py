"""Deterministic test doubles of datasets and models, for tests of this package and of plug-ins."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..datasets.table import TableDataset, from_table
from ..models.base import ModelDefaults
from ..types import Answer, CallMode, Prompt, Unanswered
from ..utils.random_streams import generator


def tiny_dataset(
    samples: int = 12, concepts: int = 3, *, images: bool = True, seed: int = 0
) -> TableDataset:
    """Return random 16 x 16 colour images with random labels; concepts have both labels.

    Args:
        samples: Number of samples, at least 2.
        concepts: Number of concepts.
        images: Whether samples have images.
        seed: Seed of images and labels.
    """
    rng = generator(seed, "tiny dataset")
    labels = (rng.random((samples, concepts)) < 0.4).astype(int)
    labels[0], labels[1] = 0, 1
    names, columns = [f"s{i}" for i in range(samples)], [f"c{i}" for i in range(concepts)]
    table = pd.DataFrame(labels, index=names, columns=columns)
    pictures = rng.integers(0, 256, (samples, 16, 16, 3), dtype=np.uint8) if images else None
    return from_table(pictures, table, name="tiny")


class ScriptedModel(ModelDefaults):
    """Model whose answers depend only on the seed, the image and the concept.

    Answers are uniform in [0, 1]. An answered call costs 1, a refused one 0.5. ``asked`` lists
    (sample, relation, severity, concepts) of all calls in order, so that tests can find repeats.

    Args:
        answers: Whether a call answers one concept or all.
        seed: Seed of answers and refusals.
        refuse: Share of calls that return Unanswered.
    """

    needs_image = False
    most_cost = 1.0

    def __init__(self, *, answers: CallMode = "all", seed: int = 0, refuse: float = 0.0) -> None:
        self.answers, self.name, self._seed, self._refuse = answers, "scripted", seed, refuse
        self.asked: list[tuple[str, str, int, tuple[str, ...]]] = []

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(p) for p in prompts]

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        key = f"{prompt.sample_id}/{prompt.relation}/{prompt.severity}"
        self.asked.append((prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts))
        refusal = generator(self._seed, f"refuse/{key}/{'/'.join(prompt.concepts)}")
        if refusal.random() < self._refuse:
            return Unanswered("refused", cost=0.5)
        values = [generator(self._seed, f"{key}/{c}").random() for c in prompt.concepts]
        return Answer(tuple(values), cost=1.0)
