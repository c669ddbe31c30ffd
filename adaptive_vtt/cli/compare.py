"""``avtt compare``: the same space, several strategies, several seeds."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console

from .. import __version__
from ..audit.census import MAX_CALLS, all_answers, all_losses, calls_of, means
from ..benchmark import runs as work
from ..benchmark import summary as figures
from ..benchmark.executors import check_executor, run_all
from ..benchmark.kept import KeptRuns
from ..benchmark.summary import certified_page, uncertainty_page
from ..certify import named_targets
from ..config import Spec
from ..config.building import build_audit, build_model, build_space, unworked
from ..config.journaled import content_of, contents
from ..config.models import ModelSection, OwnSection
from ..config.oracles import WordsSection
from ..engine.assembly import metadata_used
from ..engine.audit_key import version_of
from ..errors import InputError
from ..models.base import ModelDefaults
from ..space import QuestionSpace
from ..strategies import REGISTRY as STRATEGIES
from ..strategies import default, named
from ..types import JsonObject
from ..utils.files import hash_file, write_text
from ..utils.other_code import file_of
from ..utils.tables import csv_text
from .options import Json, arg, names, opt
from .printing import plain_console, table_of
from .progress import counting
from .signals import interrupted_as
from .spec_changes import Set, field, read

ANSWERS = "answers.csv"
CLASSICS = "baselines"
"""Stands for all there is to compare with."""
WIDE = 92
"""Columns of a terminal that show one half-width more."""


def compare(
    spec: Annotated[
        Path | None, arg("What to audit; its model must cost nothing.", "SPEC.toml")
    ] = None,
    demo: Annotated[bool, opt("Compare on the bundled model.", flags="--demo")] = False,
    strategies: Annotated[
        str | None,
        opt(
            "Names, separated by commas; 'baselines' stands for all there are. Default: "
            "random (with predictions), and the one that an audit would take. Where something is "
            "certified, uniform (by chance, without predictions) stands beside them.",
            "NAMES",
        ),
    ] = None,
    repeats: Annotated[int, opt("Audits per strategy, with the seeds 0, 1, 2 ...")] = 3,
    half_width: Annotated[float | None, field("certify.half_width", "SHARE")] = None,
    targets: Annotated[str | None, field("certify.targets", "NAMES")] = None,
    budget: Annotated[int | None, field("audit.budget", "CALLS")] = None,
    exhaust: Annotated[
        bool,
        opt(
            "Ask the model everything once, to compare estimates with the truth.", flags="--exhaust"
        ),
    ] = False,
    executor: Annotated[
        str,
        opt(
            "Where the audits run: in processes, or as tasks of a Ray cluster (ray, or its "
            "address, ray://HOST:PORT).",
            "NAME",
        ),
    ] = "processes",
    out: Annotated[Path, opt("Folder to write compare.html and compare.json into.")] = Path(
        "runs/compare"
    ),
    sets: Set = None,
    as_json: Json = False,
) -> None:
    """Run several strategies on the same space and show how fast each one learns.

    The same command goes on with a comparison that was interrupted: audits that
    ended are kept in runs.jsonl of its folder, so that more repeats or
    strategies cost what is new.

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5
    """
    flags = {
        "audit.budget": budget,
        "certify.half_width": half_width,
        "certify.targets": names(targets),
    }
    chosen, base = read(spec, demo, flags, sets)
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
    compared = _checked(compared, certifying, base)
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
    kept.expect(**_made_of(chosen, base, space, exhaust), **_code_of(compared, base))
    this = _Comparison(chosen, base, space, compared, repeats, executor, out, as_json, kept)
    with interrupted_as(this.way_on):
        if goal is None:
            _compare_uncertainty(this)
        else:
            _compare_certified(this, goal, exhaust)


@dataclass(frozen=True)
class _Comparison:
    """What is compared, how often and where, and where it is written."""

    spec: Spec
    base: Path
    space: QuestionSpace
    names: list[str]
    repeats: int
    executor: str
    out: Path
    as_json: bool
    kept: KeptRuns

    def jobs(self, truth: tuple[float, ...] | None = None) -> list[work.Job]:
        """Every strategy with every seed."""
        alone = unworked(self.spec)  # audits run beside each other; each holds its model itself
        begin, budget = partial(build_audit, alone, self.base), self.spec.audit.budget
        return [
            work.Job(begin, name, seed, budget, truth)
            for name in self.names
            for seed in range(self.repeats)
        ]

    def way_on(self) -> str:
        """What is said where it is interrupted."""
        if not self.kept.runs and "answers" in self.kept.facts:
            return "interrupted; the answers to everything are kept; the same command goes on"
        if not self.kept.runs:
            return "interrupted before an audit had ended; the same command begins again"
        return (
            f"interrupted; {len(self.kept.runs)} of {len(self.names) * self.repeats} audits are "
            f"kept in {self.kept.path}; the same command goes on"
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


def _checked(names: Sequence[str], certifying: bool, base: Path) -> list[str]:
    """The names, once each; where there are certificates with uniform questions, and with all
    that ``baselines`` stands for."""
    if not names:
        raise InputError("--strategies: expected at least one name, got none")
    known: Collection[str] = work.BASELINES if certifying else ()
    if certifying:
        names = [n for name in names for n in (work.CLASSICS if name == CLASSICS else (name,))]
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in known:
            named(name, base=base)
    return [work.UNIFORM, *(n for n in names if n != work.UNIFORM)] if certifying else names


# -- what is kept until all audits have ended ---------------------------------------------


def _made_of(spec: Spec, base: Path, space: QuestionSpace, exhaust: bool) -> JsonObject:
    """What the runs of a comparison follow from, but for strategies and seeds."""
    files = {"model": spec.model.file(), **(spec.certify.proxies or {})}
    return {
        "avtt": __version__,
        "spec": spec.model_dump(mode="json"),
        "exhaust": exhaust,
        "space": [space.fingerprint, metadata_used(space)],
        "code": contents(spec, base),
        "files": {name: _content(file, base) for name, file in files.items() if file},
    }


def _content(file: str, base: Path) -> str | None:
    """A hash of a file of answers, or of the file that holds FILE:NAME; None where neither is."""
    path = file_of(file, base) or base / file
    return hash_file(path) if path.is_file() else None


def _code_of(names: Sequence[str], base: Path) -> JsonObject:
    """Of the strategies that are code of somebody's own, what it is."""
    own = [n for n in names if n not in work.BASELINES and STRATEGIES.is_code(n)]
    return {f"strategy {name}": content_of(STRATEGIES, name, base) for name in own}


