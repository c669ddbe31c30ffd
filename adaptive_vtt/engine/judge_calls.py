"""A judge model reads the answers that an oracle's rule is not sure about.

Such an answer is committed before the judge is asked, as a row "judging" with question -1. Each of
the judge's replies is committed before it is used. So an interrupted audit continues with the open
questions and pays for no reply twice. Calls of the judge that were in flight count as lost, at its
worst price. Once all replies are there, the call is judged and committed like any other. Its cost
is that of the answer and of the judge's replies together.

If the judge fails, or its reply is no verdict, the question stays unanswered. If its first call
shows that it cannot work at all (wrong key, unknown model), the audit ends with ModelError, as
it does for a model. Nothing is lost: the answer waits in the journal.
"""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ..errors import ModelError, one_line
from ..journal import Journal
from ..journal.answer_json import from_json, to_json, writable
from ..journal.rows import CallRow, JudgingRow
from ..models.base import ConcurrentModel, ModelDefaults
from ..models.checking import check_answer, checked
from ..oracles.judge_models import JudgeModel
from ..types import Answer, Ask, Prompt, Unanswered, Value
from ..utils.random_streams import generator
from .budget import Budget
from .call_queue import CallQueue
from .judge import Judge
from .loop import AnyAnswer, Hook, Loop

MODEL_ANSWER = -1
"""Number in place of a question's, in the journal's row of the answer that the judge reads."""


@dataclass
class _Waiting:
    """An answer that waits for the judge.

    - ``answer``: its cost includes the judge's replies so far.
    - ``asked``: question -> text that the judge is sent.
    - ``verdicts``: question -> reply.
    - ``hashes``: question -> hash of the text, computed once, as every reply looks them up.
    """

    answer: Answer
    asked: dict[int, str]
    verdicts: dict[int, Value] = field(default_factory=dict)
    hashes: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self.hashes = {question: hash_of(text) for question, text in self.asked.items()}

    @property
    def left(self) -> list[int]:
        """The questions without a verdict."""
        return [question for question in self.asked if question not in self.verdicts]


@dataclass(frozen=True)
class Reply:
    """The judge's answer about a question. ``lost``: True if its cost is unknown."""

    call: int
    question: int
    answer: AnyAnswer
    lost: bool = False


