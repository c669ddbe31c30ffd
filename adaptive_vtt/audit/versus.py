"""Comparison of two models on the same drawn questions, with a certified difference of rates.

A comparison is an audit of both models as one, whose outcomes are pairs (``oracles.paired``). It
has the journal, draws, intervals and verification of any audit. If the losses of model A are known
for all questions, model B is audited alone against A's exact rates, with A's losses as a proxy.

Each interval of a difference holds at every moment, all together or each by itself (``guarantee``),
so that a decision may be read at any time.
"""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, get_args

import numpy as np
import pandas as pd

from ..certify.decisions import Comparison
from ..certify.status import calls_of
from ..certify.targets import named_targets
from ..engine.options import Shorthands, grouped
from ..errors import check_known, unexpected
from ..journal import Journal, read_journal
from ..journal.files import holder
from ..models import Recorded
from ..models.base import ModelSource, ModelUnderTest, adapted_model
from ..models.local.python import model_of
from ..models.pair import pair
from ..models.versions import version_of
from ..oracles.paired import Paired
from ..results.difference import DECISIONS, WHOLE, brief, names_of, wrong_more
from ..results.result import SHOWN, Result
from ..results.run import Run
from ..space import QuestionSpace
from ..stopping import FirstOf, StoppingRule, check_rule
from ..strategies import EVERYTHING
from ..surrogates import Named
from ..utils.figures import NEW_OLD, Bar, figure, is_exact, table_html
from . import Audit
from .everything import answered, losses_in, means
from .halves import Earlier, HalfStore, earlier_audit, pairs_in, refuse_other_earlier
from .progress import Hooks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Use = Literal["condition", "replay", "proxy"]
"""Use of an earlier audit of model A: its answers; its answers and draws; or its losses as hints.
"""


@dataclass(frozen=True, repr=False)
class Verdict:
    """State of a comparison. Notebooks show its differences as bars around 0.

    Attributes:
        targets: One row per target, with the columns of ``certify.decisions.Compared``.
        calls_a: Answered calls of model A.
        calls_b: Answered calls of model B.
        result: Result of the audit, whose rates are y = (1 + delta) / 2, or those of B.
        names: Names of the two models.
    """

    targets: pd.DataFrame
    calls_a: int
    calls_b: int
    result: Result
    names: tuple[str, str] = ("A", "B")

    @property
    def decided(self) -> bool:
        """True if every target is decided."""
        return bool((self.targets["decision"] != "open").all())

    @property
    def differences(self) -> list[str]:
        """A text on the difference of each target: "new is wrong 4.4 points less often (...)"."""
        new = brief(self.names[1])
        return [wrong_more(new, bar.estimate, bar.lower, bar.upper) for bar in self._bars]

    @property
    def promise(self) -> str:
        """A text on the guarantee of the differences."""
        exact = all(is_exact(bar.lower, bar.upper) for bar in self._bars)
        return WHOLE if exact else str(self.result.guarantee)

    def plot(self) -> "Figure":
        """Return the differences R_B - R_A as a Plotly figure; B is worse to the right of 0."""
        from plotly.graph_objects import Figure

        return Figure(figure(self._stage, self._bars))

    def report(self, path: Path | str | None = None, *, open: bool = False) -> Path:
        """Write the page of the comparison; see ``Result.report``."""
        return self.result.report(path, open=open)

    @property
    def _bars(self) -> list[Bar]:
        """The difference R_B - R_A of each target, for plots and tables."""
        bars = []
        for row in self.targets.to_dict("records"):
            more, low, high = (-float(row[name]) for name in ("delta", "upper", "lower"))
            decision = DECISIONS[row["decision"]].format(b=self.names[1])
            note, done = f"{decision}; {row['questions']} questions", row["decision"] != "open"
            bars.append(Bar(str(row["target"]), more, low, high, done, note, NEW_OLD))
        return bars

    @property
    def _stage(self) -> str:
        """A text on the number of decided targets and calls."""
        (a, b), done = self.names, int((self.targets["decision"] != "open").sum())
        calls = f"{self.calls_a} calls of {a}, {self.calls_b} of {b}"
        return f"{a} and {b}: {done} of {len(self.targets)} differences decided; {calls}"

    def __repr__(self) -> str:
        return f"Verdict({self._stage})"

    def _repr_html_(self) -> str:
        bars, (a, b) = self._bars, self.names
        notes = [f"error rate of {b} minus that of {a}: above 0, {b} is wrong more often"]
        if len(bars) > SHOWN:
            notes.append(f"and {len(bars) - SHOWN} more targets: verdict.targets")
        notes += [self.promise, *(f"warning: {warning}" for warning in self.result.warnings)]
        head = f"{bars[0].name}: {self.differences[0]}"
        return table_html(head, self._stage, bars[:SHOWN], notes)