# -- without certificates -----------------------------------------------------------------


def _compare_uncertainty(this: _Comparison) -> None:
    runs = _run(work.uncertainty_run, this.jobs(), this)
    table = figures.uncertainty_summary(runs)
    record = {"summary": table.to_dict(orient="records"), "runs": runs}
    _write(record, uncertainty_page(runs), this)
    if not this.as_json:
        _show("median calls until the mean uncertainty is below a share of its prior", table)
        _say(f"figure: {this.out / 'compare.html'}")


# -- with certificates --------------------------------------------------------------------


def _compare_certified(this: _Comparison, goal: float, exhaust: bool) -> None:
    spec = this.spec
    targets = named_targets(this.space, spec.certify.targets, spec.certify.where)
    if exhaust and isinstance(spec.model, OwnSection):
        this = replace(this, spec=_recorded(this))
    truth = _truth(this)
    this.kept.expect(truth=truth)
    jobs = this.jobs(None if truth is None else tuple(truth))
    runs = _run(work.certified_run, jobs, this)
    tables = {"strategies": figures.certified_summary(runs, truth)}
    if truth is not None:
        tables["estimators"] = figures.estimator_summary(runs, truth)
    record: JsonObject = {
        "half_width": goal,
        "confidence": spec.certify.confidence,
        "targets": [target.name for target in targets],
        "truth": truth,
        "conclusion": figures.conclusion(runs),
        "summary": tables["strategies"].to_dict(orient="records"),
        "estimators": tables["estimators"].to_dict(orient="records") if truth else [],
        "peeking": figures.peeking_summary(runs),
        "runs": runs,
    }
    page = certified_page(
        runs, goal, spec.certify.confidence, _titled(tables, record["peeking"], goal)
    )
    _write(record, page, this)
    if not this.as_json:
        _show_certified(record, tables, runs, this.out)


def _titled(
    tables: dict[str, pd.DataFrame], peeking: dict[str, Any] | None, goal: float
) -> dict[str, pd.DataFrame]:
    """The tables as the page shows them, with the peeking analyst among the strategies."""
    strategies = tables["strategies"]
    if peeking:
        calls = {f"calls to {goal:g}": peeking["calls"], "stopped at": peeking["calls"]}
        row = {"strategy": "uniform, peeking at normal intervals", **peeking, **calls}
        rows = [*strategies.to_dict(orient="records"), row]
        strategies = pd.DataFrame(rows, columns=list(strategies), dtype=object)
    titles = {"Calls, coverage and cost per strategy (medians over repeats)": strategies}
    if "estimators" in tables:
        title = "Estimates from the same draws (only 'certified' comes with a guarantee)"
        titles[title] = tables["estimators"]
    return titles


