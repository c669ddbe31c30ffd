"""The questions that may be drawn next: all of them, or those of a uniform subset of calls."""

from collections.abc import Callable, Iterator

import numpy as np

from ..certify.strata import Strata
from ..space import QuestionSpace
from ..types import Bools, CallMode, Candidates, Indices
from ..utils.random_streams import generator
from .tensors import candidates_of

Table = Indices

SLICE = 4096
"""Questions that are predicted at once, where all of a space are."""


class CandidatePool:
    """The unseen questions of a space, of which about ``limit`` are looked at per draw.

    A space of up to ``limit`` questions is held as arrays; of a larger one, calls are
    sampled uniformly anew for each draw, at a cost that does not depend on its size. With
    ``answers`` "all" a call is an image with all its questions, else one question. ``plain``:
    candidates are arrays, not tensors.
    """

    def __init__(
        self,
        space: QuestionSpace,
        *,
        seed: int | str,
        limit: int = 4096,
        answers: CallMode = "one",
        plain: bool = False,
    ) -> None:
        self.space = space
        self.seed = seed
        self.limit = limit
        self.answers = answers
        self.plain = plain
        self.remaining: Indices = space.cell_counts.copy()
        self._seen: set[int] = set()  # calls; of a space held as arrays, questions
        self._order: list[int] = []  # the same, in the order in which they were seen
        self._rests: dict[int | None, _Rest] = {}  # what is left, by stratum; None: of all
        self._left = int(space.size)
        self._every: Indices | None = None
        self._listed: _Listed | None = None
        self._ranks = self._calls = int(space.size)
        self.most = limit
        """Calls that are looked at per draw, at most."""
        if answers == "all":
            self._ranks, self._calls = space.total // len(space.concepts), space.images
            small = space.size <= limit
            self.most = space.images if small else max(1, limit // len(space.concepts))
        if space.size <= limit:
            self._listed = _Listed(columns(space, space.nth(np.arange(space.size))))

    def __len__(self) -> int:
        """How many questions are unseen."""
        return self._left

    def candidates(self, draw: int, strata: Strata | None = None, place: int = 0) -> Candidates:
        """The candidates of draw number ``draw``, in the order of their calls.

        That order is also the order of the journaled proposal, so that whoever has the key and
        the proposal can repeat the draw. With ``strata`` only questions of the stratum ``place``.

        Every draw has a subset of its own, those of one batch included. Were two draws made from
        one, the second would be biased given the first, whose pseudo-outcome shows what the subset
        expects to lose: what is left of it is then no uniform subset of the unseen calls.
        """
        if self._listed:
            table = self._listed.columns()
            if strata is not None:
                table = table[:, strata.of(table[0]) == place]
        else:
            table = self._sampled(draw, strata, place)
        by_call = table[0] if self.answers == "one" else table[1]
        return self._by_call(table[:, np.argsort(by_call, kind="stable")])

    def of(self, calls: Indices) -> Candidates:
        """The candidates that these calls (m,), ascending, are."""
        return self._by_call(self._asked(calls))

    def everything(self) -> Iterator[Candidates]:
        """All questions of the space, seen ones too, in ascending order, ``SLICE`` at a time.

        Always the same slices: what is worked out of one comes out the same to the last bit.
        """
        if self._every is None:
            self._every = np.sort(self.space.nth(np.arange(self.space.size)))
        for start in range(0, len(self._every), SLICE):
            yield self._by_call(columns(self.space, self._every[start : start + SLICE]))

    def _by_call(self, table: Table) -> Candidates:
        """The columns of questions, in the order of their calls, with what call each is of."""
        if self.answers == "one":
            unit, call = np.arange(table.shape[1]), table[0]
        else:
            call, unit = np.unique(table[1], return_inverse=True)
        return candidates_of((*table, unit, call), plain=self.plain)

    def unseen(self, questions: Indices) -> Bools:
        """(n,): which of these questions may still be drawn."""
        return np.array([number not in self._seen for number in self._seen_by(questions)], np.bool_)

    def remove(self, questions: Indices) -> None:
        """Takes eligible questions out, all that a call answers at once where several are; what
        is out stays out."""
        numbers = np.array(list(dict.fromkeys(questions.tolist())), np.int64)
        known = self._seen_by(numbers)
        numbers = numbers[[number not in self._seen for number in known]]
        if not len(numbers):
            return
        sample, _, concept = self.space.parts(numbers)
        truth = self.space.dataset.truth(sample, concept)
        for cell in zip(concept.tolist(), truth.tolist(), strict=True):
            self.remaining[cell] -= 1
        self._order += [number for number in dict.fromkeys(known) if number not in self._seen]
        self._seen.update(known)
        self._left -= len(numbers)
        if self._listed:
            self._listed.remove(numbers.tolist())

    def _seen_by(self, questions: Indices) -> list[int]:
        """The numbers by which these questions are known to have been seen: one per call, where
        there may be many calls."""
        by_call = self.answers == "all" and self._listed is None
        known: list[int] = (self.space.image_of(questions) if by_call else questions).tolist()
        return known

    def _sampled(self, draw: int, strata: Strata | None, place: int) -> Table:
        """Unseen calls of the space, or of a stratum: a uniform ``most``, or all where no more are
        left."""
        rng = generator(self.seed, "candidates", draw)
        if strata is None:
            key, size, unseen = None, self._calls, self._calls - len(self._seen)
        else:
            key, size, unseen = place, int(strata.sizes[place]), int(strata.unseen[place])
        ranks = self._ranks if strata is None else int(strata.ranks[place])

        def nth(numbers: Indices) -> Indices:
            calls = self._nth(numbers) if strata is None else strata.nth(place, numbers)
            return calls if self.answers == "one" else calls[self._askable(calls)]

        if unseen > self.most and 2 * unseen >= size:
            fresh = _fresh(lambda: nth(rng.integers(ranks, size=self.most)), self._seen, self.most)
            return self._asked(fresh)
        if key not in self._rests:
            self._rests[key] = _Rest(nth(np.arange(ranks)))
        rest = self._rests[key].without(self._order)
        if len(rest) > self.most:
            rest = rest[np.sort(rng.choice(len(rest), self.most, replace=False))]
        return self._asked(rest)

    def _nth(self, ranks: Indices) -> Indices:
        """The calls of these ranks; of images, some may have nothing to ask about."""
        return self.space.nth(ranks) if self.answers == "one" else ranks

    def _asked(self, calls: Indices) -> Table:
        """The columns of the questions that these calls answer."""
        if self.answers == "one":
            return columns(self.space, calls)
        concepts = len(self.space.concepts)
        questions = (calls[:, None] * concepts + np.arange(concepts)).ravel()
        return columns(self.space, questions[self.space.eligible(questions)])

    def _askable(self, images: Indices) -> Bools:
        concepts = len(self.space.concepts)
        eligible = self.space.eligible(images[:, None] * concepts + np.arange(concepts))
        return np.logical_or.reduce(eligible, axis=1)


def _fresh(draws: Callable[[], Indices], seen: set[int], most: int) -> Indices:
    """``most`` distinct numbers that are not ``seen``, drawn uniformly by ``draws``."""
    chosen: dict[int, None] = {}
    while len(chosen) < most:
        chosen |= dict.fromkeys(number for number in draws().tolist() if number not in seen)
    return np.fromiter(chosen, np.int64, len(chosen))[:most]


class _Rest:
    """What is left of numbers of which ever more are seen: only new ones are looked for in it."""

    def __init__(self, numbers: Indices) -> None:
        self._numbers, self._known = numbers, 0

    def without(self, order: list[int]) -> Indices:
        """The numbers without those of ``order``, which only ever grows."""
        if self._known < len(order):
            seen = np.array(order[self._known :], np.int64)
            self._numbers = self._numbers[~np.isin(self._numbers, seen)]
            self._known = len(order)
        return self._numbers


class _Listed:
    """Columns of questions from which any can be taken out in constant time."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._size = table.shape[1]
        self._place = {q: i for i, q in enumerate(table[0].tolist())}

    def columns(self) -> Table:
        return self._table[:, : self._size]

    def remove(self, questions: list[int]) -> None:
        for question in questions:
            hole, last = self._place.pop(question), self._size - 1
            if hole != last:
                self._table[:, hole] = self._table[:, last]
                self._place[int(self._table[0, hole])] = hole
            self._size = last


def columns(space: QuestionSpace, questions: Indices) -> Table:
    """6 x n: question, image, sample, variant, concept and truth, as in ``Candidates``."""
    sample, variant, concept = space.parts(questions)
    truth = space.dataset.truth(sample, concept)
    return np.stack([questions, space.image_of(questions), sample, variant, concept, truth])
