"""Candidates of the next draw: all unseen questions, or those of a uniform subset of calls."""

from collections.abc import Iterator

import numpy as np

from ..certify.strata import Strata
from ..space import QuestionSpace
from ..types import Bools, CallMode, Candidates, Indices
from ..utils.random_streams import generator
from .tensors import candidates_of

Table = Indices

SLICE = 4096
"""Questions that are predicted at once, if all questions of a space are."""


class CandidatePool:
    """The unseen questions of a space.

    A space of up to ``limit`` questions is kept as arrays. In a larger one, each draw samples calls
    uniformly, at a cost that does not depend on the size of the space.

    Args:
        space: All questions.
        seed: The audit's key.
        limit: About how many questions are candidates of a draw.
        answers: With "all", a call is an image with all its questions. With "one", it is one
            question.
        plain: True if candidates are arrays instead of tensors.

    Attributes:
        remaining: C x 2, unseen questions of each concept with truth 0 and 1.
        most: Most calls that are candidates of a draw.
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
        self._seen: set[int] = set()  # calls; if the space is kept as arrays, questions
        self._order: list[int] = []  # the same numbers, in the order in which they were seen
        self._unseen: dict[int | None, _Unseen] = {}  # by stratum; None: of all calls
        self._left = int(space.size)
        self._all_questions: Indices | None = None
        self._listed: _Listed | None = None
        self._ranks = self._calls = int(space.size)
        self.most = limit
        if answers == "all":
            self._ranks, self._calls = space.total // len(space.concepts), space.images
            small = space.size <= limit
            self.most = space.images if small else max(1, limit // len(space.concepts))
        if space.size <= limit:
            self._listed = _Listed(columns(space, space.nth(np.arange(space.size))))

    def __len__(self) -> int:
        """Return the number of unseen questions."""
        return self._left

    def candidates(self, draw: int, strata: Strata | None = None, place: int = 0) -> Candidates:
        """Return the candidates of a draw, in the order of their calls.

        The journaled proposal has the same order, so that the draw can be repeated from it and the
        audit's key.

        Every draw has its own subset, even in one batch. If two draws shared a subset, the second
        would be biased given the first. The first pseudo-outcome shows the expected loss of the
        subset, so the rest of it is no uniform subset of the unseen calls.

        Args:
            draw: Number of the draw.
            strata: All strata. Default None: the candidates come from all calls.
            place: Number of the stratum that the candidates come from.
        """
        if self._listed:
            table = self._listed.columns()
            if strata is not None:
                table = table[:, strata.of(table[0]) == place]
        else:
            table = self._sampled(draw, strata, place)
        by_call = table[0] if self.answers == "one" else table[1]
        return self._by_call(table[:, np.argsort(by_call, kind="stable")])

    def of_calls(self, calls: Indices) -> Candidates:
        """Return these calls (m,), ascending, as candidates."""
        return self._by_call(self._table_of(calls))

    def everything(self) -> Iterator[Candidates]:
        """Return all questions of the space, also seen ones, ascending, ``SLICE`` at a time.

        The slices are always the same, so that predictions are equal to the last bit.
        """
        if self._all_questions is None:
            self._all_questions = np.sort(self.space.nth(np.arange(self.space.size)))
        for start in range(0, len(self._all_questions), SLICE):
            yield self._by_call(columns(self.space, self._all_questions[start : start + SLICE]))

    def _by_call(self, table: Table) -> Candidates:
        """Return candidates from columns of questions that are in the order of their calls."""
        if self.answers == "one":
            unit, call = np.arange(table.shape[1]), table[0]
        else:
            call, unit = np.unique(table[1], return_inverse=True)
        return candidates_of((*table, unit, call), plain=self.plain)

    def unseen(self, questions: Indices) -> Bools:
        """Return which (n,) of these questions may still be drawn."""
        return np.array([number not in self._seen for number in self._seen_by(questions)], np.bool_)

    def remove(self, questions: Indices) -> None:
        """Remove eligible questions; all questions of a call have to be removed together."""
        numbers = np.array(list(dict.fromkeys(questions.tolist())), np.int64)
        seen_by = self._seen_by(numbers)
        numbers = numbers[[number not in self._seen for number in seen_by]]
        if not len(numbers):
            return
        sample, _, concept = self.space.parts(numbers)
        truth = self.space.dataset.truth(sample, concept)
        for cell in zip(concept.tolist(), truth.tolist(), strict=True):
            self.remaining[cell] -= 1
        self._order += [number for number in dict.fromkeys(seen_by) if number not in self._seen]
        self._seen.update(seen_by)
        self._left -= len(numbers)
        if self._listed:
            self._listed.remove(numbers.tolist())

    def _seen_by(self, questions: Indices) -> list[int]:
        """Return the numbers under which ``_seen`` has these questions.

        In a large space with several questions per call, these are calls, to save memory.
        """
        by_call = self.answers == "all" and self._listed is None
        numbers: list[int] = (self.space.image_of(questions) if by_call else questions).tolist()
        return numbers

    def _sampled(self, draw: int, strata: Strata | None, place: int) -> Table:
        """Return unseen calls of the space, or of a stratum: ``most`` uniform ones, or all left."""
        rng = generator(self.seed, "candidates", draw)
        if strata is None:
            key, size, unseen = None, self._calls, self._calls - len(self._seen)
        else:
            key, size, unseen = place, int(strata.sizes[place]), int(strata.unseen[place])
        ranks = self._ranks if strata is None else int(strata.ranks[place])

        def nth(numbers: Indices) -> Indices:
            """Return the calls at these ranks, without images that have no eligible question."""
            if strata is not None:
                calls = strata.nth(place, numbers)
            else:
                calls = self.space.nth(numbers) if self.answers == "one" else numbers
            return calls if self.answers == "one" else calls[self._askable(calls)]

        # While at least half is unseen, rejecting seen calls costs less than listing all calls.
        if unseen > self.most and 2 * unseen >= size:
            fresh: dict[int, None] = {}  # an ordered set
            while len(fresh) < self.most:
                calls = nth(rng.integers(ranks, size=self.most)).tolist()
                fresh |= dict.fromkeys(call for call in calls if call not in self._seen)
            return self._table_of(np.fromiter(fresh, np.int64, len(fresh))[: self.most])
        if key not in self._unseen:
            self._unseen[key] = _Unseen(nth(np.arange(ranks)))
        calls = self._unseen[key].without(self._order)
        if len(calls) > self.most:
            calls = calls[np.sort(rng.choice(len(calls), self.most, replace=False))]
        return self._table_of(calls)

    def _table_of(self, calls: Indices) -> Table:
        """Return the columns of these calls' eligible questions."""
        if self.answers == "one":
            return columns(self.space, calls)
        concepts = len(self.space.concepts)
        questions = (calls[:, None] * concepts + np.arange(concepts)).ravel()
        return columns(self.space, questions[self.space.eligible(questions)])

    def _askable(self, images: Indices) -> Bools:
        """Return which (m,) of these images have an eligible question."""
        concepts = len(self.space.concepts)
        eligible = self.space.eligible(images[:, None] * concepts + np.arange(concepts))
        return np.logical_or.reduce(eligible, axis=1)


