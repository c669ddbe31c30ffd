"""The class ``Audit``: adaptively chosen calls, their answers, a journal, and certificates.

It assembles the parts of the engine (``engine.assembly``), and is the public interface to its loop.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Self, Unpack

from ..certify.status import TargetStatus
from ..certify.targets import Target
from ..engine.assembly import assembled
from ..engine.beginning import begin
from ..engine.belief import Belief
from ..engine.call_queue import Call
from ..engine.calling import progress_of, run_model
from ..engine.loop import Stopwatch
from ..engine.options import Certify, Limits, Sampling, Shorthands, grouped
from ..engine.settings import check_settings
from ..engine.tensors import load_torch
from ..errors import InputError, OrderError, advising
from ..families import TargetId
from ..journal import JournalSource, SQLiteJournal, opened, recall
from ..models.base import ModelDefaults, ModelSource, adapted_model
from ..models.checking import name_of
from ..models.local.python import ByHand, model_of
from ..results.result import Result
from ..space import QuestionSpace
from ..stopping import State
from ..types import Answer, Unanswered
from .class_order import check_order
from .forecast import forecasts
from .in_order import check_goals, in_order
from .inspection import result_of
from .progress import Hooks, followed
from .slices.looking import Discovery

if TYPE_CHECKING:
    import pandas as pd


class Audit:
    """Audit that asks a model adaptively chosen questions until a stopping rule is met.

    Its options come in groups. Every field of a group is also a keyword (``budget=500`` for
    ``limits=Limits(budget=500)``), unless its group is given.

    Args:
        space: The questions, or a ``Pool`` of items.
        model: Object with ``answers`` and ``ask`` (``models.ModelUnderTest``), or a function, a
            torch module, or the name of one (``models.local.python.model_of``). Default None: the
            caller answers with ``tell``.
        certify: Targets, precision and confidence. Default None: nothing is certified.
        sampling: Choice of questions. Default None: that of ``Sampling``.
        limits: End of the audit. Default None: when everything was asked.
        journal: A path (created, or resumed if it contains an audit with the same settings), a
            Journal, or a function that opens one. Default None: memory.
        notes: Name -> value that JSON can hold, for the journal.
        device: Device of the GPs: "cpu", "cuda" or "auto" (CUDA if available).
        clock: Function that returns seconds; for tests.
        **shorthands: Fields of the groups.

    Raises:
        InputError: Settings are out of range.
        JournalError: The journal belongs to another audit.
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
        self.space = space = space.without_answers().for_targets(self.certify.targets)
        self.model, self.certify = _asked(space, model), self.certify.suited(space)
        if self.sampling.everything:
            check_goals(self.certify, self.sampling)
        check_settings(space, self.model, self.certify, self.sampling, self.limits)
        self._discovery = Discovery(space, self.certify)
        watch = Stopwatch(clock)
        if space.dataset.has_images:  # before self-taught nets, which are trained in one thread
            load_torch()
        self._made = assembled(
            space,
            self.model,
            self.certify,
            self.sampling,
            self.limits,
            facts=recall(journal),
            device=device,
            watch=watch,
            in_order=in_order if self.sampling.everything else None,
        )
        self._loop = self._made.loop
        self._loop.hooks.append(self._discovery)
        with opened(journal) as self.journal:
            self._loop.journal = self.journal
            begin(self._made, self.model, self.certify, notes or {})

    # -- ask and tell ------------------------------------------------------------------

    def ask(self, n: int = 1) -> list[Call]:
        """Return up to ``n`` calls to make, committed to the journal.

        Calls that were drawn before an interruption come first. The belief is not updated between
        the draws of one ``ask``. If the oracle compares with the answer about the source image, the
        call about that image comes once, before those about its follow-ups. Any thread may call
        this method.

        Args:
            n: Number of calls, 0 or more.

        Returns:
            The calls; [] once the audit has ended, or while answers must come first.

        Raises:
            InputError: ``n`` is no whole number.
        """
        try:
            count = index(n)
        except TypeError:
            count = -1
        if count < 0:
            raise InputError(f"ask: expected a whole number of calls, 0 or more, got {n!r:.80}")
        return self._loop.ask(count)

    def tell(
        self,
        call: Call | int,
        answer: Answer | Unanswered | Sequence[float] | Mapping[str, float] | float,
    ) -> None:
        """Commit the answer to one call to the journal, then learn from it.

        Answers may come in any order; the audit learns from them in the order of the draws.

        Args:
            call: The call, or its number.
            answer: P(yes) for each of the call's concepts, in their order or by name; for a
                ``Pool`` the loss of ``call.item``; or Unanswered.

        Raises:
            OrderError: The call is not waiting.
            ModelError: The answer has another form.
        """
        number = call.number if isinstance(call, Call) else call
        if not isinstance(number, int):
            raise OrderError(f"tell: expected a call that ask() returned, got {call!r:.80}")
        self.tell_all([(number, answer)])

    def tell_all(self, answers: Iterable[tuple[int, object]]) -> None:
        """Commit the answers to several calls at once; see ``tell``.

        Args:
            answers: Pairs of the number of a call and its answer.
        """
        self._loop.tell_all(answers)

    @property
    def waiting(self) -> int:
        """Number of calls that may be made now without another draw."""
        return self._loop.waiting

    def take_back(self, calls: Sequence[Call], *, sent: bool = False) -> None:
        """Give back calls that will get no answer, so that ``ask`` returns them again.

        Args:
            calls: The calls.
            sent: Whether they were sent to the model, and may have been charged.
        """
        self._loop.take_back(calls, sent=sent)

    def run(self, on_progress: Hooks = None) -> Result:
        """Ask the model until the audit ends.

        If the model raises, the journal keeps all answers so far, and running again resumes.

        Args:
            on_progress: Function that is called with the ``Progress`` after every batch, or every
                answer of a ``models.ConcurrentModel``; True for a progress bar, on a terminal or in
                a notebook; or a list of both. A function that raises causes one warning, and is not
                called again.

        Returns:
            The result.

        Raises:
            ModelError: The model raises.
            InputError: The columns of a local model seem to be in another order than the classes,
                which is checked before the first question.
        """
        kept = isinstance(self.journal, SQLiteJournal)
        with advising("once that is mended, the same lines of Python continue" * kept):
            self.ask_all(on_progress)
        return self.result()

    def ask_all(self, on_progress: Hooks = None) -> None:
        """Ask as ``run`` does, without a result."""
        if isinstance(self.model, ByHand):
            self.model.ask([])
        batch = max(self.sampling.batch, self._loop.selector.batch)
        if not self._made.unanswered.answered:
            check_order(self.space, self.model, batch, self.journal)
        with followed(self, on_progress) as hooks:

            def step() -> None:
                self._made.unanswered.check()
                if hooks:
                    progress = progress_of(self._loop)
                    for hook in hooks:
                        hook(progress)

            self._made.unanswered.runs = True
            try:
                run_model(self._loop, self.model, batch, step)
            finally:
                self._made.unanswered.runs = False
                self._made.judge_calls.keep_replies(self._loop)

    def certify_also(self, targets: Mapping[str, Target]) -> None:
        """Certify further targets with the draws to come, as slices are certified.

        Args:
            targets: Name -> target.

        Raises:
            InputError: The audit set no alpha aside for this when it began (``set_aside``), or one
                of them is a target already.
        """
        self._discovery.ask_for(targets, self._loop)

    def plan(self) -> "pd.DataFrame":
        """Return the number of draws to certify each target, and all of them (the last row).

        The forecast depends on the settings alone. Columns are target, at_least, "likely at 10 %"
        and "likely at 30 %" (for these mean losses, without useful predictions), and at_most.

        Raises:
            InputError: Nothing is certified.
        """
        import pandas as pd

        exploration, both = self.sampling.share(True), self.certify.unanswered == "both"
        rows, together = forecasts(self.belief.certifying, exploration, both, (0.1, 0.3))
        return pd.DataFrame(
            {
                "target": row.target,
                "at_least": row.at_least,
                **{f"likely at {100 * loss:g} %": draws for loss, draws in row.likely.items()},
                "at_most": row.at_most,
            }
            for row in [*rows, together]
        )

    def result(self) -> Result:
        """Return the present result, recomputed from the journal."""
        with self._loop.lock:
            return result_of(self.journal, self.space, self.statuses())

    def intervals(self) -> "pd.DataFrame":
        """Return the present state of the targets, one per row.

        Columns are target, estimate, lower, upper, half_width, certified, size and others. There
        are no rows if nothing is certified.
        """
        import pandas as pd

        return pd.DataFrame(status.row() for status in self.statuses())

    def statuses(self) -> list[TargetStatus]:
        """Return the present state of every target; [] if nothing is certified."""
        return self._loop.statuses()

    @property
    def stopped(self) -> str | None:
        """The reason why the audit has ended; None while it has not."""
        return self._loop.stopped

    @property
    def rules(self) -> list[str]:
        """The stopping rules in words; the first one met ends the audit."""
        return [str(rule) for rule in self._loop.rules]

    @property
    def prepared(self) -> str | None:
        """Text about the self-taught proxy that was trained before the first draw; None: none."""
        net = self._made.proxies.self_taught
        return None if net is None else str(net)

    @property
    def belief(self) -> Belief:
        """The present belief of the surrogates, which must not be changed."""
        return self._loop.belief

    @property
    def targets(self) -> list[str]:
        """Names of the certified targets, in the order of their intervals."""
        return [target.name for target in self.target_ids]

    @property
    def target_ids(self) -> list[TargetId]:
        """Identities of the certified targets, in the same order."""
        return [target.id for target in self._loop.selector.targets]

    @property
    def exact(self) -> bool:
        """True if every question is asked, in order, so that rates are exact."""
        return self._loop.selector.exact

    @property
    def cost(self) -> float:
        """Cost of all answers so far, in the model's currency."""
        return self._loop.budget.spent

    @property
    def interrupted(self) -> int:
        """Number of calls that were sent, or may have been, and got no answer."""
        return self._loop.budget.lost

    def state(self) -> State:
        """Return the present state of the audit."""
        return self._loop.state()

    def close(self) -> None:
        """Release the journal's file."""
        self.journal.close()

    def without_beliefs(self) -> Self:
        """Return this audit without its history of beliefs, which does not change its draws."""
        self._made.checkpoints.kept = False
        return self

    def __repr__(self) -> str:
        state = self.stopped or "running"
        return f"Audit(model {name_of(self.model)!r}, {self._loop.draws} calls, {state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _asked(space: QuestionSpace, model: "ModelSource | None") -> ModelDefaults:
    """Return the model with all optional members; raise InputError for a pool with a model that
    returns no losses."""
    if model is None:
        return ByHand("one" if space.oracle.tells_losses else "all")
    if space.oracle.tells_losses and not getattr(model, "gives_losses", False):
        raise InputError(
            "audit: expected a pool alone, got a model, too; take calls from `ask`, look at "
            "`call.item`, and pass its loss to `tell`"
        )
    return adapted_model(model_of(model))
