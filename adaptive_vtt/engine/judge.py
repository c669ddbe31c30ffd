"""From questions to calls, and from a call's answer to judged rows for the journal.

Where an oracle compares a follow-up with its source, the source image is asked about first, once
(``SourceCalls``). Some oracles then have to hear of versions of it, too (``oracles.Version``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ..certify.decisions import ALIKE
from ..errors import InputError
from ..journal import Journal
from ..journal.answer_json import from_json, to_json, writable
from ..journal.facts import read_facts
from ..journal.rows import EXCLUDED, AnswerRow, CallRow, SourceRow
from ..oracles import Case, Outcome, Premise, Received, Version
from ..oracles.captioned import Captioned
from ..oracles.judge_models import JUDGED, Query
from ..oracles.labels import MARGIN
from ..oracles.paired import Paired
from ..relations import FollowUp
from ..space import QuestionSpace
from ..types import (
    IDENTITY,
    Answer,
    Ask,
    CallMode,
    Image,
    Indices,
    PairedAnswer,
    Prompt,
    Sample,
    SourceAnswer,
    Unanswered,
    Value,
)
from ..utils.image_codec import png


class SourceCalls:
    """Source calls by number.

    A source is a sample's place; where a call answers one concept, that times the number of
    concepts plus the concept's place. Version v of source s is call ``s + (1 + v) * count``.
    ``known``: the answers, by number.
    """

    def __init__(self, space: QuestionSpace, answers: CallMode) -> None:
        self.space = space
        self.answers = answers
        self.known: dict[int, tuple[Value, ...]] = {}
        # a few samples stay decoded: calls about one source come in a row, and decoding is slow
        self._sample = lru_cache(maxsize=16)(space.dataset.sample)
        self.per_sample = len(space.asked) if answers == "one" else 1
        self.most = 1 + space.oracle.most_versions(space.dataset)

    @property
    def count(self) -> int:
        """How many sources there can be; 0 where the oracle needs none."""
        return len(self.space.dataset) * self.per_sample if self.space.oracle.needs_source else 0

    def of(self, question: int) -> int:
        """The source that a question's answer is compared with."""
        sample, _, concept = self.space.numbering.parts(int(question))
        return sample * self.per_sample + (concept if self.answers == "one" else 0)

    def root(self, number: int) -> int:
        """The source that a call is about, itself or a version of it."""
        return number % self.count

    def missing(self, source: int) -> list[int]:
        """The calls still to make before follow-ups of ``source`` can be judged, as far as the
        answers about it and its versions show."""
        if source not in self.known:
            return [source]
        numbers = (source + (1 + v) * self.count for v in self._versions(source))
        return [number for number in numbers if number not in self.known]

    def received(self, source: int, place: int) -> SourceAnswer:
        """The answer about ``source`` for the space's concept at ``place``; None: nothing."""
        values = self.known.get(source)
        if values is None:
            return None
        if self.space.oracle.whole_source:
            places = [0] if self.answers == "one" else self.space.asked_by
            return tuple(values[place] for place in places)
        where = 0 if self.answers == "one" else self.space.asked_by[place]
        return values[where] if self.most == 1 else self._received(source, where)

    def _received(self, source: int, where: int) -> Received:
        numbers = {v: source + (1 + v) * self.count for v in range(self.most - 1)}
        versions = {v: self.known[n][where] for v, n in numbers.items() if n in self.known}
        return Received(self.known[source][where], versions)

    def _versions(self, source: int) -> Mapping[int, Version]:
        if self.most == 1:
            return {}
        sample = self._sample(source // self.per_sample)
        return self.space.oracle.versions(sample, self._received(source, 0))

    def prompt(self, number: int) -> Prompt:
        """What is sent."""
        source = self.root(number)
        index, concept = divmod(source, self.per_sample)
        sample = self._sample(index)
        concepts = (self.space.asked[concept],) if self.answers == "one" else self.space.asked
        image, relation, severity = sample.image, IDENTITY, 0
        if number >= self.count:
            version = self._versions(source)[number // self.count - 1]
            image, relation, severity = version.make(), version.relation, version.severity
        asks = asks_of(sample.id, sample.asks, concepts)
        return Prompt(image, concepts, sample.id, relation, severity, asks)

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """The answer, ready for the journal."""
        count = 1 if self.answers == "one" else len(self.space.asked)
        values = (answer,) * count if isinstance(answer, Unanswered) else answer.values
        encoded = (to_json(value) for value in values)
        paid = answer.cost, elapsed, answer.unconfirmed
        return SourceRow(number, tuple(encoded), *paid, answer.reply)

    def know(self, row: SourceRow) -> None:
        """Keeps the answer, to judge follow-ups by."""
        where = f"journal: sources, row {row.source}"
        self.known[row.source] = tuple(from_json(value, where) for value in row.answers)
        source = self.root(row.source)
        dataset, needed = self.space.dataset, self.space.needs_answers
        if needed and isinstance(dataset, Captioned) and not self.missing(source):
            # from now on its follow-ups can be made
            dataset.received[source // self.per_sample] = self._received(source, 0)


def with_answers(space: QuestionSpace, journal: Journal) -> QuestionSpace:
    """The space with what the audit of ``journal`` received, where follow-ups depend on that."""
    if space.needs_answers:
        space = space.without_answers()
        sources = SourceCalls(space, read_facts(journal.facts()).settings.answers)
        for row in journal.sources():
            if not row.repeat_probe:
                sources.know(row)
    return space


def asks_of(sample_id: str, asks: Mapping[str, Ask], concepts: tuple[str, ...]) -> tuple[Ask, ...]:
    """The words of each concept; none where the sample has none."""
    if not asks:
        return ()
    missing = [concept for concept in concepts if concept not in asks]
    if missing:
        raise InputError(
            f"sample {sample_id!r}: expected words for concept {missing[0]!r}, got none; ask one "
            "question per call (answers = 'one')"
        )
    return tuple(asks[concept] for concept in concepts)


MASK = "mask"
"""Where a mask stands among an answer's details: packed bits, as those of source images do."""
LOST = Unanswered("not journaled")
"""In place of a value that the journal does not hold: a mask that was not kept, or a number in
answer to a question that turned out not to count."""


def with_masks(rows: Sequence[AnswerRow], values: Sequence[Value]) -> tuple[AnswerRow, ...]:
    """The rows with the masks among their ``values``, one each. A mask that answers several
    questions stands with the first of them."""
    masked, kept = [], set()
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, np.ndarray) and id(value) not in kept:
            kept.add(id(value))
            row = replace(row, details={**(row.details or {}), MASK: to_json(value)})
        masked.append(row)
    return tuple(masked)


def values_of(space: QuestionSpace, answers: CallMode, call: CallRow) -> tuple[Value, ...]:
    """The model's answer to a journaled call, in the order in which its concepts were sent.

    Of a mask that was not kept it is the score that its oracle gave it; where not even that is
    journaled, ``LOST``. Raises JournalError for a mask that is none.
    """
    rows = sorted(call.answers, key=lambda row: row.question)
    places = [0] if answers == "one" else space.asked_by
    values: list[Value] = [LOST] * (max(places) + 1)
    for place, row in zip(places, rows, strict=True):
        if values[place] is LOST:
            values[place] = _value(row)
    return tuple(values)


def _value(row: AnswerRow) -> Value:
    if row.details is not None and MASK in row.details:
        return from_json(row.details[MASK], f"journal: answers, question {row.question}")
    if row.said is not None:
        return row.said
    if row.answer is not None:
        return row.answer
    return LOST if row.excluded or row.unanswered is None else Unanswered(row.unanswered)


PICTURE_BYTES = 64 * 2**20
"""Pictures of failing calls (of two models: of those where one lost more) that a journal keeps, at
most: those of some 600 photographs with their sources, or of all where images are small."""
PICTURE_SIDE = 160
"""Pictures are shrunk to this many pixels on the longer side."""

SHOWN = 80
"""Characters of a judge's reply that stand with the answer; the whole is with what was asked."""
NONE: Mapping[int, Value] = MappingProxyType({})


Answers = Mapping[int, Answer | Unanswered]


class Judge:
    """Knows what one call covers, what to send, and what the answer is worth.

    With ``answers`` "all" a call is about one image and all concepts, and is numbered by
    the image; with "one" it is one question, numbered as such. ``keep_masks``: whether
    rows hold masks that were answered.
    Raises InputError where the oracle has to see all concepts at once and the model answers one.
    """

    def __init__(
        self, space: QuestionSpace, answers: CallMode, *, keep_masks: bool = False
    ) -> None:
        self.space = space
        self.answers = answers
        self.keep_masks = keep_masks
        self.sources = SourceCalls(space, answers)
        self._pairs: dict[int, tuple[Sample, FollowUp]] = {}
        self.pictures = 0  # bytes kept so far, those of an earlier run included
        self.at_once: Callable[[Judge, Answers], Mapping[int, tuple[AnswerRow, ...]]] | None = None
        """Judges calls together: what ``judged`` gives, of those that it can."""
        self.pictured: int | None = None
        """Calls per relation and severity of which pictures are kept, at most; None: any number."""
        self._pictured: Counter[int] = Counter()
        several = space.oracle.whole_call or len(space.concepts) > len(space.asked)
        if answers == "one" and several:
            raise InputError(
                f"oracle {type(space.oracle).__name__}: needs a model that answers all concepts "
                "in one call (answers = 'all'), got one that answers one"
            )

    def all_questions_of(self, call: int) -> Indices:
        """Every question the call answers, those that cannot be judged included."""
        if self.answers == "one":
            return np.array([call])
        count = len(self.space.concepts)
        return np.arange(call * count, (call + 1) * count)

    def questions_of(self, call: int) -> Indices:
        """The eligible questions the call answers."""
        questions = self.all_questions_of(call)
        return questions[self.space.eligible(questions)]

    def prompt(self, call: int) -> Prompt:
        """What is sent to the model."""
        question = self.space.question(int(self.all_questions_of(call)[0]))
        sample, follow_up = self._pair(call)
        place = self.space.numbering.parts(int(question.number))[2]
        mine = self.space.asked[self.space.asked_by[place]]
        concepts = (mine,) if self.answers == "one" else self.space.asked
        where = (question.sample_id, question.relation, question.severity)
        asks = asks_of(sample.id, sample.asks, concepts)
        return Prompt(follow_up.image, concepts, *where, asks, follow_up.words)

    def source(self, call: int) -> Sample:
        """The sample that the call is about, unchanged."""
        return self._pair(call)[0]

    def judged(
        self, call: int, answer: Answer | Unanswered, verdicts: Mapping[int, Value] = NONE
    ) -> tuple[AnswerRow, ...]:
        """Every question that the call answers, with what the answer says and is worth;
        ``verdicts``: by question the verdict of a judge model."""
        values = self._values(answer)
        rows = self._judged(call, self.all_questions_of(call), values, verdicts)
        return with_masks(rows, values) if self.keep_masks else rows

    def _values(self, answer: Answer | Unanswered) -> tuple[Value, ...]:
        """One value per question of a call."""
        if self.answers == "one":
            return _values(answer, 1)
        values = _values(answer, len(self.space.asked))
        return tuple(values[k] for k in self.space.asked_by)

    def expected(self, question: int) -> Any:
        """What the answer should be, as the oracle has it: 0 or 1, accepted words, a mask."""
        whole = self.answers == "all"
        call = self.space.numbering.image_of(int(question)) if whole else question
        return self._case(call, question, Unanswered("not asked")).expected

    def queries(self, call: int, answer: Answer) -> dict[int, Query]:
        """By question what the oracle's judge model may be asked about an answer."""
        questions, values = self.all_questions_of(call), self._values(answer)
        eligible = self.space.eligible(questions).tolist()
        queries = {}
        for question, value, there in zip(questions.tolist(), values, eligible, strict=True):
            query = self.space.oracle.query(self._case(call, question, value)) if there else None
            if query is not None:
                queries[question] = query
        return queries

    def row(
        self,
        call: int,
        answer: Answer | Unanswered,
        elapsed: float,
        verdicts: Mapping[int, Value] = NONE,
    ) -> CallRow:
        """The judged answer, ready for the journal; ``verdicts`` as in ``judged``."""
        return self._paid(call, answer, elapsed, self.judged(call, answer, verdicts))

    def _paid(
        self, call: int, answer: Answer | Unanswered, elapsed: float, rows: tuple[AnswerRow, ...]
    ) -> CallRow:
        paired = isinstance(self.space.oracle, Paired)
        losses = [r.loss for r in rows if r.loss is not None]
        shown = any(loss != ALIKE if paired else loss >= 0.5 for loss in losses)
        pictures = self._picture(call) if shown else None
        paid = answer.cost, elapsed, rows, pictures, answer.unconfirmed
        return CallRow(call, *paid, answer.reply)

    def rows(self, answers: Answers, elapsed: float) -> tuple[list[CallRow], dict[int, Exception]]:
        """Rows of what could be judged, by call why the rest could not.

        One answer's trouble must not cost the others: an oracle may be a model itself.
        """
        rows, errors = [], {}
        at_once = {} if self.at_once is None else self.at_once(self, answers)
        for call, answer in answers.items():
            try:
                if call in at_once:
                    rows.append(self._paid(call, answer, elapsed, at_once[call]))
                    continue
                rows.append(self.row(call, answer, elapsed))
            except Exception as error:
                errors[call] = error
        return rows, errors

    def hold(self, pairs: Mapping[int, tuple[Sample, FollowUp]]) -> None:
        """Takes sources and follow-ups that were made elsewhere, by call."""
        self._pairs.update(pairs)

    def forget(self, call: int) -> None:
        """Lets go of the call's image."""
        self._pairs.pop(call, None)

    def _judged(
        self, call: int, questions: Indices, values: Sequence[Value], verdicts: Mapping[int, Value]
    ) -> tuple[AnswerRow, ...]:
        eligible = self.space.eligible(questions).tolist()
        places = [k for k, there in enumerate(eligible) if there]
        cases = [self._case(call, int(questions[k]), values[k]) for k in places]
        together = self.space.oracle.judge_call(cases, values)
        outcomes = {
            k: self._with_verdict(case, outcome, verdicts.get(int(questions[k])))
            for k, case, outcome in zip(places, cases, together, strict=True)
        }
        judged = dict(zip(places, cases, strict=True))
        return tuple(
            _row(int(q), call, value, self._truth(judged.get(k)), self._sound(outcomes.get(k), q))
            for k, (q, value) in enumerate(zip(questions, values, strict=True))
        )

    def _with_verdict(self, case: Case, rule: Outcome, verdict: Value | None) -> Outcome:
        """The outcome by rule, or by the judge model's verdict where the rule is not sure."""
        query = None if verdict is None else self.space.oracle.query(case)
        if query is None or verdict is None:
            return rule
        judge = self.space.oracle.settled(case, verdict)
        outcome = rule if query.sure else judge
        words = verdict[:SHOWN] if isinstance(verdict, str) else None
        details = {"said": words, "judge": _right(judge), "rule": _right(rule), "sure": query.sure}
        return replace(outcome, details={**(outcome.details or {}), JUDGED: details})

    def _truth(self, case: Case | None) -> int:
        """What was expected as 0 or 1; where nothing is known but the source's answer, the space
        counts every question as one that should be answered alike: 1."""
        oracle = self.space.oracle
        if case is not None and (oracle.tells_losses or oracle.whole_source):
            return case.question.truth  # what is expected are the words of an item, or two answers
        if case is None or self.space.oracle.needs_source or not isinstance(case.expected, int):
            return 1
        return case.expected

    def _sound(self, outcome: Outcome | None, question: int) -> Outcome | None:
        """The outcome in plain floats; raises InputError for a loss that is none."""
        if outcome is None:
            return None
        if not 0 <= outcome.loss <= 1:  # NaN is not
            raise InputError(
                f"oracle {type(self.space.oracle).__name__}: expected a loss between 0 and 1, got "
                f"{outcome.loss} for {self.space.question(question)}"
            )
        coordinate = None if outcome.coordinate is None else float(outcome.coordinate)
        score = None if outcome.score is None else float(outcome.score)
        details = outcome.details
        if outcome.margin is not None:
            details = {**(details or {}), MARGIN: self._finite(outcome.margin, question)}
        loss = float(outcome.loss)
        return replace(outcome, loss=loss, coordinate=coordinate, score=score, details=details)

    def _finite(self, margin: float, question: int) -> float:
        if not np.isfinite(margin):
            raise InputError(
                f"oracle {type(self.space.oracle).__name__}: expected a finite margin, got "
                f"{margin} for {self.space.question(question)}"
            )
        return float(margin)

    def _case(self, call: int, number: int, value: Value) -> Case:
        question = self.space.question(number)
        _, variant, place = self.space.numbering.parts(int(number))
        before = self.sources.received(self.sources.of(number), place)
        sample, follow_up = self._pair(call)
        relation = self.space.variants[variant].relation
        given = Premise(relation, follow_up, sample, question, before)
        expected = self.space.oracle.expect(given)
        return Case(question, place, value, expected, before)

    def _pair(self, call: int) -> tuple[Sample, FollowUp]:
        if call not in self._pairs:
            image = self.space.numbering.image_of(call) if self.answers == "one" else call
            self._pairs[call] = self.space.pair(image)
        return self._pairs[call]

    def _picture(self, call: int) -> tuple[bytes, bytes] | None:
        source, follow_up = self._pair(call)
        if follow_up.image is None or self.pictures >= PICTURE_BYTES:
            return None
        if self.pictured is not None:
            variant = self.space.numbering.parts(int(self.all_questions_of(call)[0]))[1]
            if self._pictured[variant] >= self.pictured:
                return None
            self._pictured[variant] += 1
        kept = thumbnail(source.require_image()), thumbnail(follow_up.image)
        self.pictures += sum(map(len, kept))
        return kept


def _right(outcome: Outcome) -> bool | None:
    """Whether an answer is right; None where it is none."""
    return None if outcome.unanswered is not None else outcome.loss < 0.5


def _values(answer: Answer | Unanswered, count: int) -> tuple[Value, ...]:
    """One value per concept sent; numbers as plain floats."""
    if isinstance(answer, Unanswered):
        return (answer,) * count
    return tuple(map(_plain, answer.values))


def _plain(value: Value) -> Value:
    """Numbers as plain floats, words as can be written down."""
    if isinstance(value, Unanswered | np.ndarray):
        return value
    if isinstance(value, PairedAnswer):
        return PairedAnswer(_plain(value.a), _plain(value.b))
    return writable(value) if isinstance(value, str) else float(value)


def _row(question: int, call: int, value: Value, truth: int, outcome: Outcome | None) -> AnswerRow:
    """One answer for the journal; without an outcome it cannot be judged."""
    reason = value.reason if isinstance(value, Unanswered) else None
    answer = value if isinstance(value, float) else None
    words = value if isinstance(value, str) else None
    if outcome is None:
        return AnswerRow(question, call, None, answer, reason, None, None, words)
    row = AnswerRow(question, call, truth, None, None, outcome.loss, None, words, outcome.details)
    if outcome.excluded:
        return replace(row, unanswered=EXCLUDED + outcome.excluded, loss=0.0)
    reason = reason or outcome.unanswered
    if reason is not None:
        return replace(row, unanswered=reason)
    answer = outcome.score if answer is None else answer
    return replace(row, answer=answer, coordinate=outcome.coordinate)


def thumbnail(image: Image) -> bytes:
    """A PNG of H x W x 1 or 3 uint8, shrunk to PICTURE_SIDE."""
    import cv2

    scale = PICTURE_SIDE / max(image.shape[:2])
    if scale < 1:
        image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return png(np.asarray(image, np.uint8))