class _Unseen:
    """Numbers from which seen ones are removed. Each call looks at the newly seen ones alone."""

    def __init__(self, numbers: Indices) -> None:
        self._numbers, self._removed = numbers, 0

    def without(self, order: list[int]) -> Indices:
        """Return the numbers without those in ``order``, a list that only grows."""
        if self._removed < len(order):
            seen = np.array(order[self._removed :], np.int64)
            self._numbers = self._numbers[~np.isin(self._numbers, seen)]
            self._removed = len(order)
        return self._numbers


class _Listed:
    """A table of questions that can remove any column in constant time."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._size = table.shape[1]
        self._place = {q: i for i, q in enumerate(table[0].tolist())}

    def columns(self) -> Table:
        return self._table[:, : self._size]

    def remove(self, questions: list[int]) -> None:
        for question in questions:
            hole, last = self._place.pop(question), self._size - 1
            if hole != last:  # the last column fills the hole
                self._table[:, hole] = self._table[:, last]
                self._place[int(self._table[0, hole])] = hole
            self._size = last


def columns(space: QuestionSpace, questions: Indices) -> Table:
    """Return question, image, sample, variant, concept and truth (6 x n), as in ``Candidates``."""
    sample, variant, concept = space.parts(questions)
    truth = space.dataset.truth(sample, concept)
    return np.stack([questions, space.image_of(questions), sample, variant, concept, truth])
