"""Where answers go wrong, relation by severity as a map whose cells lead to the failures, and right
and wrong answers per concept.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ...families import OfRelation
from ...types import JsonObject
from ..outcomes import METRICS, confusion
from .evidence import Evidence
from .section import FEW, Section, beside, data, within

WIDEST = 24
"""With one severity a relation and at most so many concepts, columns are concepts."""
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


def section(evidence: Evidence) -> Section | None:
    """Show a table in colours; None while nothing was judged."""
    if not len(evidence.counted):
        return None
    grid = _grid(evidence)
    certified = {
        relation: (beside(s.estimate, s.lower, s.upper), within(s.half_width), s.place)
        for relation in evidence.relations
        for s in evidence.standings
        if s.id.is_named(OfRelation(relation).handle)
    }
    known = {(row[0], row[1]): (row[7], sum(row[2:7])) for row in grid["cells"]["all"]}
    solid = [rate for rate, count in known.values() if count >= FEW]
    return Section.of(
        evidence,
        "By condition" if evidence.sample == "item" else "By image change",
        "conditions",
        "conditions.html",
        grid=grid,
        known=known,
        worst=max([0.1, *(solid or [rate for rate, _ in known.values()])]),
        certified=certified,
        few=FEW,
        data=data("map-data", grid),
    )


def _grid(evidence: Evidence) -> JsonObject:
    """Return cells by concept ("all" is every concept): row, column, counts, figures."""
    relations, severities = evidence.relations, sorted({s for _, s in evidence.variants})
    single = len(relations) == len(evidence.variants)
    across = "concept" if single and 1 < len(evidence.concepts) <= WIDEST else "severity"
    columns: list[Any] = evidence.concepts if across == "concept" else severities
    # where no side can be told, the error rate alone means anything
    figures = FIGURES if evidence.answers.sided else FIGURES[:1]
    cells: dict[str, list[list[Any]]] = {"all": []}
    for by in [["relation", across]] + [["relation", across, "concept"]] * (across == "severity"):
        rows = tally(evidence.counted, by)
        counts = rows[list(COUNTS)].astype(int).to_numpy().tolist()
        values = rows[list(figures)].to_numpy(float).tolist()
        for (relation, column, *concept), *row in zip(rows.index, counts, values, strict=True):
            place = str(evidence.place_of[concept[0]]) if concept else "all"
            at = relations.index(relation), columns.index(column)
            cells.setdefault(place, []).append([*at, *row[0], *row[1]])
    return {
        "across": across,
        "heads": [str(column) for column in columns],
        "severities": severities,
        "names": relations,
        "figures": [
            {"name": NAMES[f], "base": [COUNTS.index(c) for c in BASES[f]]} for f in figures
        ],
        "few": FEW,
        "cells": cells,
    }


def counts_section(evidence: Evidence) -> Section | None:
    """Show right and wrong answers per concept, with the questions that each figure rests on; None
    where no answer has a side."""
    if not evidence.answers.sided:
        return None
    # in the dataset's order, those never asked about included
    every = tally(evidence.counted, ["concept"]).reindex(evidence.concepts)
    rows = []
    for name, figures in every.iterrows():
        counts = figures[list(COUNTS)].fillna(0).astype(int)
        bases = [int(counts[list(BASES[f])].sum()) for f in FIGURES]
        cells = [*zip(map(float, figures[list(FIGURES)]), bases, strict=True)]
        rows.append({"name": str(name), "counts": counts.tolist(), "cells": cells})
    return Section.of(
        evidence,
        "Confusion counts per concept",
        "counts",
        "counts.html",
        rows=rows,
        names=NAMES,
        few=FEW,
    )


def tally(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    errors = table.groupby([*by], sort=False)["loss"].mean().rename("error")
    return confusion(table, [*by]).join(errors)
