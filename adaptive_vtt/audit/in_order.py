"""Ask all questions once, in the order of the space, and count rates instead of certifying them.

``InOrder`` and ``AsAnswered`` replace ``Selector`` and ``DrawOrder`` in an audit's loop. Calls,
caps, retries, journal and resuming are those of any audit; a draw is the next call, with
probability 1. Follow-up images are rendered in batches ahead of the model, those of a source image
together.

Of the N questions of a target, n were answered, and E of these are excluded. Losses are in [0, 1].
With L and U the smallest and largest sum of losses that the answers allow, the mean loss R obeys

    L / (N - E) <= R <= (U + N - n) / (N - E)

with certainty, at every moment; both ends equal R once everything was asked. L and U differ only
if unanswered questions count both ways.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ..certify.rules import Rules
from ..certify.status import TargetStatus
from ..certify.targets import Target, named_targets
from ..engine.belief import Belief, Observation
from ..engine.draw_order import DrawOrder
from ..engine.judge import Answers, Judge
from ..engine.options import DEFAULT_TARGETS, Certify, Sampling
from ..engine.proposals import Proposal
from ..engine.selector import Draw, Selector, Why
from ..errors import InputError
from ..families import DROPS, Fields
from ..journal.rows import AnswerRow, CallRow, DrawRow, Reasons
from ..oracles import Correctness, TopClass
from ..relations import RelationDefaults
from ..space import QuestionSpace
from ..types import Answer, Bools, Floats, Indices, JsonObject
from .rendering_ahead import Making, Pair

BATCH = 256
"""Number of calls in a batch, whose images are rendered ahead."""
MAX_TARGETS = 2_000
"""Maximum number of targets by relation and concept; if there were more, none is made."""
MAX_VALUES = 30
"""Maximum number of values of a metadata column whose groups are targets."""
PICTURED = 4
"""Number of failing calls per relation and severity whose images are kept."""
AT_ONCE = 2**20
"""Number of questions that are counted at once."""
PENDING = 2**12
"""Number of answers that are collected before they are written into the arrays."""
EXACT = 1e-12
"""Maximum width of an interval that counts as exact."""
CERTAIN = Proposal(np.zeros(0, np.int64), np.zeros(0))
WHY = Why(1, 1)
GOALS = ("half_width", "at_most", "discover", "set_aside", "compare")
PREDICTIONS = ("prior_journal", "cohort", "proxies")
CHOICES = ("replay", "repeat_probes", "exploration")


def check_goals(certify: Certify, sampling: Sampling) -> None:
    """Raise InputError for an option that needs draws or predictions."""
    for group, names in ((certify, GOALS + PREDICTIONS), (sampling, CHOICES)):
        for name in names:
            if value := getattr(group, name):
                raise InputError(
                    f"strategy 'everything': expected no {name}, as every question is asked and "
                    f"rates are exact, got {value!r:.60}; leave it out"
                )


def every_target(
    space: QuestionSpace, names: Sequence[str], where: Mapping[str, Fields] | None
) -> list[Target]:
    """Return targets of all kinds that the space has, and those with these names.

    Args:
        space: The questions.
        names: As ``where``, an argument of ``certify.named_targets``.
        where: See there.
    """
    if DROPS in names:  # drops are rates of pairs, which no other target is
        return named_targets(space, [DROPS], where)
    dataset, concepts = space.dataset, "concepts" in space.kinds  # items of a pool have none
    values = {c: len({*dataset.metadata_values(c).tolist()}) for c in dataset.metadata_columns}
    relations = len({v.relation.name for v in space.variants})
    few = relations * len(space.concepts) * len(space.oracle.rates) <= MAX_TARGETS
    named = ["overall", *(["relations", "concepts"] if concepts else [])]
    named += [f"group:{column}" for column, n in values.items() if 1 < n <= MAX_VALUES]
    named += ["severities"] if concepts else []
    named += [] if names is DEFAULT_TARGETS else names
    named += ["relation-sides"] if concepts and few else []
    return named_targets(space, named, where)


class Counting:
    """Counts of the answers to all questions, and the state of the targets that follows from them.

    Args:
        space: The space.
        targets: The targets.
        questions: All questions, (n,), ascending.
        both: Whether unanswered questions count as 0 in lower ends and as 1 in upper ones.
    """

    def __init__(
        self, space: QuestionSpace, targets: list[Target], questions: Indices, *, both: bool
    ) -> None:
        self.space, self.targets, self.both = space, targets, both
        self._questions = questions
        self._losses = np.zeros((2, len(questions)))  # lower and upper bound
        self._flags = np.zeros((3, len(questions)), bool)  # answered, excluded, unanswered
        self._pending: list[tuple[float, ...]] = []

    def note(self, rows: Iterable[AnswerRow]) -> int:
        """Count the judged answers among ``rows``, and return their number."""
        judged = [row for row in rows if row.loss is not None]
        for row in judged:
            unanswered = row.answer is None and not row.excluded
            least, most = (0.0, 1.0) if unanswered and self.both else (row.loss or 0.0,) * 2
            if row.excluded:
                least = most = 0.0
            self._pending.append((row.question, least, most, 1, row.excluded, unanswered))
        if len(self._pending) >= PENDING:
            self._enter()
        return len(judged)

    def _enter(self) -> None:
        """Write collected answers into the arrays."""
        if self._pending:
            numbers, *columns = zip(*self._pending, strict=True)
            places = np.searchsorted(self._questions, numbers)
            self._losses[:, places], self._flags[:, places] = columns[:2], columns[2:]
            self._pending = []

    def statuses(self) -> list[TargetStatus]:
        """Return the present state of all targets; the estimate without answers is 1/2."""
        self._enter()
        (sums, judged), dataset, statuses = self._counts(), self.space.dataset, []
        profile = dataset.profile_row(np.arange(len(dataset)))
        truths = np.asarray(dataset.profile[0][profile], np.int64)  # samples x concepts
        for target in self.targets:
            cells = sums[_key(target.rows)][:, target.variants][:, :, target.concepts]
            totals = cells[..., target.sides].sum(axis=(1, 2, 3)).tolist()
            least, most, size, answered, excluded, unanswered = totals
            rows = slice(None) if target.rows is None else target.rows[profile]
            asked = judged[_key(target.variants)] & target.sides[truths] & target.concepts
            counting, known, lower, upper = size - excluded, answered - excluded, 0.0, 1.0
            if counting:
                lower, upper = least / counting, (most + size - answered) / counting
            estimate = (least + most) / 2 / known if known else 0.5
            status = TargetStatus(
                id=target.id,
                estimate=target.id.measured(min(max(estimate, lower), upper)),
                lower=target.id.measured(lower),
                upper=target.id.measured(upper),
                certified=upper - lower <= EXACT,
                size=int(size),
                questions=int(answered),
                excluded=int(excluded),
                unanswered=int(unanswered),
                images=int(asked[rows].any(axis=1).sum()),
            )
            statuses.append(status)
        return statuses

    def _counts(self) -> tuple[dict[bytes, Floats], dict[bytes, Bools]]:
        """Return the two tables from which the state of any target follows.

        Targets with the same profile rows, or the same variants, share a table.

        Returns:
            Key of profile rows -> sums over the questions of their samples, (6, variants, concepts,
            2 truths): lower loss, upper loss, questions, answered, excluded, unanswered. Key of
            variants -> whether a question under them was answered and counts, (samples, concepts).
        """
        space, dataset = self.space, self.space.dataset
        row_masks = {_key(target.rows): target.rows for target in self.targets}
        variant_masks = {_key(target.variants): target.variants for target in self.targets}
        shape = (len(space.variants), len(space.concepts), 2)
        sums = {key: np.zeros((6, *shape)) for key in row_masks}
        judged = {key: np.zeros((len(dataset), shape[1]), bool) for key in variant_masks}
        for start in range(0, len(self._questions), AT_ONCE):
            block = slice(start, start + AT_ONCE)
            sample, variant, concept = space.parts(self._questions[block])
            truth = dataset.truth(sample, concept).astype(np.int64)
            cell = np.ravel_multi_index((variant, concept, truth), shape)
            columns = [*self._losses[:, block], np.ones(len(sample)), *self._flags[:, block]]
            profile = dataset.profile_row(sample)
            for key, mask in row_masks.items():
                inside = slice(None) if mask is None else mask[profile]
                for total, column in zip(sums[key], columns, strict=True):
                    total += np.bincount(cell[inside], column[inside], total.size).reshape(shape)
            answered, excluded, _ = self._flags[:, block]
            for key, mask in variant_masks.items():
                inside = answered & ~excluded & mask[variant]
                judged[key][sample[inside], concept[inside]] = True
        return sums, judged


def _key(mask: Bools | None) -> bytes:
    """Return a key of a mask, for a dictionary."""
    return b"all" if mask is None else mask.tobytes()


class InOrder(Selector):
    """Selector of all calls that answer a question, ascending, each with probability 1.

    It has none of the parts by which ``Selector`` draws.

    Args:
        judge: The judge of the audit's answers.
        belief: The audit's belief.
        certify: Its targets.
        processes: Number of processes that render images ahead of the model; see ``Making``.
    """

    exact = True
    batch = BATCH

    def __init__(
        self, judge: Judge, belief: Belief, certify: Certify, *, processes: int | None = None
    ) -> None:
        space = judge.space
        self.space, self.belief, self._judge = space, belief, judge
        questions = np.sort(space.nth(np.arange(space.size)))
        about = space.image_of(questions) if judge.answers == "all" else questions
        self._calls, first = np.unique(about, return_index=True)
        self._questions = questions[first]
        sources = judge.sources
        self._sources = len({*map(sources.source_of, questions)}) if sources.count else 0
        self.draws = 0
        self._targets = every_target(space, certify.targets, certify.where)
        both = certify.unanswered == "both"
        self.counting = Counting(space, self._targets, questions, both=both)
        self._making = Making(space, processes)
        self._ready: Iterator[dict[int, Pair]] | None = None
        self._made = 0

    @property
    def targets(self) -> list[Target]:
        return self._targets

    def counted(self) -> list[TargetStatus]:
        return self.counting.statuses()

    def draw(self, together: int = 1) -> Draw | None:
        """Return the next call, None after the last one."""
        place = self.draws
        if place == len(self._calls):
            return None
        if place >= self._made and not self.space.needs_answers:
            if self._ready is None:
                starts = range(place, len(self._calls), BATCH)
                images = [list(dict.fromkeys(self._images(start).values())) for start in starts]
                self._ready = self._making(images)
            pairs, calls = next(self._ready), self._images(place)
            self._judge.hold({call: pairs[image] for call, image in calls.items()})
            self._made = place + len(calls)
        call, question = int(self._calls[place]), int(self._questions[place])
        return Draw(place, call, question, 1.0, CERTAIN, WHY)

    def _images(self, place: int) -> dict[int, int]:
        """Return call -> image of the batch of calls that begins at ``place``."""
        calls = self._calls[place : place + BATCH].tolist()
        if self._judge.answers == "all":
            return {call: call for call in calls}
        return {call: self.space.numbering.image_of(call) for call in calls}

    def row(self, draw: Draw, questions: Indices, learned: int, elapsed: float) -> DrawRow:
        sample = self.space.dataset.sample_id(self.space.numbering.parts(draw.question)[0])
        numbers = (draw.number, draw.question, draw.call)
        return DrawRow(*numbers, sample, 0, 1.0, b"", Reasons(), elapsed)

    def take(self, questions: Indices, bet: object = None, why: object = None) -> None:
        self.draws += 1

    def restore(self, questions: Indices, bet: object, why: object) -> None:
        self.draws += 1

    def learn(self, outcomes: Sequence[Observation], cost: float = 0.0) -> None:
        pass

    def open_uncertainty(self) -> Floats:
        """Return the share of calls that are left, C x 2 times the same; NaN once none is left.

        Calls about source images are included.
        """
        done = self.draws + min(len(self._judge.sources.known), self._sources)
        left = 1 - done / (len(self._calls) + self._sources)
        left *= self.draws < len(self._calls)
        return np.full((len(self.space.concepts), 2), left or np.nan)

    def certificate(self, certify: Certify) -> JsonObject:
        counted = replace(certify, confidence=1.0, guarantee="all")
        return counted.fact(self.space, self._targets, Rules(aim=0.0, alpha=0.0), "by counting")


class AsAnswered(DrawOrder):
    """Draw order that counts answers as they come, since no draw depends on them."""

    def __init__(self, selector: InOrder, both: bool) -> None:
        super().__init__(selector, both, None, lambda outcomes: None)
        self._counting = selector.counting

    def keep(self, row: CallRow) -> None:
        self.questions += self._counting.note(row.answers)

    def ready(self) -> bool:
        return True

    def learn(self, until: int | None = None) -> None:
        pass


def judged_at_once(judge: Judge, answers: Answers) -> dict[int, tuple[AnswerRow, ...]]:
    """Return the rows that ``judge.judged`` gives for each call, computed by NumPy for all calls.

    The result is {} unless no relation changes a truth, all answers are numbers, and the oracle is
    `Correctness` or `TopClass`.
    """
    space, oracle = judge.space, judge.space.oracle.original
    relations = {type(variant.relation) for variant in space.variants}
    if any(relation.expect is not RelationDefaults.expect for relation in relations):
        return {}
    values = [answer.values for answer in answers.values() if isinstance(answer, Answer)]
    if len(values) < len(answers) or {*map(type, chain.from_iterable(values))} != {float}:
        return {}
    # P(yes), as all arrays below: a row per call, a column per question that it asks
    p_yes = np.array(values)[:, [0] if judge.answers == "one" else list(space.asked_by)]
    if type(oracle) is Correctness:
        yes = p_yes >= oracle.threshold
    elif type(oracle) is TopClass:
        yes = np.arange(p_yes.shape[1]) == p_yes.argmax(axis=1)[:, None]
    else:
        return {}
    questions = np.stack([judge.all_questions_of(call) for call in answers])
    truth, eligible = space.truth(questions), space.eligible(questions)
    loss, coordinate = (yes != (truth == 1)).astype(float), (p_yes + truth) / 2
    columns = [questions, eligible, truth, p_yes, loss, coordinate]
    rows: dict[int, list[AnswerRow]] = {call: [] for call in answers}
    for call, *cells in zip(answers, *(column.tolist() for column in columns), strict=True):
        for question, counts, true, p, lost, at in zip(*cells, strict=True):
            verdict = (true, p, None, lost, at) if counts else (None, p, None, None, None)
            rows[call].append(AnswerRow(question, call, *verdict))
    return {call: tuple(each) for call, each in rows.items()}


def in_order(
    judge: Judge, belief: Belief, certify: Certify, sampling: Sampling
) -> tuple[Selector, DrawOrder]:
    """Return the selector and the draw order of an audit that asks everything."""
    judge.pictured, judge.at_once = PICTURED, judged_at_once
    selector = InOrder(judge, belief, certify, processes=sampling.processes)
    return selector, AsAnswered(selector, certify.unanswered == "both")