class Versus:
    """Comparison of two models over one space.

    Args:
        space: The questions.
        a: The old model, in any form that ``Audit`` accepts; None with ``recorded_a``.
        b: The new model, in the same forms.
        margin: Difference of error rates, in [0, 1), that does not matter: a target is decided as
            equivalent if its whole interval is within +- margin. With 0, two equal models are never
            decided, so a limit (``budget``, ``max_cost`` ...) is needed.
        until: StoppingRule that ends the comparison instead of the decisions, such as a gate's
            (``gate.Gated``). Limits end it, too. Default None: it ends once all targets are
            decided.
        at_least: Claim to decide instead of the better model, in (-1, 1): that R_A - R_B is at
            least this. -0.02 claims that B is wrong more often by at most 0.02. The claim "holds"
            or "fails", each at full alpha, which takes fewer calls than intervals.
        recorded_a: Answers of model A to all questions, as ``models.Recorded`` accepts them; only B
            is asked.
        journal_a: Journal of an earlier audit of ``a`` on this space.
        use: Use of that audit. "condition" takes its answers, and asks A only for missing ones.
            "replay" first asks B alone the questions that were drawn there, in their order. It is
            valid only if B was made, and ``targets`` were chosen, without looking at that audit.
            Both need the same model A, oracle and space. "proxy" takes its losses as predictions,
            for an earlier version of A.
        journal: As in ``Audit``.
        notes: As in ``Audit``.
        device: As in ``Audit``.
        **options: ``targets`` (default "overall"), ``confidence``, ``strategy``, ``seed``,
            ``max_cost`` and all other options of ``Audit`` except ``half_width`` and ``at_most``.
            ``budget`` counts the calls of both models.

    Raises:
        InputError: Options are out of range or do not fit, or ``journal_a`` is being written.
        JournalError: A comparison is resumed and ``journal_a`` has changed.
    """

    def __init__(
        self,
        space: QuestionSpace,
        a: "ModelSource | None",
        b: ModelSource,
        *,
        margin: float = 0.0,
        until: StoppingRule | None = None,
        at_least: float | None = None,
        recorded_a: pd.DataFrame | None = None,
        journal_a: Path | str | None = None,
        use: Use = "condition",
        journal: Path | str | None = None,
        notes: Mapping[str, Any] | None = None,
        device: str = "auto",
        **options: Unpack[Shorthands],
    ) -> None:
        options.setdefault("targets", ("overall",))
        self._certify, self.sampling, self.limits = grouped(options, None, None, None)
        if until is not None:
            check_rule(until, "until")
            rules = (until,) if self.limits.stop is None else (until, self.limits.stop)
            self.limits = replace(self.limits, stop=FirstOf(rules))
        self.space, self._notes = space, dict(notes or {})
        self._compare = Comparison(margin=margin, stops=until is None, at_least=at_least)
        self._check(a, recorded_a, journal_a, use)
        self._begin = partial(Audit, journal=journal, device=device, limits=self.limits)
        new = model_of(b)
        with ExitStack() as self._opened:
            if recorded_a is not None:
                self.audit = self._against(recorded_a, new)
            elif a is not None:
                path = None if journal is None else Path(journal)
                self.audit = self._together(model_of(a), new, journal_a, use, path)
            self._opened = self._opened.pop_all()

    def _check(self, a: Any, recorded_a: Any, journal_a: Any, use: str) -> None:
        """Raise InputError for options that are out of range or contradict each other."""
        certify, margin, claim = self._certify, self._compare.margin, self._compare.at_least
        if not 0 <= margin < 1:
            raise unexpected("margin", "a number from 0 to below 1", margin)
        if claim is not None and not -1 < claim < 1:
            raise unexpected("at_least", "a difference of rates between -1 and 1", claim)
        _refuse(margin and claim is not None, "margin or at_least", f"both ({margin:g}, {claim})")
        goals = certify.half_width is not None or certify.at_most is not None
        _refuse(goals, "a margin", "half_width or at_most, which are about a model")
        models = "model a or its recorded answers (recorded_a)"
        _refuse(a is not None and recorded_a is not None, models, "both")
        _refuse(a is None and recorded_a is None, models, "neither")
        everything = f"{EVERYTHING!r}; give a budget for all calls"
        _refuse(self.sampling.everything, "a strategy that draws", everything)
        _refuse(self.space.oracle.whole_source, "a space without target 'drops'", "one of drops")
        certify.check_targets(self.space)
        check_known("use", use, get_args(Use), "journal_a")
        _refuse(certify.cohort is not None, "an audit of one model with a cohort", "a comparison")
        prior = a is not None and certify.prior_journal is not None
        _refuse(prior, "journal_a", "prior_journal, which is about one model")
        _refuse(journal_a is None and use != "condition", f"journal_a where use = {use!r}", "none")
        _refuse(a is None and bool(journal_a), "recorded_a or journal_a", "both")
        endless = not (margin or claim is not None or self.limits.rules(None))
        end = "a margin above 0, at_least or a limit (budget, max_cost or stop)"
        _refuse(endless, end, "none; models that are alike would be asked every question")

    # -- both models are asked -----------------------------------------------------------

    def _together(
        self,
        a: ModelUnderTest,
        b: ModelUnderTest,
        journal_a: Path | str | None,
        use: Use,
        journal: Path | None,
    ) -> Audit:
        certify, earlier = self._certify, Earlier()
        if self.space.oracle.judge_by is not None:
            raise unexpected(
                "versus",
                "an oracle whose rule reads replies alone",
                "one with a judge model",
                "take [oracle.judge] out, or audit each model alone",
            )
        if certify.surrogate not in (True, False):
            expected = "True or False in a comparison"
            raise unexpected("surrogate", expected, repr(certify.surrogate))
        if journal_a is not None:
            # a journal that grows would change the settings of the comparison, which cannot resume
            if (process := holder(Path(journal_a))) is not None:
                raise unexpected(
                    f"journal_a {str(journal_a)!r}",
                    "an audit that has ended",
                    f"one that process {process or '(unknown)'} is writing",
                    "wait until it has ended, or give a copy of its folder",
                )
            if use != "proxy":
                read = self._opened.enter_context(closing(read_journal(journal_a)))
                earlier = earlier_audit(
                    self.space, a, read, str(journal_a), replayed=use == "replay"
                )
        paired = Paired(self.space.oracle, earlier.asked, earlier.about)
        space, both = self.space.judged_by(paired), pair(a, b)
        if journal is not None and journal.is_file() and journal_a is not None:
            refuse_other_earlier(journal, paired.options, journal_a)
        about = f"{self.space.fingerprint} {both.name} {version_of(both)} {both.template_hash}"
        file = None if journal is None else journal.with_name(f"{journal.name}.halves")
        pairs = {} if journal is None else pairs_in(self.space, journal)
        store = HalfStore(file, about, pairs, earlier.answers)
        both.halves = self._opened.enter_context(closing(store))
        surrogate: bool | Named = False
        if certify.surrogate:
            from ..surrogates.difference_gp import DifferenceGP  # imports PyTorch

            losses = None if earlier.replay else earlier.losses
            # losses (n,) of questions given as (sample, variant, concept), NaN if unknown
            known = None if losses is None else lambda *parts: losses.of(space.number(*parts))
            surrogate = Named("difference-gp", partial(DifferenceGP, known=known))
        prior = journal_a if use == "proxy" else None
        known_a = [] if earlier.asked is None else earlier.asked.tolist()
        return self._begin(
            space,
            both,
            notes={**self._notes, "known_a": known_a},
            sampling=replace(self.sampling, replay=earlier.replay),
            certify=replace(
                certify, compare=self._compare, surrogate=surrogate, prior_journal=prior
            ),
        )

    # -- the answers of model A are recorded ---------------------------------------------

    def _against(self, recorded: pd.DataFrame, b: ModelUnderTest) -> Audit:
        space, certify = self.space, self._certify
        if space.oracle.needs_source:
            raise unexpected(
                "recorded_a",
                "an oracle that needs no source image's answer",
                type(space.oracle.original).__name__,
                "give model a itself",
            )
        known = Recorded(recorded, per_call=adapted_model(b).answers, name="a")
        known.gives_losses = space.oracle.tells_losses
        _check_whole(space, known)
        rows = answered(space, known)[1]
        counting = [row for row in rows if row.loss is not None and not row.excluded]
        missing = sum(row.answer is None for row in counting)
        if certify.unanswered == "both" and missing:
            raise unexpected(
                "recorded_a",
                "an answer to every question with unanswered = 'both'",
                f"none to {missing} of {space.size}",
                "record them, or take unanswered = 'loss'",
            )
        questions, losses = losses_in(rows)
        targets = named_targets(space, certify.targets, certify.where)
        rates = tuple(means(space, targets, questions, losses).tolist())
        values = np.full(space.total, 0.5)  # P(yes) with A's losses
        values[questions] = np.nan_to_num(np.abs(losses - space.truth(questions)), nan=0.5)
        shape = (len(space.dataset), len(space.variants), len(space.concepts))
        compare = replace(self._compare, pivot=rates, scale=-1.0)
        proxies = {**(certify.proxies or {}), "a": values.reshape(shape)}
        certify = replace(certify, compare=compare, proxies=proxies)
        return self._begin(space, b, notes=self._notes, sampling=self.sampling, certify=certify)

    # -- running -------------------------------------------------------------------------

    def run(self, on_progress: Hooks = None) -> Verdict:
        """Ask until all differences are decided, or a limit is reached; see ``Audit.run``."""
        self.audit.run(on_progress)
        return self.verdict()

    def verdict(self) -> Verdict:
        """Return the present state of the comparison."""
        return verdict_of(self.audit.result(), self.audit.journal)

    def close(self) -> None:
        """Release the files."""
        self.audit.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verdict_of(result: Result, source: Journal | Run) -> Verdict:
    """Return the state of a comparison.

    Args:
        result: Its result.
        source: The run from which the result was computed, or its journal.
    """
    run = Run.of(source)
    rows = pd.DataFrame([asdict(row) for row in result.versus])
    sources, known = len(run.sources), run.facts.known_a
    calls = calls_of(run.certificate, run.draws, run.calls, sources, known)
    return Verdict(rows.astype({"disagreement": float}), *calls, result, names_of(run.facts))


def _refuse(refused: object, expected: str, got: str) -> None:
    """Raise InputError with this sentence if ``refused`` is true."""
    if refused:
        raise unexpected("versus", expected, got)


def _check_whole(space: QuestionSpace, known: Recorded) -> None:
    """Raise InputError if an image has no row, which would count as a failure of A."""
    images = np.unique(space.image_of(space.nth(np.arange(space.size))))
    missing = []
    for sample, variant in zip(*space.numbering.image_parts(images), strict=True):
        change, name = space.variants[variant], space.dataset.sample_id(int(sample))
        if not known.holds(name, change.relation.name, change.severity):
            missing.append(f"sample {name!r}, {change.name}")
    if missing:
        raise unexpected(
            "recorded_a",
            f"a row for each of {len(images)} pictures",
            f"none for {len(missing)}, such as {missing[0]}",
            "'avtt export --questions' writes a table of all; leave cells without an answer empty",
        )
