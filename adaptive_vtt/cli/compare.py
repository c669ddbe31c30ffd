"""``avtt compare``: the same space, several strategies, several seeds."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from rich.console import Console

from .. import __version__
from ..audit.everything import MAX_CALLS, all_answers, calls_of
from ..benchmark import runs as work
from ..benchmark import summary as figures
from ..benchmark.comparing import Entrant, entrants, jobs_of, truth_of
from ..benchmark.comparison import StrategyComparison
from ..benchmark.executors import check_executor, run_all
from ..benchmark.kept import BUDGET, STRATEGY, KeptRuns
from ..certify import named_targets
from ..certify.targets import Target
from ..config import Spec
from ..config.building import build_audit, build_model, build_space, unworked
from ..config.journaled import content_of, contents
from ..config.models import ModelSection, OwnSection
from ..config.oracles import WordsSection
from ..engine.assembly import metadata_used
from ..engine.audit_key import version_of
from ..errors import InputError
from ..space import QuestionSpace
from ..strategies import REGISTRY as STRATEGIES
from ..strategies import default
from ..types import JsonObject
from ..utils.files import hash_file, write_text
from ..utils.other_code import file_of
from ..utils.tables import csv_text
from .options import names
from .printing import plain_console, table_of
from .progress import counting
from .run_folder import same_command, tell
from .signals import interrupted_as
from .spec_changes import read, value_of

ANSWERS = "answers.csv"
OPTION = re.compile(r":(?=[A-Za-z_]\w*=)")
"""Before an option of a strategy: the colon of file.py:name has no equals sign behind it."""
WIDE = 92
"""Columns of a terminal that show one half-width more."""


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

    The same command goes on with a comparison that was interrupted: audits that
    ended are kept in runs.jsonl of its folder, those under way are lost. More
    repeats or strategies cost what is new, an edited strategy its own audits, a
    larger budget those that had not certified everything. One strategy may
    stand there several times, each time with other options, or another
    exploration or candidates: certify,certify:curiosity=0.3

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5

    Args:
        spec (SPEC.toml): What to audit; its model must cost nothing.
        demo: Compare on the bundled model.
        strategies (NAMES): Names, separated by commas, each with its options behind colons;
            'baselines' stands for all there are. Default: random, and the one that an audit would
            take. Where something is certified, uniform (draws by chance without predictions) stands
            beside them.
        repeats: Audits per strategy, with the seeds 0, 1, 2 ...; 4 or more give a range of ratios.
        half_width (SHARE): {certify.half_width}
        targets (NAMES): {certify.targets}
        budget (CALLS): {audit.budget}
        exhaust: Ask the model everything once, to compare estimates with the truth.
        executor (NAME): Where the audits run: in processes, or as tasks of a Ray cluster (ray, or
            its address, ray://HOST:PORT).
        out: Folder to write compare.html, .json, .csv and .tex into.
    """
    flags = {
        "audit.budget": budget,
        "certify.half_width": half_width,
        "certify.targets": names(targets),
    }
    chosen, base = read(spec, demo, flags, set_)
    goal = chosen.certify.half_width
    compared = names(strategies)
    if compared is None:
        compared = ["random", chosen.audit.strategy or default(goal is not None)]
    _check_free(chosen, base)
    if isinstance(chosen.oracle, WordsSection) and chosen.oracle.judge is not None:
        raise InputError(
            "compare: expected an oracle whose rule reads replies alone, got one with a judge "
            "model, which every audit of a comparison would ask anew; take [oracle.judge] out"
        )
    check_executor(executor)
    certifying = goal is not None
    rows = entrants(map(_row, compared), certifying, base)
    if repeats < 1:
        raise InputError(f"--repeats: expected at least 1, got {repeats}")
    if not certifying and chosen.audit.budget is None:
        raise InputError(
            "compare: expected a budget (--budget or audit.budget) or a half-width to certify "
            "(--half-width or certify.half_width), got neither"
        )
    if exhaust and not certifying:
        raise InputError("--exhaust: expected a half-width to certify (--half-width), got none")
    kept = KeptRuns(out)
    space = build_space(chosen, base)  # a spec that cannot be used ends here, not in a worker
    kept.expect(**_made_of(chosen, base, space, exhaust), **_code_of(rows, base))
    if kept.outdated and not json_:
        told = ", ".join(f"{name} ({count})" for name, count in kept.outdated.items())
        typer.echo(f"audits outdated, as a strategy or the budget changed: {told}", err=True)
    this = _Comparison(chosen, base, space, rows, repeats, executor, out, json_, kept)
    with interrupted_as(this.way_on):
        found = _compared(this, goal, exhaust)
        paths = found.save(out)
    if json_:
        short = {name: value for name, value in found.to_dict().items() if name != "runs"}
        typer.echo(json.dumps(short, indent=1, allow_nan=False))
        return
    if goal is None:
        _show("median calls until the mean uncertainty is below a share of its prior", found.table)
    else:
        _show_certified(found, goal)
    for path in paths:
        typer.echo(f"wrote {path}")  # on a line of its own, which no terminal breaks
    # argmax, which certifies hardly anything, would take about all calls there are
    ending = [run for run in found.runs if run["strategy"] != "argmax" and goal is not None]
    tell(_larger_budget(figures.sufficient_budget(ending)))


