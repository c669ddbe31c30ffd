"""``avtt compare``: the same space, several strategies, several seeds."""

import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from ..audit.census import MAX_CALLS, all_answers, all_losses, calls_of, means
from ..benchmark import runs as work
from ..benchmark import summary as figures
from ..benchmark.executors import check_executor, run_all
from ..benchmark.summary import certified_page, uncertainty_page
from ..certify import named_targets
from ..config import Spec
from ..config.building import build_audit, build_model, build_space, unworked
from ..config.models import ModelSection, OwnSection
from ..config.oracles import WordsSection
from ..errors import InputError
from ..space import QuestionSpace
from ..strategies import default, named
from ..utils.files import write_text
from ..utils.tables import csv_text
from .options import Json, names
from .progress import counting
from .spec_changes import Set, field, read

ANSWERS = "answers.csv"
CLASSICS = "baselines"
"""Stands for all there is to compare with."""
WIDE = 92
"""Columns of a terminal that show one half-width more."""


def compare(
    spec: Annotated[
        Path | None,
        typer.Argument(help="What to audit; its model must cost nothing.", metavar="SPEC.toml"),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on the bundled model.")] = False,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas; 'baselines' stands for all there are. Default: "
            "random (with predictions), and the one that an audit would take. Where something is "
            "certified, uniform (by chance, without predictions) stands beside them.",
            metavar="NAMES",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Audits per strategy, with the seeds 0, 1, 2 ...")
    ] = 3,
    half_width: Annotated[float | None, field("certify.half_width", "SHARE")] = None,
    targets: Annotated[str | None, field("certify.targets", "NAMES")] = None,
    budget: Annotated[int | None, field("audit.budget", "CALLS")] = None,
    exhaust: Annotated[
        bool,
        typer.Option(
            "--exhaust", help="Ask the model everything once, to compare estimates with the truth."
        ),
    ] = False,
    executor: Annotated[
        str,
        typer.Option(
            help="Where the audits run: in processes, or as tasks of a Ray cluster (ray, or its "
            "address, ray://HOST:PORT).",
            metavar="NAME",
        ),
    ] = "processes",
    out: Annotated[
        Path, typer.Option(help="Folder to write compare.html and compare.json into.")
    ] = Path("runs/compare"),
    sets: Set = None,
    as_json: Json = False,
) -> None:
    """Run several strategies on the same space and show how fast each one learns.

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
        compared = ["random", default(goal is not None)]
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
    if goal is None:
        _compare_uncertainty(chosen, base, compared, repeats, out, as_json, executor)
    else:
        _compare_certified(chosen, base, compared, repeats, out, as_json, exhaust, goal, executor)


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


def _jobs(
    spec: Spec, base: Path, names: list[str], repeats: int, truth: tuple[float, ...] | None = None
) -> list[work.Job]:
    """Every strategy with every seed."""
    alone = unworked(spec)  # audits run beside each other; each holds its model itself
    begin, budget = partial(build_audit, alone, base), spec.audit.budget
    seeds = range(repeats)
    return [work.Job(begin, name, seed, budget, truth) for name in names for seed in seeds]


# -- without certificates -----------------------------------------------------------------


def _compare_uncertainty(
    spec: Spec, base: Path, names: list[str], repeats: int, out: Path, as_json: bool, executor: str
) -> None:
    build_space(spec, base)  # a spec that cannot be used ends here, not in a worker
    jobs = _jobs(spec, base, names, repeats)
    runs = _run(work.uncertainty_run, jobs, as_json, executor)
    table = figures.uncertainty_summary(runs)
    record = {"summary": table.to_dict(orient="records"), "runs": runs}
    _write(record, uncertainty_page(runs), out, as_json)
    if not as_json:
        _show("median calls until the mean uncertainty is below a share of its prior", table)
        _say(f"figure: {out / 'compare.html'}")


# -- with certificates --------------------------------------------------------------------


def _compare_certified(
    spec: Spec,
    base: Path,
    names: list[str],
    repeats: int,
    out: Path,
    as_json: bool,
    exhaust: bool,
    goal: float,
    executor: str,
) -> None:
    space = build_space(spec, base)
    targets = named_targets(space, spec.certify.targets, spec.certify.where)
    if exhaust and isinstance(spec.model, OwnSection):
        spec = _recorded(spec, base, space, out, as_json)
    truth = _truth(spec, base, space, as_json)
    known = None if truth is None else tuple(truth)
    jobs = _jobs(spec, base, names, repeats, known)
    runs = _run(work.certified_run, jobs, as_json, executor)
    tables = {"strategies": figures.certified_summary(runs, truth)}
    if truth is not None:
        tables["estimators"] = figures.estimator_summary(runs, truth)
    record: dict[str, Any] = {
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
    _write(record, page, out, as_json)
    if not as_json:
        _show_certified(record, tables, runs, out)


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


def _recorded(spec: Spec, base: Path, space: QuestionSpace, out: Path, quiet: bool) -> Spec:
    """Asks the model everything once, keeps the answers, and gives a spec that replays them."""
    model = build_model(spec, base, space.dataset)
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        raise InputError(f"--exhaust: expected at most {MAX_CALLS:,} calls, got {calls:,}")
    if model.answers != "all":
        raise InputError(
            "--exhaust: expected a model whose call answers every concept, got one answer per call"
        )
    with counting("asking everything", calls, quiet) as advance:
        answers = all_answers(space, model, advance)
    write_text(out / ANSWERS, csv_text(answers))
    replay = spec.model.model_dump(include=set(ModelSection.model_fields) - {"kind"})
    answers_file = str((out / ANSWERS).resolve())
    section = ModelSection.model_validate({**replay, "kind": "recorded", "answers": answers_file})
    return spec.model_copy(update={"model": section})


def _truth(spec: Spec, base: Path, space: QuestionSpace, quiet: bool) -> list[float] | None:
    """The true mean loss of every target, where asking everything is free; else None."""
    if not spec.model.free:
        return None
    model = build_model(spec, base, space.dataset)
    calls = calls_of(space, model)
    if calls > MAX_CALLS:
        return None
    with counting("finding the truth", calls, quiet) as advance:
        questions, losses = all_losses(space, model, advance)
    targets = named_targets(space, spec.certify.targets, spec.certify.where)
    return [float(mean) for mean in means(space, targets, questions, losses)]


# -- running, writing, showing ------------------------------------------------------------


def _run(
    run: Callable[[work.Job], work.Run], jobs: list[work.Job], quiet: bool, executor: str
) -> list[work.Run]:
    with counting("auditing", len(jobs), quiet) as advance:
        return run_all(run, jobs, lambda: advance(1), executor=executor)


def _write(record: dict[str, Any], page: str, out: Path, as_json: bool) -> None:
    write_text(out / "compare.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
    write_text(out / "compare.html", page)
    if as_json:
        short = {name: value for name, value in record.items() if name != "runs"}
        typer.echo(json.dumps(short, indent=1, allow_nan=False))


def _show_certified(
    record: dict[str, Any], tables: dict[str, pd.DataFrame], runs: list[work.Run], out: Path
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
    sheet = Table(title=title, padding=(0, 0), pad_edge=False)
    for column in map(str, table):
        words = column in ("strategy", "estimator")
        sheet.add_column(column.replace(" ", "\n"), justify="left" if words else "right")
    for row in table.itertuples(index=False):
        sheet.add_row(*(_cell(value) for value in row))
    Console(highlight=False).print(sheet)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("+", "+\n")


def _say(sentence: str) -> None:
    Console(highlight=False).print(sentence, markup=False)
