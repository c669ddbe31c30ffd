"""What each change of the engine is worth: questions until certified, one change after another.

digits-severity (``digits``), one target, one question per call. Every step keeps those before it;
the first is uniform sampling, the measure of all. Bets went up to 90 % of wealth before, and go up
to 98 % now; the others are what predicts the losses: nothing, the question GP from losses and
source images, from margins, with the follow-up images, with the self-taught proxy. What needs
several targets (shares of alpha, strata, a guarantee for each) or a limit is not in it.

    python -m adaptive_vtt.experiments.waterfall [--seeds 2] [--half-widths 0.05 0.03] [--out bench]

Prints a Markdown table of mean questions, also as a ratio to uniform, and in how many runs the
interval held the truth at every moment; waterfall.html has it as a figure. Every step has the same
seeds; few tell large steps only.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from adaptive_vtt.benchmark.executors import run_all
from adaptive_vtt.report.figure_page import figure_page
from adaptive_vtt.report.figure_page import table as numbers
from adaptive_vtt.report.plots import frame
from adaptive_vtt.report.section import data
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.plotly_text import shown

from .certificates import ADAPTIVE, LOSSES, TAUGHT, UNIFORM, Outcome, Setting, Task, run

BENCH = "digits-severity"
BEFORE = 0.9
"""The largest fraction of its wealth that a bet could lose before."""
STEPS = (
    replace(UNIFORM, name="uniform", cap=BEFORE),
    replace(UNIFORM, name="+ bets up to .98"),
    Setting("+ law by stakes, no predictions"),
    replace(LOSSES, name="+ question GP, from losses"),
    Setting("+ margins", prediction="margins"),
    replace(ADAPTIVE, name="+ follow-up images"),
    replace(TAUGHT, name="+ self-taught proxy"),
)
"""Each keeps the changes of those before it."""


def waterfall(
    widths: Sequence[float], seeds: int, workers: int = 1, device: str = "cpu"
) -> pd.DataFrame:
    """One row per step: questions, ratio to uniform and coverage at every half-width."""
    tasks = [
        Task(BENCH, s, w, seed, device=device)
        for s in STEPS
        for w in widths
        for seed in range(seeds)
    ]
    outcomes = iter(run_all(run, tasks, workers=workers))
    runs = {(s.name, w): [next(outcomes) for _ in range(seeds)] for s in STEPS for w in widths}
    return table(runs, widths)


def table(runs: dict[tuple[str, float], list[Outcome]], widths: Sequence[float]) -> pd.DataFrame:
    """The rows, from all runs by step and half-width."""
    rows: list[dict[str, object]] = []
    for step in STEPS:
        row: dict[str, object] = {"change": step.name}
        for width in widths:
            mine, uniform = runs[step.name, width], runs[STEPS[0].name, width]
            now, first = (float(np.mean([run.draws for run in each])) for each in (mine, uniform))
            row[f"questions to {width:g}"] = f"{now:,.0f}"
            row[f"ratio at {width:g}"] = f"{now / first:.2f}"
            row[f"covered at {width:g}"] = f"{sum(run.covered for run in mine)}/{len(mine)}"
        rows.append(row)
    return pd.DataFrame(rows)


def markdown(found: pd.DataFrame) -> str:
    """The table as Markdown, figures to the right."""
    heads = [str(column) for column in found.columns]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *found.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def page(found: pd.DataFrame, widths: Sequence[float]) -> str:
    """The ratios as bars, step after step, and the table, in one file."""
    steps = [shown(name) for name in found["change"]][::-1]  # Plotly's first row is the lowest
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": f"±{width:g}",
            "x": [float(ratio) for ratio in found[f"ratio at {width:g}"]][::-1],
            "y": steps,
            "text": [f"{n} questions" for n in found[f"questions to {width:g}"]][::-1],
            "hovertemplate": "%{y}: %{x} of uniform, %{text}",
        }
        for width in widths
    ]
    x = {"title": {"text": "questions, as a share of uniform ones"}, "rangemode": "tozero"}
    layout = {"xaxis": x, "yaxis": {"type": "category"}, "height": 120 + 44 * len(steps)}
    figure = {"data": bars, "layout": {**layout, "barmode": "group"}}
    place = frame("waterfall", "Questions by step, as a share of uniform ones", [], [])
    return figure_page(
        "What each change is worth",
        "Questions until certified; each step keeps the changes of those above it.",
        [
            ("As a share of uniform questions", place + data("waterfall-data", {"": figure})),
            ("In numbers", numbers("Questions by step", found)),
        ],
    )


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Prints and writes the table; returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--half-widths", type=float, nargs="+", default=[0.05, 0.03])
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--device", default="cpu", help="of the question GP; auto: CUDA if any")
    parser.add_argument("--out", type=Path, help="where waterfall.md and .html go")
    options = parser.parse_args(arguments)
    found = waterfall(options.half_widths, options.seeds, options.workers, options.device)
    text = markdown(found)
    print(f"digits-severity, {options.seeds} seeds\n\n{text}", flush=True)
    if options.out is not None:
        write_text(options.out / "waterfall.md", text)
        write_text(options.out / "waterfall.html", page(found, options.half_widths))
    return found


if __name__ == "__main__":
    main()
