"""The loop of an audit: draw, ask, commit the answers, learn from them.

A judge model, repeat probes, slices, later targets and the record of beliefs each take part through
a ``Hook``. A hook gets the loop with every call and must not keep it: a reference cycle would hold
the journal open after the audit is dropped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from ..certify import Bet, Certifier, Target
from ..certify.status import TargetStatus
from ..errors import JournalError, OrderError
from ..journal import Journal
from ..journal.facts import Facts
from ..journal.rows import CallRow, DrawRow, SourceRow
from ..models.checking import as_answer, as_loss, check_answer
from ..space import QuestionSpace
from ..stopping import End, State, StoppingRule, all_invalidated, first_end
from ..types import Answer, JsonObject, Unanswered
from ..utils.threads import one_thread
from .belief import Belief
from .budget import Budget
from .call_queue import Call, CallQueue, SourceQueue, number_of
from .draw_order import DrawOrder
from .estimates import statuses
from .judge import Judge
from .selector import Selector, teach


class Stopwatch:
    """A stopwatch that starts when it is made. ``clock`` returns seconds from any origin."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._start = clock, clock()
        self.before = 0.0
        """Seconds that the audit took in earlier runs."""

    def seconds(self) -> float:
        """Return the seconds that the audit took so far, those of earlier runs included."""
        return self.before + self._clock() - self._start


AnyAnswer = Answer | Unanswered


class Hook:
    """A participant in an audit's loop. By default each method does nothing."""

    @property
    def held(self) -> int:
        """The number of answers that this hook holds until they are complete."""
        return 0

    def holds(self, call: int) -> bool:
        """Return whether this hook holds the answer to the call of this number."""
        return False

    def facts(self, before: Facts | None, draws: int) -> JsonObject:
        """Return this hook's facts for the journal.

        Args:
            before: Facts of the journal that is resumed; None: a new audit.
            draws: Number of draws so far.
        """
        return {}

    def on_replay(self, loop: "Loop", calls: Mapping[int, CallRow]) -> None:
        """Take up a journal that is resumed, with the answered calls by number."""

    def before_ask(self, loop: "Loop", *, wait: bool) -> bool:
        """Complete answers that are held, before calls are handed out.

        Args:
            loop: The loop.
            wait: True to wait until at least one is complete, if any can be.

        Returns:
            True if anything was received or completed.
        """
        return False

    def before_draw(self, loop: "Loop", drawn: int) -> bool:
        """Return True to prevent a draw now, after ``drawn`` draws that are not yet committed."""
        return False

    def after_draw(self, loop: "Loop") -> None:
        """React to a draw, before its call is queued."""

    def on_received(self, loop: "Loop", answers: Collection[AnyAnswer]) -> None:
        """React to answers to calls of any kind, before they are judged."""

    def before_commit(self, loop: "Loop") -> None:
        """Write to the journal what must come before the answers that are committed next."""

    def on_answers(
        self, loop: "Loop", answers: Mapping[int, AnyAnswer], seconds: float
    ) -> Mapping[int, AnyAnswer]:
        """Return the answers to drawn calls that may be judged now, and hold the others.

        Args:
            loop: The loop.
            answers: Number of the call -> its answer.
            seconds: The audit's time at which they came.
        """
        return answers

    def on_unjudged(self, loop: "Loop", answers: Mapping[int, AnyAnswer], seconds: float) -> None:
        """Keep answers that a user's oracle failed to judge, so that they are not paid for again.

        Args:
            loop: The loop.
            answers: Number of the call -> its answer.
            seconds: The audit's time at which they came.
        """

    def after_answers(self, loop: "Loop") -> None:
        """React to answers that were committed and learnt from."""

    def before_end(self, loop: "Loop") -> bool:
        """Queue further calls once nothing is left to draw. Return True if there are any."""
        return False

    def on_end(self, loop: "Loop") -> None:
        """React to the end of the audit, before it is journaled."""


