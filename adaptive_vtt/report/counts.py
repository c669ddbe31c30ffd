"""Right and wrong answers, per concept and per change of the image."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..results import METRICS, confusion
from .evidence import Evidence
from .section import FEW, Section, data, fragment, plot_text, shorten

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
LABEL = 22
"""Longer names of relations are cut short beside the map."""


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
    """A table per concept, and a map of relation by severity; captions have neither sides
    nor degrees of severity."""
    if evidence.captioned:
        return None
    html = fragment(
        "counts.html",
        rows=_rows(evidence),
        names=NAMES,
        few=FEW,
        concepts=evidence.concepts,
        adaptive=evidence.adaptive,
        data=data("map-data", _map(evidence)),
    )
    return Section("Right and wrong", "counts", html)


def tally(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    return confusion(table, by).join(table.groupby(by, sort=False)["loss"].mean().rename("error"))


def _rows(evidence: Evidence) -> list[Row]:
    """Every concept in the dataset's order, those never asked about included."""
    found = tally(evidence.table, ["concept"]).reindex(evidence.concepts)
    return [_row(str(name), figures) for name, figures in found.iterrows()]


def _row(name: str, figures: "pd.Series[Any]") -> Row:
    counts = figures[list(COUNTS)].fillna(0).astype(int)
    cells = [Cell(float(figures[f]), int(counts[list(BASES[f])].sum())) for f in FIGURES]
    return Row(name, counts.tolist(), cells)


def _map(evidence: Evidence) -> dict[str, Any]:
    """Cells by concept ("all" is every concept): relation, severity, counts, figures."""
    relations = evidence.relations
    levels = sorted({severity for _, severity in evidence.variants})
    spots = {v: (relations.index(v[0]), levels.index(v[1])) for v in evidence.variants}
    places = {name: str(i) for i, name in enumerate(evidence.concepts)}
    cells: dict[str, list[list[Any]]] = {"all": []}
    for (relation, severity), row in _lines(evidence.table, ["relation", "severity"]):
        cells["all"].append([*spots[relation, severity], *row])
    by = ["concept", "relation", "severity"]
    for (concept, relation, severity), row in _lines(evidence.table, by):
        cells.setdefault(places[concept], []).append([*spots[relation, severity], *row])
    return {
        "names": [plot_text(r) for r in relations],
        "relations": [plot_text(shorten(r, LABEL)) for r in relations],
        "severities": levels,
        "variants": list(spots.values()),
        "figures": [
            {"name": NAMES[f], "base": [COUNTS.index(c) for c in BASES[f]]} for f in FIGURES
        ],
        "few": FEW,
        "cells": cells,
    }


def _lines(table: pd.DataFrame, by: list[str]) -> list[tuple[Any, list[Any]]]:
    """Per group its key, and counts and figures in one list."""
    found = tally(table, by)
    counts = found[list(COUNTS)].astype(int).to_numpy().tolist()
    figures = found[list(FIGURES)].to_numpy(float).tolist()
    return [(k, c + f) for k, c, f in zip(found.index, counts, figures, strict=True)]
