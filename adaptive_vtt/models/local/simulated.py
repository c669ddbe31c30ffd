"""Simulated models of known accuracy, as in the experiments of the Concept-centric VTT paper."""

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
"""The paper's models: accuracy on the most common concept, and on the others."""


class Simulated(ModelDefaults):
    """A model with a set accuracy for each concept, which does not depend on the image.

    Source: Concept-centric VTT, section 3.1, which gives accuracies alone. With answers of exactly
    0 and 1 the paper's performance model would degenerate. So P(yes) of a correct answer is uniform
    on the correct side of 1/2, and P(yes) of a wrong answer on the other side.

    Args:
        dataset: The dataset, for the truth.
        accuracy: Concept -> probability of a correct answer, in [0, 1].
        seed: Answers depend on the seed, sample, relation, severity and concept alone.
        answers: Concepts that one call answers: "all" or "one".
        name: Name in errors, journals and reports.
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

        Args:
            kind: "unbiased" (accuracy .7 on all concepts), "biased" (.9 on the concept that is
                present most often, .5 on others), or "negatively-biased" (.5 and .9).
            dataset: The dataset, for the truth.
            seed: Seed of the answers.
            answers: Concepts that one call answers: "all" or "one".

        Raises:
            InputError: The kind is unknown.
        """
        check_known("simulated model", kind, KINDS)
        most_common = dataset.concepts[int(np.argmax(dataset.counts[:, 1]))]
        of_common, of_others = KINDS[kind]
        accuracy = {c: of_common if c == most_common else of_others for c in dataset.concepts}
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
        correct = rng.random() < self._accuracy[concept]
        # with an unknown truth the answer is never judged: either side is fine
        yes = (truth == 1) == correct if truth != UNKNOWN else correct
        return float((rng.random() + yes) / 2)


paper = Simulated.paper
"""The kind "simulated" of a SPEC.toml."""
