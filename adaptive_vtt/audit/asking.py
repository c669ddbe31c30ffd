"""The audit: ask and tell, journaled, resumable."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from .. import surrogates
from ..certify.population import describe_population
from ..certify.targets import Target
from ..engine.assembly import features_changed, features_used, suited
from ..engine.audit_key import same_key
from ..engine.audit_parts import assembled
from ..engine.belief import Belief
from ..engine.call_queue import Call as Call
from ..engine.calling import Progress as Progress
from ..engine.calling import progress_of, run_model
from ..engine.endpoint import JournaledWays, submitted
from ..engine.estimates import interval_rows
from ..engine.leasing import Leasing
from ..engine.options import Certify as Certify
from ..engine.options import Limits as Limits
from ..engine.options import Sampling as Sampling
from ..engine.options import Shorthands, grouped
from ..engine.selector import Draw
from ..engine.settings import check_cost, check_judge, check_model, describe_space, same_audit
from ..errors import InputError, JournalError, OrderError
from ..journal import JournalSource, answered, check_undamaged, opened, recall
from ..journal.facts import begun_facts, read_lost
from ..journal.rows import DrawRow
from ..models.base import (
    BatchModel,
    ConcurrentModel,
    ModelDefaults,
    ModelSource,
    adapted_model,
)
from ..models.checking import as_answer, as_loss, check_answer, name_of
from ..models.local.anything import model_of
from ..models.local.by_hand import ByHand
from ..results.result import Result, summarise
from ..space import QuestionSpace
from ..stopping import State, contradicted, levels_of
from ..types import Answer, Unanswered
from ..utils.stopwatch import Stopwatch
from .inspection import Inspection
from .progress import Hooks, followed
from .receiving import Receiving
from .slices.looking import Discovery

if TYPE_CHECKING:
    import pandas as pd


class Audit:
    """Asks a model adaptively chosen questions until a stopping rule is met.

    Its options come in groups; every field of a group may also be given as a keyword of its own
    (``budget=500`` for ``limits=Limits(budget=500)``), unless its group is given.

    - ``space``: the questions, or a ``Pool`` of items.
    - ``model``: whatever has ``answers`` and ``ask`` (``models.ModelUnderTest``), or what a model
      is made of (``models.local.anything.model_of``): a function, a torch module, a name.
      Default None: answers are told by hand.
    - ``certify``: what is certified, how surely (``Certify``). Default: nothing.
    - ``sampling``: how questions are chosen (``Sampling``). Default: see there.
    - ``limits``: when the audit ends, besides (``Limits``). Default: when all was asked.
    - ``journal``: a path (created, or continued if an audit with the same settings stands
      there), a Journal, or what opens one. Default None: memory.
    - ``notes``: anything JSON can hold, by name, kept in the journal. Default None: nothing.
    - ``device``: where the GPs live: "cpu", "cuda" or "auto", CUDA where there is one.
      Default "auto".
    - ``clock``: gives seconds; for tests. Default ``time.monotonic``.

    Raises InputError for settings out of range, JournalError for a journal of another audit.
    """

    def __init__(
        self,
        space: QuestionSpace,
        model: "ModelSource | None" = None,
        *,
        certify: Certify | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        journal: JournalSource = None,
        notes: Mapping[str, Any] | None = None,
        device: str = "auto",
        clock: Callable[[], float] = time.monotonic,
        **shorthands: Unpack[Shorthands],
    ) -> None:
        self.certify, self.sampling, self.limits = grouped(shorthands, certify, sampling, limits)
        self.space, self.model = space, _asked(space, model)
        self.certify = suited(self.certify, space)
        self._check()
        self._rules = self.limits.rules(self.certify.rule())
        self._parts = parts = assembled(
            self.space,
            self.model,
            self.certify,
            self.sampling,
            self.limits,
            facts=recall(journal),
            device=device,
        )
        self._selector, self._judge = parts.selector, parts.judge
        self._draw_order, self._queue = parts.draw_order, parts.queue
        self._source_queue, self._repeat_probes = parts.source_queue, parts.repeat_probes
        self._budget, self._failing = parts.budget, parts.failing
        self._judging = parts.judging
        self._astray, self._watch = False, Stopwatch(clock)
        self._discovery = Discovery(self.space, self.certify, parts, self._rules)
        with opened(journal) as self.journal:
            by = self.space.oracle.judge_by
            self._ways = JournaledWays(self.journal, self.model, None if by is None else by.model)
            # neither knows the audit: one that is dropped lets its journal go at once
            self._receiving = Receiving(parts, self.journal, self._ways, self._watch.seconds)
            self._leasing = Leasing(
                self.limits.lease, parts, self.model, self.sampling, self.journal
            )
            self._begin(notes or {})

    def _check(self) -> None:
        """Raises InputError or ModelError for options that are out of range or do not fit."""
        certifies = self.certify.certifies
        check_model(self.model, self.space)
        self.sampling.check(certifies)
        check_cost(self.model, self.limits.max_cost)
        check_judge(self.space, self.model, self.limits.max_cost)
        self.certify.check(self.sampling.share(certifies))

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Call]:
        """Up to ``n`` calls to make, committed to the journal.

        [] once the audit has ended, or while nothing can be asked before calls on their way are
        answered. Calls drawn before an interruption come first. Nothing is learnt between the
        draws of one ``ask``. Where the oracle compares with the source image's answer, the call
        about that image, made once, comes before any call about its follow-ups.
        """
        self._usable()
        self._receiving.judge(wait_for=not isinstance(self.model, ConcurrentModel))
        while True:
            if len(self._queue.ready()) < n:
                self._draw(n)
            calls = self.affordable(self._queue.ready()[:n], self._queue.under_way)
            if calls or self._queue.under_way or not self._receiving.judge():  # sets money free
                break
        if self._budget.send(calls):
            self.journal.set_facts(**self._budget.facts())
        stuck = (self._queue.ready() or self._judging) and not (calls or self._queue.under_way)
        if stuck and not self._paused:
            self._draw_order.learn()
            self._end()  # what waits can no longer be afforded
        self._queue.hand_out(calls)
        return calls

    def tell(
        self,
        call: Call | int,
        answer: Answer | Unanswered | Sequence[float] | Mapping[str, float] | float,
    ) -> None:
        """The answer to one call, committed before it is learnt from.

        ``answer``: P(yes) for each of the call's concepts, in their order or by name, of a ``Pool``
        the loss of ``call.item``, or Unanswered. Answers may come
        in any order; they are learnt from in draw order. Raises OrderError for a call that
        is not waiting, ModelError for an answer that is none.
        """
        number = call.number if isinstance(call, Call) else call
        if not isinstance(number, int):
            raise OrderError(f"tell: expected a call that ask() gave, got {call!r:.80}")
        self.tell_all([(number, answer)])

    def awaits(self, number: int) -> bool:
        """Whether the call of this number was drawn and waits for its answer."""
        return number in self._queue

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

    def run(self, on_progress: Hooks = None, *, progress: Hooks = None) -> Result:
        """Asks the model until the audit ends, and gives the result.

        ``on_progress`` is called with the ``Progress`` after every batch, or every answer of a
        ``models.ConcurrentModel``; True shows a bar, on a terminal or in a notebook; a list may
        hold several of both. ``progress`` is what it was called before. A model that raises ends
        the run with ModelError; the journal keeps everything, and running again goes on.
        """
        if isinstance(self.model, ByHand):
            self.model.ask([])
        with followed(self, on_progress if progress is None else progress) as hooks:

            def step() -> None:
                self._failing.check()
                self._leasing.keep_up()
                if hooks:
                    told = progress_of(self)
                    for hook in hooks:
                        hook(told)

            try:
                self._leasing.begin()
                run_model(self, step)
                while self._paused and self._leasing.renewed():
                    run_model(self, step)
                if self._leasing.over:
                    self._draw_order.learn()
                    self._end()
            finally:
                self._receiving.rest()
                if not self._astray:  # else nobody knows what is drawn: it stays leased
                    self._leasing.settle()
        return self.result()

    def certify_also(self, targets: Mapping[str, Target]) -> None:
        """Makes these, under these names, targets of the draws to come, as slices become some.

        Raises InputError where no alpha was set aside for that when the audit began
        (``set_aside``), and for what is a target already.
        """
        self._discovery.ask_for(targets, self.journal)

    def result(self) -> Result:
        """What is known now, recomputed from the journal."""
        found = summarise(self.journal, self.interval_rows())
        return found.inspected(Inspection(self.journal, self.space))

    def intervals(self) -> "pd.DataFrame":
        """Where every target stands now, a row each: target, estimate, lower, upper, half_width,
        certified, size and more; no row where nothing is certified."""
        import pandas as pd

        return pd.DataFrame(self.interval_rows() or [])

    def interval_rows(self) -> list[dict[str, Any]] | None:
        """``intervals`` as a journal has them; None where nothing is certified."""
        drawn = max(self._selector.draws, 1)
        return interval_rows(self._selector, max(self._leasing.calls / drawn, 1.0))

    @property
    def stopped(self) -> str | None:
        """Why the audit has ended, or None."""
        state = self.state()
        if reason := contradicted(state):
            return reason
        if state.exhausted and not len(self._queue) and not self._judging:
            return "every question was asked"
        met = next((reason for r in self._rules if (reason := r.reached(state))), None)
        return met or self._leasing.over

    @property
    def rules(self) -> list[str]:
        """The stopping rules in words; the first one met ends the audit."""
        return [str(rule) for rule in self._rules]

    @property
    def prepared(self) -> str | None:
        """What was done before the first draw, in words: the self-taught proxy, or None."""
        net = self._parts.proxies.taught
        return None if net is None else str(net)

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
        hard = self.belief.hard
        state = State(
            self._leasing.calls,
            self._draw_order.questions,
            self._watch.seconds(),
            uncertainty,
            next_calls=self._leasing.question,
            cost=self.cost,
            reserved=self._budget.reserved(len(self._queue) + next_calls),
            hard=hard,
            lowest=surrogates.lowest_with_hard_answers(self.sampling.form) if hard else 0.0,
        )
        return replace(state, **certifier.standing()) if certifier else state

    def close(self) -> None:
        """Releases the journal's file."""
        self.journal.close()

    def __repr__(self) -> str:
        state = self.stopped or "running"
        return f"Audit(model {name_of(self.model)!r}, {len(self._draw_order.calls)} calls, {state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _paused(self) -> bool:
        """Whether nothing but its lease, which is used up, keeps it from going on."""
        return self._leasing.used_up() and self.stopped is None

    # -- drawing -----------------------------------------------------------------------

    def _draw(self, n: int) -> None:
        """Draws until ``n`` calls may be made, or the audit stops; at most ``n`` times.

        Without that limit one slow call about a source would freeze beliefs for all draws of it.
        """
        rows: list[DrawRow] = []
        self._astray = True  # until what was drawn is committed
        while len(rows) < n and len(self._queue.ready()) < n:
            if not self._draw_order.ready() or self._looks(rows):
                break
            if self._leasing.pauses(len(rows)) or self.stopped is not None:
                break
            lacking = n - max(len(rows), len(self._queue.ready()))
            draw = self._selector.draw(self._draw_order.together(lacking))
            if draw is None:
                break
            rows.append(self._row(draw))
            self._selector.take(self._judge.questions_of(draw.call), draw.move, draw.why)
            self._parts.take(rows[-1])
            self._parts.wait_for(rows[-1])
        if rows:
            self.journal.add_draws(rows)
        self._astray = False
        waits = len(self._queue) or self._judging or self._paused
        if not rows and not waits:
            self._draw_order.learn()
            if not self._repeat_probes.rest():
                self._end()

    def _looks(self, rows: list[DrawRow]) -> bool:
        """Looks for slices where that is due. True: what was drawn is to be committed before."""
        if not self._discovery.is_due(self.state):
            return False
        if not rows:
            self._discovery.look(self.journal)
        return bool(rows)

    def _row(self, draw: Draw) -> DrawRow:
        questions = self._judge.questions_of(draw.call)
        draw = replace(draw, why=draw.why | self._draw_order.reasons())
        return self._selector.row(draw, questions, self._draw_order.learned, self._watch.seconds())

    # -- learning ----------------------------------------------------------------------

    def tell_all(self, told: Iterable[tuple[int, object]]) -> None:
        """The answers to several calls by number, as ``tell`` takes them, in one commit."""
        self._writable()
        told = list(told)
        if len({number for number, _ in told}) < len(told):
            raise OrderError("tell: the same call was answered twice")
        answers = {number: self._checked(number, answer) for number, answer in told}
        self._failing.note(answers.values())
        errors = self._receiving.take(answers, learn=not self._astray)
        for number, error in errors.items():
            self.take_back([self._queue.expect(number)], sent=True)
            raise error

    def _checked(self, number: int, answer: object) -> Answer | Unanswered:
        call = self._queue.expect(number)
        if not isinstance(answer, Answer | Unanswered):
            by_loss = self.space.oracle.tells_losses
            answer = as_loss(answer, number) if by_loss else as_answer(answer, call.prompt, number)
        check_answer(answer, call.prompt, "tell")
        return answer

    # -- beginning, going on, ending ---------------------------------------------------

    def _begin(self, notes: Mapping[str, Any]) -> None:
        """Begins the journal, or goes on with it."""
        raw, certifier, origin = self.journal.facts(), self._selector.certifier, self._parts.origin
        settings, certificate = self._parts.settings, self.certify.describe(certifier)
        self._budget.recall(read_lost(raw))  # of a journal that was set aside, too
        facts = begun_facts(raw)
        if facts is None:
            self.journal.set_facts(
                space=describe_space(self.space),
                settings=settings,
                **self._stops(),
                certificate=certificate,
                population=describe_population(certifier),
                protocol=self.model.protocol(),
                **origin.facts(),
                **self._parts.proxies.facts(),
                features=features_used(self.space),
                **self._budget.facts(),
                **self._discovery.facts(),
                **notes,
            )
            return
        other_width = self.certify.changes_width(facts.certificate)
        if certificate and other_width and facts.certificate:
            certificate["half_width"] = facts.certificate.half_width
        begun = {**settings, "certificate": certificate}
        same_audit(facts, self.space, begun, partial(answered, self.journal))
        same_key(facts, key=origin.key)
        check_undamaged(self.journal)
        self._ways.recall(facts.ways, facts.bounds)
        self._replay()
        told = {**self._stops(), **origin.changes(facts), **self._parts.proxies.changes(facts)}
        told |= {**features_changed(self.space, facts), **self._budget.facts(), **notes}
        told |= self._discovery.go_on(facts)
        if certifier and other_width and self.certify.half_width is not None:
            certifier.aim_at(self.certify.half_width, len(self._draw_order.calls))
            told["certificate"] = self.certify.describe(certifier)
        self.journal.set_facts(ended=None, intervals=None, **told)

    def _stops(self) -> dict[str, Any]:
        """When it ends, for the journal: in words, and the uncertainties that end it."""
        return {"stop": self.rules, "stop_levels": levels_of(self._rules)}

    def _replay(self) -> None:
        """Goes on from where the journal stopped: what waits there may have been sent."""
        self._watch.before = self._parts.replay(self.journal)
        if self.stopped is not None and not len(self._queue) and not self._judging:
            self._draw_order.learn()
            self._repeat_probes.rest()
        self._judging.lose()
        self._budget.submitted(submitted(self.model, self.journal, self.awaits))
        if not isinstance(self.model, BatchModel):
            self._budget.lose(call.number for call in self._queue.ready())

    def _end(self) -> None:
        ended = {"reason": self.stopped, "elapsed": round(self._watch.seconds(), 3)}
        self._parts.checkpoints.finish(self.journal)
        self.journal.set_facts(ended=ended, intervals=self.interval_rows())

    def _usable(self) -> None:
        self._writable()
        self.journal.check_place()
        if self._astray:
            raise JournalError("audit: a draw could not be finished; resume from the journal")

    def _writable(self) -> None:
        if self._receiving.failed:
            raise JournalError("audit: a step could not be finished; resume from the journal")


def _asked(space: QuestionSpace, model: "ModelSource | None") -> ModelDefaults:
    """What answers; raises InputError for a model where losses are told."""
    if model is None:
        return ByHand("one" if space.oracle.tells_losses else "all")
    if space.oracle.tells_losses:
        raise InputError(
            "audit: expected a pool alone, which is told by hand, got a model, too; ask() for "
            "calls, look at call.item, and tell() its loss"
        )
    return adapted_model(model_of(model))
