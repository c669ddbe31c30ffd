"""Rates: certified intervals and figures that follow from them, exact rates of a census, raw rates
by condition and concept, beliefs next to intervals, and realism as people judge it.

Accuracy, recall and specificity are 1 less a certified rate. Accuracy over several classes, macro
figures and Cohen's kappa under a relation are those of ``results.derived``. They follow from the
rates under that relation alone: every relation is asked of the same images, so classes have the
same shares.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...families import OfConcept, OfRelation, OfRelationConcept, OfSeverity, TargetId, shared
from ...oracles.base import LABEL_ERROR, MISCLASSIFICATION
from ...types import ERROR, SIDES, JsonObject
from ...utils.figures import ERRORS, shorten, shown
from ..census import CONFIDENCE, tables
from ..derived import ALL, Bounds, Figure, Kind, figures
from ..outcomes import confusion
from ..result import frame as targets_of
from .evidence import Evidence, ordered
from .plots import frame
from .run_files import realism_table
from .section import FEW, MAX_ROWS, Section, data, estimated, figure, percent, span, table

# -- certified -------------------------------------------------------------------------------------

STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Distances between the marks of an axis that are tried, the finest first."""
MARKS = 6
"""Marks of the axis above 0, at most."""
LINES: dict[Kind, float | None] = {
    **dict.fromkeys(("classes", "concept"), None),
    "difference": 0,
    "BE": None,
    **dict.fromkeys(("normalised", "relative"), 1),
}
"""Kinds of derived figures in the order of the page, and where a line stands in their bars; bars
without one run from 0 to 1. derived.html describes each kind."""


