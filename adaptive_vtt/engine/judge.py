"""Turn a call's number into its prompt, and its answer into judged rows for the journal."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..certify.decisions import ALIKE
from ..errors import InputError, brief, unexpected
from ..journal.answer_json import from_json, to_json, writable
from ..journal.rows import EXCLUDED, AnswerRow, CallRow
from ..oracles import Case, Outcome, Premise
from ..oracles.judge_models import JUDGED, Query
from ..oracles.labels import MARGIN
from ..oracles.paired import Paired
from ..space import QuestionSpace
from ..types import (
    Answer,
    CallMode,
    FollowUp,
    Image,
    Indices,
    PairedAnswer,
    Prompt,
    Sample,
    Unanswered,
    Value,
)
from ..utils.image_codec import png
from ..utils.other_code import naming
from .source_calls import SourceCalls, asks_of
from .tensors import MAX

MASK = "mask"
"""Key of a mask among an answer's details: packed bits, encoded as those of source images."""
LOST = Unanswered("not journaled")
"""Stands for a value that the journal does not have: a mask that was not kept, or a number in
answer to a question that turned out not to count."""
PICTURE_BYTES = 64 * 2**20
"""Most bytes of pictures of failing calls in a journal (of two models: of calls where one lost
more). That is enough for some 600 photographs with their sources."""
PICTURE_SIDE = 160
"""Longer side of a picture, in pixels."""
VERDICT_LENGTH = 80
"""Characters of a judge's reply that are kept with the answer; "judging" has all of it."""
LIMITS = {"loss": (0.0, 1.0), "coordinate": (0.0, 1.0), "score": (-MAX, MAX), "margin": (-MAX, MAX)}
"""Lowest and highest value of each number of an outcome."""
NO_VERDICTS: Mapping[int, Value] = MappingProxyType({})

Answers = Mapping[int, Answer | Unanswered]
"""Number of a call -> its answer."""


