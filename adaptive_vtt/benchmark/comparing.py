"""``adaptive_vtt.compare``: several strategies on one space, with the same seeds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..audit import Audit
from ..audit.everything import MAX_CALLS, all_losses, calls_of, means
from ..certify import named_targets
from ..certify.targets import Target
from ..engine.options import Sampling, grouped
from ..errors import InputError, unexpected
from ..journal.facts import read_facts
from ..models import Recorded
from ..models.base import ModelDefaults, ModelSource, adapted_model
from ..models.checking import name_of
from ..models.local.python import model_of
from ..space import QuestionSpace
from ..strategies import REGISTRY, Strategy, default, named
from ..utils.importing import own_version
from ..utils.options import check_options
from .comparison import StrategyComparison
from .kept import BUDGET, STRATEGY, KeptRuns
from .runs import BASELINES, CLASSICS, UNIFORM, Job, begun, certified_run, uncertainty_run

ALL_BASELINES = "baselines"
"""Name that stands for all baselines."""
FIXED = (UNIFORM, "prediction-powered", "argmax")
"""Baselines with fixed options, which take none."""
OF_AUDIT = ("candidates", "exploration")
"""Options of an audit that a row of a comparison may set, in addition to its strategy's."""
PER_AUDIT = ("strategy", "strategy_options", "seed")
"""Options of an audit that depend on the row or the repeat."""
ADDRESS = " at 0x"
"""Part of the text of an object that does not show its contents."""
NamedRow = str | Strategy | tuple[str | Strategy, Mapping[str, Any]]
"""The strategy of a row that has a name, with or without options."""
Rows = Iterable["str | Strategy | Entrant"] | Mapping[str, NamedRow]