class SideCalls(Protocol):
    """Calls that are not drawn. Their numbers lie below 0; answers are rows of "sources"."""

    @property
    def calls(self) -> int:
        """The number of calls that were made or wait."""

    @property
    def left(self) -> int:
        """The most calls that may follow, if one more question is drawn."""

    def owns(self, number: int) -> bool:
        """Return whether the call of this number is of this kind."""

    def row(self, number: int, answer: AnyAnswer, elapsed: float) -> SourceRow:
        """Return the journal's row of the answer to call ``number``, after ``elapsed`` seconds."""

    def received(self, row: SourceRow) -> None:
        """Take the answer to a call that waits, once the journal has it."""

    def recall(self, row: SourceRow) -> None:
        """Take an answer from the journal that is resumed."""


Params = ParamSpec("Params")
Returned = TypeVar("Returned")
Step = Callable[Concatenate["Loop", Params], Returned]


def alone(step: Step[Params, Returned]) -> Step[Params, Returned]:
    """Let one thread at a time run a method of the loop, and let it compute with one core."""

    @wraps(step)
    def locked(self: "Loop", /, *args: Params.args, **options: Params.kwargs) -> Returned:
        with self.lock, one_thread():
            return step(self, *args, **options)

    return locked


class Loop:
    """An audit's state and its steps. Any thread may run a step; they run one at a time.

    - ``sources``, ``probes``: the calls that are not drawn: about source images, and repeat probes.
    - ``rules``: stopping rules; each ends the audit by itself.
    - ``waits``: True if ``ask`` waits for answers that hooks hold, as nothing else is in flight.
    - ``hooks``: take part in this order.
    - ``journal``: set once it is open.
    - ``fresh``: calls judged since calls were last asked for, without those that were reported.
    - ``failed``, ``uncommitted``: a commit, or a draw, was not finished, so the audit can continue
      only from its journal.
    """

    journal: Journal

    def __init__(
        self,
        selector: Selector,
        judge: Judge,
        queue: CallQueue,
        draw_order: DrawOrder,
        budget: Budget,
        sources: SourceQueue,
        probes: SideCalls,
        rules: Sequence[StoppingRule],
        watch: Stopwatch,
        *,
        waits: bool,
    ) -> None:
        self.selector, self.judge, self.queue = selector, judge, queue
        self.draw_order, self.budget, self.watch = draw_order, budget, watch
        self.rules, self.sources, self.side_calls = rules, sources, (probes, sources)
        self.waits = waits
        self.hooks: list[Hook] = []
        self.failed = self.uncommitted = False
        self.fresh: list[CallRow] = []
        self.lock = RLock()

    # -- asking ------------------------------------------------------------------------

    @alone
    def ask(self, n: int) -> list[Call]:
        """Return up to ``n`` calls to make; [] if there are none now."""
        self.check_usable()
        self.fresh = []
        self._ask_hooks(wait=self.waits)
        while True:
            if len(self.queue.ready()) < n:
                self._draw(n)
            calls = self.budget.affordable(self.queue.ready()[:n], self.queue.under_way)
            # An answer of the judge releases the money that was reserved for it.
            if calls or self.queue.under_way or not self._ask_hooks(wait=True):
                break
        if self.budget.send(calls):
            self.journal.set_facts(**self.budget.facts())
        unfinished = self.queue.ready() or self.held
        if unfinished and not calls and not self.queue.under_way:
            self.finish()  # the cap does not allow any of them
        self.queue.hand_out(calls)
        return calls

    def _draw(self, n: int) -> None:
        """Draw until ``n`` calls may be made, or the audit stops; at most ``n`` times.

        Without that limit, every draw that waits for one slow call about a source would be made
        from the same old belief.
        """
        rows: list[DrawRow] = []
        self.uncommitted = True  # until the draws are in the journal
        ready = len(self.queue.ready())
        while len(rows) < n and ready < n and self._may_draw(len(rows)):
            lacking = n - max(len(rows), ready)
            draw = self.selector.draw(self.draw_order.together(lacking))
            if draw is None:
                break
            questions = self.judge.questions_of(draw.call)
            if (level := self.draw_order.level()) is not None:
                draw = replace(draw, why=replace(draw.why, in_flight=level))
            elapsed = self.watch.seconds()
            rows.append(self.selector.row(draw, questions, self.draw_order.learned, elapsed))
            self.selector.take(questions, draw.bet, rows[-1].why)
            waiting = len(self.queue)
            self._count(rows[-1])
            self._queue(rows[-1])
            ready += len(self.queue) - waiting
            if self.sources.sources.count:  # the new call may wait for one about its source
                ready = len(self.queue.ready())
        if rows:
            self.journal.add(rows)
        self.uncommitted = False
        if not rows and not self.open:
            self.draw_order.learn()
            if not any([hook.before_end(self) for hook in self.hooks]):  # a list calls all hooks
                self._end()

    def _may_draw(self, drawn: int) -> bool:
        """Return whether to draw again, after ``drawn`` draws that are not committed."""
        if not self.draw_order.ready() or any(h.before_draw(self, drawn) for h in self.hooks):
            return False
        return self.stopped is None

    def _count(self, row: DrawRow) -> None:
        """Count a draw that the selector has taken."""
        self.draw_order.calls.append(row.call)
        self.budget.drawn += int(self.space.oracle.models_asked(np.array([row.question]))[0])
        for hook in self.hooks:
            hook.after_draw(self)

    def _queue(self, row: DrawRow) -> None:
        """Queue the draw's call, behind the call about its source if there is one to make."""
        source = self.sources.before(row.question, row.draw)
        make = partial(self.judge.prompt, row.call)
        self.queue.put(
            Call(row.call, row.draw, make if self.space.needs_answers else make()), after=source
        )

    @alone
    def take_back(self, calls: Sequence[Call], *, sent: bool = False) -> None:
        """Put calls that will not be answered back into the queue.

        Args:
            calls: Calls that ``ask`` returned.
            sent: True if they were made, so that they may have been charged for.
        """
        self.queue.take_back(calls)
        if sent:
            self.budget.lose(call.number for call in calls)
            self.journal.set_facts(**self.budget.facts())

    def mark_unsent(self) -> None:
        """Journal which calls wait and were not sent: a resumed audit keeps no money for them."""
        self.budget.mark_unsent(call.number for call in self.queue.ready())
        self.journal.set_facts(**self.budget.facts())

    # -- receiving ---------------------------------------------------------------------

    @alone
    def tell_all(self, replies: Iterable[tuple[int, object]]) -> None:
        """Take the answers to several calls in one commit.

        Args:
            replies: (number of the call, its answer as ``Audit.tell`` takes it).

        Raises:
            Exception: Of an answer that cannot be judged; its call is asked again.
        """
        self.check_writable()
        replies = list(replies)
        if len({number for number, _ in replies}) < len(replies):
            raise OrderError("tell: the same call was answered twice")
        answers = {number: self._checked(number, answer) for number, answer in replies}
        for hook in self.hooks:
            hook.on_received(self, answers.values())
        for number, error in self._take_answers(answers).items():
            if number in self.queue:
                self.take_back([self.queue.expect(number)], sent=True)
            raise error

    def _checked(self, number: int, answer: object) -> AnyAnswer:
        """Return an answer to call ``number`` as an Answer; raise an error if it is none."""
        call = self.queue.expect(number)
        if not isinstance(answer, AnyAnswer):
            by_loss = self.space.oracle.tells_losses
            answer = as_loss(answer, number) if by_loss else as_answer(answer, call.prompt, number)
        check_answer(answer, call.prompt, "tell")
        return answer

    def _take_answers(self, answers: Mapping[int, AnyAnswer]) -> dict[int, Exception]:
        """Commit answers and learn from them. Return by number why some could not be judged."""
        seconds = self.watch.seconds()
        for hook in self.hooks:
            hook.before_commit(self)
        self._commit_side_calls({n: a for n, a in answers.items() if n < 0}, seconds)
        drawn: Mapping[int, AnyAnswer] = {n: a for n, a in answers.items() if n >= 0}
        with self.step():
            for hook in self.hooks:
                drawn = hook.on_answers(self, drawn, seconds)
        rows, errors = self.judge.rows(drawn, seconds)
        self.commit(rows)
        for row in rows:
            self.queue.done(row.call)
            self.budget.pay(row.cost)
        if not self.uncommitted:
            self.draw_order.catch_up()
        unjudged = {n: drawn[n] for n, e in errors.items() if getattr(e, "part", "") == "oracle"}
        with self.step():
            for hook in self.hooks if unjudged else ():
                hook.on_unjudged(self, unjudged, seconds)
        for hook in self.hooks:
            hook.after_answers(self)
        return errors

    def commit(self, rows: list[CallRow]) -> None:
        """Write judged calls to the journal, and queue their outcomes to be learnt in order."""
        with self.step():
            self.journal.add(rows)
        for row in rows:
            self.judge.forget(row.call)
            self.draw_order.keep(row)
        self.fresh += rows

    def _commit_side_calls(self, answers: Mapping[int, AnyAnswer], seconds: float) -> None:
        rows = [self._asker(n).row(n, answer, seconds) for n, answer in answers.items()]
        if rows:
            with self.step():
                self.journal.add(rows)
        for number, row in zip(answers, rows, strict=True):
            self.budget.pay(row.cost)
            self._asker(number).received(row)

    def _asker(self, number: int) -> SideCalls:
        return next(calls for calls in self.side_calls if calls.owns(number))

    def _ask_hooks(self, *, wait: bool) -> bool:
        """Let every hook complete answers. Return whether any hook did."""
        return any([hook.before_ask(self, wait=wait) for hook in self.hooks])

    # -- resuming, ending --------------------------------------------------------------

    @alone
    def replay(self) -> None:
        """Restore the state from the journal, by repeating its draws and answers in order."""
        calls = {call.call: call for call in self.journal.calls()}
        for call in calls.values():
            self.draw_order.keep(call)
            self.budget.pay(call.cost)
        for hook in self.hooks:
            hook.on_replay(self, calls)
        for source in self.journal.sources():
            self._asker(number_of(source)).recall(source)
            self.budget.pay(source.cost)
        kept = self.journal.pictures().values()
        self.judge.pictures = sum(len(source) + len(follow_up) for source, follow_up in kept)
        draws = self.journal.draws(proposals=False)
        for row in draws:
            self.draw_order.restore(row)
            bet = Bet.of(row.moves) if row.moves else None
            self.selector.restore(self.judge.questions_of(row.call), bet, row.why)
            self._count(row)
            if row.call not in calls and not any(hook.holds(row.call) for hook in self.hooks):
                self._queue(row)
        self.draw_order.catch_up()
        times = [draw.elapsed for draw in draws] + [call.elapsed for call in calls.values()]
        self.watch.before = max(times, default=0.0)
        if self.stopped is not None and not self.open:
            self.draw_order.learn()
            for hook in self.hooks:
                hook.before_end(self)

    @alone
    def adopt(self, targets: Sequence[Target]) -> None:
        """Certify these targets, too, from the next draw on.

        A new certifier repeats the whole journal, as it would in a resumed audit, so that an
        interrupted audit continues as an undisturbed one does, to the last bit.
        """
        before = self.selector.certifier
        if before is None:
            return
        since = [*before.sequences.since.tolist(), *[self.selector.draws] * len(targets)]
        rules = replace(before.rules, slices=before.rules.slices + len(targets))
        targets = [*before.targets, *targets]
        certifier = Certifier(self.space, targets, answers=before.answers, rules=rules, since=since)
        calls = {c.call: c for c in self.journal.calls()}
        for row in self.journal.draws(proposals=False):
            questions, bet = self.judge.questions_of(row.call), Bet.of(row.moves)
            certifier.restore(bet, certifier.members(questions))
            if row.draw < self.draw_order.learned:
                teach(certifier, bet, questions, self.draw_order.outcomes(calls[row.call]))
        self.belief.certifier = certifier

    @alone
    def finish(self) -> None:
        """End the audit now, although calls may wait."""
        if self.queue.ready():
            self.mark_unsent()
        self.draw_order.learn()
        self._end()

    def _end(self) -> None:
        end = self.end()
        reason, rule = (None, "") if end is None else end
        before = self.journal.facts().get("ended")  # not None in an audit that stayed ended
        elapsed = before["elapsed"] if before else round(self.watch.seconds(), 3)
        ended = {"reason": reason, "elapsed": elapsed} | ({"by": rule} if rule else {})
        for hook in self.hooks:
            hook.on_end(self)
        self.journal.set_facts(ended=ended, intervals=[s.row() for s in self.statuses()] or None)

    # -- state -------------------------------------------------------------------------

    @property
    def space(self) -> QuestionSpace:
        return self.selector.space

    @property
    def belief(self) -> Belief:
        return self.selector.belief

    @property
    def certifier(self) -> Certifier | None:
        return self.selector.certifier

    @property
    def draws(self) -> int:
        """The number of draws so far."""
        return len(self.draw_order.calls)

    @property
    def calls(self) -> int:
        """The number of calls of the model, drawn or in addition, answered or not."""
        return self.budget.drawn + sum(b.calls for b in self.side_calls) * self.space.oracle.models

    @property
    def next_prompts(self) -> int:
        """The most prompts to come, if one more question is drawn."""
        return 1 + sum(b.left for b in self.side_calls)

    @property
    def next_calls(self) -> int:
        """The most calls of models to come; a comparison makes two of each prompt."""
        return self.next_prompts * self.space.oracle.models

    @property
    def waiting(self) -> int:
        """The number of calls that may be made now without another draw."""
        return len(self.queue.ready())

    @property
    def held(self) -> int:
        """The number of answers that hooks hold until they are complete."""
        return sum(hook.held for hook in self.hooks)

    @property
    def open(self) -> bool:
        """True while a call waits, or an answer is not complete."""
        return len(self.queue) + self.held > 0

    @property
    def stopped(self) -> str | None:
        """The reason for which the audit has ended, or None."""
        end = self.end()
        return None if end is None else end.reason

    def end(self) -> End | None:
        """Return why the audit has ended, and by which rule; None while it has not."""
        state = self.state()
        if reason := all_invalidated(state):
            return End(reason)
        if state.exhausted and not self.open:
            return End("every question was asked")
        return first_end(self.rules, state)

    @alone
    def state(self) -> State:
        """Return the state that stopping rules read."""
        state = State(
            self.calls,
            self.draw_order.questions,
            self.watch.seconds(),
            self.selector.open_uncertainty(),
            next_calls=self.next_calls,
            cost=self.budget.spent,
            reserved=self.budget.reserved(len(self.queue) + self.next_prompts),
            lost=self.budget.lost_cost,
            waiting=self.budget.reserved(len(self.queue)) - self.budget.lost_cost,
            attempts=self.budget.attempts,
            hard=self.belief.hard,
            lowest=self.belief.lowest,
        )
        if self.certifier is None:
            return state
        certifier = self.certifier
        return replace(state, targets=certifier.statuses, limit=certifier.rules.limit)

    @alone
    def statuses(self) -> list[TargetStatus]:
        """Return the status of every target; [] if nothing is certified."""
        return statuses(self.selector, max(self.calls / max(self.selector.draws, 1), 1.0))

    def check_usable(self) -> None:
        """Raise JournalError if no more calls can be made in this process."""
        self.check_writable()
        self.journal.check_place()
        if self.uncommitted:
            raise JournalError("audit: a draw could not be finished; resume from the journal")

    def check_writable(self) -> None:
        """Raise JournalError if no more answers can be taken in this process."""
        if self.failed:
            raise JournalError("audit: a step could not be finished; resume from the journal")

    @contextmanager
    def step(self) -> Iterator[None]:
        """Run a commit and what must follow it. An exception leaves the audit ``failed``."""
        before, self.failed = self.failed, True
        yield
        self.failed = before  # True if an earlier step had failed