@dataclass(frozen=True)
class _Comparison:
    """What is compared, how often and where, and where it is written."""

    spec: Spec
    base: Path
    space: QuestionSpace
    rows: list[Entrant]
    repeats: int
    executor: str
    out: Path
    as_json: bool
    kept: KeptRuns

    def jobs(self, truth: list[float] | None = None) -> list[work.Job]:
        """Every strategy with every seed."""
        alone = unworked(self.spec)  # audits run beside each other; each holds its model itself
        begin = partial(build_audit, alone, self.base)
        return jobs_of(self.rows, self.repeats, begin, self.spec.audit.budget, truth)

    def way_on(self) -> str:
        """What is said where it is interrupted."""
        if not self.kept.runs and "answers" in self.kept.facts:
            return "interrupted; the answers to everything are kept; the same command goes on"
        if not self.kept.runs:
            return "interrupted before an audit had ended; the same command begins again"
        wanted = [(row.name, seed) for row in self.rows for seed in range(self.repeats)]
        return (
            f"interrupted; {len(self.kept.runs.keys() & wanted)} of {len(wanted)} audits are "
            f"kept in {self.kept.path}, those under way are lost; the same command goes on"
        )


def _check_free(spec: Spec, base: Path) -> None:
    """Raises InputError for a model that may cost money: every audit would spend it again."""
    costs = spec.model.costs_money
    if not costs and isinstance(spec.model, OwnSection):
        space = build_space(spec, base)
        with build_model(spec, base, space.dataset) as model:
            costs = model.costs_money
    if costs:
        raise InputError(
            f"compare: expected a model that costs nothing, got one of kind {spec.model.kind!r}; "
            "compare on recorded answers (kind = 'recorded') or a simulated model"
        )


def _row(text: str) -> str | Entrant:
    """The row that a text stands for, which is its name: NAME, or NAME:OPTION=VALUE:..."""
    name, *told = OPTION.split(text)
    if not told:
        return text
    pairs = [each.partition("=") for each in told]
    options = {option: value_of(value) for option, _, value in pairs}
    return Entrant(text, name, options)


# -- what is kept until all audits have ended ---------------------------------------------


def _made_of(spec: Spec, base: Path, space: QuestionSpace, exhaust: bool) -> JsonObject:
    """What the runs of a comparison follow from, but for strategies and seeds."""
    files = {"model": spec.model.file(), **(spec.certify.proxies or {})}
    code = contents(spec, base)
    code.pop("audit.strategy", None)  # a row's; see _code_of
    return {
        "avtt": __version__,
        "spec": spec.model_dump(mode="json", exclude={"audit": {BUDGET}}),
        BUDGET: spec.audit.budget,
        "exhaust": exhaust,
        "space": [space.fingerprint, metadata_used(space)],
        "code": code,
        "files": {name: _content(file, base) for name, file in files.items() if file},
    }


def _content(file: str, base: Path) -> str | None:
    """A hash of a file of answers, or of the file that holds FILE:NAME; None where neither is."""
    path = file_of(file, base) or base / file
    return hash_file(path) if path.is_file() else None


def _code_of(rows: Iterable[Entrant], base: Path) -> JsonObject:
    """Of the rows whose strategy is code of somebody's own, what it is."""
    named = {row.name: str(row.strategy) for row in rows}
    return {
        f"{STRATEGY}{row}": content_of(STRATEGIES, name, base)
        for row, name in named.items()
        if name not in work.BASELINES and STRATEGIES.is_code(name)
    }


# -- running ------------------------------------------------------------------------------