def certified_section(evidence: Evidence) -> Section | None:
    """Show guarantee, an interval per target as a bar, and all figures; None if nothing is
    certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    groups, limit = ordered(evidence.standings), certificate.at_most
    end, marks = axis([s.upper for s in evidence.standings], limit or 0, MARKS)
    return evidence.section(
        "Certified",
        "certified",
        limit=limit,
        targets=[s for _, part in groups for s in part],
        bars=[(t, sorted(part, key=lambda s: not s.settled)) for t, part in groups],
        shorten=shorten,
        end=end,
        marks=marks,
        failed=evidence.failing,
        history=evidence.run.history,
        beliefs=implied_rates(evidence),
    )


def axis(ends: list[float], least: float, most: int) -> tuple[float, list[float]]:
    """Return the end of an axis from 0, beyond all ``ends`` and ``least``, and its marks.

    There are ``most`` marks or fewer.
    """
    end = min(1.0, 1.06 * max([*ends, least, 0.02]))
    step = next((s for s in STEPS if end / s <= most), STEPS[-1])
    return end, [k * step for k in range(1 + int(end / step + 1e-9))]


def derived_section(evidence: Evidence) -> Section | None:
    """Show a table per kind of derived figures; None if nothing follows."""
    if evidence.certificate is None or evidence.certificate.guarantee == "each":
        return None  # figures of several rates need intervals that hold at once
    derived = figures(evidence.space, {s.id: s.bounds for s in evidence.standings})
    parts = {kind: [f for f in derived if f.kind == kind] for kind in LINES}
    family = shared(evidence.relations)
    groups = [(kind, _derived_rows(part, family)) for kind, part in parts.items() if part]
    return evidence.section("Derived figures", "derived", groups=groups) if groups else None


def _derived_rows(part: list[Figure], family: str) -> list[tuple[Figure, str, JsonObject]]:
    """Return per figure of a kind its label, relations without ``family``, and its bar: interval,
    estimate (None: outside) and the kind's line (None: none), as shares of the length; all have one
    scale. Intervals with a note may reach far, as a tiny divisor makes them, and are cut off."""
    line, low, high = LINES[part[0].kind], 0.0, 1.0
    if line is not None:
        steady = [f.bounds for f in part if not f.note] or [f.bounds for f in part]
        low = min(line, *(b.lower for b in steady))
        high = max(line, *(b.upper for b in steady))

    def place(value: float) -> float:
        return float(np.clip((value - low) / (high - low or 1.0), 0.0, 1.0))

    rows = []
    for derived in part:
        relation, bounds = (derived.relation or "").removeprefix(family), derived.bounds
        label = ", ".join(filter(None, [relation, derived.concept]))
        if not label or derived.kind in ("classes", "difference"):
            label = ": ".join(filter(None, [label, derived.quantity]))
        bar: JsonObject = {"start": place(bounds.lower), "end": place(bounds.upper)}
        bar["at"] = place(bounds.estimate) if low <= bounds.estimate <= high else None
        bar["mark"] = None if line is None else place(line)
        rows.append((derived, label, bar))
    return rows


# -- per perturbation and concept ------------------------------------------------------------------

PERTURBED = ("overall", "concept", "relation", "severity", "relation-concept")
"""Families of targets that have a row."""
COMPLEMENTS = {
    **dict.fromkeys((ERROR, "error rate", LABEL_ERROR, MISCLASSIFICATION), "accuracy"),
    "miss rate": "recall",
    "false-alarm rate": "specificity",
}


class Place(NamedTuple):
    """A row: None stands for all relations, all severities, all concepts."""

    relation: str | None = None
    severity: int | None = None
    concept: str | None = None


Rows = dict[Place, dict[str, Bounds]]


def perturbations_section(evidence: Evidence) -> Section | None:
    """Show the rows, those of single concepts apart; None if no target is about a concept under
    a relation: relations alone are certified."""
    rows = _perturbed(evidence)
    if not any(place.relation and place.concept for place in rows):
        return None
    family, parts, left_out = shared(evidence.relations), [], 0
    for title, single in (("All concepts together", False), ("Each concept", True)):
        part = {place: row for place, row in rows.items() if (place.concept is not None) == single}
        cells = _named(part) if single else _named(part).drop(columns="concept")
        cells["relation"] = [relation.removeprefix(family) for relation in cells["relation"]]
        for name in _figures(part):
            bounds = [row.get(name) for row in part.values()]
            cells[name] = [
                f"{estimated(b.estimate, b.lower, b.upper)} ({span(b.lower, b.upper)})"
                if b
                else "–"
                for b in bounds
            ]
        if part:
            parts.append((title, table(title, cells.head(MAX_ROWS))))
        left_out = max(left_out, len(part) - MAX_ROWS)
    title = "Rates by image change"
    return evidence.section(title, "perturbations", parts=parts, left_out=left_out)


def perturbations(evidence: Evidence) -> pd.DataFrame:
    """Return certified rates, and figures that follow from them, by perturbation and concept.

    Args:
        evidence: Evidence of an audit.

    Returns:
        A row per relation, severity and concept that a target is about ("all": all of them);
        columns NAME, NAME lower, NAME upper of every figure, NaN if it is not certified. No rows
        where no target is about a relation.
    """
    rows = _perturbed(evidence)
    if not any(place.relation for place in rows):
        return pd.DataFrame()
    unknown, named = Bounds(np.nan, np.nan, np.nan), _named(rows)
    for name in _figures(rows):
        bounds = [row.get(name, unknown) for row in rows.values()]
        for end, field in (("", "estimate"), (" lower", "lower"), (" upper", "upper")):
            named[name + end] = [getattr(each, field) for each in bounds]
    return named


def _named(rows: Rows) -> pd.DataFrame:
    """Return the columns that name a row; severity only where a target is about one."""
    named = pd.DataFrame(rows.keys(), columns=Place._fields).astype(object)
    if named["severity"].isna().all():
        named = named.drop(columns="severity")
    return named.where(named.notna(), "all")


def _figures(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows.values() for name in row))


def _perturbed(evidence: Evidence) -> Rows:
    """Return each place's figures by name. A target whose interval was emptied has none."""
    certificate, rows = evidence.certificate, Rows()
    if certificate is None or certificate.paired:
        return rows
    kept = {s.id: s.bounds for s in evidence.standings if s.id.kind in PERTURBED and not s.emptied}
    wrong_or_right = COMPLEMENTS.keys() >= evidence.settings.oracle.rates.keys()
    for target, bounds in kept.items():
        named = {target.rate: bounds}
        if target.rate in COMPLEMENTS and wrong_or_right:
            named[COMPLEMENTS[target.rate]] = _complement(bounds)
        for place in _places(target, evidence.variants):
            rows.setdefault(place, {}).update(named)
    # figures of several rates need intervals that hold at once
    for derived in figures(evidence.space, kept) if certificate.guarantee == "all" else ():
        # where there is one relation, figures name none, and stand with the rates they follow from
        only = next((t.relation for t in kept if isinstance(t, OfRelationConcept)), None)
        relation = {ALL: None, None: only}.get(derived.relation, derived.relation)
        if derived.kind in ("classes", "concept"):
            row = rows.setdefault(Place(relation, concept=derived.concept), {})
            row.setdefault(derived.quantity, derived.bounds)
        elif derived.kind == "BE" and relation and evidence.space.concepts_are != "classes":
            row = rows.setdefault(Place(relation), {})
            row.setdefault("balanced accuracy", _complement(derived.bounds))
    relations, concepts = [None, *evidence.relations], [None, *evidence.concepts]

    def order(place: Place) -> tuple[int, ...]:
        relation, severity, concept = place
        return relations.index(relation), severity or 0, concepts.index(concept)

    return {place: rows[place] for place in sorted(rows, key=order)}


