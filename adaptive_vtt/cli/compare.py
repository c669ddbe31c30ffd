"""``avtt compare``: audit the same space with several strategies, several times each."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit
from ..audit.everything import MAX_CALLS, all_answers, calls_of
from ..benchmark import runs as work
from ..benchmark import summary as figures
from ..benchmark.comparing import Entrant, entrants, jobs_of, truth_of
from ..benchmark.comparison import StrategyComparison
from ..benchmark.executors import check_executor, run_all
from ..benchmark.kept import BUDGET, STRATEGY, KeptRuns
from ..certify import named_targets
from ..config import Spec
from ..config.building import build_audit, build_model, build_space, unworked
from ..config.journaled import content_of, contents
from ..config.models import ModelSection, OwnSection
from ..config.oracles import WordsSection
from ..engine.audit_key import metadata_used
from ..errors import InputError, advising
from ..models.versions import version_of
from ..results.advice import Step
from ..space import QuestionSpace
from ..strategies import REGISTRY as STRATEGIES
from ..strategies import default
from ..types import JsonObject
from ..utils.files import hash_file, write_text
from ..utils.importing import own_version
from ..utils.other_code import file_of
from ..utils.tables import csv_text
from .options import names
from .printing import plain_console, print_frame, print_json
from .progress import counting
from .run_folder import print_steps, same_command
from .signals import interrupted_as
from .spec_changes import read, value_of

ANSWERS = "answers.csv"
OPTION = re.compile(r":(?=[A-Za-z_]\w*=)")
"""Colon before an option of a strategy; that of file.py:name has no equals sign behind it."""
WIDE = 92
"""Fewest columns of a terminal that show three half-widths, not two."""


def compare(
    spec: Path | None = None,
    *,
    demo: bool = False,
    strategies: str | None = None,
    repeats: int = 4,
    half_width: float | None = None,
    targets: str | None = None,
    budget: int | None = None,
    exhaust: bool = False,
    executor: str = "processes",
    out: Path = Path("runs/compare"),
    set_: list[str] | None = None,
    json_: bool = False,
) -> None:
    """Compare strategies on the same questions.

    The same command continues an interrupted comparison: runs.jsonl of its folder
    keeps the audits that ended. With more repeats or strategies only new audits
    are run, with an edited strategy its own, with a larger budget those that had
    not certified everything. A strategy may be listed several times with other
    options, exploration or candidates: certify,certify:curiosity=0.3

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5

    Args:
        spec (SPEC.toml): What to audit; its model must cost nothing.
        demo: Compare on the bundled model.
        strategies (NAMES): Names, separated by commas, each with its options behind colons;
            'baselines' names all baselines. Default: random, and the one that an audit would
            take. With a half-width, uniform (random draws without predictions) is added.
        repeats: Audits per strategy, with the seeds 0, 1, 2 ...; strategies are compared from 4 on.
        half_width (SHARE): {certify.half_width}
        targets (NAMES): {certify.targets}
        budget (CALLS): {audit.budget}
        exhaust: Ask the model everything once, to compare estimates with the truth.
        executor (NAME): Where the audits run: processes of this machine, or ray, a Ray cluster, or
            its address, ray://HOST:PORT.
        out: Folder to write compare.html, .json, .csv and .tex into.
    """
    flags = {
        "audit.budget": budget,
        "certify.half_width": half_width,
        "certify.targets": names(targets),
    }
    chosen, base = read(spec, demo, flags, set_)
    goal = chosen.certify.half_width
    own = chosen.audit.strategy or default(goal is not None)
    rows = _checked(chosen, base, names(strategies) or ["random", own], executor)
    _check_repeats(repeats, goal)
    if exhaust and goal is None:
        raise InputError("--exhaust: expected a half-width to certify (--half-width), got none")
    kept = KeptRuns(out)
    space = build_space(chosen, base)  # a spec that cannot be used ends here, not in a worker
    kept.expect(**_made_of(chosen, base, space, exhaust, rows))
    if kept.outdated and not json_:
        outdated = ", ".join(f"{name} ({count})" for name, count in kept.outdated.items())
        typer.echo(f"audits outdated, as a strategy or the budget changed: {outdated}", err=True)
    comparison = _Comparison(chosen, base, space, rows, repeats, executor, out, json_, kept)
    with interrupted_as(comparison.interruption):
        if goal is None:
            result = StrategyComparison(comparison.runs(chosen, work.uncertainty_run))
        else:
            result = comparison.certified(goal, exhaust)
        paths = result.save(out)
    if json_:
        return print_json({name: v for name, v in result.to_dict().items() if name != "runs"})
    if goal is None:
        title = "median calls until the mean uncertainty is below a share of its prior"
        print_frame(title, result.table, narrow=True)
    else:
        _show_certified(result)
    for path in paths:
        typer.echo(f"wrote {path}")  # on a line of its own, which no terminal breaks
    # argmax certifies hardly anything: it would take about all calls there are
    ending = [run for run in result.runs if run["strategy"] != "argmax" and goal is not None]
    if enough := figures.sufficient_budget(ending):
        print_steps([Step(same_command(f"--budget {enough}"), "enough for all strategies")])


def _checked(spec: Spec, base: Path, compared: Iterable[str], executor: str) -> list[Entrant]:
    """Return the rows of a comparison.

    Raises:
        InputError: Every audit would pay the model again, or a goal is missing.
    """
    costs = spec.model.costs_money
    if not costs and isinstance(spec.model, OwnSection):
        with build_model(spec, base, build_space(spec, base).dataset) as model:
            costs = model.costs_money
    if costs:
        raise InputError(
            f"compare: expected a model that costs nothing, got one of kind {spec.model.kind!r}; "
            "compare on recorded answers (kind = 'recorded') or a simulated model"
        )
    if isinstance(spec.oracle, WordsSection) and spec.oracle.judge is not None:
        raise InputError(
            "compare: expected an oracle whose rule reads replies alone, got one with a judge "
            "model, which every audit of a comparison would ask again; take [oracle.judge] out"
        )
    check_executor(executor)
    certifying = spec.certify.half_width is not None
    rows = entrants(map(_row, compared), certifying, base)
    if not certifying and spec.audit.budget is None:
        raise InputError(
            "compare: expected a budget (--budget or audit.budget) or a half-width to certify "
            "(--half-width or certify.half_width), got neither"
        )
    return rows


def _check_repeats(repeats: int, goal: float | None) -> None:
    """Raise InputError for no repeats; print that few of them compare nothing."""
    if repeats < 1:
        raise InputError(f"--repeats: expected at least 1, got {repeats}")
    if goal is not None and repeats < figures.FEW_REPEATS:
        few = f"too few to say which strategy needs fewer calls; {figures.FEW_REPEATS} or more can"
        typer.echo(f"warning: --repeats {repeats} is {few}", err=True)


def _row(text: str) -> str | Entrant:
    """Return the row of a text NAME or NAME:OPTION=VALUE:..., which also names the row."""
    name, *options = OPTION.split(text)
    values = {key: value_of(value) for key, _, value in (each.partition("=") for each in options)}
    return Entrant(text, name, values) if options else text


def _made_of(
    spec: Spec, base: Path, space: QuestionSpace, exhaust: bool, rows: Iterable[Entrant]
) -> JsonObject:
    """Return what kept runs depend on, except seeds and built-in strategies.

    runs.jsonl is used again only if all of this is the same.
    """
    files = {}
    for name, file in {"model": spec.model.file(), **(spec.certify.proxies or {})}.items():
        if file:  # a file of answers, or the file of FILE:NAME
            path = file_of(file, base) or base / file
            files[name] = hash_file(path) if path.is_file() else None
    code = contents(spec, base)
    code.pop("audit.strategy", None)  # each row has its own
    own = {row.name: str(row.strategy) for row in rows}
    own = {r: n for r, n in own.items() if n not in work.BASELINES and STRATEGIES.is_code(n)}
    return {
        "avtt": own_version(),
        "spec": spec.model_dump(mode="json", exclude={"audit": {BUDGET}}),
        BUDGET: spec.audit.budget,
        "exhaust": exhaust,
        "space": [space.fingerprint, metadata_used(space)],
        "code": code,
        "files": files,
        **{f"{STRATEGY}{row}": content_of(STRATEGIES, name, base) for row, name in own.items()},
    }


_SPACES: dict[str, QuestionSpace] = {}
"""The space of a spec, which all audits of a worker's process share, with nets and renderings."""