class JudgeCalls(Hook):
    """The answers that wait for a judge model, and its calls. Does nothing without a judge model.

    ``judge`` turns answers into rows. ``key``, the audit's, decides which sure answers are checked.
    """

    def __init__(self, judge: Judge, queue: CallQueue, budget: Budget, key: int | str) -> None:
        self._judge, self._queue, self._budget, self._key = judge, queue, budget, key
        self._judge_model: JudgeModel | None = judge.space.oracle.judge_by
        self._waiting: dict[int, _Waiting] = {}
        self._known: dict[str, Value] = {}  # hash of the text sent -> verdict
        self._sent: dict[tuple[int, int], Future[AnyAnswer]] = {}
        self._error: ModelError | None = None
        self._answered = False
        self._rows = 0

    @property
    def held(self) -> int:
        """The number of answers that wait for the judge."""
        return len(self._waiting)

    def holds(self, call: int) -> bool:
        return call in self._waiting

    # -- answers of the model ----------------------------------------------------------

    def on_answers(
        self, loop: Loop, answers: Mapping[int, AnyAnswer], seconds: float
    ) -> Mapping[int, AnyAnswer]:
        """Hold the answers that the judge has to read; return the others."""
        held = {}
        for call, answer in answers.items():
            asked = self._texts_for_judge(call, answer)
            if asked and isinstance(answer, Answer):
                held[call] = _Waiting(answer, asked)
        self._hold(loop, held, seconds)
        return {call: answer for call, answer in answers.items() if call not in held}

    def on_unjudged(self, loop: Loop, answers: Mapping[int, AnyAnswer], seconds: float) -> None:
        held = {call: _Waiting(a, {}) for call, a in answers.items() if isinstance(a, Answer)}
        self._hold(loop, held, seconds)

    def _hold(self, loop: Loop, held: Mapping[int, _Waiting], seconds: float) -> None:
        """Commit answers that are judged later, as they are paid for."""
        rows = [self._row(c, MODEL_ANSWER, "", w.answer, seconds) for c, w in held.items()]
        loop.journal.add(rows)
        self._waiting |= held
        for row in rows:
            self._queue.done(row.call)
            self._budget.pay(row.cost)
        self._count()

    def _texts_for_judge(self, call: int, answer: AnyAnswer) -> dict[int, str]:
        """Return by question the text that the judge is sent about an answer.

        The judge also reads a random share ``check`` of the answers that the rule is sure about.
        """
        if self._judge_model is None or isinstance(answer, Unanswered):
            return {}
        try:
            queries = self._judge.queries(call, answer)
        except Exception:  # it is raised again when the answer is judged
            return {}
        share, texts = self._judge_model.check, {}
        for question, query in queries.items():
            if not query.sure or generator(self._key, "judge", question).random() < share:
                texts[question] = query.text
        return texts

    # -- questions to the judge, and its replies ---------------------------------------

    def after_answers(self, loop: Loop) -> None:
        self.send(loop.journal)

    def before_ask(self, loop: Loop, *, wait: bool) -> bool:
        """Ask the judge and take its replies; with ``wait``, until none is open.

        Raises:
            ModelError: If the judge cannot work at all.
        """
        received = self._commit(loop, [])
        while self.send(loop.journal):
            received = self._commit(loop, self.replies(wait_for_one=wait)) or received
            if not wait:
                break
        return received

    def keep_replies(self, loop: Loop) -> None:
        """Commit the replies that are on their way when a run ends, as they are paid for."""
        with suppress(Exception):
            self._commit(loop, self.replies(wait_for_all=True))

    def _commit(self, loop: Loop, replies: Sequence[Reply]) -> bool:
        """Commit replies, and the calls that now have all verdicts. Return whether any came."""
        seconds = loop.watch.seconds()
        for hook in loop.hooks:
            hook.before_commit(loop)
        with loop.step():
            self.keep(replies, loop.journal, seconds)
        rows = self.complete(seconds)
        if rows:
            loop.commit(rows)
            for row in rows:
                del self._waiting[row.call]
            loop.draw_order.catch_up()
        return bool(replies or rows)

    def send(self, journal: Journal) -> int:
        """Ask the judge what the budget allows now. Return how many replies will come."""
        if self._judge_model is None or not self._waiting:
            return 0
        fresh = self._fresh()
        most = self._budget.judgeable(self._queue.under_way, len(self._sent))
        fresh = fresh if most is None else fresh[:most]
        if self._budget.judged.send(question for _, question in fresh):
            journal.set_facts(**self._budget.facts())
        for call, question in fresh:
            self._sent[call, question] = self._submit(call, question)
        return len(self._sent) + len(self._known_replies())

    def _known_replies(self) -> list[Reply]:
        """Return replies to texts that the judge was sent before; they cost nothing."""
        return [
            Reply(call, question, Answer((known,)))
            for call, waiting in self._waiting.items()
            for question in waiting.left
            if (known := self._known.get(waiting.hashes[question])) is not None
        ]

    def _unasked(self, waiting: _Waiting) -> list[int]:
        """Return the questions without a verdict whose text the judge was never sent."""
        return [q for q in waiting.left if waiting.hashes[q] not in self._known]

    def _fresh(self) -> list[tuple[int, int]]:
        """Return (call, question) to ask next: one for each text, as its reply serves all."""
        in_flight = {self._waiting[call].hashes[question] for call, question in self._sent}
        fresh = []
        for call, waiting in self._waiting.items():
            for question in self._unasked(waiting):
                digest = waiting.hashes[question]
                if (call, question) not in self._sent and digest not in in_flight:
                    in_flight.add(digest)
                    fresh.append((call, question))
        return fresh

    def replies(self, *, wait_for_all: bool = False, wait_for_one: bool = True) -> list[Reply]:
        """Return the judge's replies by now.

        Args:
            wait_for_all: True to wait for all that are on their way.
            wait_for_one: True to wait for one, if none is known.

        Raises:
            ModelError: If the judge cannot work at all.
        """
        known = self._known_replies()
        if self._sent and (wait_for_all or (wait_for_one and not known)):
            wait(self._sent.values(), None, ALL_COMPLETED if wait_for_all else FIRST_COMPLETED)
        done = [sent for sent, future in self._sent.items() if future.done()]
        replies = [self._reply(call, question) for call, question in done]
        error, self._error = self._error, None
        if error is not None and not self._answered:
            raise error
        return known + [reply for reply in replies if reply is not None]

    def keep(self, replies: Sequence[Reply], journal: Journal, elapsed: float) -> None:
        """Commit replies, after ``elapsed`` seconds of audit."""
        rows = []
        for reply in replies:
            digest = self._waiting[reply.call].hashes[reply.question]
            rows.append(self._row(reply.call, reply.question, digest, reply.answer, elapsed))
        lost = [reply.question for reply in replies if reply.lost]
        if lost:  # before the replies: a crash in between must not forget what they may have cost
            self._budget.judged.lost += len(lost)
            journal.set_facts(**self._budget.facts())
        journal.add(rows)
        for row in rows:
            self._take(row)
        self._count()

    def complete(self, elapsed: float) -> list[CallRow]:
        """Return the judged rows of the calls that have all verdicts."""
        rows = []
        for call, waiting in self._waiting.items():
            if not waiting.left:
                judged = self._judge.judged(call, waiting.answer, waiting.verdicts)
                rows.append(self._judge.row(call, waiting.answer, elapsed, judged))
        return rows

    def _submit(self, call: int, question: int) -> "Future[AnyAnswer]":
        """Ask the judge; the result is there at once if it cannot be asked concurrently."""
        model, prompt = self._model, prompt_of(self._waiting[call].asked[question], question)
        try:
            if isinstance(model, ConcurrentModel):
                return model.submit(prompt)
            future: Future[AnyAnswer] = Future()
            future.set_result(checked(model, [prompt])[0])
        except Exception as error:
            future = Future()
            future.set_exception(error)
        return future

    def _reply(self, call: int, question: int) -> Reply | None:
        """Return the judge's reply to a question; None if it failed in a way that ends the run."""
        future = self._sent.pop((call, question))
        name = self._judge_model.name if self._judge_model else ""
        try:
            answer = future.result()
            check_answer(answer, prompt_of("", question), f"judge {name!r}")
        except Exception as error:
            # If a client raises before any call succeeded, none can succeed. A function may raise
            # because of this one question.
            concurrent = isinstance(self._model, ConcurrentModel)
            if isinstance(error, ModelError) and concurrent and not self._answered:
                self._error = error
                return None
            reason = f"{type(error).__name__}: {one_line(error)}"[:200]
            return Reply(call, question, Unanswered(writable(reason)), lost=True)
        self._answered = True
        if isinstance(answer, Answer) and not isinstance(answer.values[0], str | Unanswered):
            answer = Unanswered("no words", answer.cost, answer.unconfirmed)
        return Reply(call, question, answer)

    def _take(self, row: JudgingRow) -> None:
        """Add a journaled verdict, and its cost, to the answer that it is about."""
        waiting, value = self._waiting[row.call], from_json(row.answers[0], "journal: judging")
        waiting.verdicts[row.question] = value
        cost = waiting.answer.cost + row.cost
        unconfirmed = waiting.answer.unconfirmed + row.unconfirmed
        waiting.answer = replace(waiting.answer, cost=cost, unconfirmed=unconfirmed)
        self._budget.pay(row.cost)
        if isinstance(value, str):
            self._known[row.asked] = value

    @property
    def _model(self) -> ModelDefaults:
        if self._judge_model is None:
            raise ModelError("judge: none was given")
        return self._judge_model.model

    # -- resuming ----------------------------------------------------------------------

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        rows = loop.journal.judging()
        self._rows = len(rows)
        for row in rows:
            if row.received and row.call not in calls:
                values = tuple(from_json(value, "journal: judging") for value in row.answers)
                answer = Answer(values, row.cost, row.unconfirmed, row.reply)
                self._waiting[row.call] = _Waiting(answer, self._texts_for_judge(row.call, answer))
                self._budget.pay(row.cost)
            elif row.call in self._waiting:
                self._take(row)
            elif not row.received and isinstance(row.answers[0], str):
                self._known[row.asked] = row.answers[0]
        self._answered = any(not row.received for row in rows)
        if self._judge_model is not None:
            self._model.trusted = self._answered
        self._count()

    def lose(self) -> None:
        """Count open questions as lost: an interrupted run may have sent them."""
        self._budget.judged.lose(q for w in self._waiting.values() for q in self._unasked(w))

    def _count(self) -> None:
        self._budget.judged.open = sum(len(self._unasked(w)) for w in self._waiting.values())

    def _row(
        self, call: int, question: int, asked: str, paid: AnyAnswer, elapsed: float
    ) -> JudgingRow:
        """Return the next row, with the cost of the answer or reply that was ``paid`` for."""
        self._rows += 1
        values = (paid,) if isinstance(paid, Unanswered) else paid.values
        position, encoded = self._rows - 1, tuple(map(to_json, values))
        row = JudgingRow(position, call, question, asked, encoded, paid.cost, elapsed)
        return replace(row, unconfirmed=paid.unconfirmed, reply=paid.reply)


def prompt_of(text: str, question: int) -> Prompt:
    """Return the prompt for a judge: a text without an image."""
    return Prompt(None, ("judge",), f"question {question}", "identity", 0, (Ask(text),))


def hash_of(text: str) -> str:
    """Return the hash by which equal texts are recognised."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
