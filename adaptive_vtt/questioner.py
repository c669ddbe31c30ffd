"""Candidates to weights to law to draw: the engine's choice, without any input or output."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from .belief import Belief, Learnt
from .datasets.base import Indices
from .law import Law, mix
from .pool import Pool
from .randomness import generator
from .space import QuestionSpace
from .strategies import Strategy


@dataclass(frozen=True)
class Draw:
    """One random choice: its number, the question, and the law it was drawn from."""

    number: int
    question: int
    probability: float
    law: Law


class Questioner:
    """Draws questions and learns from their outcomes. Everything follows from the seed."""

    def __init__(
        self,
        space: QuestionSpace,
        strategy: Strategy,
        *,
        seed: int = 0,
        floor: float = 0.0,
        candidates: int = 4096,
        device: str = "cpu",
    ) -> None:
        self.space = space
        self.strategy = strategy
        self.seed = seed
        self.floor = floor
        self.belief = Belief(space, seed=seed, device=device)
        self.pool = Pool(space, seed=seed, limit=candidates)
        self.draws = 0

    def draw(self) -> Draw | None:
        """The next question, or None when all have been seen. Does not take it out."""
        if not len(self.pool):
            return None
        number = self.draws
        candidates = self.pool.candidates(number)
        weights = self.strategy.weights(candidates, self.belief)
        law = mix(
            candidates.question.numpy(),
            weights.detach().cpu().numpy().astype(np.float64),
            self.floor,
        )
        place = law.draw(generator(self.seed, "draw", number))
        return Draw(number, int(law.questions[place]), float(law.probabilities[place]), law)

    def explain(self, draw: Draw) -> dict[str, float | int]:
        """What the strategy saw of the question drawn: for the journal and the report."""
        _, _, concept = (int(p) for p in self.space.parts(draw.question))
        truth = int(self.space.truth([draw.question])[0])
        image = torch.from_numpy(self.space.image_of([draw.question]))
        expected = self.belief.predictability.probability(image, torch.tensor([concept]))
        return {
            "uncertainty": round(float(self.belief.uncertainty()[concept, truth]), 6),
            "predicted_yes": round(float(expected[0]), 6),
            "candidates": len(draw.law.questions),
            "eligible": int(np.count_nonzero(draw.law.probabilities)),
        }

    def take(self, questions: Indices) -> None:
        """Counts one draw, and takes the questions its call answers out of the pool."""
        self.draws += 1
        self.pool.remove(questions)

    def learn(self, outcomes: Sequence[Learnt]) -> None:
        """Takes in judged questions, in draw order."""
        self.belief.learn(outcomes)

    def open_uncertainty(self) -> npt.NDArray[np.float64]:
        """C x 2: relative uncertainty of each side, NaN where nothing is left to ask."""
        return np.where(self.pool.remaining > 0, self.belief.uncertainty().numpy(), np.nan)
