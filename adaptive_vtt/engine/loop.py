"""The loop of an audit: draw, ask, commit what is answered, learn.

Whatever else an audit does takes part by a ``Hook``: a judge model, repeat probes, slices
and targets asked for later, and what is kept of beliefs. A hook is given the loop with every call
and keeps none, so that an audit that is dropped lets its journal go at once.
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
from ..journal.rows import CallRow, DrawRow, SourceRow
from ..models.checking import as_answer, as_loss, check_answer
from ..space import QuestionSpace
from ..stopping import End, State, StoppingRule, all_invalidated, first_end
from ..types import Answer, Unanswered
from ..utils.threads import one_thread
from .belief import Belief
from .budget import Budget
from .call_queue import Call, CallQueue, SourceQueue, number_of
from .draw_order import DrawOrder
from .estimates import statuses
from .judge import Judge
from .selector import Selector, teach


class Stopwatch:
    """Runs from when it is made, by ``clock``, in seconds from any start."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._since = clock, clock()
        self.before = 0.0
        """Seconds that it shows more, as the audit took them before it was interrupted."""

    def seconds(self) -> float:
        """What it shows."""
        return self.before + self._clock() - self._since


AnyAnswer = Answer | Unanswered


class Hook:
    """What takes part in an audit's loop. Each step does nothing unless a hook has it otherwise."""

    @property
    def held(self) -> int:
        """How many answers it keeps back, which are not complete yet."""
        return 0

    def holds(self, call: int) -> bool:
        """Whether the answer to this call is kept back."""
        return False

    def on_replay(self, loop: "Loop", calls: Mapping[int, CallRow]) -> None:
        """A journal is gone on with, in which these calls, by number, are answered."""

    def before_ask(self, loop: "Loop", *, wait: bool) -> bool:
        """Calls are about to be handed out: what was kept back may be finished by now, or be waited
        for. Whether anything came of it."""
        return False

    def before_draw(self, loop: "Loop", drawn: int) -> bool:
        """Whether nothing may be drawn now, ``drawn`` draws after those that are committed."""
        return False

    def after_draw(self, loop: "Loop") -> None:
        """A draw was made; its call is queued next."""

    def on_received(self, loop: "Loop", answers: Collection[AnyAnswer]) -> None:
        """Answers came, to whatever was asked."""

    def before_commit(self, loop: "Loop") -> None:
        """Answers are about to be committed."""

    def on_answers(
        self, loop: "Loop", answers: Mapping[int, AnyAnswer], seconds: float
    ) -> Mapping[int, AnyAnswer]:
        """Takes answers to drawn calls, by number, and gives those that are not kept back."""
        return answers

    def after_answers(self, loop: "Loop") -> None:
        """Answers were committed and learnt from."""

    def before_end(self, loop: "Loop") -> bool:
        """Nothing is left to draw, and all is answered. Whether there is something to ask yet."""
        return False

    def on_end(self, loop: "Loop") -> None:
        """The audit has ended; its end is journaled next."""


class SideCalls(Protocol):
    """Calls that are not drawn. Their numbers lie below 0; answers are rows of "sources"."""

    @property
    def calls(self) -> int:
        """How many were made or wait."""

    @property
    def left(self) -> int:
        """How many another question, and what is asked already, may yet take."""

    def owns(self, number: int) -> bool:
        """Whether the call of this number is one of these."""

    def row(self, number: int, answer: AnyAnswer, elapsed: float) -> SourceRow:
        """The answer, ready for the journal."""

    def received(self, row: SourceRow) -> None:
        """The answer to a call that waits is in the journal."""

    def recall(self, row: SourceRow) -> None:
        """The journal that is gone on with has this answer."""


Given = ParamSpec("Given")
Made = TypeVar("Made")
Step = Callable[Concatenate["Loop", Given], Made]


def alone(step: Step[Given, Made]) -> Step[Given, Made]:
    """Take a step of the loop while no other thread takes any, and compute with one thread."""

    @wraps(step)
    def locked(self: "Loop", /, *args: Given.args, **options: Given.kwargs) -> Made:
        with self.lock, one_thread():
            return step(self, *args, **options)

    return locked


