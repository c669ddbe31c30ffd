"""Where answers go wrong, relation by severity as a map whose cells lead to the failures, and right
and wrong answers per concept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..outcomes import METRICS, confusion
from .evidence import Evidence, Standing
from .section import FEW, THIN, Section, data, fragment, percent, within

# -- relation by severity --------------------------------------------------------------------------


WIDEST = 24
"""With one severity a relation and at most so many concepts, columns are concepts."""


@dataclass(frozen=True)
class Cell:
    """One change of the image: ``shade`` from 0 to 1, 1 the worst; "" where it does not exist."""

    place: tuple[int, int] | None
    text: str = ""
    note: str = ""
    shade: float = 0.0
    few: bool = False
    query: str = ""


@dataclass(frozen=True)
class Row:
    """A relation: what is certified of it, if anything, and its cells."""

    name: str
    certified: tuple[str, str, int] | None
    cells: list[Cell]


def section(evidence: Evidence) -> Section | None:
    """A table in colours; None while nothing was judged."""
    if not len(evidence.counted):
        return None
    grid = _grid(evidence)
    html = fragment(
        "conditions.html",
        rows=_rows(evidence, grid),
        heads=grid["heads"],
        across=grid["across"],
        names=[NAMES[f] for f in _figures(evidence)],
        concepts=evidence.concepts if grid["across"] == "severity" else [],
        certified=bool(_of_relations(evidence)),
        adaptive=evidence.adaptive,
        few=FEW,
        data=data("map-data", grid),
    )
    return Section("Conditions", "conditions", html)


def _figures(evidence: Evidence) -> Sequence[str]:
    """Which figures mean anything: where no side can be told, the error rate alone."""
    return FIGURES if evidence.sided else FIGURES[:1]


def _grid(evidence: Evidence) -> dict[str, Any]:
    """Cells by concept ("all" is every concept): row, column, counts, figures."""
    relations, severities = evidence.relations, sorted({s for _, s in evidence.variants})
    single = len(relations) == len(evidence.variants)
    across = "concept" if single and 1 < len(evidence.concepts) <= WIDEST else "severity"
    cells: dict[str, list[list[Any]]] = {"all": []}
    if across == "concept":
        heads = list(evidence.concepts)
        for (relation, concept), row in _lines(evidence, ["relation", "concept"]):
            cells["all"].append([relations.index(relation), heads.index(concept), *row])
    else:
        heads = [str(s) for s in severities]
        for (relation, severity), row in _lines(evidence, ["relation", "severity"]):
            cells["all"].append([relations.index(relation), severities.index(severity), *row])
        for (concept, relation, severity), row in _lines(
            evidence, ["concept", "relation", "severity"]
        ):
            place = [relations.index(relation), severities.index(severity)]
            found = cells.setdefault(str(evidence.concepts.index(concept)), [])
            found.append([*place, *row])
    return {
        "across": across,
        "heads": heads,
        "severities": severities,
        "names": relations,
        "figures": [
            {"name": NAMES[f], "base": [COUNTS.index(c) for c in BASES[f]]}
            for f in _figures(evidence)
        ],
        "few": FEW,
        "cells": cells,
    }


def _lines(evidence: Evidence, by: list[str]) -> list[tuple[Any, list[Any]]]:
    """Per group its key, and counts and figures in one list."""
    found = tally(evidence.counted, by)
    counts = found[list(COUNTS)].astype(int).to_numpy().tolist()
    figures = found[list(_figures(evidence))].to_numpy(float).tolist()
    return [(k, c + f) for k, c, f in zip(found.index, counts, figures, strict=True)]


def _rows(evidence: Evidence, grid: dict[str, Any]) -> list[Row]:
    """The map as it stands at first: error rates over all concepts."""
    known = {(row[0], row[1]): row for row in grid["cells"]["all"]}
    counts = {place: sum(row[2:7]) for place, row in known.items()}
    solid = [row[7] for place, row in known.items() if counts[place] >= FEW]
    worst = max([0.1, *(solid or [row[7] for row in known.values()])])
    there = set(evidence.variants)
    certified = _of_relations(evidence)

    def cell(r: int, c: int) -> Cell:
        relation = evidence.relations[r]
        severity = grid["severities"][c] if grid["across"] == "severity" else None
        if severity is not None and (relation, severity) not in there:
            return Cell(None)
        what = f"severity={severity}" if severity is not None else f"concept={c}"
        query = f"relation={r}&{what}"
        if (r, c) not in known:
            return Cell((r, c), "–", "not asked", query=query)
        rate, n = known[r, c][7], counts[r, c]
        text = f"{100 * rate:.0f}{THIN}%"
        return Cell((r, c), text, f"n {n:,}", min(1.0, rate / worst), n < FEW, query)

    columns = range(len(grid["heads"]))
    return [
        Row(name, _stated(certified.get(name)), [cell(r, c) for c in columns])
        for r, name in enumerate(evidence.relations)
    ]


def _of_relations(evidence: Evidence) -> dict[str, Standing]:
    """What is certified of each relation, over all its severities."""
    found = [s for s in evidence.standings if s.id.kind == "relation"]
    return {str(s.id.relation): s for s in found}


def _stated(standing: Standing | None) -> tuple[str, str, int] | None:
    if standing is None:
        return None
    return percent(standing.estimate), within(standing.half_width), standing.place


# -- per concept -----------------------------------------------------------------------------------


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
class CountCell:
    """A figure, and how many questions it rests on."""

    value: float
    base: int

    @property
    def few(self) -> bool:
        return self.base < FEW


@dataclass(frozen=True)
class CountRow:
    """One concept's counts and figures."""

    name: str
    counts: list[int]
    cells: list[CountCell]


def counts_section(evidence: Evidence) -> Section | None:
    """A table per concept; None where no answer has a side."""
    if not evidence.sided:
        return None
    html = fragment(
        "counts.html",
        rows=_count_rows(evidence),
        names=NAMES,
        few=FEW,
        adaptive=evidence.adaptive,
    )
    return Section("Right and wrong per concept", "counts", html)


def tally(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    return confusion(table, by).join(table.groupby(by, sort=False)["loss"].mean().rename("error"))


def _count_rows(evidence: Evidence) -> list[CountRow]:
    """Every concept in the dataset's order, those never asked about included."""
    found = tally(evidence.counted, ["concept"]).reindex(evidence.concepts)
    return [_count_row(str(name), figures) for name, figures in found.iterrows()]


def _count_row(name: str, figures: "pd.Series[Any]") -> CountRow:
    counts = figures[list(COUNTS)].fillna(0).astype(int)
    cells = [CountCell(float(figures[f]), int(counts[list(BASES[f])].sum())) for f in FIGURES]
    return CountRow(name, counts.tolist(), cells)