def _places(target: TargetId, variants: Sequence[tuple[str, int]]) -> Iterator[Place]:
    """Yield its own row, and those of relations and severities that it is another name of."""
    columns = target.columns()
    yield Place(columns["relation"], columns["severity"], columns["concept"])
    for relation, severity in variants:
        if target.is_named(OfRelation(relation).handle):
            yield Place(relation)
        if target.is_named(OfSeverity(relation, severity).handle):
            yield Place(relation, severity)


def _complement(rate: Bounds) -> Bounds:
    return Bounds(1 - rate.estimate, 1 - rate.upper, 1 - rate.lower)


# -- a census --------------------------------------------------------------------------------------

MAP = "Error by relation and concept"
TITLES = {
    "rates": "Exact rates",
    "perturbations": "By image change",
    "classes": "By image change and class",
    "confusion": "Confusion matrix: true classes by row, predicted classes by column",
}
WHOLE = ["kappa", "auc", "f1", "dice", "iou"]
"""Figures that nobody gives in per cent."""
HIDDEN = ["kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter"]
"""Columns of the rates that their names repeat in words."""


def census_map_section(evidence: Evidence) -> Section | None:
    """Show mean loss per relation and concept; None for a single relation or concept."""
    means = evidence.counted.groupby(["relation", "concept"], sort=False)["loss"].mean()
    grid = 100 * means.unstack("concept", sort=False)
    if min(grid.shape) < 2:  # the table below says as much
        return None
    cells = grid.astype(object).where(grid.notna(), None).to_numpy().tolist()
    heat: JsonObject = {"type": "heatmap", "z": cells, "zmin": 0, "colorscale": ERRORS}
    heat |= {"x": [*map(shown, grid.columns)], "y": [*map(shown, grid.index)]}
    heat |= {"colorbar": {"title": {"text": "%"}, "thickness": 12}}
    heat |= {"hovertemplate": "%{y}, %{x}: %{z:.1f} %<extra></extra>"}
    layout = {"xaxis": {"dtick": 1}, "yaxis": {"autorange": "reversed", "dtick": 1}}
    rows = [[str(name), *map(percent, row / 100)] for name, row in grid.iterrows()]
    place = frame("census-map-plot", MAP, ["relation", *map(str, grid.columns)], rows)
    drawn = data("census-map-plot-data", {"all": {"data": [heat], "layout": layout}})
    return Section(MAP, "census-map", place + drawn)


def census_section(evidence: Evidence) -> Section:
    """Show the tables; those of the run folder have every row and column."""
    rates, parts = targets_of(evidence.run.statuses), []
    for name, rows in tables(evidence.facts, evidence.table, rates, evidence.calls).items():
        kept = rows.drop(columns=HIDDEN, errors="ignore") if "target" in rows else rows
        kept = kept.head(MAX_ROWS).copy()
        floats = kept.select_dtypes("float").columns
        percents = floats.difference(WHOLE)
        kept[percents] *= 100
        kept = kept.round({column: 2 if column in percents else 4 for column in floats})
        kept = kept.rename(columns={column: f"{column}, %" for column in percents})
        parts.append((TITLES[name], table(TITLES[name], kept)))
    return evidence.section("Tables", "census", parts=parts, confidence=f"{CONFIDENCE:.0%}")


# -- raw, by condition and by concept --------------------------------------------------------------

WIDEST = 24
"""With one severity a relation and at most so many concepts, columns are concepts."""
COUNTS = ("tn", "fp", "fn", "tp", "unanswered")
FIGURES = {
    "error": ("error rate", COUNTS),
    "sensitivity": ("sensitivity", ("tp", "fn")),
    "specificity": ("specificity", ("tn", "fp")),
    "precision": ("precision", ("tp", "fp")),
    "f1": ("F1", ("tp", "fp", "fn")),
    "kappa": ("Cohen's kappa", ("tn", "fp", "fn", "tp")),
}
"""Columns of a tally: their names, and the counts each rests on, which with few of them means
little."""