@dataclass(frozen=True)
class Entrant:
    """A row of a comparison: its name, its strategy, and its options."""

    name: str
    strategy: str | Strategy
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, certifies: bool, base: Path | None = None) -> None:
        """Raise InputError for an unknown strategy, and for an option that is unknown or out of
        range. Relative files start at ``base``."""
        where, name = f"strategy {self.name!r}", self.strategy
        own, shared = self._parts()
        if certifies and self.name in BASELINES and self.name != name:
            raise InputError(f"{where}: expected another name, this is that of a baseline")
        if certifies and isinstance(name, str) and name in BASELINES:
            if name in FIXED and self.options:
                raise unexpected(where, "no options", ", ".join(self.options))
            name = BASELINES[name]["strategy"]
        if isinstance(name, str) and own:
            REGISTRY.check_options(name, own, base, OF_AUDIT)
        check_options(Sampling, shared, where)
        named(name, own, base)

    def job(self, begin: Callable[..., Audit], seed: int, **more: Any) -> Job:
        """Return the row's audit with this seed."""
        own, shared = self._parts()
        options = {**({"strategy_options": own} if own else {}), **shared}
        return Job(begin, self.strategy, seed, options=options, name=self.name, **more)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options of the strategy, and those of the audit."""
        shared = {name: self.options[name] for name in OF_AUDIT if name in self.options}
        return {n: v for n, v in self.options.items() if n not in shared}, shared


def compare(
    space: QuestionSpace,
    model: ModelSource,
    strategies: Iterable[str | Strategy] | Mapping[str, NamedRow] | None = None,
    *,
    repeats: int = 4,
    exhaust: bool = False,
    out: Path | str | None = None,
    advance: Callable[[int], object] = lambda audits: None,
    **options: Any,
) -> StrategyComparison:
    """Audit a model with every strategy and the seeds 0, 1, 2 ..., one after the other.

    Args:
        space: The questions, as ``Audit`` takes them.
        model: The model, as ``Audit`` takes it; it must cost nothing.
        strategies: Names or strategies; or name of a row -> one of them, or a pair of one and its
            options, such as ``{"curious": ("certify", {"curiosity": 0.3})}``. Options are those of
            the strategy, ``candidates`` and ``exploration``. "uniform" is added if something is
            certified. Default None: random, and the default of an audit.
        repeats: Audits per strategy; 4 or more give a range of ratios.
        exhaust: Whether to ask everything once, so that errors and coverage are known, as they
            always are for recorded answers.
        out: Folder for the files of ``StrategyComparison.save`` and the audits that ended. The same
            call resumes after an interruption. More repeats or strategies cost only the new audits,
            a larger budget only those that were not certified. Audits that may have changed
            unnoticed are run again: those of a function without a version, and of a strategy or
            another part of your own. Default None: nothing is written.
        advance: Called with the number of audits that are kept, then with 1 after every other one.
        options: Options of every ``Audit``, such as ``half_width`` and ``budget``. If something is
            certified, ``stop`` and ``goal`` are ignored.

    Returns:
        The comparison, with its tables and figures.

    Raises:
        InputError: An argument does not fit, or ``out`` has audits of another comparison. Nothing
            has been asked then.
    """
    model = adapted_model(model_of(model))
    certify, sampling, limits = grouped(options, None, None, None)
    _check(space, model, repeats, options)
    sampling.check()
    limits.check()
    certify.check(sampling.share(certify.certifies))
    goal = certify.half_width
    if goal is None and (exhaust or limits.budget is None):
        wanted = "half_width" if exhaust else "half_width or a budget"
        raise InputError(f"compare: expected a {wanted}, got none")
    if strategies is None:
        strategies = ("random", default(goal is not None))
    rows = entrants(strategies, goal is not None)
    names: list[str] = []
    truth: list[float] | None = None
    if goal is not None:
        targets = named_targets(space, certify.targets, certify.where)
        names = [target.name for target in targets]
        if exhaust or (isinstance(model, Recorded) and calls_of(space, model) <= MAX_CALLS):
            truth = truth_of(space, model, targets)
    jobs = jobs_of(rows, repeats, partial(Audit, space, model, **options), limits.budget, truth)
    kept = KeptRuns(None) if out is None else _kept(Path(out), space, jobs, options)
    left = kept.left(jobs)
    advance(len(jobs) - len(left))
    run = uncertainty_run if goal is None else certified_run
    for job in left:
        kept.keep(run(job))
        advance(1)
    comparison = StrategyComparison(kept.of(jobs), goal, certify.confidence, names, truth)
    if out is not None:
        comparison.save(out)
    return comparison


def _kept(
    out: Path, space: QuestionSpace, jobs: Sequence[Job], options: Mapping[str, Any]
) -> KeptRuns:
    """Return the runs of this comparison that ``out`` keeps.

    Rows with parts that cannot be recognised have none. Raise InputError if ``out`` has runs of
    another comparison.
    """
    certifies = options.get("half_width") is not None
    keys = {job.name: _key(job, certifies) for job in jobs if job.seed == 0}
    spec = {name: repr(value) for name, value in options.items() if name != BUDGET}
    if not any(keys.values()) or any(ADDRESS in text for text in spec.values()):
        return KeptRuns(None)
    kept = KeptRuns(out)
    kept.expect(avtt=own_version(), spec=spec, space=space.fingerprint)
    kept.expect(truth=jobs[0].truth, budget=jobs[0].budget)
    kept.expect(**{f"{STRATEGY}{name}": key for name, key in keys.items()})
    kept.runs = {key: run for key, run in kept.runs.items() if keys.get(key[0], "") is not None}
    return kept


def _key(job: Job, certifies: bool) -> str | None:
    """Return the key of the job's audit, which depends on all its parts but its limits.

    It is None if a part is a user's code, or a model without version and known content.
    """
    with begun(job, certifies=certifies) as audit:
        facts = read_facts(audit.journal.facts())
    return facts.key if facts.entropy is None and facts.model_version is not None else None


def entrants(strategies: Rows, certifies: bool, base: Path | None = None) -> list[Entrant]:
    """Return the rows of a comparison.

    Args:
        strategies: The strategies, as ``compare`` takes them.
        certifies: Whether something is certified, so that uniform questioning is the first row.
        base: Folder that relative files of strategies start at.

    Raises:
        InputError: There is no row, two have one name, or ``Entrant.check`` refuses one.
    """
    rows: list[Entrant] = []
    if isinstance(strategies, Mapping):
        for name, row in strategies.items():
            rows.append(Entrant(name, *row) if isinstance(row, tuple) else Entrant(name, row))
    else:
        for strategy in [strategies] if isinstance(strategies, str) else strategies:
            if isinstance(strategy, Entrant):
                rows.append(strategy)
            elif strategy == ALL_BASELINES and certifies:
                rows += [Entrant(name, name) for name in CLASSICS]
            else:
                name = strategy if isinstance(strategy, str) else type(strategy).__name__
                rows.append(Entrant(name, strategy))
    if not rows:
        raise InputError("strategies: expected at least one, got none")
    unique = {UNIFORM: Entrant(UNIFORM, UNIFORM)} if certifies else {}
    for row in rows:
        row.check(certifies, base)
        if unique.setdefault(row.name, row) != row:
            wanted, remedy = "a different name for each", "give a mapping from names to strategies"
            raise unexpected("strategies", wanted, f"{row.name!r} twice", remedy)
    return [*unique.values()]


def jobs_of(
    rows: Iterable[Entrant],
    repeats: int,
    begin: Callable[..., Audit],
    budget: int | None,
    truth: Sequence[float] | None,
) -> list[Job]:
    """Return the audit of every row with every seed; the arguments are those of ``Job``."""
    known: Any = {"budget": budget, "truth": None if truth is None else tuple(truth)}
    return [row.job(begin, seed, **known) for row in rows for seed in range(repeats)]


def truth_of(
    space: QuestionSpace,
    model: ModelDefaults,
    targets: Sequence[Target],
    advance: Callable[[int], object] = lambda calls: None,
) -> list[float]:
    """Return the true mean loss of every target, by asking everything.

    Raise InputError if that takes more than MAX_CALLS calls.
    """
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        raise InputError(f"exhaust: expected at most {MAX_CALLS:,} calls, got {calls:,}")
    return [float(mean) for mean in means(space, targets, *all_losses(space, model, advance))]


def _check(
    space: QuestionSpace, model: ModelDefaults, repeats: int, options: Mapping[str, Any]
) -> None:
    for name in PER_AUDIT:
        if name in options:
            raise InputError(
                f"compare: expected no {name!r} among the options, as it differs from audit to "
                "audit; give strategies and repeats"
            )
    if repeats < 1:
        raise unexpected("compare", "at least 1 repeat", repeats)
    if model.costs_money:
        remedy = "compare on recorded answers (models.Recorded)"
        raise unexpected("compare", "a model that costs nothing", repr(name_of(model)), remedy)
    if space.oracle.judge_by is not None:
        got = "one with a judge model, which every audit would ask again"
        raise unexpected("compare", "an oracle whose rule reads replies alone", got)
