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


class Counting:
    """Answers to ``questions`` (n,), ascending, and the targets that they belong to.

    ``both``: unanswered questions count as 0 in lower ends and as 1 in upper ones.
    """

    def __init__(
        self, space: Population, targets: list[Target], questions: Indices, *, both: bool
    ) -> None:
        self.space, self.targets, self.both = space, targets, both
        self._questions = questions
        self._losses = np.zeros((2, len(questions)))  # at least, at most
        self._flags = np.zeros((3, len(questions)), bool)  # answered, excluded, silent
        self._pending: list[tuple[float, ...]] = []

    def note(self, rows: Iterable[AnswerRow]) -> int:
        """Enter the judged answers among ``rows``; return their number."""
        judged = [row for row in rows if row.loss is not None]
        for row in judged:
            silent = row.answer is None and not row.excluded
            least, most = (0.0, 1.0) if silent and self.both else (row.loss or 0.0,) * 2
            if row.excluded:
                least = most = 0.0
            self._pending.append((row.question, least, most, 1, row.excluded, silent))
        if len(self._pending) >= PENDING:
            self._enter()
        return len(judged)

    def _enter(self) -> None:
        if self._pending:
            numbers, *columns = zip(*self._pending, strict=True)
            places = np.searchsorted(self._questions, numbers)
            self._losses[:, places], self._flags[:, places] = columns[:2], columns[2:]
            self._pending = []

    def statuses(self) -> list[TargetStatus]:
        """Return the present state of every target; where no question counts, or none was answered,
        its estimate is 1/2."""
        self._enter()
        (cells, judged), dataset, statuses = self._cells(), self.space.dataset, []
        profile = dataset.profile_row(np.arange(len(dataset)))
        truths = np.asarray(dataset.profile[0][profile], np.int64)  # samples x concepts
        for target in self.targets:
            part = cells[_key(target.rows)][:, target.variants][:, :, target.concepts]
            sums = part[..., target.sides].sum(axis=(1, 2, 3)).tolist()
            least, most, size, answered, excluded, silent = sums
            about = judged[_key(target.variants)] & target.sides[truths] & target.concepts
            rows = slice(None) if target.rows is None else target.rows[profile]
            counting, seen, lower, upper = size - excluded, answered - excluded, 0.0, 1.0
            if counting:
                lower, upper = least / counting, (most + size - answered) / counting
            estimate = (least + most) / 2 / seen if seen else 0.5
            status = TargetStatus(
                id=target.id,
                estimate=target.id.measured(min(max(estimate, lower), upper)),
                lower=target.id.measured(lower),
                upper=target.id.measured(upper),
                certified=upper - lower <= EXACT,
                size=int(size),
                questions=int(answered),
                excluded=int(excluded),
                unanswered=int(silent),
                images=int(about[rows].any(axis=1).sum()),
            )
            statuses.append(status)
        return statuses

    def _cells(self) -> tuple[dict[bytes, Floats], dict[bytes, Bools]]:
        """Return sums of the columns by the profile rows of some target, 6 x variants x concepts x
        2; and by its variants whether a question that counts was answered, samples x concepts."""
        rows = {_key(target.rows): target.rows for target in self.targets}
        variants = {_key(target.variants): target.variants for target in self.targets}
        shape = (len(self.space.variants), len(self.space.concepts), 2)
        cells = {key: np.zeros((6, *shape)) for key in rows}
        judged = {key: np.zeros((len(self.space.dataset), shape[1]), bool) for key in variants}
        for start in range(0, len(self._questions), AT_ONCE):
            block = slice(start, start + AT_ONCE)
            sample, variant, concept = self.space.parts(self._questions[block])
            answered, excluded, silent = self._flags[:, block]
            columns = [*self._losses[:, block], np.ones(len(sample)), answered, excluded, silent]
            truth = self.space.dataset.truth(sample, concept).astype(np.int64)
            cell = np.ravel_multi_index((variant, concept, truth), shape)
            profile = self.space.dataset.profile_row(sample)
            for key, chosen in rows.items():
                mine = slice(None) if chosen is None else chosen[profile]
                for sums, column in zip(cells[key], columns, strict=True):
                    sums += np.bincount(cell[mine], column[mine], sums.size).reshape(shape)
            counts = answered & ~excluded
            for key, chosen in variants.items():
                mine = counts & chosen[variant]
                judged[key][sample[mine], concept[mine]] = True
        return cells, judged


def _key(mask: Bools | None) -> bytes:
    return b"all" if mask is None else mask.tobytes()
