"""Two models compared: both are asked the same drawn questions, and the difference is certified.

Whatever certifies the rate of one model certifies that of pairs (``oracles.paired``), so a
comparison is an audit of both as one: its journal, draws, intervals and ``verify`` are those of any
audit. Where model A's loss is known for every question, model B is audited alone, with A's
losses as a proxy, against A's exact rates.

Every interval of a difference holds at every moment, all together (or each by itself, as
``guarantee`` says), so each decision may be read off at any time.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
from ..cohort import Known
from ..engine.judge import values_of
from ..engine.options import Certify, Shorthands, grouped
from ..engine.selector import Replay
from ..engine.settings import describe_oracle
from ..errors import InputError, JournalError, check_known
from ..journal import Journal, SQLiteJournal, read_journal
from ..journal.facts import Facts, is_begun, read_facts
from ..journal.files import holder
from ..models import Recorded
from ..models.base import ModelSource, ModelUnderTest, adapted_model
from ..models.checking import name_of
from ..models.local.python import model_of
from ..models.pair import Halves, Pair, pair
from ..models.versions import version_of
from ..oracles.paired import EARLIER, Paired
from ..results.difference import DECISIONS, WHOLE, brief, names_of, told
from ..results.result import SHOWN, Result
from ..results.run import Run
from ..space import QuestionSpace
from ..stopping import FirstOf, StoppingRule, check_rule
from ..strategies import EVERYTHING
from ..surrogates import Named
from ..types import Answer, CallMode, Floats, Indices, Unanswered
from ..utils.figures import Bar, figure, is_exact, table_html
from . import Audit
from .everything import all_losses, means, unanswered
from .halves import HalfStore, KnownAnswers, key_of
from .progress import Hooks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Earlier:
    """``answers`` by key of the prompt; ``asked`` (a,), ascending: the questions they are about;
    of those that count the ``questions`` (n,), ascending, and their ``losses`` (n,)."""

    answers: Mapping[str, Answer | Unanswered]
    asked: Indices
    questions: Indices
    losses: Floats

    def losses_of(self, question: Indices) -> Floats:
        """(n,): NaN where none is known."""
        return Known(self.questions, self.losses).of(question)


def earlier_answers(
    space: QuestionSpace, model: ModelUnderTest, journal: Journal, where: str
) -> Earlier:
    """What ``model`` said in the audit in a journal; ``where`` it stands, for errors.

    A call of which anything turned out not to count is left out, as no answer is journaled that
    could be judged again. Raises InputError where that audit was of another space, model,
    version, template or oracle, or its answers were masks, which journals do not keep;
    JournalError where there is no audit.
    """
    facts = read_facts(journal.facts())
    check_same(space, model, facts, where)
    if space.oracle.judges_masks:
        raise InputError(
            f"journal_a {where!r}: expected answers that journals keep, got masks, of which only "
            "scores are kept; with use = 'proxy' what they lost is a hint"
        )
    calls = [call for call in journal.calls() if not any(row.excluded for row in call.answers)]
    mode = facts.settings.answers
    answers = {
        key_of_call(space, mode, call.call): Answer(values_of(space, mode, call)) for call in calls
    }
    rows = sorted((row for call in calls for row in call.answers), key=lambda row: row.question)
    judged = [(row.question, row.loss) for row in rows if row.loss is not None]
    return Earlier(
        answers,
        np.array([row.question for row in rows], np.int64),
        np.array([question for question, _ in judged], np.int64),
        np.array([loss for _, loss in judged], float),
    )


def key_of_call(space: QuestionSpace, answers: CallMode, call: int) -> str:
    """What the prompt of a call is told by; see ``audit.halves``."""
    image = space.numbering.image_of(call) if answers == "one" else call
    sample, variant = space.numbering.image_parts(image)
    mine = space.asked[space.asked_by[call % len(space.concepts)]]
    concepts = (mine,) if answers == "one" else space.asked
    chosen = space.variants[variant]
    return key_of(space.dataset.sample_id(sample), chosen.relation.name, chosen.severity, concepts)


def answered_keys(space: QuestionSpace, journal: Journal) -> Counter[str]:
    """How often a journal holds an answer to a prompt, by its key; repeat probes count, too."""
    mode = read_facts(journal.facts()).settings.answers
    again = [-1 - row.source for row in journal.sources() if row.repeat_probe]
    calls: Iterable[int] = [*(row.call for row in journal.calls()), *again]
    return Counter(key_of_call(space, mode, call) for call in calls)


def check_same(space: QuestionSpace, model: ModelUnderTest, facts: Facts, where: str) -> None:
    """Raises InputError, naming the first thing in which the audit of ``facts`` differs from one of
    ``model`` that would be begun now."""
    then = facts.begun_with
    pairs = {
        "space": (facts.space.fingerprint, space.fingerprint),
        "model": (facts.settings.model, name_of(model)),
        "model's version": (facts.model_version, version_of(model)),
        "prompt template": (then.get("template"), adapted_model(model).template_hash),
        "oracle": (then.get("oracle"), describe_oracle(space)),
        "answers per call": (facts.settings.answers, adapted_model(model).answers),
    }
    for name, (before, now) in pairs.items():
        if before != now:
            raise InputError(
                f"journal_a {where!r}: expected an audit of the same {name}, got {before!r} "
                f"then and {now!r} now; with use = 'proxy' its answers are hints alone"
            )


Use = Literal["condition", "replay", "proxy"]
"""What is made of an earlier audit of model A: its answers stand as they are; its draws come first,
in their order; or what it found are hints."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """How a comparison stands. Notebooks show its differences as bars around 0.

    ``targets``: one row each, with the columns of ``certify.decisions.Compared``. ``calls_a`` and
    ``calls_b``: answered calls of each model. ``result``: the audit's own, whose rates are
    y = (1 + delta) / 2, or B's. ``names``: what the two models are called.
    """

    targets: pd.DataFrame
    calls_a: int
    calls_b: int
    result: Result
    names: tuple[str, str] = ("A", "B")

    @property
    def decided(self) -> bool:
        """Whether every target is."""
        return bool((self.targets["decision"] != "open").all())

    @property
    def told(self) -> list[str]:
        """Each target's difference in words: "new errs 4.4 points less (−10.0 to +1.0)"."""
        return [
            told(brief(self.names[1]), -row["delta"], -row["upper"], -row["lower"])
            for row in self._rows
        ]

    @property
    def promise(self) -> str:
        """What holds of the differences, and how surely, in words."""
        whole = all(is_exact(row["lower"], row["upper"]) for row in self._rows)
        return WHOLE if whole else str(self.result.guarantee)

    def plot(self) -> "Figure":
        """The differences R_B - R_A as a Plotly figure, to the right where B errs more."""
        from plotly.graph_objects import Figure

        return Figure(figure(self._stage, [*map(self._bar, self._rows)]))

    def report(self, path: Path | str | None = None, *, open: bool = False) -> Path:
        """Writes the page of the comparison; see ``Result.report``."""
        return self.result.report(path, open=open)

    @property
    def _rows(self) -> list[dict[Hashable, Any]]:
        return self.targets.to_dict("records")

    def _bar(self, row: Mapping[Hashable, Any]) -> Bar:
        said = DECISIONS[row["decision"]].format(b=self.names[1])
        more, low, high = (-float(row[name]) for name in ("delta", "upper", "lower"))
        done = row["decision"] != "open"
        told = f"{said}; {row['questions']} questions"
        return Bar(str(row["target"]), more, low, high, done, told, signed=True)

    @property
    def _stage(self) -> str:
        (a, b), done = self.names, int((self.targets["decision"] != "open").sum())
        asked = f"{self.calls_a} calls of {a}, {self.calls_b} of {b}"
        return f"{a} and {b}: {done} of {len(self.targets)} differences decided; {asked}"

    def __repr__(self) -> str:
        return f"Verdict({self._stage})"

    def _repr_html_(self) -> str:
        rows, (a, b) = [*map(self._bar, self._rows[:SHOWN])], self.names
        more = len(self.targets) - len(rows)
        notes = [f"error rate of {b} less that of {a}: above 0, {b} is wrong more often"]
        notes += [f"and {more} more targets: verdict.targets"] if more else []
        notes += [self.promise]
        notes += [f"warning: {warning}" for warning in self.result.warnings]
        return table_html(f"{rows[0].name}: {self.told[0]}", self._stage, rows, notes)


