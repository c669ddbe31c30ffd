"""What the figures share: names, colours, and writing what was found."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import torch
from rich.console import Console
from rich.table import Table

# Okabe and Ito's palette, told apart by colour-blind readers too
COLOURS = {
    "random": "#7f7f7f",
    "unpredictability": "#E69F00",
    "uncertainty": "#0072B2",
    "uncertainty+unpredictability": "#D55E00",
}
"""The paper's strategies (a) to (d), in its order."""


@dataclass(frozen=True)
class Options:
    """How a figure of many repeated runs is made; see ``options``."""

    out: Path
    quick: bool
    repeats: int
    workers: int


def options(about: str, arguments: Sequence[str] | None, quick_repeats: int) -> Options:
    """The command line that figures of repeated runs share; torch is left one thread."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder to write to")
    parser.add_argument("--repeats", type=int, help=f"runs per panel (10; quick: {quick_repeats})")
    parser.add_argument("--workers", type=int, help="processes (one per core; quick: 1)")
    parser.add_argument("--quick", action="store_true", help="small sets, few repeats")
    chosen = parser.parse_args(arguments)
    repeats = chosen.repeats or (quick_repeats if chosen.quick else 10)
    workers = chosen.workers or (1 if chosen.quick else os.cpu_count() or 1)
    torch.set_num_threads(1)
    return Options(chosen.out, chosen.quick, repeats, workers)


def faint(colour: str, opacity: float) -> str:
    """A hexadecimal colour as rgba, for bands."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def tidy(figure: go.Figure, title: str, *, height: int) -> None:
    """The look of every figure: white, a title, the legend beneath it."""
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "x": 0.02, "y": 1 - 16 / height, "yanchor": "top"},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1 - 46 / height,
            "yref": "container",
            "yanchor": "top",
        },
        margin={"l": 90, "r": 30, "t": 105, "b": 60},
        height=height,
    )
    figure.update_xaxes(showline=True, linecolor="#999", ticks="outside")
    figure.update_yaxes(showline=True, linecolor="#999", ticks="outside")


def write_page(figure: go.Figure, path: Path) -> None:
    """One self-contained page: it opens without a network."""
    figure.write_html(path, include_plotlyjs=True, config={"displaylogo": False})


def show(table: pd.DataFrame, title: str) -> None:
    """Prints a table."""
    drawn = Table(title=title)
    for column in table.columns:
        number = pd.api.types.is_numeric_dtype(table[column])
        drawn.add_column(str(column), justify="right" if number else "left")
    for row in _texts(table):
        drawn.add_row(*row)
    Console(width=None if Console().is_terminal else 140).print(drawn)


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown."""
    rules = ["---:" if pd.api.types.is_numeric_dtype(table[c]) else "---" for c in table.columns]
    rows = [[str(c) for c in table.columns], rules, *_texts(table)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _texts(table: pd.DataFrame) -> list[Sequence[str]]:
    return [
        [f"{v:.2f}" if isinstance(v, float) else str(v) for v in row]
        for row in table.itertuples(index=False, name=None)
    ]
