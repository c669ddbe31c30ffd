"""The audit: ask and tell, journaled, resumable."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from .certify import Move
from .certify.plan import Filters, Plan
from .certify.population import describe_population
from .engine.audit_key import Origin, recall, same_key, seed_for
from .engine.belief import Belief
from .engine.budget import Purse
from .engine.call_queue import Call as Call
from .engine.call_queue import Queue
from .engine.canaries import Canaries
from .engine.draw_order import Lessons
from .engine.failing import Failing
from .engine.judge import Judge
from .engine.proxies import Proxies, ProxySource
from .engine.run_loop import Progress as Progress
from .engine.run_loop import progress_of, run_model
from .engine.selector import Draw, Questioner
from .engine.settings import (
    check,
    check_budget,
    check_cost,
    check_readings,
    describe_settings,
    describe_space,
    rendering_seed,
    same_audit,
)
from .engine.source_queue import Inquiry
from .errors import JournalError, OrderError
from .journal import JournalSource, opened
from .journal.rows import DrawRow
from .models.base import ConcurrentModel, ModelUnderTest, adapted_model
from .models.checking import as_answer, check_answer, name_of
from .results import Result, summarise
from .space import QuestionSpace
from .stopping import State, StoppingRule, contradicted, limits_of
from .strategies import Named, Strategy, named
from .types import Answer, Unanswered

DEFAULT_STRATEGY, DEFAULT_FLOOR = "uncertainty+unpredictability", 0.2
LAG = 2
"""With c calls in flight, what is drawn follows from all but the last LAG * c draws: so many
that one slow answer seldom holds up the others, and always as many, so that an interrupted
audit draws what an undisturbed one would have."""
DEFAULT_TARGETS = ("concepts", "relations")


class Audit:
    """Asks a model adaptively chosen questions until a stopping rule is met.

    ``strategy``: a name or a Strategy. ``budget``: at most so many calls, ever. ``max_cost``: at
    most so much money, calls on their way at their worst price included. ``fail_on_error``:
    ``run`` ends with ModelError when more than this share of the calls it made (20 or more)
    stays unanswered; None: never. Resuming counts anew. ``stop``: any StoppingRule, beside
    these. ``journal``: a path (created, or continued if an audit with the same settings stands
    there), a Journal, what opens one, or None for memory. ``notes``: anything JSON can hold,
    kept in a new journal. ``candidates``: how many unseen questions are looked at per draw.
    ``batch``: calls asked at a time by ``run``, with beliefs frozen.

    ``half_width`` (and ``at_most``) make the audit certify its ``targets`` (names as in
    ``certify.named_targets``, filters in ``where``): it stops when every interval is as
    narrow as asked, or lies on one side of ``at_most``; with probability ``confidence`` all
    intervals hold at all times. ``floor``: share of the law that is even, in [0, 1] (default
    .2 where there are certificates, else 0). ``unanswered``: "loss" counts an unanswered
    question as the oracle does, "both" as 0 in lower and 1 in upper bounds. ``proxies``:
    name -> answers of a cheaper model (``proxies.Proxies``); ``prior_journal``: an audit of
    an earlier version of the model on the same space. ``surrogate``: False predicts losses
    by each target's mean alone.

    ``seed``: random choices follow from it and from what is audited (``audit_key``); None is the
    journal's where one is continued, else fresh. ``canaries``: so many answered questions are
    asked again, to notice a model that changes.

    Two readings of the paper: ``form``, whether uncertainty integrates standard deviations
    or variances (surrogates.AnswerGP); ``history``, whether predictability conditions on
    true answers or on the model's (surrogates.Predictability).

    Raises InputError for settings out of range and JournalError for a journal of another
    audit.
    """

    def __init__(  # noqa: PLR0913 - an audit's options, all by name
        self,
        space: QuestionSpace,
        model: ModelUnderTest,
        *,
        strategy: str | Strategy | Named = DEFAULT_STRATEGY,
        budget: int | None = None,
        max_cost: float | None = None,
        fail_on_error: float | None = None,
        stop: StoppingRule | None = None,
        half_width: float | None = None,
        at_most: float | None = None,
        confidence: float = 0.95,
        targets: Sequence[str] = DEFAULT_TARGETS,
        where: Filters | None = None,
        unanswered: Literal["loss", "both"] = "loss",
        proxies: Mapping[str, ProxySource] | None = None,
        prior_journal: Path | str | None = None,
        surrogate: bool = True,
        form: Literal["std", "variance"] = "std",
        history: Literal["truth", "answer"] = "truth",
        seed: int | None = None,
        canaries: int = 0,
        journal: JournalSource = None,
        notes: Mapping[str, Any] | None = None,
        floor: float | None = None,
        candidates: int = 4096,
        batch: int = 1,
        device: str = "cpu",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        model = adapted_model(model)
        plan = Plan(half_width, at_most, confidence, tuple(targets), where, unanswered)
        if floor is None:
            floor = DEFAULT_FLOOR if plan.certifies else 0.0
        check(model, space, floor, candidates, batch)
        check_cost(model, max_cost)
        check_readings(form, history)
        plan.check(floor)
        self.space = space
        self.model = model
        self.batch = batch
        self.budget = budget
        self.plan = plan
        limits = limits_of(budget, max_cost)
        self._rules = [rule for rule in (plan.rule(), stop, *limits) if rule]
        name, chosen = named(strategy)
        memory = space.oracle.memory(space)
        facts = recall(journal)
        seed = seed_for(seed, facts)
        rendered = rendering_seed(facts) if "space" in facts else space.seed
        cheaper = Proxies(space, rendered, proxies or {}, prior_journal, memory)
        settings = describe_settings(
            space, model, chosen, strategy=name, seed=seed, floor=floor, candidates=candidates,
            surrogate=surrogate, proxies=cheaper.names, form=form, history=history,
        )  # fmt: skip
        self._origin = Origin.of(
            facts, model, cheaper.prior_key, settings=settings, space=space.fingerprint,
            plan=plan.meaning(), proxies=cheaper.content,
        )  # fmt: skip
        key = self._origin.key
        belief = plan.belief(
            space, model.answers, seed=key, device=device, proxies=cheaper, surrogate=surrogate,
            memory=memory, form=form, history=history,
        )  # fmt: skip
        self._questioner = Questioner(
            space, chosen, seed=key, floor=floor, candidates=candidates, answers=model.answers,
            belief=belief,
        )  # fmt: skip
        self._judge = Judge(space, model.answers, rendered)
        self._queue = Queue()
        lag = LAG * model.in_flight if isinstance(model, ConcurrentModel) else None
        self._lessons = Lessons(self._questioner, plan.unanswered == "both", lag)
        self._purse, self._failing = Purse(model, max_cost), Failing(fail_on_error, name_of(model))
        self._canaries = Canaries(key, canaries, self._judge, self._queue, self._lessons)
        self._inquiry = Inquiry(self._judge.sources, self._queue, belief.sources, self._canaries)
        check_budget(budget, self._inquiry.most)
        self._failed = self._astray = False
        self._clock, self._elapsed, self._since = clock, 0.0, clock()
        with opened(journal) as self.journal:
            self._begin(settings, notes or {})

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Call]:
        """Up to ``n`` calls to make, committed to the journal.

        [] once the audit has ended, or while nothing can be asked before calls on their way
        are answered. Calls that were drawn before an interruption come first. Nothing is
        learnt between the draws of one ``ask``. Where the oracle compares with the source
        image's answer, the call about that image, made once, comes before any call about
        its follow-ups.
        """
        self._usable()
        if len(self._queue.ready()) < n:
            self._draw(n)
        ready = self._queue.ready()[:n]
        calls = self._purse.affordable(ready, self._queue.under_way)
        if self._purse.send(calls):
            self.journal.set_facts(**self._purse.facts())
        if ready and not calls and not self._queue.under_way:
            self._end()  # what waits can no longer be afforded
        self._queue.hand_out(calls)
        return calls

    def tell(self, call: Call | int, answer: Answer | Unanswered | Sequence[float]) -> None:
        """The answer to one call, committed before it is learnt from.

        ``answer``: P(yes) for each of the call's concepts, or Unanswered. Answers may come
        in any order; they are learnt from in draw order. Raises OrderError for a call that
        is not waiting, ModelError for an answer that is none.
        """
        number = call if isinstance(call, int) else call.number
        self.tell_all([(number, answer)])

    @property
    def waiting(self) -> int:
        """How many calls may be made now without another draw."""
        return len(self._queue.ready())

    def take_back(self, calls: Sequence[Call], *, sent: bool = False) -> None:
        """No answer will come to these calls; ``ask`` gives them again.

        ``sent``: they were made, and may have been charged for.
        """
        self._queue.take_back(calls)
        if sent:
            self._purse.lose(call.number for call in calls)
            self.journal.set_facts(**self._purse.facts())

    def run(self, progress: Callable[[Progress], None] | None = None) -> Result:
        """Asks the model until the audit ends, and gives the result.

        ``progress`` is called after every batch, or after every answer of a model that takes
        several calls at a time (``models.ConcurrentModel``). A model that raises ends the run
        with ModelError; the journal keeps everything, and running again goes on.
        """

        def step() -> None:
            self._failing.check()
            if progress is not None:
                progress(progress_of(self))

        run_model(self, step)
        return self.result()

    def result(self) -> Result:
        """What is known now, recomputed from the journal."""
        return summarise(self.journal, self._questioner.certifier)

    @property
    def stopped(self) -> str | None:
        """Why the audit has ended, or None."""
        state = self.state()
        if reason := contradicted(state):
            return reason
        if state.exhausted and not len(self._queue):
            return "every question was asked"
        return next((reason for r in self._rules if (reason := r.reached(state))), None)

    @property
    def rules(self) -> list[str]:
        """The stopping rules in words; the first one met ends the audit."""
        return [str(rule) for rule in self._rules]

    @property
    def belief(self) -> Belief:
        """What the audit has learnt so far: to look at, not to change."""
        return self._questioner.belief

    @property
    def targets(self) -> list[str]:
        """The names of the targets that are certified, in the order of their intervals."""
        certifier = self._questioner.certifier
        return [t.name for t in certifier.targets] if certifier else []

    @property
    def cost(self) -> float:
        """What all answers cost so far."""
        return self._purse.spent

    @property
    def interrupted(self) -> int:
        """How many calls were sent, or may have been, and never came back."""
        return self._purse.lost

    def state(self) -> State:
        """Where the audit stands."""
        uncertainty = self._questioner.open_uncertainty()
        certifier, next_calls = self._questioner.certifier, self._inquiry.most
        state = State(
            len(self._lessons.order) + self._inquiry.calls, self._lessons.questions,
            self._seconds(), uncertainty, next_calls=next_calls, cost=self.cost,
            reserved=self._purse.reserved(len(self._queue) + next_calls),
        )  # fmt: skip
        return replace(state, **certifier.standing()) if certifier else state

    def close(self) -> None:
        """Releases the journal's file."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- drawing -----------------------------------------------------------------------

    def _draw(self, n: int) -> None:
        """Draws until ``n`` calls may be made, or the audit stops; at most ``n`` times.

        Without that limit one slow call about a source image would let beliefs freeze for
        as many draws as there are follow-ups of it.
        """
        rows: list[DrawRow] = []
        self._astray = True  # until what was drawn is committed
        while len(rows) < n and len(self._queue.ready()) < n:
            if not self._lessons.ready() or self.stopped is not None:
                break
            draw = self._questioner.draw()
            if draw is None:
                break
            rows.append(self._row(draw))
            self._take(rows[-1], draw.move)
            self._await(rows[-1])
        if rows:
            self.journal.add_draws(rows)
        self._astray = False
        if not rows and not len(self._queue):
            self._lessons.learn()
            if not self._canaries.rest():
                self._end()

    def _await(self, row: DrawRow) -> None:
        """Queues the draw's call behind that of its source, where there is one to make."""
        source = self._inquiry.before(row.question, row.draw)
        self._queue.put(Call(row.call, row.draw, self._judge.prompt(row.call)), after=source)

    def _row(self, draw: Draw) -> DrawRow:
        questions = self._judge.questions_of(draw.call)
        return self._questioner.row(draw, questions, self._lessons.learned, self._seconds())

    def _take(self, row: DrawRow, move: Move | None = None) -> None:
        self._lessons.order.append(row.call)
        self._questioner.take(self._judge.questions_of(row.call), move)
        self._canaries.after(len(self._lessons.order))

    # -- learning ----------------------------------------------------------------------

    def tell_all(self, told: Iterable[tuple[int, object]]) -> None:
        """The answers to several calls by number, as ``tell`` takes them, in one commit."""
        self._writable()
        told = list(told)
        if len({number for number, _ in told}) < len(told):
            raise OrderError("tell: the same call was answered twice")
        answers = {number: self._checked(number, answer) for number, answer in told}
        self._failing.note(answers.values())
        self._tell_sources({n: a for n, a in answers.items() if n < 0})
        rest = {n: a for n, a in answers.items() if n >= 0}
        rows, errors = self._judge.rows(rest, self._seconds())
        self._failed = True
        self.journal.add_calls(rows)
        self._failed = False
        for row in rows:
            self._judge.forget(row.call)
            self._queue.done(row.call)
            self._lessons.keep(row)
            self._purse.pay(row.cost)
        if not self._astray:
            self._lessons.catch_up()
        for number, error in errors.items():
            self.take_back([self._queue.expect(number)], sent=True)
            raise error

    def _tell_sources(self, answers: Mapping[int, Answer | Unanswered]) -> None:
        seconds = self._seconds()
        rows = [self._inquiry.row(n, a, seconds) for n, a in answers.items()]
        if not rows:
            return
        self._failed = True
        self.journal.add_sources(rows)
        self._failed = False
        for row in rows:
            self._purse.pay(row.cost)
            self._inquiry.heard(row)

    def _checked(self, number: int, answer: object) -> Answer | Unanswered:
        call = self._queue.expect(number)
        if not isinstance(answer, Answer | Unanswered):
            answer = as_answer(answer, call.prompt, number)
        check_answer(answer, call.prompt, "tell")
        return answer

    # -- beginning, going on, ending ---------------------------------------------------

    def _begin(self, settings: dict[str, Any], notes: Mapping[str, Any]) -> None:
        facts, certifier = self.journal.facts(), self._questioner.certifier
        certificate = self.plan.describe(certifier)
        self._purse.recall(facts)  # of a journal that was set aside, too
        if "space" not in facts:
            self.journal.set_facts(
                space=describe_space(self.space), settings=settings, stop=self.rules,
                certificate=certificate, population=describe_population(certifier),
                **self._origin.facts(), **self._purse.facts(), **notes,
            )  # fmt: skip
            return
        same_audit(facts, self.space, {**settings, "certificate": certificate})
        same_key(facts, key=self._origin.key)
        self._replay()
        told = {**self._origin.changes(facts), **self._purse.facts()}
        self.journal.set_facts(stop=self.rules, ended=None, intervals=None, **told)

    def _replay(self) -> None:
        """Goes through the journal in the order in which things were drawn and learnt."""
        calls = {c.call: c for c in self.journal.calls()}
        for call in calls.values():
            self._lessons.keep(call)
            self._purse.pay(call.cost)
        for source in self.journal.sources():
            self._inquiry.recall(source)
            self._purse.pay(source.cost)
        self._judge.pictures = len(self.journal.pictures())
        draws = self.journal.draws()
        for row in draws:
            self._lessons.learn(row.learned)
            self._lessons.order.append(row.call)
            move = Move.of(row.moves) if row.moves else None
            self._questioner.restore(self._judge.questions_of(row.call), move)
            self._canaries.after(len(self._lessons.order))
            if row.call not in calls:
                self._await(row)
        if calls:
            self.model.trusted = True
        self._lessons.catch_up()
        if self.stopped is not None and not len(self._queue):
            self._lessons.learn()
            self._canaries.rest()
        self._purse.lose(call.number for call in self._queue.ready())
        times = [d.elapsed for d in draws] + [c.elapsed for c in calls.values()]
        self._elapsed = max(times, default=0.0)

    def _end(self) -> None:
        certifier = self._questioner.certifier
        ended = {"reason": self.stopped, "elapsed": round(self._seconds(), 3)}
        self.journal.set_facts(ended=ended, intervals=certifier.table() if certifier else None)

    def _usable(self) -> None:
        self._writable()
        self.journal.check_place()
        if self._astray:
            raise JournalError("audit: a draw could not be finished; resume from the journal")

    def _writable(self) -> None:
        if self._failed:
            raise JournalError("audit: a step could not be finished; resume from the journal")

    def _seconds(self) -> float:
        return self._elapsed + self._clock() - self._since