@dataclass(frozen=True)
class _Known:
    """What an earlier audit of model A tells; ``about``: which audit, and what is made of it.
    Nothing where there was none, or it is a source of hints alone."""

    answers: Earlier | None = None
    about: str | None = None
    replay: Replay | None = None


class Versus:
    """Compares models ``a`` and ``b`` over one space.

    - ``a``, ``b``: the old model and the new one, or what one is made of, as ``Audit`` takes it.
    - ``margin``: in [0, 1), a difference of error rates that does not matter; targets whose whole
      interval lies within +- it are decided, too. Default 0: two models that are alike never part,
      so a limit (``budget``, ``max_cost`` ...) is needed.
    - ``until``: a StoppingRule that ends it in place of the decisions, such as a gate's
      (``gate.Gated``); limits end it, too. Default None: it ends once all targets are decided.
    - ``at_least``: in (-1, 1), a claim that is decided in place of all that: that R_A - R_B is this
      or more; -0.02: B errs more often by 0.02 at most. "holds" or "fails", each at full alpha, so
      sooner than by intervals. Default None: no claim.
    - ``recorded_a``: answers of model A to every question, as ``models.Recorded`` takes them; then
      ``a`` is None, and only B is asked and paid for. Default None: A is asked.
    - ``journal_a``: the journal of an earlier audit of ``a`` on this space. Default None: none.
    - ``use``: what is made of it. "condition": what A said there is taken as it is, free, and only
      what is missing is asked. "replay": the questions drawn there are asked first, in their order,
      of B alone (see ``engine.selector``); it holds only where B was made, and ``targets`` chosen,
      without looking at that audit. For both, model A, the oracle and the space have to be the
      same. "proxy": hints alone, for an earlier version of A. Default "condition".
    - ``targets``, ``confidence``, ``guarantee``, ``where``, ``weights``, ``strategy``, ``seed``,
      ``budget``, ``max_cost`` and all other options: as ``Audit`` takes them, but for
      ``half_width`` and ``at_most``. ``budget`` counts the calls of both models. ``targets`` is
      "overall" by default.

    Raises InputError for options that are out of range or do not fit, and for a ``journal_a`` that
    is being written; JournalError where a comparison is gone on with and ``journal_a`` changed.
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
        certify, self.sampling, self.limits = grouped(options, None, None, None)
        if until is not None:
            check_rule(until, "until")
            both = (until,) if self.limits.stop is None else (until, self.limits.stop)
            self.limits = replace(self.limits, stop=FirstOf(both))
        self.space, self.margin, self._stops = space, margin, until is None
        self.at_least = at_least
        self._check(certify, a, recorded_a, journal_a, use)
        begin = partial(Audit, journal=journal, device=device)
        new = model_of(b)
        with ExitStack() as self._opened:
            if recorded_a is not None:
                self.audit = self._against(recorded_a, new, certify, partial(begin, notes=notes))
            elif a is not None:
                old = model_of(a)
                self.audit = self._together(
                    old, new, certify, journal_a, use, journal, notes, begin
                )
            self._opened = self._opened.pop_all()

    def _check(self, certify: Certify, a: Any, recorded_a: Any, journal_a: Any, use: str) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"margin: expected a number from 0 to below 1, got {self.margin}")
        if self.at_least is not None and not -1 < self.at_least < 1:
            raise InputError(
                f"at_least: expected a difference of rates between -1 and 1, got {self.at_least}"
            )
        if self.at_least is not None and self.margin:
            raise InputError(
                f"versus: expected margin or at_least, got both ({self.margin:g} and "
                f"{self.at_least:g}); a claim has its margin in itself"
            )
        if certify.half_width is not None or certify.at_most is not None:
            raise InputError(
                "versus: expected a margin, got half_width or at_most; those are about one model"
            )
        if (a is None) == (recorded_a is None):
            raise InputError(
                "versus: expected model a or its recorded answers (recorded_a), got "
                + ("neither" if a is None else "both")
            )
        if self.sampling.name == EVERYTHING:
            raise InputError(
                f"versus: expected a strategy that draws, got {EVERYTHING!r}; where the budget "
                "reaches for all questions, they are all asked and every difference is exact"
            )
        certify.check_targets(self.space)
        _check_use(certify, recorded_a, journal_a, use)
        if journal_a is not None and recorded_a is not None:
            raise InputError("versus: expected recorded_a or journal_a, got both")
        if self.margin == 0 and self.at_least is None and not self.limits.rules(None):
            raise InputError(
                "versus: expected a margin above 0, at_least or a limit (budget, max_cost or "
                "stop), got none; models that are exactly alike would be asked every question "
                "there is"
            )

    # -- model A is asked, too -----------------------------------------------------------

    def _together(
        self,
        a: ModelUnderTest,
        b: ModelUnderTest,
        certify: Certify,
        journal_a: Path | str | None,
        use: Use,
        journal: Path | str | None,
        notes: Mapping[str, Any] | None,
        begin: "partial[Audit]",
    ) -> Audit:
        if self.space.oracle.judge_by is not None:
            raise InputError(
                "versus: expected an oracle whose rule reads replies alone, got one with a judge "
                "model, which a comparison does not ask; take [oracle.judge] out, or audit each "
                "model alone"
            )
        known = _Known()
        if journal_a is not None:
            _refuse_running(journal_a)
            if use != "proxy":
                known = self._known(a, journal_a, use)
        asked = None if known.answers is None else known.answers.asked
        paired = Paired(self.space.oracle, asked, known.about)
        space = self.space.judged_by(paired)
        if journal is not None and journal_a is not None:
            _refuse_other_earlier(journal, paired.options, journal_a)
        both = pair(a, b)
        both.halves = self._halves(both, journal, known.answers)
        return begin(
            space,
            both,
            notes={**(notes or {}), "known_a": [] if asked is None else asked.tolist()},
            limits=self.limits,
            sampling=replace(self.sampling, replay=known.replay),
            certify=replace(
                certify,
                compare=Comparison(margin=self.margin, stops=self._stops, at_least=self.at_least),
                surrogate=_surrogate(certify, space, None if known.replay else known.answers),
                prior_journal=journal_a if use == "proxy" else None,
            ),
        )

    def _known(self, a: ModelUnderTest, journal_a: Path | str, use: Use) -> "_Known":
        """What the earlier audit of A tells. Its journal stays open where its draws are needed."""
        where, journal = str(journal_a), read_journal(journal_a)
        self._opened.enter_context(closing(journal))
        answers = earlier_answers(self.space, a, journal, where)
        if use == "condition":
            return _Known(answers, f"condition {journal.head}", None)
        replay = Replay(journal, read_facts(journal.facts()), where)
        # not by its head, which A's last losses enter: all that is random here follows from this
        return _Known(answers, f"replay {replay.facts.key}", replay)

    def _halves(self, both: Pair, journal: Path | str | None, earlier: Earlier | None) -> Halves:
        """What either model is known to have said: earlier, or when a pair was interrupted."""
        path = None if journal is None else Path(journal)
        about = f"{self.space.fingerprint} {both.name} {version_of(both)} {both.template_hash}"
        answered = None if path is None else _answered(self.space, path)
        file = None if path is None else path.with_name(f"{path.name}.halves")
        store = HalfStore(file, about, answered)
        self._opened.enter_context(closing(store))
        return store if earlier is None else KnownAnswers(earlier.answers, store, answered)

    # -- model A is known ----------------------------------------------------------------

    def _against(
        self,
        recorded: pd.DataFrame,
        b: ModelUnderTest,
        certify: Certify,
        begin: "partial[Audit]",
    ) -> Audit:
        space = self.space
        if space.oracle.needs_source:
            raise InputError(
                "recorded_a: expected an oracle that needs no source image's answer, got "
                f"{type(space.oracle.original).__name__}; give model a itself"
            )
        known = Recorded(recorded, per_call=adapted_model(b).answers, name="a")
        known.tells_losses = space.oracle.tells_losses
        _check_whole(space, known)
        if certify.unanswered == "both" and (missing := unanswered(space, known)):
            raise InputError(
                f"recorded_a: expected an answer to every question where unanswered = 'both', as "
                f"A's rates must be known exactly; got none to {missing} of {space.size}: record "
                "them, or take unanswered = 'loss'"
            )
        questions, losses = all_losses(space, known)
        rates = means(
            space, named_targets(space, certify.targets, certify.where), questions, losses
        )
        proxies = {**(certify.proxies or {}), "a": _as_answers(space, questions, losses)}
        return begin(
            space,
            b,
            limits=self.limits,
            sampling=self.sampling,
            certify=replace(
                certify,
                compare=Comparison(
                    tuple(rates.tolist()), -1.0, self.margin, self._stops, self.at_least
                ),
                proxies=proxies,
            ),
        )

    # -- running -------------------------------------------------------------------------

    def run(self, on_progress: Hooks = None) -> Verdict:
        """Asks until every difference is decided, or a limit is met; see ``Audit.run``."""
        self.audit.run(on_progress)
        return self.verdict()

    def verdict(self) -> Verdict:
        """What is known now."""
        return verdict_of(self.audit.result(), self.audit.journal)

    def close(self) -> None:
        """Releases the files."""
        self.audit.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verdict_of(result: Result, source: Journal | Run) -> Verdict:
    """How the comparison of a run, or of its journal, stands, ``result`` being what it comes to."""
    run = Run.of(source)
    rows = pd.DataFrame([asdict(row) for row in result.versus])
    known = run.facts.known_a
    made = calls_of(run.certificate, run.draws, run.calls, len(run.sources), known)
    return Verdict(rows.astype({"disagreement": float}), *made, result, names_of(run.facts))


def _surrogate(certify: Certify, space: QuestionSpace, earlier: Earlier | None) -> bool | Named:
    """Two question GPs, unless predictions are switched off."""
    if certify.surrogate is False:
        return False
    if certify.surrogate is not True:
        raise InputError(
            f"surrogate: expected True or False in a comparison, got {certify.surrogate!r}"
        )
    known = None if earlier is None else partial(_known_losses, space, earlier)
    from ..surrogates.difference_gp import DifferenceGP  # imports PyTorch

    return Named("difference-gp", partial(DifferenceGP, known=known))


def _known_losses(
    space: QuestionSpace, earlier: Earlier, sample: Indices, variant: Indices, concept: Indices
) -> Floats:
    """(n,): A's losses where an earlier audit found them, else NaN."""
    return earlier.losses_of(space.number(sample, variant, concept))


