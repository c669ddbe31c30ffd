"""What the audit has learnt, for strategies to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .randomness import generator
from .space import QuestionSpace

if TYPE_CHECKING:
    pass

REFERENCE = 2_000
"""At most this many samples are counted over for predictability."""


@dataclass(frozen=True)
class Learnt:
    """One judged question: where it stands, its truth, P(yes) and a (None: unanswered)."""

    question: int
    truth: int
    loss: float
    answer: float | None = None
    coordinate: float | None = None


class Belief:
    """The answer GPs per concept, and how predictable each image's next answer is."""

    def __init__(self, space: QuestionSpace, *, seed: int, device: str = "cpu") -> None:
        from .surrogates import AnswerGP, Predictability

        self.space = space
        self.answers: AnswerGP = AnswerGP(len(space.concepts), device=device)
        reference = space.dataset.reference(REFERENCE, generator(seed, "reference"))
        self.predictability: Predictability = Predictability(*reference)

    def learn(self, outcomes: Sequence[Learnt]) -> None:
        """Takes in judged questions, in order. Those unanswered teach the GPs nothing."""
        from .surrogates import AnswerPoints

        answered = [o for o in outcomes if o.answer is not None and o.coordinate is not None]
        if not answered:
            return
        # the space's numbering on plain integers: for the usual one question, arrays are slower
        concepts, variants = len(self.space.concepts), len(self.space.variants)
        for outcome in answered:
            assert outcome.answer is not None
            image, concept = divmod(outcome.question, concepts)
            sample = image // variants
            self.predictability.observe(image, sample, concept, outcome.truth, outcome.answer)
        points = AnswerPoints(
            torch.tensor([o.question % concepts for o in answered]),
            torch.tensor([o.coordinate for o in answered], dtype=torch.float64),
        )
        self.answers.observe(points)

    def uncertainty(self) -> Tensor:
        """C x 2 on the CPU: u- and u+ of every concept, as shares of their prior value."""
        return (self.answers.uncertainty() / self.answers.prior_uncertainty).cpu()
