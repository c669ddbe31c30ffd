"""Deterministic doubles, for this package's tests and for tests of your own plug-ins."""

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
    """Return random 16 x 16 colour images with random truths; no concept has one side alone.

    Args:
        samples: Number of images, at least 2.
        concepts: Number of concepts.
        images: Without, samples have no images.
        seed: Same seed, same dataset.
    """
    rng = generator(seed, "tiny dataset")
    labels = (rng.random((samples, concepts)) < 0.4).astype(int)
    labels[0], labels[1] = 0, 1
    names, columns = [f"s{i}" for i in range(samples)], [f"c{i}" for i in range(concepts)]
    table = pd.DataFrame(labels, index=names, columns=columns)
    pictures = rng.integers(0, 256, (samples, 16, 16, 3), dtype=np.uint8) if images else None
    return from_table(pictures, table, name="tiny")


class ScriptedModel(ModelDefaults):
    """Model that answers by a fixed rule of (seed, image, concept), and lists what it is asked.

    Answers are uniform in [0, 1]; every answered call costs 1, a refused one 0.5. ``asked`` lists
    (sample, relation, severity, concepts) in order, so that tests can see anything paid for twice.

    Args:
        answers: Whether a call answers one concept or all.
        seed: Part of the rule.
        refuse: Share of the calls that come back Unanswered.
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