def _recorded(this: _Comparison) -> Spec:
    """Asks the model everything once, unless a comparison that did not end has, keeps the answers,
    and gives a spec that replays them.

    Name and version stay the model's, so that the audits draw what they would of itself.
    """
    spec, kept = this.spec, this.kept
    file = (this.out / ANSWERS).resolve()
    with build_model(spec, this.base, this.space.dataset) as model:
        if not file.is_file() or kept.facts.get("answers") != hash_file(file):
            write_text(file, csv_text(_everything(this.space, model, this.as_json)))
            kept.note(answers=hash_file(file))
        same = {"name": model.name, "version": version_of(model)}
    replay = spec.model.model_dump(include=set(ModelSection.model_fields) - {"kind"}) | same
    section = ModelSection.model_validate({**replay, "kind": "recorded", "answers": str(file)})
    return spec.model_copy(update={"model": section})


def _everything(space: QuestionSpace, model: ModelDefaults, quiet: bool) -> pd.DataFrame:
    """The model's answers to everything."""
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        raise InputError(f"--exhaust: expected at most {MAX_CALLS:,} calls, got {calls:,}")
    if model.answers != "all":
        raise InputError(
            "--exhaust: expected a model whose call answers every concept, got one answer per call"
        )
    with counting("asking everything", calls, quiet) as advance:
        return all_answers(space, model, advance)


def _truth(this: _Comparison) -> list[float] | None:
    """The true mean loss of every target, where asking everything is free; else None."""
    spec, space = this.spec, this.space
    if not spec.model.free:
        return None
    model = build_model(spec, this.base, space.dataset)
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        return None
    with counting("finding the truth", calls, this.as_json) as advance:
        questions, losses = all_losses(space, model, advance)
    targets = named_targets(space, spec.certify.targets, spec.certify.where)
    return [float(mean) for mean in means(space, targets, questions, losses)]


# -- running, writing, showing ------------------------------------------------------------


def _run(
    run: Callable[[work.Job], work.Run], jobs: list[work.Job], this: _Comparison
) -> list[work.Run]:
    """The runs of the jobs, in their order: those that are kept, and the others, run now."""
    kept = this.kept
    left = [job for job in jobs if (job.strategy, job.seed) not in kept.runs]
    if len(left) < len(jobs) and not this.as_json:
        typer.echo(f"{len(jobs) - len(left)} of {len(jobs)} audits are in {kept.path}", err=True)
    with counting("auditing", len(left), this.as_json) as advance:

        def ended(done: work.Run) -> None:
            kept.keep(done)
            advance(1)

        run_all(run, left, ended, executor=this.executor)
    return [kept.runs[job.strategy, job.seed] for job in jobs]


def _write(record: JsonObject, page: str, this: _Comparison) -> None:
    write_text(this.out / "compare.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_text(this.out / "compare.html", page)
    if this.as_json:
        short = {name: value for name, value in record.items() if name != "runs"}
        typer.echo(json.dumps(short, indent=1, allow_nan=False))


def _show_certified(
    record: JsonObject, tables: dict[str, pd.DataFrame], runs: list[work.Run], out: Path
) -> None:
    goal, count = record["half_width"], len(record["targets"])
    table = tables["strategies"]
    levels = [name for name in map(str, table) if name.startswith("calls to ")]
    fitting = levels[-3 if Console().width >= WIDE else -2 :]
    shown = [*fitting, "of uniform", "coverage", "ever missed", "variance ratio"]
    sheet = table[["strategy", *shown]].assign(
        **{"ms per draw": (table["seconds per draw"].astype(float) * 1000).round(1).astype(object)}
    )
    sheet[levels[-1]] = [
        f">{stopped:g}" if calls is None else calls
        for calls, stopped in zip(sheet[levels[-1]], table["stopped at"], strict=True)
    ]
    _show(f"median calls to half-widths, {count} targets, {runs[-1]['seed'] + 1} repeats", sheet)
    if record["truth"] is None:
        _say("coverage and errors need the truth: a recorded or simulated model, or --exhaust")
    else:
        _show("errors of estimates made from the same draws", tables["estimators"])
    if peeking := record["peeking"]:
        _say(_peeking_sentence(peeking, goal))
    _say(figures.by_chance(runs))
    if record["conclusion"]:
        _say(record["conclusion"])
    _say(f"figure: {out / 'compare.html'}")


def _peeking_sentence(peeking: dict[str, Any], goal: float) -> str:
    missed = f"{peeking['ever missed']:.0%} of repeats missed a truth at some look"
    if peeking["calls"] is None:
        return f"peeking at normal intervals (uniform): not at +-{goal:g} in the runs; {missed}"
    return (
        f"peeking at normal intervals (uniform) stops at {peeking['calls']:g} calls and then "
        f"covers in {peeking['coverage']:.0%} of repeats; {missed}"
    )


def _show(title: str, table: pd.DataFrame) -> None:
    """One word of a heading per line: numbers are narrow, and so are terminals."""
    columns = [str(column).replace(" ", "\n") for column in table]
    rows = [[*map(_cell, row)] for row in table.itertuples(index=False)]
    plain_console().print(table_of(columns, rows, title, gap=0))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("+", "+\n")


def _say(sentence: str) -> None:
    plain_console().print(sentence)