def _begun(spec: Spec, base: Path, **options: Any) -> Audit:
    """Return an audit of a comparison, in the process that runs it."""
    if (text := spec.model_dump_json()) not in _SPACES:
        _SPACES[text] = build_space(spec, base)
    return build_audit(spec, base, space=_SPACES[text], **options)


@dataclass(frozen=True)
class _Comparison:
    """A comparison of strategies: its parts, its executor and the folder of its files."""

    spec: Spec
    base: Path
    space: QuestionSpace
    rows: list[Entrant]
    repeats: int
    executor: str
    out: Path
    quiet: bool
    kept: KeptRuns

    def certified(self, goal: float, exhaust: bool) -> StrategyComparison:
        """Run audits that certify. The truth is computed if that is free, or with ``exhaust``."""
        certify, spec, truth = self.spec.certify, self.spec, None
        targets = named_targets(self.space, certify.targets, certify.where)
        if exhaust and isinstance(spec.model, OwnSection):
            spec = self._recorded()
        if spec.model.free:
            model = build_model(spec, self.base, self.space.dataset)
            if (calls := calls_of(self.space, model)) <= MAX_CALLS:
                with counting("computing the truth", calls, self.quiet) as advance:
                    truth = truth_of(self.space, model, targets, advance)
        self.kept.expect(truth=truth)
        runs = self.runs(spec, work.certified_run, truth)
        names = [target.name for target in targets]
        return StrategyComparison(runs, goal, certify.confidence, names, truth)

    def interruption(self) -> str:
        """Return the sentence for an interruption."""
        if not self.kept.runs:
            kept = "; the answers to everything are kept" if "answers" in self.kept.facts else ""
            return f"interrupted before an audit had ended{kept}; the same command begins again"
        wanted = [(row.name, seed) for row in self.rows for seed in range(self.repeats)]
        return (
            f"interrupted; {len(self.kept.runs.keys() & wanted)} of {len(wanted)} audits are "
            f"kept in {self.kept.path}, those under way are lost; the same command continues"
        )

    def _recorded(self) -> Spec:
        """Return a spec that replays the model's answers to everything.

        The model is asked unless an earlier comparison has done so. Name and version stay the
        model's, so that audits draw the same questions as they would with it.
        """
        spec, file = self.spec, (self.out / ANSWERS).resolve()
        with build_model(spec, self.base, self.space.dataset) as model:
            if not file.is_file() or self.kept.facts.get("answers") != hash_file(file):
                calls = calls_of(self.space, model)
                if calls > MAX_CALLS or model.answers != "all":
                    raise InputError(
                        f"--exhaust: expected at most {MAX_CALLS:,} calls that each answer "
                        f"every concept, got {calls:,} calls that answer {model.answers}"
                    )
                with counting("asking everything", calls, self.quiet) as advance:
                    write_text(file, csv_text(all_answers(self.space, model, advance)))
                self.kept.note(answers=hash_file(file))
            same = {"name": model.name, "version": version_of(model)}
        replay = spec.model.model_dump(include=set(ModelSection.model_fields) - {"kind"}) | same
        section = ModelSection.model_validate({**replay, "kind": "recorded", "answers": str(file)})
        return spec.model_copy(update={"model": section})

    def runs(
        self, spec: Spec, run: Callable[[work.Job], work.Run], truth: list[float] | None = None
    ) -> list[work.Run]:
        """Run every strategy with every seed, except the runs that are kept."""
        kept = self.kept
        # audits run in parallel, so each holds its model itself
        begin = partial(_begun, unworked(spec), self.base)
        jobs = jobs_of(self.rows, self.repeats, begin, spec.audit.budget, truth)
        left = kept.left(jobs)
        if len(left) < len(jobs) and not self.quiet:
            count = f"{len(jobs) - len(left)} of {len(jobs)}"
            typer.echo(f"{count} audits are in {kept.path}", err=True)
        again = "once that is mended, the same command runs the audits that are left"
        with advising(again), counting("auditing", len(left), self.quiet) as advance:

            def ended(done: work.Run) -> None:
                kept.keep(done)
                advance(1)

            run_all(run, left, ended, executor=self.executor)
        return kept.of(jobs)


# -- printing -----------------------------------------------------------------------------


def _show_certified(result: StrategyComparison) -> None:
    console, table, repeats = plain_console(), result.table, result.runs[-1]["seed"] + 1
    levels = [name for name in map(str, table) if name.startswith(figures.CALLS_TO)]
    fitting = levels[-3 if console.width >= WIDE else -2 :]
    widths = [name for name in map(str, table) if " half-width at " in name]
    known = ["coverage", "ever missed"] if result.truth is not None else []
    sheet = figures.to_read(table, fitting, [figures.RATIO, *widths, *known])
    sheet["ms per draw"] = (table["seconds per draw"] * 1000).round(1)
    count = f"{len(result.targets)} target{'s' * (len(result.targets) != 1)}"
    title = f"median calls to half-widths, {count}, {repeats} repeat{'s' * (repeats != 1)}"
    print_frame(title, sheet, narrow=True)
    if result.truth is None:
        console.print("for coverage and errors, add --exhaust: it asks the model everything once")
    else:
        errors = figures.in_points(result.estimators)
        print_frame("errors of estimates made from the same draws", errors, narrow=True)
    for sentence in result.conclusions:
        console.print(f"- {sentence}")
