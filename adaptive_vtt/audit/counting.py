"""Rates by counting, where every question is asked in order: nothing is drawn, nothing is bet.

Of a target's N questions n were answered, and E of those turned out not to count. Losses lie in
[0, 1], so with L and U the least and the largest sum that the answers allow, its mean loss R obeys

    L / (N - E) <= R <= (U + N - n) / (N - E)

with certainty, at every moment, and both ends are R once everything was asked. L and U differ
only where unanswered questions count both ways.
"""

from collections.abc import Iterable

import numpy as np

from ..certify.status import TargetStatus
from ..certify.targets import Target
from ..journal.rows import AnswerRow
from ..population import Population
from ..types import Bools, Floats, Indices

AT_ONCE = 2**20
"""Questions that are counted at once."""
PENDING = 2**12
"""Answers that are kept as they came before they are entered into the arrays."""
EXACT = 1e-12
"""Wider intervals are not exact."""

Answered = tuple[int, float, float, bool, bool]
"""A question, its loss at least and at most, whether it is excluded, and whether it went
unanswered."""


class Counting:
    """What is known of each of ``questions`` (n,), ascending, and of the targets that hold them.

    ``both``: unanswered questions count as 0 in lower ends and as 1 in upper ones.
    """

    def __init__(
        self, space: Population, targets: list[Target], questions: Indices, *, both: bool
    ) -> None:
        self.space, self.targets, self.both = space, targets, both
        self._questions = questions
        self._losses = np.zeros((2, len(questions)))  # at least, at most
        self._flags = np.zeros((3, len(questions)), bool)  # answered, excluded, silent
        self._pending: list[Answered] = []

    def note(self, rows: Iterable[AnswerRow]) -> int:
        """Enter the judged answers among ``rows``; return how many they are."""
        before = len(self._pending)
        for row in rows:
            if (loss := row.loss) is not None:
                silent, excluded = row.answer is None, row.excluded
                least = most = loss
                if excluded:
                    least = most = 0.0
                elif silent and self.both:
                    least, most = 0.0, 1.0
                self._pending.append((row.question, least, most, excluded, silent))
        noted = len(self._pending) - before
        if len(self._pending) >= PENDING:
            self._enter()
        return noted

    def _enter(self) -> None:
        if self._pending:
            numbers, least, most, excluded, silent = map(np.array, zip(*self._pending, strict=True))
            places = np.searchsorted(self._questions, numbers)
            self._losses[:, places] = least, most
            self._flags[:, places] = np.ones_like(excluded), excluded, silent & ~excluded
            self._pending = []

    def statuses(self) -> list[TargetStatus]:
        """Return where every target stands."""
        self._enter()
        cells, met = self._cells()
        truths, profile = self._truths()
        found = []
        for target in self.targets:
            part = cells[_key(target.rows)][:, target.variants][:, :, target.concepts]
            sums = part[..., target.sides].sum(axis=(1, 2, 3))
            about = met[_key(target.variants)] & target.sides[truths] & target.concepts
            samples = about.any(axis=1)
            if target.rows is not None:
                samples &= target.rows[profile]
            found.append(status_of(target, *sums.tolist(), images=int(samples.sum())))
        return found

    def _cells(self) -> tuple[dict[bytes, Floats], dict[bytes, Bools]]:
        """By the profile rows of some target, 6 x variants x concepts x 2: losses at least and at
        most, questions in all, answered, excluded and silent. By the variants of some target,
        samples x concepts: whether a question counts that was answered."""
        rows = {_key(target.rows): target.rows for target in self.targets}
        variants = {_key(target.variants): target.variants for target in self.targets}
        shape = (len(self.space.variants), len(self.space.concepts), 2)
        cells = {key: np.zeros((6, *shape)) for key in rows}
        met = {key: np.zeros((len(self.space.dataset), shape[1]), bool) for key in variants}
        for start in range(0, len(self._questions), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            sample, variant, concept = self.space.parts(self._questions[part])
            truth = self.space.dataset.truth(sample, concept).astype(np.int64)
            cell = np.ravel_multi_index((variant, concept, truth), shape)
            every, profile = np.ones(len(sample)), self.space.dataset.profile_row(sample)
            columns = [*self._losses[:, part], every, *self._flags[:, part]]
            for key, chosen in rows.items():
                mine = slice(None) if chosen is None else chosen[profile]
                for sums, column in zip(cells[key], columns, strict=True):
                    count = np.bincount(cell[mine], column[mine], sums.size)
                    sums += count.reshape(shape)
            counts = self._flags[0, part] & ~self._flags[1, part]
            for key, chosen in variants.items():
                mine = counts & chosen[variant]
                met[key][sample[mine], concept[mine]] = True
        return cells, met

    def _truths(self) -> tuple[Indices, Indices]:
        """Samples x concepts, and the profile row of each sample (n,)."""
        samples = np.arange(len(self.space.dataset))
        profile = self.space.dataset.profile_row(samples)
        return np.asarray(self.space.dataset.profile[0][profile], np.int64), profile


def _key(mask: Bools | None) -> bytes:
    return b"all" if mask is None else mask.tobytes()


def status_of(
    target: Target,
    least: float,
    most: float,
    size: float,
    answered: float,
    excluded: float,
    silent: float,
    *,
    images: int,
) -> TargetStatus:
    """Return where a target stands from its sums, see ``Counting``; where no question counts, or
    none was answered, its estimate is 1/2."""
    counting, seen = size - excluded, answered - excluded
    lower, upper = (0.0, 1.0)
    if counting:
        lower, upper = least / counting, (most + size - answered) / counting
    estimate = (least + most) / 2 / seen if seen else 0.5
    return TargetStatus(
        id=target.id,
        estimate=min(max(estimate, lower), upper),
        lower=lower,
        upper=upper,
        certified=upper - lower <= EXACT,
        size=int(size),
        questions=int(answered),
        excluded=int(excluded),
        unanswered=int(silent),
        images=images,
    )
