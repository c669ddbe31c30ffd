"""The audit: ask and tell, journaled, resumable."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from .certify import Move
from .certify.plan import Certify as Certify
from .certify.population import describe_population
from .engine.assembly import fresh_belief
from .engine.audit_key import Origin, same_key, seed_for
from .engine.belief import Belief
from .engine.budget import Budget
from .engine.call_queue import Call as Call
from .engine.call_queue import CallQueue
from .engine.canaries import Canaries
from .engine.draw_order import DrawOrder
from .engine.failing import Failing
from .engine.judge import Judge
from .engine.options import Limits as Limits
from .engine.options import Sampling as Sampling
from .engine.options import Shorthands, grouped
from .engine.proxies import Proxies
from .engine.run_loop import Progress as Progress
from .engine.run_loop import progress_of, run_model
from .engine.selector import Draw, Selector
from .engine.settings import (
    check_budget,
    check_cost,
    check_model,
    describe_settings,
    describe_space,
    same_audit,
)
from .engine.source_queue import SourceQueue
from .errors import JournalError, OrderError
from .journal import JournalSource, opened, recall
from .journal.facts import read_facts
from .journal.prior import read_prior
from .journal.rows import DrawRow
from .models.base import ConcurrentModel, ModelUnderTest, adapted_model
from .models.checking import as_answer, check_answer
from .results import Result, summarise
from .space import QuestionSpace
from .stopping import State, contradicted
from .types import Answer, Unanswered

LAG = 2
"""With c calls in flight, what is drawn follows from all but the last LAG * c draws: so many
that one slow answer seldom holds up the others, and always as many, so that an interrupted
audit draws what an undisturbed one would have."""


class Audit:
    """Asks a model adaptively chosen questions until a stopping rule is met.

    Its options come in groups; every field of a group may also be given as a keyword of its own
    (``budget=500`` for ``limits=Limits(budget=500)``), unless its group is given.

    - ``space``: the questions.
    - ``model``: whatever has ``answers`` and ``ask`` (``models.ModelUnderTest``).
    - ``certify``: what is certified, how surely (``Certify``). Default: nothing.
    - ``sampling``: how questions are chosen (``Sampling``). Default: see there.
    - ``limits``: when the audit ends, besides (``Limits``). Default: when all was asked.
    - ``journal``: a path (created, or continued if an audit with the same settings stands
      there), a Journal, or what opens one. Default None: memory.
    - ``notes``: anything JSON can hold, kept in a new journal. Default None: nothing.
    - ``device``: where the GPs live: "cpu", "cuda" or "auto". Default "cpu".
    - ``clock``: gives seconds; for tests. Default ``time.monotonic``.

    Raises InputError for settings out of range, JournalError for a journal of another audit.
    """

    def __init__(
        self,
        space: QuestionSpace,
        model: ModelUnderTest,
        *,
        certify: Certify | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        journal: JournalSource = None,
        notes: Mapping[str, Any] | None = None,
        device: str = "cpu",
        clock: Callable[[], float] = time.monotonic,
        **shorthands: Unpack[Shorthands],
    ) -> None:
        self.certify, self.sampling, self.limits = grouped(shorthands, certify, sampling, limits)
        self.space, self.model = space, adapted_model(model)
        self._check()
        self._rules = [*filter(None, [self.certify.rule()]), *self.limits.rules()]
        settings = self._assemble(recall(journal), device)
        self._failed = self._astray = False
        self._clock, self._elapsed, self._since = clock, 0.0, clock()
        with opened(journal) as self.journal:
            self._begin(settings, notes or {})

    def _check(self) -> None:
        """Raises InputError or ModelError for options that are out of range or do not fit."""
        certifies = self.certify.certifies
        check_model(self.model, self.space)
        self.sampling.check(certifies)
        check_cost(self.model, self.limits.max_cost)
        self.certify.check(self.sampling.share(certifies))

    def _assemble(self, facts: dict[str, Any], device: str) -> dict[str, Any]:
        """Puts the parts together, to go on with a journal of these facts; the settings."""
        space, model, certify, sampling = self.space, self.model, self.certify, self.sampling
        floor, chosen = sampling.share(certify.certifies), sampling.chosen()
        memory = space.oracle.memory(space)
        rendered = read_facts(facts).rendering_seed if "space" in facts else space.seed
        prior = None if certify.prior_journal is None else read_prior(certify.prior_journal)
        proxies = Proxies(space, rendered, certify.proxies or {}, prior, memory)
        settings = describe_settings(
            space,
            model,
            sampling,
            chosen,
            seed=seed_for(sampling.seed, facts),
            floor=floor,
            surrogate=certify.surrogate,
            proxies=proxies.names,
        )
        self._origin = Origin.of(
            facts,
            model,
            proxies.prior_key,
            settings=settings,
            space=space.fingerprint,
            plan=certify.meaning(),
            proxies=proxies.content,
        )
        key = self._origin.key
        belief = fresh_belief(
            certify,
            space,
            model.answers,
            seed=key,
            device=device,
            proxies=proxies,
            begun=facts.get("certificate"),
            memory=memory,
            form=sampling.form,
            history=sampling.history,
        )
        self._selector = Selector(
            space,
            chosen,
            seed=key,
            floor=floor,
            candidates=sampling.candidates,
            answers=model.answers,
            belief=belief,
        )
        self._judge, self._queue = Judge(space, model.answers, rendered), CallQueue()
        lag = LAG * model.in_flight if isinstance(model, ConcurrentModel) else None
        self._draw_order = DrawOrder(self._selector, certify.unanswered == "both", lag)
        self._budget = Budget(model, self.limits.max_cost)
        self._failing = Failing(self.limits.fail_on_error, model)
        canaries = Canaries(key, sampling.canaries, self._judge, self._queue, self._draw_order)
        sources = self._judge.sources
        self._source_queue = SourceQueue(sources, self._queue, belief.sources, canaries)
        self._canaries = canaries
        check_budget(self.limits.budget, self._source_queue.most)
        return settings

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Call]:
        """Up to ``n`` calls to make, committed to the journal.

        [] once the audit has ended, or while nothing can be asked before calls on their way are
        answered. Calls drawn before an interruption come first. Nothing is learnt between the
        draws of one ``ask``. Where the oracle compares with the source image's answer, the call
        about that image, made once, comes before any call about its follow-ups.
        """
        self._usable()
        if len(self._queue.ready()) < n:
            self._draw(n)
        ready = self._queue.ready()[:n]
        calls = self.affordable(ready, self._queue.under_way)
        if self._budget.send(calls):
            self.journal.set_facts(**self._budget.facts())
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

    def affordable(self, calls: Sequence[Call], sent: int) -> list[Call]:
        """Those of the calls that the cap allows beside ``sent`` calls on their way."""
        return self._budget.affordable(calls, sent)

    def take_back(self, calls: Sequence[Call], *, sent: bool = False) -> None:
        """No answer will come to these calls; ``ask`` gives them again.

        ``sent``: they were made, and may have been charged for.
        """
        self._queue.take_back(calls)
        if sent:
            self._budget.lose(call.number for call in calls)
            self.journal.set_facts(**self._budget.facts())

    def run(self, progress: Callable[[Progress], None] | None = None) -> Result:
        """Asks the model until the audit ends, and gives the result.

        ``progress`` is called after every batch, or every answer of a ``models.ConcurrentModel``.
        A model that raises ends the run with ModelError; the journal keeps everything, and
        running again goes on.
        """

        def step() -> None:
            self._failing.check()
            if progress is not None:
                progress(progress_of(self))

        run_model(self, step)
        return self.result()

    def result(self) -> Result:
        """What is known now, recomputed from the journal."""
        return summarise(self.journal, self._selector.certifier)

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
        return self._selector.belief

    @property
    def targets(self) -> list[str]:
        """The names of the targets that are certified, in the order of their intervals."""
        certifier = self._selector.certifier
        return [t.name for t in certifier.targets] if certifier else []

    @property
    def cost(self) -> float:
        """What all answers cost so far."""
        return self._budget.spent

    @property
    def interrupted(self) -> int:
        """How many calls were sent, or may have been, and never came back."""
        return self._budget.lost

    def state(self) -> State:
        """Where the audit stands."""
        uncertainty = self._selector.open_uncertainty()
        certifier, next_calls = self._selector.certifier, self._source_queue.most
        state = State(
            len(self._draw_order.calls) + self._source_queue.calls,
            self._draw_order.questions,
            self._seconds(),
            uncertainty,
            next_calls=next_calls,
            cost=self.cost,
            reserved=self._budget.reserved(len(self._queue) + next_calls),
        )
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

        Without that limit one slow call about a source would freeze beliefs for all draws of it.
        """
        rows: list[DrawRow] = []
        self._astray = True  # until what was drawn is committed
        while len(rows) < n and len(self._queue.ready()) < n:
            if not self._draw_order.ready() or self.stopped is not None:
                break
            draw = self._selector.draw()
            if draw is None:
                break
            rows.append(self._row(draw))
            self._take(rows[-1], draw.move)
            self._await(rows[-1])
        if rows:
            self.journal.add_draws(rows)
        self._astray = False
        if not rows and not len(self._queue):
            self._draw_order.learn()
            if not self._canaries.rest():
                self._end()

    def _await(self, row: DrawRow) -> None:
        """Queues the draw's call behind that of its source, where there is one to make."""
        source = self._source_queue.before(row.question, row.draw)
        self._queue.put(Call(row.call, row.draw, self._judge.prompt(row.call)), after=source)

    def _row(self, draw: Draw) -> DrawRow:
        questions = self._judge.questions_of(draw.call)
        return self._selector.row(draw, questions, self._draw_order.learned, self._seconds())

    def _take(self, row: DrawRow, move: Move | None = None) -> None:
        self._draw_order.calls.append(row.call)
        self._selector.take(self._judge.questions_of(row.call), move)
        self._canaries.after(len(self._draw_order.calls))

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
            self._draw_order.keep(row)
            self._budget.pay(row.cost)
        if not self._astray:
            self._draw_order.catch_up()
        for number, error in errors.items():
            self.take_back([self._queue.expect(number)], sent=True)
            raise error

    def _tell_sources(self, answers: Mapping[int, Answer | Unanswered]) -> None:
        seconds = self._seconds()
        rows = [self._source_queue.row(n, a, seconds) for n, a in answers.items()]
        if not rows:
            return
        self._failed = True
        self.journal.add_sources(rows)
        self._failed = False
        for row in rows:
            self._budget.pay(row.cost)
            self._source_queue.heard(row)

    def _checked(self, number: int, answer: object) -> Answer | Unanswered:
        call = self._queue.expect(number)
        if not isinstance(answer, Answer | Unanswered):
            answer = as_answer(answer, call.prompt, number)
        check_answer(answer, call.prompt, "tell")
        return answer

    # -- beginning, going on, ending ---------------------------------------------------

    def _begin(self, settings: dict[str, Any], notes: Mapping[str, Any]) -> None:
        facts, certifier = self.journal.facts(), self._selector.certifier
        certificate = self.certify.describe(certifier)
        self._budget.recall(facts)  # of a journal that was set aside, too
        if "space" not in facts:
            self.journal.set_facts(
                space=describe_space(self.space),
                settings=settings,
                stop=self.rules,
                certificate=certificate,
                population=describe_population(certifier),
                **self._origin.facts(),
                **self._budget.facts(),
                **notes,
            )
            return
        answered = lambda: bool(self.journal.calls() or self.journal.sources())  # noqa: E731
        same_audit(facts, self.space, {**settings, "certificate": certificate}, answered)
        same_key(facts, key=self._origin.key)
        self._replay()
        told = {**self._origin.changes(facts), **self._budget.facts()}
        self.journal.set_facts(stop=self.rules, ended=None, intervals=None, **told)

    def _replay(self) -> None:
        """Goes through the journal in the order in which things were drawn and learnt."""
        calls = {c.call: c for c in self.journal.calls()}
        for call in calls.values():
            self._draw_order.keep(call)
            self._budget.pay(call.cost)
        for source in self.journal.sources():
            self._source_queue.recall(source)
            self._budget.pay(source.cost)
        self._judge.pictures = len(self.journal.pictures())
        draws = self.journal.draws()
        for row in draws:
            self._draw_order.learn(row.learned)
            self._draw_order.calls.append(row.call)
            move = Move.of(row.moves) if row.moves else None
            self._selector.restore(self._judge.questions_of(row.call), move)
            self._canaries.after(len(self._draw_order.calls))
            if row.call not in calls:
                self._await(row)
        self._failing.trust(calls.values())
        if calls:
            self.model.trusted = True
        self._draw_order.catch_up()
        if self.stopped is not None and not len(self._queue):
            self._draw_order.learn()
            self._canaries.rest()
        self._budget.lose(call.number for call in self._queue.ready())
        times = [d.elapsed for d in draws] + [c.elapsed for c in calls.values()]
        self._elapsed = max(times, default=0.0)

    def _end(self) -> None:
        certifier = self._selector.certifier
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