def _answered(space: QuestionSpace, path: Path) -> Mapping[str, int]:
    """How many pairs of each prompt a journal holds, by its key."""
    if not path.is_file():
        return {}
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        return answered_keys(space, journal) if is_begun(journal.facts()) else {}


def _check_use(certify: Certify, recorded_a: Any, journal_a: Any, use: str) -> None:
    """Raises InputError where what is to be made of an earlier audit does not fit."""
    check_known("use", use, get_args(Use), "journal_a")
    if certify.cohort is not None:
        raise InputError(
            "versus: expected an audit of one model where there is a cohort, got a comparison of "
            "two; leave cohort out"
        )
    if certify.prior_journal is not None and recorded_a is None:
        raise InputError(
            "versus: expected journal_a, the journal of an earlier audit of model A, got "
            "prior_journal, which is about one model"
        )
    if journal_a is None and use != "condition":
        raise InputError(f"versus: expected journal_a where use = {use!r}, got none")


def _refuse_running(journal_a: Path | str) -> None:
    """Raises InputError while that journal is being written: the comparison rests on what it holds
    now, and could not be gone on with once it holds more."""
    process = holder(Path(journal_a))
    if process is not None:
        raise InputError(
            f"journal_a {str(journal_a)!r}: expected an audit that has ended, got one that process "
            f"{process or '(unknown)'} is writing: wait until it has ended, or give a copy of its "
            "folder"
        )