class Judge:
    """The questions, the prompt and the judged answers of each call.

    Args:
        space: All questions.
        answers: With "all", a call is about one image and all concepts, and has the image's number.
            With "one", it is one question and has the question's number.
        keep_masks: True if rows hold the masks that were answered.

    Raises:
        InputError: If the oracle needs all concepts at once and the model answers one.
    """

    def __init__(
        self, space: QuestionSpace, answers: CallMode, *, keep_masks: bool = False
    ) -> None:
        self.space = space
        self.answers = answers
        self.keep_masks = keep_masks
        self.sources = SourceCalls(space, answers)
        self._pairs: dict[int, tuple[Sample, FollowUp]] = {}
        self.pictures = 0
        """Bytes of pictures in the journal, those of earlier runs included."""
        self.at_once: Callable[[Judge, Answers], Mapping[int, tuple[AnswerRow, ...]]] | None = None
        """Function that judges many calls together, as ``judged`` does one; it may leave some out.
        Default None: each call is judged by itself."""
        self.pictured: int | None = None
        """Most calls per relation and severity that get pictures; None: any number."""
        self._pictured: Counter[int] = Counter()
        several = space.oracle.whole_call or len(space.concepts) > len(space.asked)
        if answers == "one" and several:
            raise InputError(
                f"oracle {type(space.oracle).__name__}: needs a model that answers all concepts "
                "in one call (answers = 'all'), got one that answers one"
            )

    def all_questions_of(self, call: int) -> Indices:
        """Return the numbers of all questions of a call, also of those that cannot be judged."""
        if self.answers == "one":
            return np.array([call])
        count = len(self.space.concepts)
        return np.arange(call * count, (call + 1) * count)

    def questions_of(self, call: int) -> Indices:
        """Return the numbers of a call's eligible questions."""
        questions = self.all_questions_of(call)
        return questions[self.space.eligible(questions)]

    def prompt(self, call: int) -> Prompt:
        """Return what is sent to the model."""
        question = self.space.question(int(self.all_questions_of(call)[0]))
        sample, follow_up = self._pair(call)
        concepts = self.space.asked
        if self.answers == "one":
            place = self.space.numbering.parts(int(question.number))[2]
            concepts = (self.space.asked[self.space.asked_by[place]],)
        asks, severity = asks_of(sample.id, sample.asks, concepts), question.severity
        return Prompt(
            follow_up.image, concepts, sample.id, question.relation, severity, asks, follow_up.words
        )

    def source(self, call: int) -> Sample:
        """Return the sample that the call is about, unchanged."""
        return self._pair(call)[0]

    def judged(
        self, call: int, answer: Answer | Unanswered, verdicts: Mapping[int, Value] = NO_VERDICTS
    ) -> tuple[AnswerRow, ...]:
        """Return a judged row for each of the call's questions.

        Args:
            call: Number of the call.
            answer: The model's answer to it.
            verdicts: Question -> reply of a judge model.
        """
        values = self._values(answer)
        cases = self._cases(call, values)
        about = f", for sample {self.space.question(self.all_questions_of(call)[0]).sample_id!r}"
        with naming("oracle", self.space.oracle.code[-1], "judge", about):
            by_rule = self.space.oracle.judge_call([*cases.values()], values)
            outcomes = {
                question: _checked(self._with_verdict(case, outcome, verdicts.get(question)), case)
                for (question, case), outcome in zip(cases.items(), by_rule, strict=True)
            }
        rows = []
        for question, value in zip(self.all_questions_of(call).tolist(), values, strict=True):
            truth = self._truth(cases[question]) if question in cases else 1
            rows.append(_row(question, call, value, truth, outcomes.get(question)))
        return with_masks(rows, values) if self.keep_masks else tuple(rows)

    def _values(self, answer: Answer | Unanswered) -> tuple[Value, ...]:
        """Return an answer's values, one per question of its call, as the journal can hold them."""
        if isinstance(answer, Unanswered):
            return (answer,) * (1 if self.answers == "one" else len(self.space.asked_by))
        values = tuple(map(_plain, answer.values))
        return values if self.answers == "one" else tuple(values[k] for k in self.space.asked_by)

    def expected(self, question: int) -> Any:
        """Return the right answer by the oracle: 0 or 1, accepted words, or a mask."""
        image = self.space.numbering.image_of(int(question))
        call = question if self.answers == "one" else image
        return self._case(call, question, Unanswered("not asked")).expected

    def queries(self, call: int, answer: Answer) -> dict[int, Query]:
        """Return by question what the oracle's judge model may be asked about an answer."""
        cases = self._cases(call, self._values(answer))
        queries = {question: self.space.oracle.query(case) for question, case in cases.items()}
        return {question: query for question, query in queries.items() if query is not None}

    def _cases(self, call: int, values: Sequence[Value]) -> dict[int, Case]:
        """Return question -> what the oracle judges, for the call's eligible questions."""
        questions = self.all_questions_of(call)
        eligible = self.space.eligible(questions).tolist()
        return {
            question: self._case(call, question, value)
            for question, value, judged in zip(questions.tolist(), values, eligible, strict=True)
            if judged
        }

    def row(
        self, call: int, answer: Answer | Unanswered, elapsed: float, rows: tuple[AnswerRow, ...]
    ) -> CallRow:
        """Return a call's row for the journal, with pictures if it failed or two models differ.

        Args:
            call: Number of the call.
            answer: The model's answer to it.
            elapsed: Seconds of audit.
            rows: The judged rows of its questions (``judged``).
        """
        paired = isinstance(self.space.oracle, Paired)
        losses = [r.loss for r in rows if r.loss is not None]
        shown = any(loss != ALIKE if paired else loss >= 0.5 for loss in losses)
        pictures = self._picture(call) if shown else None
        return CallRow(call, answer.cost, elapsed, rows, pictures, answer.unconfirmed, answer.reply)

    def rows(self, answers: Answers, elapsed: float) -> tuple[list[CallRow], dict[int, Exception]]:
        """Return the rows of calls that could be judged, and by call the errors of the others.

        An error must not lose the other answers: an oracle may be a model that fails at times.
        """
        rows, errors = [], {}
        at_once = {} if self.at_once is None else self.at_once(self, answers)
        for call, answer in answers.items():
            try:
                judged = at_once[call] if call in at_once else self.judged(call, answer)
                rows.append(self.row(call, answer, elapsed, judged))
            except Exception as error:
                errors[call] = error
        return rows, errors

    def hold(self, pairs: Mapping[int, tuple[Sample, FollowUp]]) -> None:
        """Keep sources with their follow-ups, by call, that were made elsewhere."""
        self._pairs.update(pairs)

    def forget(self, call: int) -> None:
        """Drop the images of a call."""
        self._pairs.pop(call, None)

    def _with_verdict(self, case: Case, by_rule: Outcome, verdict: Value | None) -> Outcome:
        """Return the outcome by rule, or by the judge model's verdict if the rule is not sure."""
        query = None if verdict is None else self.space.oracle.query(case)
        if query is None or verdict is None:
            return by_rule
        by_judge = self.space.oracle.settled(case, verdict)
        outcome = by_rule if query.sure else by_judge
        details = {
            "reply": verdict[:VERDICT_LENGTH] if isinstance(verdict, str) else None,
            "judge": _is_right(by_judge),
            "rule": _is_right(by_rule),
            "sure": query.sure,
        }
        return replace(outcome, details={**(outcome.details or {}), JUDGED: details})

    def _truth(self, case: Case) -> int:
        """Return the right answer as 0 or 1.

        If a source's answer is all that is known, every question has truth 1: "answer alike".
        """
        oracle = self.space.oracle
        if oracle.tells_losses or oracle.whole_source:
            return case.question.truth  # such an oracle expects an item's words, or two answers
        if oracle.needs_source or not isinstance(case.expected, int):
            return 1
        return case.expected

    def _case(self, call: int, number: int, value: Value) -> Case:
        """Return the question of this number, the ``value`` answered, and what was expected."""
        question = self.space.question(number)
        _, variant, place = self.space.numbering.parts(int(number))
        received = self.sources.received(self.sources.source_of(number), place)
        sample, follow_up = self._pair(call)
        relation = self.space.variants[variant].relation
        premise = Premise(relation, follow_up, sample, question, received)
        with naming("oracle", self.space.oracle.code[-1], "expect"):
            expected = self.space.oracle.expect(premise)
        return Case(question, place, value, expected, received)

    def _pair(self, call: int) -> tuple[Sample, FollowUp]:
        """Return a call's sample and follow-up, which are made once until ``forget``."""
        if call not in self._pairs:
            image = self.space.numbering.image_of(call) if self.answers == "one" else call
            self._pairs[call] = self.space.pair(image)
        return self._pairs[call]

    def _picture(self, call: int) -> tuple[bytes, bytes] | None:
        """Return PNGs of the source and the follow-up, None if the journal has enough pictures."""
        source, follow_up = self._pair(call)
        if follow_up.image is None or self.pictures >= PICTURE_BYTES:
            return None
        if self.pictured is not None:
            variant = self.space.numbering.parts(int(self.all_questions_of(call)[0]))[1]
            if self._pictured[variant] >= self.pictured:
                return None
            self._pictured[variant] += 1
        pictures = thumbnail(source.require_image()), thumbnail(follow_up.image)
        self.pictures += sum(map(len, pictures))
        return pictures


