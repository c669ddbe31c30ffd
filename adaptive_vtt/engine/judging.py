"""Asking a judge model what answers mean of which the oracle's rule is not sure.

An answer that a judge is to read is committed as it came before anything is sent (a row "judging"
with question -1), and so is what the judge says of each question, before it is used. An audit
that is interrupted in between goes on with what is open: no reply is paid for twice, but those
that were on their way, which are counted as lost at the judge's worst price. Then the call is
judged and committed as any other, at the cost of its answer and of the judge together.

A judge that fails, or says what is no verdict, leaves a question without an answer. One that
cannot work at all, from its first call on (a wrong key, no such model), ends the audit in a
sentence, as a model does; nothing is lost by that, as the answer waits in the journal.
"""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
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

RECEIVED = -1
"""In place of a question's number: the answer that the judge is asked about."""


@dataclass
class _Open:
    """An answer, at the cost of its call and its judge so far, that waits for the judge: what is to
    be asked, and the verdicts."""

    answer: Answer
    asked: dict[int, str]
    verdicts: dict[int, Value] = field(default_factory=dict)
    hashes: dict[int, str] = field(init=False)
    """By question, of what is asked: they are compared at every reply, and made once."""

    def __post_init__(self) -> None:
        self.hashes = {question: hash_of(text) for question, text in self.asked.items()}

    @property
    def left(self) -> list[int]:
        """The questions of which the judge has not spoken."""
        return [question for question in self.asked if question not in self.verdicts]


@dataclass(frozen=True)
class Reply:
    """The judge's answer about a question; ``lost``: nobody knows what that cost."""

    call: int
    question: int
    answer: AnyAnswer
    lost: bool = False