def _refuse_other_earlier(
    journal: Path | str, options: Sequence[str], journal_a: Path | str
) -> None:
    """Raises JournalError where a comparison rests on other content of the earlier audit, and all
    ``options`` of its oracle beside that are the same."""
    if not Path(journal).is_file():
        return
    with closing(SQLiteJournal(journal, read_only=True)) as begun:
        facts = begun.facts()
        oracle = read_facts(facts).begun_with.get("oracle", {}) if is_begun(facts) else {}
    before = oracle.get("options", [])
    (then, rest), (now, others) = map(_without_earlier, (before, options))
    same_use = [each.split()[:-1] for each in then] == [each.split()[:-1] for each in now]
    if then != now and same_use and rest == others:
        raise JournalError(
            f"journal_a {str(journal_a)!r}: this run went on since the comparison began, or is "
            "another one; give a copy of it as it was (--journal-a), or begin another comparison "
            "with a new --out"
        )


def _without_earlier(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """What the options of a comparison's oracle say of the earlier audit, and all others."""
    earlier = [option for option in options if option.startswith(EARLIER)]
    return earlier, [option for option in options if option not in earlier]


def _check_whole(space: QuestionSpace, known: Recorded) -> None:
    """Raises InputError where a picture has no row: A would be taken to have failed there."""
    images = np.unique(space.image_of(space.nth(np.arange(space.size))))
    missing = []
    for sample, variant in zip(*space.numbering.image_parts(images), strict=True):
        chosen, name = space.variants[variant], space.dataset.sample_id(int(sample))
        if not known.holds(name, chosen.relation.name, chosen.severity):
            missing.append(f"sample {name!r}, {chosen.name}")
    if missing:
        raise InputError(
            f"recorded_a: expected a row for each of {len(images)} pictures, got none for "
            f"{len(missing)}, such as {missing[0]}; 'avtt export --questions' writes a table "
            "with all of them, in which a cell stays empty where A gave no answer"
        )


def _as_answers(space: QuestionSpace, questions: Indices, losses: Floats) -> Floats:
    """Samples x variants x concepts of P(yes) that lose what was lost, else .5."""
    values = np.full(space.total, 0.5)
    values[questions] = np.nan_to_num(np.abs(losses - space.truth(questions)), nan=0.5)
    return values.reshape(len(space.dataset), len(space.variants), len(space.concepts))