def _checked(outcome: Outcome, case: Case) -> Outcome:
    """Return the outcome of a case with plain floats; raise InputError for one that is none."""
    if not isinstance(outcome, Outcome):
        raise unexpected("", "Outcome(loss)", brief(outcome))
    if not isinstance(reason := outcome.unanswered or outcome.excluded or "", str):
        raise unexpected("", "texts as unanswered and excluded", brief(reason))
    numbers: dict[str, Any] = {}
    details = outcome.details
    for name, (lowest, highest) in LIMITS.items():
        if (value := getattr(outcome, name)) is not None or name == "loss":
            numbers[name] = float(value)
            if not lowest <= numbers[name] <= highest:  # also if it is NaN
                question = case.question
                got = f"{value} for sample {question.sample_id!r}, concept {question.concept!r}"
                raise unexpected("", f"a {name} from {lowest:g} to {highest:g}", got)
    if "margin" in numbers:
        details = {**(details or {}), MARGIN: numbers.pop("margin")}
    json.dumps({**(details or {})})  # as the journal will
    return replace(outcome, **numbers, details=details)


def _is_right(outcome: Outcome) -> bool | None:
    """Return whether an answer is right; None if there is no answer."""
    return None if outcome.unanswered is not None else outcome.loss < 0.5


def _plain(value: Value) -> Value:
    """Return a value that JSON can hold: a plain float, or words without bad surrogates.

    Masks and unanswered values are returned unchanged.
    """
    if isinstance(value, Unanswered | np.ndarray):
        return value
    if isinstance(value, PairedAnswer):
        return PairedAnswer(_plain(value.a), _plain(value.b))
    return writable(value) if isinstance(value, str) else float(value)