def _compared(this: _Comparison, goal: float | None, exhaust: bool) -> StrategyComparison:
    if goal is None:
        return StrategyComparison(_run(work.uncertainty_run, this.jobs(), this))
    certify = this.spec.certify
    targets = named_targets(this.space, certify.targets, certify.where)
    if exhaust and isinstance(this.spec.model, OwnSection):
        this = replace(this, spec=_recorded(this))
    truth = _truth(this, targets)
    this.kept.expect(truth=truth)
    runs = _run(work.certified_run, this.jobs(truth), this)
    return StrategyComparison(runs, goal, certify.confidence, [t.name for t in targets], truth)


def _recorded(this: _Comparison) -> Spec:
    """Asks the model everything once, unless a comparison that did not end has, keeps the answers,
    and gives a spec that replays them.

    Name and version stay the model's, so that the audits draw what they would of itself.
    """
    spec, kept = this.spec, this.kept
    file = (this.out / ANSWERS).resolve()
    with build_model(spec, this.base, this.space.dataset) as model:
        if not file.is_file() or kept.facts.get("answers") != hash_file(file):
            calls = calls_of(this.space, model)
            if calls > MAX_CALLS or model.answers != "all":
                raise InputError(
                    f"--exhaust: expected at most {MAX_CALLS:,} calls, each of which answers every "
                    f"concept, got {calls:,} calls that answer {model.answers}"
                )
            with counting("asking everything", calls, this.as_json) as advance:
                write_text(file, csv_text(all_answers(this.space, model, advance)))
            kept.note(answers=hash_file(file))
        same = {"name": model.name, "version": version_of(model)}
    replay = spec.model.model_dump(include=set(ModelSection.model_fields) - {"kind"}) | same
    section = ModelSection.model_validate({**replay, "kind": "recorded", "answers": str(file)})
    return spec.model_copy(update={"model": section})


def _truth(this: _Comparison, targets: Sequence[Target]) -> list[float] | None:
    """The true mean loss of every target, where asking everything is free; else None."""
    spec, space = this.spec, this.space
    if not spec.model.free:
        return None
    model = build_model(spec, this.base, space.dataset)
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        return None
    with counting("finding the truth", calls, this.as_json) as advance:
        return truth_of(space, model, targets, advance)


def _run(
    run: Callable[[work.Job], work.Run], jobs: list[work.Job], this: _Comparison
) -> list[work.Run]:
    """The runs of the jobs, in their order: those that are kept, and the others, run now."""
    kept = this.kept
    left = kept.left(jobs)
    if len(left) < len(jobs) and not this.as_json:
        typer.echo(f"{len(jobs) - len(left)} of {len(jobs)} audits are in {kept.path}", err=True)
    with counting("auditing", len(left), this.as_json) as advance:

        def ended(done: work.Run) -> None:
            kept.keep(done)
            advance(1)

        run_all(run, left, ended, executor=this.executor)
    return kept.of(jobs)


# -- showing ------------------------------------------------------------------------------


def _show_certified(found: StrategyComparison, goal: float) -> None:
    table, repeats = found.table, found.runs[-1]["seed"] + 1
    levels = [name for name in map(str, table) if name.startswith("calls to ")]
    fitting = levels[-3 if Console().width >= WIDE else -2 :]
    widths = [name for name in map(str, table) if " half-width at " in name]
    known = ["coverage", "ever missed"] if found.truth is not None else []
    sheet = figures.rounded_calls(table, fitting)[
        ["strategy", *fitting, figures.RATIO, *widths, *known]
    ].assign(**{"ms per draw": (table["seconds per draw"] * 1000).round(1)})
    count = f"{len(found.targets)} target{'s' * (len(found.targets) != 1)}"
    told = f"{repeats} repeat{'s' * (repeats != 1)}"
    _show(f"median calls to half-widths, {count}, {told}", sheet)
    if found.truth is None:
        need = "coverage and errors need the truth: a recorded or simulated model, or --exhaust"
        plain_console().print(need)
    else:
        _show("errors of estimates made from the same draws", found.estimators)
    for sentence in found.conclusions:
        plain_console().print(f"- {sentence}")


def _larger_budget(budget: int | None) -> list[tuple[str, str]]:
    """Return the step that brings every strategy to the half-width, where one is known."""
    return [(same_command(f"--budget {budget}"), "enough for all strategies")] if budget else []


def _show(title: str, table: pd.DataFrame) -> None:
    """One word of a heading per line: numbers are narrow, and so are terminals."""
    columns = [str(column).replace(" ", "\n") for column in table]
    rows = [[*map(_cell, row)] for row in table.itertuples(index=False)]
    plain_console().print(table_of(columns, rows, title, gap=0))


def _cell(value: Any) -> str:
    if pd.isna(value):
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("+", "+\n")