def conditions_section(evidence: Evidence) -> Section | None:
    """Show a table in colours, relation by severity, whose cells lead to the failures; None while
    nothing was judged."""
    if not len(evidence.counted):
        return None
    grid = _grid(evidence)
    certified = {
        relation: (estimated(s.estimate, s.lower, s.upper), span(s.lower, s.upper), s.place)
        for relation in evidence.relations
        for s in evidence.standings
        if s.id.is_named(OfRelation(relation).handle)
    }
    known = {(row[0], row[1]): (row[7], sum(row[2:7])) for row in grid["cells"]["all"]}
    solid = [rate for rate, count in known.values() if count >= FEW]
    return evidence.section(
        "By condition" if evidence.sample == "item" else "By image change",
        "conditions",
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
    # without sides the error rate alone means anything
    names = [*FIGURES] if evidence.sided else ["error"]
    parts = {"all": evidence.counted}
    if across == "severity":
        by_concept = evidence.counted.groupby("concept", sort=False)
        parts |= {str(evidence.concepts.index(str(name))): part for name, part in by_concept}
    cells = {}
    for name, part in parts.items():
        rows = tally(part, ["relation", across])
        counts, values = rows[[*COUNTS]].astype(int), rows[names].astype(float)
        places = [(relations.index(row), columns.index(column)) for row, column in rows.index]
        listed = zip(places, counts.to_numpy().tolist(), values.to_numpy().tolist(), strict=True)
        cells[name] = [[*at, *counted, *figures] for at, counted, figures in listed]
    return {
        "across": across,
        "heads": [str(column) for column in columns],
        "severities": severities,
        "names": relations,
        "figures": [
            {"name": title, "base": [*map(COUNTS.index, base)]}
            for title, base in map(FIGURES.__getitem__, names)
        ],
        "few": FEW,
        "cells": cells,
    }


def counts_section(evidence: Evidence) -> Section | None:
    """Show right and wrong answers per concept, with the questions that each figure rests on; None
    where no answer has a side."""
    if not evidence.sided:
        return None
    # in the dataset's order, those never asked about included
    by_concept, rows = tally(evidence.counted, ["concept"]).reindex(evidence.concepts), []
    for name, row in by_concept.iterrows():
        counts = row[[*COUNTS]].fillna(0).astype(int)
        cells = [(float(row[f]), int(counts[[*base]].sum())) for f, (_, base) in FIGURES.items()]
        rows.append((str(name), counts.tolist(), cells))
    names, title = [name for name, _ in FIGURES.values()], "Confusion counts per concept"
    return evidence.section(title, "counts", rows=rows, names=names, few=FEW)


def tally(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return confusion, and the error rate: the mean loss, with unanswered questions as judged."""
    errors = table.groupby([*by], sort=False)["loss"].mean().rename("error")
    return confusion(table, [*by]).join(errors)


# -- beliefs next to intervals ---------------------------------------------------------------------


def implied_rates(evidence: Evidence) -> dict[int, float]:
    """Return the error rates that answer GPs imply, by the place of a target about one side of a
    concept; sides that were never answered are left out. There are no rates where classes are
    compared with each other, and of items.

    A bin's coordinate, (P(yes) + truth) / 2, shows both the side and whether the answer is wrong.
    The rate is the wrong share of the posterior mean summed over the side's bins. That is
    FP / (TN + FP) where the concept is absent (0), FN / (TP + FN) where it is present (1). The
    middle bin belongs to both sides, and is divided as the answers in it are.
    """
    rates: dict[int, float] = {}
    if evidence.space.concepts_are == "classes" or evidence.settings.oracle.tells_losses:
        return rates
    answered = evidence.table[evidence.table["answer"].notna()]
    for standing in evidence.standings:
        target = standing.id
        if not isinstance(target, OfConcept) or target.rate not in SIDES:
            continue
        here = (answered["concept"] == target.concept) & (answered["truth"] == target.side)
        learnt, place = evidence.replay, evidence.concepts.index(target.concept)
        at, middle = answered.loc[here, "coordinate"].to_numpy(float), learnt.mean.shape[1] // 2
        mass, among = np.maximum(learnt.mean[place], 0.0), learnt.counts[place, middle]
        share = (np.abs(at - 0.5) <= 0.5 / (2 * middle)).sum() / among if among else 0.5
        # outwards from the middle: wrong answers first, then right ones
        half = mass[middle:] if target.side else mass[middle::-1]
        half = half * np.where(np.arange(middle + 1) == 0, min(share, 1.0), 1.0)
        wrong = half[: middle // 2].sum() + half[middle // 2] / 2
        if len(at) and half.sum() > 0:
            rates[standing.place] = float(wrong / half.sum())
    return rates


# -- realism ---------------------------------------------------------------------------------------


def realism_section(evidence: Evidence) -> Section | None:
    """Show people's judgements of changed pictures; None if nobody judged any of this audit.

    MedTest asks first whether changed pictures are realistic (RQ1), and answers with a sentence;
    here are shares by relation.
    """
    realism = evidence.realism
    if realism is None or not realism.cells:
        return None
    kappas = [(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()]
    rows, readers = realism_table(realism), realism.readers
    return evidence.section("Realism", "realism", rows=rows, readers=readers, kappas=kappas)
