"""``adaptive_vtt.compare``: several strategies on one space, with the same seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__
from ..audit import Audit
from ..audit.everything import MAX_CALLS, all_losses, calls_of, means
from ..certify import named_targets
from ..certify.targets import Target
from ..engine.options import Sampling, grouped
from ..errors import InputError
from ..journal.facts import read_facts
from ..models import Recorded
from ..models.base import ModelDefaults, ModelSource, adapted_model
from ..models.checking import name_of
from ..models.local.python import model_of
from ..space import QuestionSpace
from ..strategies import REGISTRY, Strategy, default, named
from ..utils.options import check_options
from .comparison import StrategyComparison
from .kept import BUDGET, STRATEGY, KeptRuns
from .runs import BASELINES, CLASSICS, UNIFORM, Job, begun, certified_run, uncertainty_run

ALL_BASELINES = "baselines"
"""Stands for all there is to compare with."""
WORDS = (UNIFORM, "prediction-powered", "argmax")
"""Baselines that are no strategies of their own: one with options that make them what they are."""
OF_AUDIT = ("candidates", "exploration")
"""Options of an audit that a row of a comparison may have of its own, beside its strategy's."""
OWN = ("strategy", "strategy_options", "seed")
"""Options of an audit that are a row's, or a repeat's."""
ADDRESS = " at 0x"
"""In the text of an object that does not say what it is made of."""
Given = str | Strategy | tuple[str | Strategy, Mapping[str, Any]]


@dataclass(frozen=True)
class Entrant:
    """A row of a comparison: its name, a strategy, and the options of its own."""

    name: str
    strategy: str | Strategy
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, certifies: bool, base: Path | None = None) -> None:
        """Raises InputError for a strategy that there is not, and for an option that neither it nor
        OF_AUDIT has, or out of its range. Relative files start at ``base``."""
        where, name = f"strategy {self.name!r}", self.strategy
        own, shared = self._parts()
        if certifies and self.name in BASELINES and self.name != name:
            raise InputError(f"{where}: expected another name, this is that of a baseline")
        if certifies and isinstance(name, str) and name in BASELINES:
            if name in WORDS and self.options:
                raise InputError(f"{where}: expected no options, got {', '.join(self.options)}")
            name = BASELINES[name]["strategy"]
        if isinstance(name, str) and own:
            REGISTRY.check_options(name, own, base, OF_AUDIT)
        check_options(Sampling, shared, where)
        named(name, own, base)

    def job(self, begin: Callable[..., Audit], seed: int, **more: Any) -> Job:
        """Its audit with this seed."""
        own, shared = self._parts()
        options = {**({"strategy_options": own} if own else {}), **shared}
        return Job(begin, self.strategy, seed, options=options, name=self.name, **more)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The options of the strategy, and those of the audit."""
        shared = {name: self.options[name] for name in OF_AUDIT if name in self.options}
        return {n: v for n, v in self.options.items() if n not in shared}, shared


def compare(
    space: QuestionSpace,
    model: ModelSource,
    strategies: Iterable[str | Strategy] | Mapping[str, Given] | None = None,
    *,
    repeats: int = 4,
    exhaust: bool = False,
    out: Path | str | None = None,
    advance: Callable[[int], object] = lambda audits: None,
    **options: Any,
) -> StrategyComparison:
    """Audits the model with every strategy and the seeds 0, 1, 2 ..., one after the other.

    - ``space``, ``model``: as ``Audit`` takes them; the model has to cost nothing.
    - ``strategies``: names or strategies; or name of a row -> one of them, or a pair of one and its
      options, such as ``{"curious": ("certify", {"curiosity": 0.3})}``: those that the strategy
      takes, ``candidates`` and ``exploration``. Where something is certified, "uniform" stands
      beside them. Default None: random, and the one that an audit would take.
    - ``repeats``: audits per strategy; 4 or more give a range of ratios. Default 4.
    - ``exhaust``: ask everything once, so that errors and coverage are known, too; of recorded
      answers they are anyway. Default False.
    - ``out``: a folder for the files of ``StrategyComparison.save``, and for the audits that ended:
      the same call goes on where it was interrupted, and more repeats or strategies cost what is
      new, a larger budget what was not certified by then. Run anew is what nobody can tell to be as
      it was: a model that is a function without a version, and a strategy or another part of one's
      own. Default None: nothing is written.
    - ``advance``: called with how many audits are kept, then with 1 after every other.
    - ``options``: of every ``Audit``, such as ``half_width`` and ``budget``. Where something is
      certified, ``stop`` and ``goal`` do not count.

    Raises InputError for what does not fit, and where ``out`` keeps audits of another comparison,
    before anything is asked.
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
    with _same_threads():
        kept = (
            KeptRuns(None)
            if out is None
            else _kept(Path(out), space, jobs, goal is not None, options)
        )
        left = kept.left(jobs)
        advance(len(jobs) - len(left))
        for job in left:
            kept.keep((uncertainty_run if goal is None else certified_run)(job))
            advance(1)
    runs = kept.of(jobs)
    found = StrategyComparison(runs, goal, certify.confidence, names, truth)
    if out is not None:
        found.save(out)
    return found


