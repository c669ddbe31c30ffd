"""Models with a set accuracy: the paper's simulated methods under evaluation."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from ...datasets.base import Dataset
from ...errors import check_known
from ...types import UNKNOWN, Answer, CallMode, Prompt, Unanswered
from ...utils.options import Option
from ...utils.random_streams import generator
from ..base import ModelDefaults

KINDS = {"unbiased": (0.7, 0.7), "biased": (0.9, 0.5), "negatively-biased": (0.5, 0.9)}
"""The paper's models: how often each is right about the commonest concept, and about others."""


class Simulated(ModelDefaults):
    """Right with a set probability per concept, on whatever image it is shown.

    The paper gives accuracies alone; with hard 0/1 answers its performance model would degenerate,
    so a right answer is uniform on the right side of one half and a wrong one on the wrong side.
    Source: Concept-centric VTT, section 3.1.

    Args:
        dataset: The truth.
        accuracy: Concept -> probability of a right answer.
        seed: An answer is a function of it, sample, relation, severity and concept.
        answers: Whether a call answers one concept or all.
        name: The model's name.
    """

    needs_image = False

    def __init__(
        self,
        dataset: Dataset,
        accuracy: Mapping[str, float],
        *,
        seed: int = 0,
        answers: CallMode = "one",
        name: str = "simulated",
    ) -> None:
        self.answers, self.name, self._seed = answers, name, seed
        self._dataset, self._accuracy = dataset, dict(accuracy)
        self._index: dict[str, int] = {}

    @classmethod
    def paper(
        cls,
        kind: Annotated[str, Option("unbiased, biased or negatively-biased", name="target")],
        dataset: Dataset,
        *,
        seed: int = 0,
        answers: CallMode = "one",
    ) -> "Simulated":
        """Return one of the paper's simulated models.

        There are three: unbiased (70 % everywhere), biased (90 % on the concept that is
        present most often, 50 % on others), negatively-biased (50 % and 90 %)."""
        check_known("simulated model", kind, KINDS)
        common = dataset.concepts[int(np.argmax(dataset.counts[:, 1]))]
        on_common, elsewhere = KINDS[kind]
        accuracy = {c: on_common if c == common else elsewhere for c in dataset.concepts}
        return cls(dataset, accuracy, seed=seed, answers=answers, name=kind)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Answer(tuple(self._value(p, c) for c in p.concepts)) for p in prompts]

    def _value(self, prompt: Prompt, concept: str) -> float:
        if not self._index:
            count = len(self._dataset)
            self._index = {self._dataset.sample_id(i): i for i in range(count)}
        sample = np.array([self._index[prompt.sample_id]])
        column = np.array([self._dataset.concepts.index(concept)])
        truth = int(self._dataset.truth(sample, column)[0])
        key = f"simulated/{prompt.sample_id}/{prompt.relation}/{concept}"
        rng = generator(self._seed, key, prompt.severity)
        right = rng.random() < self._accuracy[concept]
        # an unknown truth is never judged; any side will do
        says_yes = (truth == 1) == right if truth != UNKNOWN else right
        return float((rng.random() + says_yes) / 2)


paper = Simulated.paper
"""The kind "simulated" of a SPEC.toml."""
