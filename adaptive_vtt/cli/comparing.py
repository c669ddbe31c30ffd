"""``avtt compare``: the same space, several strategies, several seeds."""

import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..audit import Progress as Step
from ..errors import InputError
from ..files import write_text
from ..spec import Spec, build_audit, build_space
from ..strategies import get as get_strategy

LEVELS = (0.75, 0.5, 0.25, 0.1)
"""Mean uncertainties, as shares of the prior, to which calls are counted."""


def compare(
    spec: Spec, base: Path, names: list[str], repeats: int, out: Path, as_json: bool
) -> None:
    """Runs every strategy with every seed, then writes compare.json and compare.html."""
    if not names:
        raise InputError("--strategies: expected at least one name, got none")
    for name in names:
        get_strategy(name)
    budget = spec.audit.budget
    if budget is None:
        raise InputError("compare: expected a budget (--budget or audit.budget), got none")
    build_space(spec, base)  # a spec that cannot be used ends here, not in a worker
    runs = _run_all(spec, base, [(n, s) for n in names for s in range(repeats)], as_json)
    table = summary(runs)
    record = {"summary": table.to_dict(orient="records"), "runs": runs}
    write_text(out / "compare.json", json.dumps(record, indent=1) + "\n")
    write_text(out / "compare.html", _figure(runs))
    if as_json:
        typer.echo(json.dumps(record["summary"], indent=1))
    else:
        _show(table, out)


def summary(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per strategy: median calls to each level (None: not reached), end state."""
    rows = []
    for name in dict.fromkeys(run["strategy"] for run in runs):
        mine = [run for run in runs if run["strategy"] == name]
        row: dict[str, Any] = {"strategy": name, "repeats": len(mine)}
        for level in LEVELS:
            reached = [_calls_to(run, level) for run in mine]
            middle = float(np.median(reached))
            row[f"calls to {level:g}"] = None if np.isinf(middle) else middle
        row["calls"] = float(np.median([run["calls"] for run in mine]))
        row["uncertainty at end"] = round(
            float(np.median([run["uncertainty"][-1] for run in mine])), 4
        )
        row["seconds per call"] = round(float(np.median([run["seconds"] for run in mine])), 5)
        rows.append(row)
    return pd.DataFrame(rows).astype(object)


def _calls_to(run: dict[str, Any], level: float) -> float:
    below = np.flatnonzero(np.array(run["uncertainty"]) <= level)
    return float(run["at"][below[0]]) if len(below) else float("inf")


def _run_all(
    spec: Spec, base: Path, jobs: list[tuple[str, int]], quiet: bool
) -> list[dict[str, Any]]:
    """All runs, in the order of the jobs, two processes at a time or more."""
    runs: dict[tuple[str, int], dict[str, Any]] = {}
    console = Console(stderr=True, quiet=quiet)
    with (
        Progress(console=console, transient=True) as progress,
        ProcessPoolExecutor(mp_context=get_context("spawn")) as pool,
    ):
        task = progress.add_task("comparing", total=len(jobs))
        futures = {pool.submit(_run, spec, base, *job): job for job in jobs}
        for future in as_completed(futures):
            runs[futures[future]] = future.result()
            progress.advance(task)
    return [runs[job] for job in jobs]


def _run(spec: Spec, base: Path, strategy: str, seed: int) -> dict[str, Any]:
    """One audit in memory: its mean uncertainty after every call."""
    import torch

    torch.set_num_threads(1)
    at, level = [0], [1.0]

    def note(step: Step) -> None:
        at.append(step.state.calls)
        level.append(round(step.state.mean, 5))

    audit = build_audit(spec, base, strategy=strategy, seed=seed)
    with audit:
        result = audit.run(note)
        seconds = audit.state().elapsed / max(result.calls, 1)
    return {
        "strategy": strategy, "seed": seed, "calls": result.calls, "reason": result.reason,
        "at": at, "uncertainty": level, "seconds": seconds,
    }  # fmt: skip


def _figure(runs: list[dict[str, Any]]) -> str:
    """Mean uncertainty over calls: a faint line per run, a strong one per strategy."""
    import plotly.graph_objects as go

    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
    figure = go.Figure()
    names = list(dict.fromkeys(run["strategy"] for run in runs))
    for name, colour in zip(names, colours * len(names), strict=False):
        for run in (r for r in runs if r["strategy"] == name):
            first = run["seed"] == 0
            figure.add_scatter(
                x=run["at"], y=run["uncertainty"], name=name, legendgroup=name, showlegend=first,
                mode="lines", line={"color": colour, "width": 2.5 if first else 1},
                opacity=1.0 if first else 0.35,
            )  # fmt: skip
    figure.update_layout(
        title="Uncertainty of the answer GPs over calls (seed 0 strong, the others faint)",
        xaxis_title="calls", yaxis_title="mean uncertainty, share of prior",
        template="plotly_white", font={"family": "system-ui, sans-serif"},
        yaxis_range=[0, 1.02], legend={"orientation": "h", "y": -0.2},
    )  # fmt: skip
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def _show(table: pd.DataFrame, out: Path) -> None:
    console = Console(highlight=False)
    sheet = Table(title="median calls until the mean uncertainty is below a share of its prior")
    for column in table:
        sheet.add_column(str(column), justify="left" if column == "strategy" else "right")
    for row in table.itertuples(index=False):
        sheet.add_row(*("-" if cell is None else str(cell) for cell in row))
    console.print(sheet)
    console.print(f"figure: {out / 'compare.html'}", markup=False)