def _kept(
    out: Path,
    space: QuestionSpace,
    jobs: Sequence[Job],
    certifies: bool,
    options: Mapping[str, Any],
) -> KeptRuns:
    """The runs that ``out`` keeps of this comparison; of rows of which nobody can tell whether they
    are made of the same, none.

    Raises InputError where it keeps those of another one.
    """
    keys = {job.name: _key(job, certifies) for job in jobs if not job.seed}
    told = {name: repr(value) for name, value in options.items() if name != BUDGET}
    if not any(keys.values()) or any(ADDRESS in text for text in told.values()):
        return KeptRuns(None)
    kept = KeptRuns(out)
    made_of = {"spec": told, "space": space.fingerprint, "truth": jobs[0].truth}
    kept.expect(avtt=__version__, **made_of, **{BUDGET: jobs[0].budget})
    kept.expect(**{f"{STRATEGY}{name}": key for name, key in keys.items()})
    for name, seed in [*kept.runs]:
        if name in keys and keys[name] is None:
            del kept.runs[name, seed]
    return kept


def _key(job: Job, certifies: bool) -> str | None:
    """The key of the job's audit, which follows from all that it is made of but its limits; None
    where a part of it is somebody's own code, or a model without version and known content."""
    with begun(job, certifies=certifies) as audit:
        facts = read_facts(audit.journal.facts())
    return facts.key if facts.entropy is None and facts.model_version is not None else None


def entrants(
    given: Iterable[str | Strategy | Entrant] | Mapping[str, Given],
    certifies: bool,
    base: Path | None = None,
) -> list[Entrant]:
    """The rows of a comparison: those given, as ``compare`` takes them, and uniform questioning
    first where it ``certifies``. Relative files of strategies start at ``base``.

    Raises InputError for none, for two of one name, and as ``Entrant.check`` does.
    """
    found: dict[str, Entrant] = {}
    for row in _rows(given, certifies):
        row.check(certifies, base)
        if found.setdefault(row.name, row) != row:
            raise InputError(
                f"strategies: expected a name of its own for each, got {row.name!r} twice; give a "
                "mapping from names to strategies"
            )
    if not found:
        raise InputError("strategies: expected at least one, got none")
    return [*({UNIFORM: Entrant(UNIFORM, UNIFORM)} | found if certifies else found).values()]


def _rows(
    given: Iterable[str | Strategy | Entrant] | Mapping[str, Given], certifies: bool
) -> Iterator[Entrant]:
    if isinstance(given, Mapping):
        for name, value in given.items():
            yield Entrant(name, *(value if isinstance(value, tuple) else (value,)))
        return
    for each in [given] if isinstance(given, str) else given:
        if isinstance(each, Entrant):
            yield each
        elif each == ALL_BASELINES and certifies:
            yield from (Entrant(name, name) for name in CLASSICS)
        else:
            yield Entrant(each if isinstance(each, str) else type(each).__name__, each)


def jobs_of(
    rows: Iterable[Entrant],
    repeats: int,
    begin: Callable[..., Audit],
    budget: int | None,
    truth: Sequence[float] | None,
) -> list[Job]:
    """The audit of every row with every seed; arguments as those of ``Job``."""
    known = None if truth is None else tuple(truth)
    return [
        row.job(begin, seed, budget=budget, truth=known) for row in rows for seed in range(repeats)
    ]


def truth_of(
    space: QuestionSpace,
    model: ModelDefaults,
    targets: Sequence[Target],
    advance: Callable[[int], object] = lambda calls: None,
) -> list[float]:
    """The true mean loss of every target, found by asking everything.

    Raises InputError where that takes more than MAX_CALLS calls.
    """
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        raise InputError(f"exhaust: expected at most {MAX_CALLS:,} calls, got {calls:,}")
    return [float(mean) for mean in means(space, targets, *all_losses(space, model, advance))]


def _check(
    space: QuestionSpace, model: ModelDefaults, repeats: int, options: Mapping[str, Any]
) -> None:
    if given := [name for name in OWN if name in options]:
        raise InputError(
            f"compare: expected no {given[0]!r} among the options, as it differs from audit to "
            "audit; give strategies and repeats"
        )
    if repeats < 1:
        raise InputError(f"compare: expected at least 1 repeat, got {repeats}")
    if model.costs_money:
        raise InputError(
            f"compare: expected a model that costs nothing, got {name_of(model)!r}; compare on "
            "recorded answers (models.Recorded)"
        )
    if space.oracle.judge_by is not None:
        raise InputError(
            "compare: expected an oracle whose rule reads replies alone, got one with a judge "
            "model, which every audit would ask anew"
        )


@contextmanager
def _same_threads() -> Iterator[None]:
    """Leaves PyTorch the number of threads it had: runs take one each."""
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