class Judging(Hook):
    """The answers that wait for a judge, and the judge's calls. Does nothing without a judge.

    ``key``: the audit's, by which the answers to check are drawn.
    """

    def __init__(self, judge: Judge, queue: CallQueue, budget: Budget, key: int | str) -> None:
        self._judge, self._queue, self._budget, self._key = judge, queue, budget, key
        self._by: JudgeModel | None = judge.space.oracle.judge_by
        self._open: dict[int, _Open] = {}
        self._known: dict[str, Value] = {}  # verdicts, by the hash of what was asked
        self._sent: dict[tuple[int, int], Future[AnyAnswer]] = {}
        self._error: ModelError | None = None
        self._answered = False
        self._rows = 0

    @property
    def held(self) -> int:
        """How many answers wait."""
        return len(self._open)

    def holds(self, call: int) -> bool:
        return call in self._open

    # -- answers that came -------------------------------------------------------------

    def on_answers(
        self, loop: Loop, answers: Mapping[int, AnyAnswer], seconds: float
    ) -> Mapping[int, AnyAnswer]:
        """Keeps the answers of which a judge is to be asked; gives the others."""
        rest, rows = dict(answers), []
        for call, answer in answers.items():
            asked = self._to_ask(call, answer)
            if asked and isinstance(answer, Answer):
                del rest[call]
                encoded = tuple(to_json(value) for value in answer.values)
                rows.append(self._row(call, RECEIVED, "", encoded, answer, seconds))
                self._open[call] = _Open(answer, asked)
        loop.journal.add(rows)
        for row in rows:
            self._queue.done(row.call)
            self._budget.pay(row.cost)
        self._count()
        return rest

    def _to_ask(self, call: int, answer: AnyAnswer) -> dict[int, str]:
        """By question what the judge is asked about an answer."""
        if self._by is None or isinstance(answer, Unanswered):
            return {}
        try:
            queries = self._judge.queries(call, answer)
        except Exception:  # it is raised again where the answer is judged
            return {}
        return {q: query.text for q, query in queries.items() if not query.sure or self._checks(q)}

    def _checks(self, question: int) -> bool:
        """Whether a question of which the rule is sure is asked about, too."""
        share = 0.0 if self._by is None else self._by.check
        return share > 0 and generator(self._key, "judge", question).random() < share

    # -- what the judge is asked and says ----------------------------------------------

    def after_answers(self, loop: Loop) -> None:
        self.send(loop.journal)

    def before_ask(self, loop: Loop, *, wait: bool) -> bool:
        """Asks what may be asked, and takes the replies, all of them to ``wait`` for that. Raises
        ModelError for a judge that cannot work."""
        received = self._hear(loop, [])
        while self.send(loop.journal):
            received = self._hear(loop, self.replies(wait_for=wait)) or received
            if not wait:
                break
        return received

    def keep_rest(self, loop: Loop) -> None:
        """Keeps what the judge is saying as a run ends: it is paid for."""
        with suppress(Exception):
            self._hear(loop, self.replies(every=True))

    def _hear(self, loop: Loop, replies: Sequence[Reply]) -> bool:
        """Commits replies, and the calls whose questions all have one; whether there were any."""
        seconds = loop.watch.seconds()
        for hook in loop.hooks:
            hook.before_commit(loop)
        with loop.step():
            self.keep(replies, loop.journal, seconds)
        rows = self.complete(seconds)
        if rows:
            loop.commit(rows)
            for row in rows:
                del self._open[row.call]
            loop.draw_order.catch_up()
        return bool(replies or rows)

    def send(self, journal: Journal) -> int:
        """Asks what may be asked now; gives how many replies there are to take or to wait for."""
        if self._by is None or not self._open:
            return 0
        fresh = self._fresh()
        most = self._budget.judgeable(self._queue.under_way, len(self._sent))
        fresh = fresh if most is None else fresh[:most]
        if self._budget.judged.send(question for _, question in fresh):
            journal.set_facts(**self._budget.facts())
        for place in fresh:
            self._sent[place] = self._asked(*place)
        return len(self._sent) + len(self._known_replies())

    def _known_replies(self) -> list[Reply]:
        """Replies that are known, as the same was asked before: they cost nothing."""
        return [
            Reply(call, question, Answer((known,)))
            for call, one in self._open.items()
            for question in one.left
            if (known := self._known.get(one.hashes[question])) is not None
        ]

    def _to_pay(self, one: _Open) -> list[int]:
        """The questions of which the judge has not spoken, nor of the same words."""
        return [q for q in one.left if one.hashes[q] not in self._known]

    def _fresh(self) -> list[tuple[int, int]]:
        """The questions to ask next: one of those in the same words, as its reply serves all."""
        under_way = {self._open[call].hashes[question] for call, question in self._sent}
        fresh = []
        for call, one in self._open.items():
            for question in self._to_pay(one):
                digest = one.hashes[question]
                if (call, question) not in self._sent and digest not in under_way:
                    under_way.add(digest)
                    fresh.append((call, question))
        return fresh

    def replies(self, *, every: bool = False, wait_for: bool = True) -> list[Reply]:
        """Return the judge's replies by now; first wait for one if ``wait_for``, for all that are
        on their way if ``every``. Raise ModelError where it cannot work at all."""
        known = self._known_replies()
        if self._sent and (every or (wait_for and not known)):
            wait(self._sent.values(), None, "ALL_COMPLETED" if every else FIRST_COMPLETED)
        done = [place for place, future in self._sent.items() if future.done()]
        replies = known + [reply for place in done if (reply := self._reply(*place)) is not None]
        error, self._error = self._error, None
        if error is not None and not self._answered:
            raise error
        return replies

    def keep(self, replies: Sequence[Reply], journal: Journal, elapsed: float) -> None:
        """Commit replies."""
        rows = []
        for reply in replies:
            answer, digest = reply.answer, self._open[reply.call].hashes[reply.question]
            value = answer if isinstance(answer, Unanswered) else answer.values[0]
            encoded = (to_json(value),)
            rows.append(self._row(reply.call, reply.question, digest, encoded, answer, elapsed))
        lost = [reply.question for reply in replies if reply.lost]
        if lost:  # first: a crash in between must not forget what they may have cost
            self._budget.judged.lost += len(lost)
            journal.set_facts(**self._budget.facts())
        journal.add(rows)
        for row in rows:
            self._take(row)
        self._count()

    def complete(self, elapsed: float) -> list[CallRow]:
        """The calls whose questions all have a verdict, judged."""
        return [
            self._judge.row(call, one.answer, elapsed, one.verdicts)
            for call, one in self._open.items()
            if not one.left
        ]

    def _asked(self, call: int, question: int) -> "Future[AnyAnswer]":
        """The judge's answer, later; at once where it can only be called."""
        model, prompt = self._model, prompt_of(self._open[call].asked[question], question)
        try:
            if isinstance(model, ConcurrentModel):
                return model.submit(prompt)
            called: Future[AnyAnswer] = Future()
            called.set_result(checked(model, [prompt])[0])
        except Exception as error:
            called = Future()
            called.set_exception(error)
        return called

    def _reply(self, call: int, question: int) -> Reply | None:
        """What came of a question; None where it is asked again, or no judge can work."""
        future = self._sent.pop((call, question))
        try:
            answer = future.result()
            check_answer(
                answer, prompt_of("", question), f"judge {self._by.name if self._by else ''!r}"
            )
        except Exception as error:
            # a client's error that no call before went without says that none can succeed; that of
            # a function may be about this reply
            concurrent = isinstance(self._model, ConcurrentModel)
            if isinstance(error, ModelError) and concurrent and not self._answered:
                self._error = error
                return None
            reason = f"{type(error).__name__}: {one_line(error)}"[:200]
            return Reply(call, question, Unanswered(writable(reason)), lost=True)
        self._answered = True
        words = isinstance(answer, Unanswered) or isinstance(answer.values[0], str | Unanswered)
        if not words:
            answer = Unanswered("no words", answer.cost, answer.unconfirmed)
        return Reply(call, question, answer)

    def _take(self, row: JudgingRow) -> None:
        one, value = self._open[row.call], from_json(row.said[0], "journal: judging")
        one.verdicts[row.question] = value
        cost, unconfirmed = one.answer.cost + row.cost, one.answer.unconfirmed + row.unconfirmed
        one.answer = replace(one.answer, cost=cost, unconfirmed=unconfirmed)
        self._budget.pay(row.cost)
        if isinstance(value, str):
            self._known[row.asked] = value

    @property
    def _model(self) -> ModelDefaults:
        if self._by is None:
            raise ModelError("judge: none was given")
        return self._by.model

    # -- going on ----------------------------------------------------------------------

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        rows = loop.journal.judging()
        self._rows = len(rows)
        for row in rows:
            if row.received and row.call not in calls:
                values = tuple(from_json(value, "journal: judging") for value in row.said)
                answer = Answer(values, row.cost, row.unconfirmed, row.reply)
                self._open[row.call] = _Open(answer, self._to_ask(row.call, answer))
                self._budget.pay(row.cost)
            elif row.call in self._open:
                self._take(row)
            elif not row.received and isinstance(row.said[0], str):
                self._known[row.asked] = row.said[0]
        self._answered = any(not row.received for row in rows)
        if self._by is not None:
            self._model.trusted = self._answered
        self._count()

    def lose(self) -> None:
        """What is open may have been sent before the audit was interrupted."""
        self._budget.judged.lose(q for one in self._open.values() for q in self._to_pay(one))

    def _count(self) -> None:
        self._budget.judged.open = sum(len(self._to_pay(one)) for one in self._open.values())

    def _row(
        self,
        call: int,
        question: int,
        asked: str,
        encoded: tuple[object, ...],
        by: AnyAnswer,
        at: float,
    ) -> JudgingRow:
        """``by``: the answer or reply that was paid for, ``at`` so many seconds of audit."""
        self._rows += 1
        paid = by.cost, at, by.unconfirmed, by.reply
        return JudgingRow(self._rows - 1, call, question, asked, encoded, *paid)


def prompt_of(text: str, question: int) -> Prompt:
    """What a judge is asked: words, and no image."""
    return Prompt(None, ("judge",), f"question {question}", "identity", 0, (Ask(text),))


def hash_of(text: str) -> str:
    """The hash by which the same words are recognised."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
