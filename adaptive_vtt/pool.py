"""The questions that may be drawn next: all of them, or a uniform subset of the unseen."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .datasets.base import Indices
from .randomness import generator
from .space import QuestionSpace


@dataclass(frozen=True)
class Candidates:
    """n questions that may be drawn. Every field is an int64 tensor (n,).

    ``truth`` is 0 or 1; ``image`` numbers the follow-up image a question is about.
    """

    question: Tensor
    image: Tensor
    sample: Tensor
    variant: Tensor
    concept: Tensor
    truth: Tensor

    def __len__(self) -> int:
        return len(self.question)

    @property
    def cell(self) -> Tensor:
        """concept * 2 + truth: which side of which concept a question belongs to."""
        return self.truth.add(self.concept, alpha=2)


class Pool:
    """The unseen questions of a space, of which at most ``limit`` are looked at per draw.

    A space of up to ``limit`` questions is held as arrays; a larger one is sampled anew for
    each draw, at a cost that does not depend on its size.
    """

    def __init__(self, space: QuestionSpace, *, seed: int, limit: int = 4096) -> None:
        self.space = space
        self.seed = seed
        self.limit = limit
        self.remaining: npt.NDArray[np.int64] = space.cell_counts.copy()
        self._seen: set[int] = set()
        self._listed: _Listed | None = None
        if space.size <= limit:
            self._listed = _Listed(_columns(space, space.nth(np.arange(space.size))))

    def __len__(self) -> int:
        """How many questions are unseen."""
        return int(self.space.size) - len(self._seen)

    def candidates(self, draw: int) -> Candidates:
        """The candidates of draw number ``draw``: all unseen, or ``limit`` uniform ones."""
        columns = self._listed.columns() if self._listed else self._sampled(draw)
        return Candidates(*(torch.from_numpy(column) for column in columns))

    def remove(self, questions: Indices) -> None:
        """Takes eligible questions out; those already out stay out."""
        fresh = [q for q in questions.tolist() if q not in self._seen]
        if not fresh:
            return
        numbers = np.array(fresh)
        sample, _, concept = self.space.parts(numbers)
        truth = self.space.dataset.truth(sample, concept)
        for cell in zip(concept.tolist(), truth.tolist(), strict=True):
            self.remaining[cell] -= 1
        self._seen.update(fresh)
        if self._listed:
            self._listed.remove(fresh)

    def _sampled(self, draw: int) -> npt.NDArray[np.int64]:
        rng = generator(self.seed, "candidates", draw)
        if len(self) <= self.limit or len(self) * 2 < self.space.size:
            everything = self.space.nth(np.arange(self.space.size))
            seen = np.fromiter(self._seen, np.int64, len(self._seen))
            unseen = np.setdiff1d(everything, seen, assume_unique=True)
            if len(unseen) > self.limit:
                unseen = unseen[np.sort(rng.choice(len(unseen), self.limit, replace=False))]
            return _columns(self.space, unseen)
        return _columns(self.space, self._rejection(rng))

    def _rejection(self, rng: np.random.Generator) -> Indices:
        """``limit`` distinct unseen questions, uniform: ranks drawn until enough are new."""
        chosen: dict[int, None] = {}
        while len(chosen) < self.limit:
            ranks = rng.integers(self.space.size, size=self.limit)
            for question in self.space.nth(ranks).tolist():
                if question not in self._seen and len(chosen) < self.limit:
                    chosen[question] = None
        return np.fromiter(chosen, np.int64, len(chosen))


class _Listed:
    """Columns of questions from which any can be taken out in constant time."""

    def __init__(self, table: npt.NDArray[np.int64]) -> None:
        self._table = table
        self._size = table.shape[1]
        self._place = {q: i for i, q in enumerate(table[0].tolist())}

    def columns(self) -> npt.NDArray[np.int64]:
        return self._table[:, : self._size]

    def remove(self, questions: list[int]) -> None:
        for question in questions:
            hole, last = self._place.pop(question), self._size - 1
            if hole != last:
                self._table[:, hole] = self._table[:, last]
                self._place[int(self._table[0, hole])] = hole
            self._size = last


def _columns(space: QuestionSpace, questions: Indices) -> npt.NDArray[np.int64]:
    """6 x n: the fields of Candidates."""
    sample, variant, concept = space.parts(questions)
    truth = space.dataset.truth(sample, concept)
    return np.stack([questions, space.image_of(questions), sample, variant, concept, truth])