def _row(question: int, call: int, value: Value, truth: int, outcome: Outcome | None) -> AnswerRow:
    """Return the journal's row of one answer; without an outcome it cannot be judged."""
    reason = value.reason if isinstance(value, Unanswered) else None
    answer = value if isinstance(value, float) else None
    words = value if isinstance(value, str) else None
    row = AnswerRow(question, call, None, answer, reason, None, None, words)
    if outcome is None:
        return row
    row = replace(row, truth=truth, answer=None, details=outcome.details)
    if outcome.excluded:
        return replace(row, unanswered=EXCLUDED + outcome.excluded, loss=0.0)
    row = replace(row, unanswered=reason or outcome.unanswered, loss=outcome.loss)
    if row.unanswered is not None:
        return row
    answer = outcome.score if answer is None else answer
    return replace(row, answer=answer, coordinate=outcome.coordinate)


def thumbnail(image: Image) -> bytes:
    """Return a PNG of an H x W x 1 or 3 uint8 image, shrunk to ``PICTURE_SIDE``."""
    import cv2

    scale = PICTURE_SIDE / max(image.shape[:2])
    if scale < 1:
        image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return png(np.asarray(image, np.uint8))


def with_masks(rows: Sequence[AnswerRow], values: Sequence[Value]) -> tuple[AnswerRow, ...]:
    """Return the rows with the masks among their ``values``, one value per row.

    A mask that answers several questions is kept with the first of them.
    """
    masked, kept = [], set()
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, np.ndarray) and id(value) not in kept:
            kept.add(id(value))
            row = replace(row, details={**(row.details or {}), MASK: to_json(value)})
        masked.append(row)
    return tuple(masked)


def values_of(space: QuestionSpace, answers: CallMode, call: CallRow) -> tuple[Value, ...]:
    """Return the model's answer to a journaled call, in the order of the concepts sent.

    A mask that was not kept is replaced by the score that its oracle gave it. Without a score the
    value is ``LOST``.

    Raises:
        JournalError: If a kept mask cannot be read.
    """
    rows = sorted(call.answers, key=lambda row: row.question)
    places = [0] if answers == "one" else space.asked_by
    values: list[Value] = [LOST] * (max(places) + 1)
    for place, row in zip(places, rows, strict=True):
        if values[place] is LOST:
            values[place] = _value(row)
    return tuple(values)


def _value(row: AnswerRow) -> Value:
    """Return the value that a journaled answer was judged from; ``LOST`` if it is not kept."""
    if row.details is not None and MASK in row.details:
        return from_json(row.details[MASK], f"journal: answers, question {row.question}")
    if row.answer_text is not None:
        return row.answer_text
    if row.answer is not None:
        return row.answer
    return LOST if row.excluded or row.unanswered is None else Unanswered(row.unanswered)
