"""Where answers go wrong, relation by severity as a map whose cells lead to the failures, and right
and wrong answers per concept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...families import OfRelation
from ...types import JsonObject
from ..outcomes import METRICS, confusion
from .evidence import Evidence
from .section import FEW, THIN, Section, beside, data, within

# -- relation by severity --------------------------------------------------------------------------


WIDEST = 24
"""With one severity a relation and at most so many concepts, columns are concepts."""


def section(evidence: Evidence) -> Section | None:
    """A table in colours; None while nothing was judged."""
    if not len(evidence.counted):
        return None
    grid, certified = _grid(evidence), _of_relations(evidence)
    return Section.of(
        "Conditions",
        "conditions",
        "conditions.html",
        rows=_rows(evidence, grid, certified),
        heads=grid["heads"],
        across=grid["across"],
        by=_by(evidence, grid["across"]),
        names=[NAMES[f] for f in _figures(evidence)],
        concepts=evidence.concepts if grid["across"] == "severity" else [],
        certified=bool(certified),
        adaptive=evidence.adaptive,
        few=FEW,
        data=data("map-data", grid),
    )


def _by(evidence: Evidence, across: str) -> str:
    """What the map tells apart, in words."""
    if evidence.sample_word == "item":
        return "concept"
    return (
        f"the change of the image and {'its severity' if across == 'severity' else 'the concept'}"
    )


def _figures(evidence: Evidence) -> Sequence[str]:
    """Which figures mean anything: where no side can be told, the error rate alone."""
    return FIGURES if evidence.sided else FIGURES[:1]


def _grid(evidence: Evidence) -> JsonObject:
    """Cells by concept ("all" is every concept): row, column, counts, figures."""
    relations, severities = evidence.relations, sorted({s for _, s in evidence.variants})
    single = len(relations) == len(evidence.variants)
    across = "concept" if single and 1 < len(evidence.concepts) <= WIDEST else "severity"
    columns = evidence.concepts if across == "concept" else severities
    cells = {
        "all": [
            [relations.index(relation), columns.index(column), *row]
            for (relation, column), row in _lines(evidence, ["relation", across])
        ]
    }
    if across == "severity":
        by = ["concept", "relation", "severity"]
        for (concept, relation, severity), row in _lines(evidence, by):
            found = cells.setdefault(str(evidence.concepts.index(concept)), [])
            found.append([relations.index(relation), severities.index(severity), *row])
    return {
        "across": across,
        "heads": [str(column) for column in columns],
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
    found = tally(evidence.counted, by)
    counts = found[list(COUNTS)].astype(int).to_numpy().tolist()
    figures = found[list(_figures(evidence))].to_numpy(float).tolist()
    return [(k, c + f) for k, c, f in zip(found.index, counts, figures, strict=True)]


def _rows(evidence: Evidence, grid: JsonObject, certified: Mapping[str, Any]) -> list[JsonObject]:
    """The map as it stands at first: per relation what is certified of it, and error rates over all
    concepts. A cell's ``shade`` is from 0 to 1, 1 the worst; its ``place`` is None where no such
    change exists."""
    known = {(row[0], row[1]): row for row in grid["cells"]["all"]}
    counts = {place: sum(row[2:7]) for place, row in known.items()}
    solid = [row[7] for place, row in known.items() if counts[place] >= FEW]
    worst = max([0.1, *(solid or [row[7] for row in known.values()])])

    def cell(r: int, c: int) -> JsonObject:
        what = f"concept={c}"
        if grid["across"] == "severity":
            severity = grid["severities"][c]
            if (evidence.relations[r], severity) not in evidence.variants:
                return {"place": None}
            what = f"severity={severity}"
        found = {"place": (r, c), "query": f"relation={r}&{what}"}
        if (r, c) not in known:
            return found | {"text": "–", "note": "not asked", "shade": 0.0, "few": False}
        rate, n = known[r, c][7], counts[r, c]
        text = f"{100 * rate:.0f}{THIN}%"
        shade = min(1.0, rate / worst)
        return found | {"text": text, "note": f"n {n:,}", "shade": shade, "few": n < FEW}

    columns = range(len(grid["heads"]))
    return [
        {"name": name, "certified": certified.get(name), "cells": [cell(r, c) for c in columns]}
        for r, name in enumerate(evidence.relations)
    ]


def _of_relations(evidence: Evidence) -> dict[str, tuple[str, str, int]]:
    """What is certified of each relation, over all its severities: estimate, half-width, and its
    place among the targets."""
    return {
        relation: (beside(s.estimate, s.lower, s.upper), within(s.half_width), s.place)
        for relation in evidence.relations
        for s in evidence.standings
        if s.id.is_named(OfRelation(relation).handle)
    }


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


def counts_section(evidence: Evidence) -> Section | None:
    """A table of right and wrong answers per concept; None where no answer has a side."""
    if not evidence.sided:
        return None
    # in the dataset's order, those never asked about included
    found = tally(evidence.counted, ["concept"]).reindex(evidence.concepts)
    return Section.of(
        "Right and wrong per concept",
        "counts",
        "counts.html",
        rows=[_count_row(str(name), figures) for name, figures in found.iterrows()],
        names=NAMES,
        few=FEW,
        adaptive=evidence.adaptive,
    )


def _count_row(name: str, figures: "pd.Series[Any]") -> JsonObject:
    """Counts, and each figure with the number of questions that it rests on."""
    counts = figures[list(COUNTS)].fillna(0).astype(int)
    based = [(float(figures[f]), int(counts[list(BASES[f])].sum())) for f in FIGURES]
    cells = [{"value": value, "base": base, "few": base < FEW} for value, base in based]
    return {"name": name, "counts": counts.tolist(), "cells": cells}


def tally(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    return confusion(table, by).join(table.groupby(by, sort=False)["loss"].mean().rename("error"))