class Loop:
    """An audit's state and its steps, which any thread may take, one at a time.

    ``sources``, ``probes``: the calls that are not drawn. ``rules``: any of them ends it.
    ``waits``: whether ``ask`` waits for what hooks keep back, as nothing else is on its way then.
    ``hooks`` take part in their order.
    ``journal`` is there once it is open. ``failed``, ``uncommitted``: a commit, or a draw, was not
    finished, so that the audit can only go on from its journal.
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
        self.lock = RLock()

    # -- asking ------------------------------------------------------------------------

    @alone
    def ask(self, n: int) -> list[Call]:
        """Up to ``n`` calls to make; [] where there are none now."""
        self.check_usable()
        self._ask_hooks(wait=self.waits)
        while True:
            if len(self.queue.ready()) < n:
                self._draw(n)
            calls = self.budget.affordable(self.queue.ready()[:n], self.queue.under_way)
            # answers set money free
            if calls or self.queue.under_way or not self._ask_hooks(wait=True):
                break
        if self.budget.send(calls):
            self.journal.set_facts(**self.budget.facts())
        waits = self.queue.ready() or self.held
        if waits and not calls and not self.queue.under_way:
            self.finish()  # what waits can no longer be afforded
        self.queue.hand_out(calls)
        return calls

    def _draw(self, n: int) -> None:
        """Draws until ``n`` calls may be made, or the audit stops; at most ``n`` times.

        Without that limit one slow call about a source would freeze beliefs for all draws of it.
        """
        rows: list[DrawRow] = []
        self.uncommitted = True  # until what was drawn is committed
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
            if self.sources.sources.count:  # then a call may wait for another
                ready = len(self.queue.ready())
        if rows:
            self.journal.add(rows)
        self.uncommitted = False
        if not rows and not self.open:
            self.draw_order.learn()
            if not any([hook.before_end(self) for hook in self.hooks]):
                self._end()

    def _may_draw(self, drawn: int) -> bool:
        if not self.draw_order.ready() or any(h.before_draw(self, drawn) for h in self.hooks):
            return False
        return self.stopped is None

    def _count(self, row: DrawRow) -> None:
        """The selector has taken this draw."""
        self.draw_order.calls.append(row.call)
        asked = self.space.oracle.models_asked(np.array([row.question]))
        self.budget.drawn += int(asked[0])
        for hook in self.hooks:
            hook.after_draw(self)

    def _queue(self, row: DrawRow) -> None:
        """Queues the draw's call behind that of its source, where there is one to make."""
        source = self.sources.before(row.question, row.draw)
        make = partial(self.judge.prompt, row.call)
        self.queue.put(
            Call(row.call, row.draw, make if self.space.needs_answers else make()), after=source
        )

    @alone
    def take_back(self, calls: Sequence[Call], *, sent: bool = False) -> None:
        """No answer will come to these calls; ``ask`` gives them again. ``sent``: they were made,
        and may have been charged for."""
        self.queue.take_back(calls)
        if sent:
            self.budget.lose(call.number for call in calls)
            self.journal.set_facts(**self.budget.facts())

    def rest(self) -> None:
        """Nothing more is sent now: what waits and is not among the lost was never charged for, and
        who goes on need not count it as lost."""
        self.budget.rest(call.number for call in self.queue.ready())
        self.journal.set_facts(**self.budget.facts())

    # -- receiving ---------------------------------------------------------------------

    @alone
    def tell_all(self, replies: Iterable[tuple[int, object]]) -> None:
        """The answers to several calls by number, as ``Audit.tell`` takes them, in one commit. One
        that cannot be judged is raised; its call is asked again."""
        self.check_writable()
        replies = list(replies)
        if len({number for number, _ in replies}) < len(replies):
            raise OrderError("tell: the same call was answered twice")
        answers = {number: self._checked(number, answer) for number, answer in replies}
        for hook in self.hooks:
            hook.on_received(self, answers.values())
        for number, error in self._take(answers).items():
            self.take_back([self.queue.expect(number)], sent=True)
            raise error

    def _checked(self, number: int, answer: object) -> AnyAnswer:
        call = self.queue.expect(number)
        if not isinstance(answer, AnyAnswer):
            by_loss = self.space.oracle.tells_losses
            answer = as_loss(answer, number) if by_loss else as_answer(answer, call.prompt, number)
        check_answer(answer, call.prompt, "tell")
        return answer

    def _take(self, answers: Mapping[int, AnyAnswer]) -> dict[int, Exception]:
        """Commits answers, and learns from them; by number why some could not be judged."""
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
        for hook in self.hooks:
            hook.after_answers(self)
        return errors

    def commit(self, rows: list[CallRow]) -> None:
        """Writes judged calls, and keeps what they teach until it is their turn."""
        with self.step():
            self.journal.add(rows)
        for row in rows:
            self.judge.forget(row.call)
            self.draw_order.keep(row)

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
        return any([hook.before_ask(self, wait=wait) for hook in self.hooks])

    # -- going on, ending --------------------------------------------------------------

    @alone
    def replay(self) -> None:
        """Goes through the journal in the order in which things were drawn and learnt, up to where
        it stopped."""
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
        """Makes these targets from the next draw on.

        The certifier that has them goes through the journal as it will on resuming, so that an
        interrupted audit goes on to the last bit as an undisturbed one.
        """
        before = self.selector.certifier
        if before is None:
            return
        since = [*before.sequences.since.tolist(), *[self.selector.draws] * len(targets)]
        rules = replace(before.rules, slices=before.rules.slices + len(targets))
        every = [*before.targets, *targets]
        certifier = Certifier(self.space, every, answers=before.answers, rules=rules, since=since)
        calls = {c.call: c for c in self.journal.calls()}
        for row in self.journal.draws(proposals=False):
            questions, bet = self.judge.questions_of(row.call), Bet.of(row.moves)
            certifier.restore(bet, certifier.members(questions))
            if row.draw < self.draw_order.learned:
                teach(certifier, bet, questions, self.draw_order.outcomes(calls[row.call]))
        self.belief.certifier = certifier

    @alone
    def finish(self) -> None:
        """Ends the audit with what is learnt by now, whatever waits."""
        if self.queue.ready():
            self.rest()
        self.draw_order.learn()
        self._end()

    def _end(self) -> None:
        end = self.end()
        reason, by = (None, "") if end is None else end
        ended = {"reason": reason, "elapsed": round(self.watch.seconds(), 3)}
        ended |= {"by": by} if by else {}
        for hook in self.hooks:
            hook.on_end(self)
        rows = [status.row() for status in self.statuses()]
        self.journal.set_facts(ended=ended, intervals=rows or None)

    # -- where it stands ---------------------------------------------------------------

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
        """How many were made."""
        return len(self.draw_order.calls)

    @property
    def calls(self) -> int:
        """Calls of the model that were drawn or asked in addition, answered or not."""
        return self.budget.drawn + sum(b.calls for b in self.side_calls) * self.space.oracle.models

    @property
    def most(self) -> int:
        """The most prompts that another question, and what is asked already, may yet take."""
        return 1 + sum(b.left for b in self.side_calls)

    @property
    def question(self) -> int:
        """The same in calls of the model, of which a comparison makes two of a prompt."""
        return self.most * self.space.oracle.models

    @property
    def waiting(self) -> int:
        """How many calls may be made now without another draw."""
        return len(self.queue.ready())

    @property
    def held(self) -> int:
        """Answers that hooks keep back."""
        return sum(hook.held for hook in self.hooks)

    @property
    def open(self) -> bool:
        """Whether a call waits, or an answer is not complete yet."""
        return len(self.queue) + self.held > 0

    @property
    def stopped(self) -> str | None:
        """Why the audit has ended, or None."""
        end = self.end()
        return None if end is None else end.reason

    def end(self) -> End | None:
        """Why the audit has ended, and by what; None while it has not."""
        state = self.state()
        if reason := all_invalidated(state):
            return End(reason)
        if state.exhausted and not self.open:
            return End("every question was asked")
        return first_end(self.rules, state)

    @alone
    def state(self) -> State:
        """Where it stands, for stopping rules."""
        state = State(
            self.calls,
            self.draw_order.questions,
            self.watch.seconds(),
            self.selector.open_uncertainty(),
            next_calls=self.question,
            cost=self.budget.spent,
            reserved=self.budget.reserved(len(self.queue) + self.most),
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
        """Return where every target stands; [] where nothing is certified."""
        return statuses(self.selector, max(self.calls / max(self.selector.draws, 1), 1.0))

    def check_usable(self) -> None:
        """Raises JournalError where nothing can be asked any more."""
        self.check_writable()
        self.journal.check_place()
        if self.uncommitted:
            raise JournalError("audit: a draw could not be finished; resume from the journal")

    def check_writable(self) -> None:
        """Raises JournalError where no answer can be taken any more."""
        if self.failed:
            raise JournalError("audit: a step could not be finished; resume from the journal")

    @contextmanager
    def step(self) -> Iterator[None]:
        """A commit, and what has to follow it: where it fails, the audit is ``failed``."""
        before, self.failed = self.failed, True  # what failed once stays so
        yield
        self.failed = before
