"""Right and wrong answers per concept."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..outcomes import METRICS, confusion
from .evidence import Evidence
from .section import FEW, Section, fragment

COUNTS = ("tn", "fp", "fn", "tp", "unanswered")
FIGURES = ("error", *METRICS)
NAMES = {
    "error": "error rate",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "precision": "precision",
    "f1": "F1",
    "kappa": "Cohen's kappa",
}
BASES = {
    "error": COUNTS,
    "sensitivity": ("tp", "fn"),
    "specificity": ("tn", "fp"),
    "precision": ("tp", "fp"),
    "f1": ("tp", "fp", "fn"),
    "kappa": ("tn", "fp", "fn", "tp"),
}
"""The counts each figure rests on; with few of them it says little."""


@dataclass(frozen=True)
class Cell:
    """A figure, and how many questions it rests on."""

    value: float
    base: int

    @property
    def few(self) -> bool:
        return self.base < FEW


@dataclass(frozen=True)
class Row:
    """One concept's counts and figures."""

    name: str
    counts: list[int]
    cells: list[Cell]


def section(evidence: Evidence) -> Section | None:
    """A table per concept; None where no answer has a side."""
    if not evidence.sided:
        return None
    html = fragment(
        "counts.html",
        rows=_rows(evidence),
        names=NAMES,
        few=FEW,
        adaptive=evidence.adaptive,
    )
    return Section("Right and wrong per concept", "counts", html)


def tally(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    return confusion(table, by).join(table.groupby(by, sort=False)["loss"].mean().rename("error"))


def _rows(evidence: Evidence) -> list[Row]:
    """Every concept in the dataset's order, those never asked about included."""
    found = tally(evidence.counted, ["concept"]).reindex(evidence.concepts)
    return [_row(str(name), figures) for name, figures in found.iterrows()]


def _row(name: str, figures: "pd.Series[Any]") -> Row:
    counts = figures[list(COUNTS)].fillna(0).astype(int)
    cells = [Cell(float(figures[f]), int(counts[list(BASES[f])].sum())) for f in FIGURES]
    return Row(name, counts.tolist(), cells)
