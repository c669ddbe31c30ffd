"""Per perturbation and concept: what is certified, and what follows, as a census has it exactly.

Accuracy, recall and specificity are 1 less a certified rate. Accuracy over several classes, macro
figures and Cohen's kappa under a relation are those of ``results.derived``, of the rates under that
relation alone: every relation is asked of the same images, so classes have the same shares.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from ...families import OfRelation, OfRelationConcept, OfSeverity, TargetId, shared
from ...oracles.base import LABEL_ERROR, MISCLASSIFICATION
from ...types import ERROR
from ..derived import ALL, Bounds, figures
from .evidence import Evidence
from .section import MAX_ROWS, Section, beside, span, table

KINDS = ("overall", "concept", "relation", "severity", "relation-concept")
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


def section(evidence: Evidence) -> Section | None:
    """Show the rows, those of single concepts apart; None where no target is about a concept under
    a relation: relations alone are certified."""
    rows, certificate = _rows(evidence), evidence.certificate
    if certificate is None or not any(place.relation and place.concept for place in rows):
        return None
    whole = {place: row for place, row in rows.items() if place.concept is None}
    each = {place: row for place, row in rows.items() if place.concept is not None}
    parts = {"All concepts together": whole, "Each concept": each}
    family = shared(evidence.relations)
    return Section.of(
        evidence,
        "Rates by image change",
        "perturbations",
        "perturbations.html",
        parts=[(name, _shown(name, part, family)) for name, part in parts.items() if part],
        together=certificate.guarantee == "all",
        left_out=max(0, max(map(len, parts.values())) - MAX_ROWS),
    )


def _shown(title: str, rows: Rows, family: str) -> Markup:
    """Return a table of figures with their intervals in words, relations without ``family``, which
    all share."""
    shown = _named(rows)
    shown["relation"] = [relation.removeprefix(family) for relation in shown["relation"]]
    if not any(place.concept for place in rows):
        shown = shown.drop(columns="concept")
    for name in _figures(rows):
        ends = [astuple(row[name]) if name in row else None for row in rows.values()]
        shown[name] = [f"{beside(*three)} ({span(*three[1:])})" if three else "–" for three in ends]
    return table(title, shown.head(MAX_ROWS))


def perturbations(evidence: Evidence) -> pd.DataFrame:
    """Return a row per relation, severity and concept that a target is about ("all": all of them);
    columns NAME, NAME lower, NAME upper of every figure, NaN where it is not certified. No rows
    where no target is about a relation."""
    rows = _rows(evidence)
    if not any(place.relation for place in rows):
        return pd.DataFrame()
    unknown = Bounds(float("nan"), float("nan"), float("nan"))
    columns = {
        name + end: [getattr(row.get(name, unknown), field) for row in rows.values()]
        for name in _figures(rows)
        for end, field in (("", "estimate"), (" lower", "lower"), (" upper", "upper"))
    }
    return pd.concat([_named(rows), pd.DataFrame(columns)], axis=1)


def _named(rows: Rows) -> pd.DataFrame:
    """Return the columns that say what a row is about; severity only where a target is about
    one."""
    named = pd.DataFrame(rows.keys(), columns=Place._fields).astype(object)
    if named["severity"].isna().all():
        named = named.drop(columns="severity")
    return named.where(named.notna(), "all")


def _figures(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows.values() for name in row))


def _rows(evidence: Evidence) -> Rows:
    """Return each place's figures by name. A target whose interval was emptied has none."""
    certificate, rows = evidence.certificate, Rows()
    if certificate is None or certificate.paired:
        return rows
    kept = [s for s in evidence.standings if s.id.kind in KINDS and not s.emptied]
    wrong_or_right = COMPLEMENTS.keys() >= evidence.settings.oracle.rates.keys()
    for standing in kept:
        name = standing.id.rate
        named = {name: standing.bounds}
        if name in COMPLEMENTS and wrong_or_right:
            named[COMPLEMENTS[name]] = _complement(standing.bounds)
        for place in _places(standing.id, evidence.variants):
            rows.setdefault(place, {}).update(named)
    if certificate.guarantee == "all":  # figures of several rates need intervals that hold at once
        for place, name, bounds in _derived(evidence, {s.id: s.bounds for s in kept}):
            rows.setdefault(place, {}).setdefault(name, bounds)
    relations, concepts = [None, *evidence.relations], [None, *evidence.concepts]

    def order(place: Place) -> tuple[int, ...]:
        relation, severity, concept = place
        return relations.index(relation), severity or 0, concepts.index(concept)

    return {place: rows[place] for place in sorted(rows, key=order)}


def _derived(
    evidence: Evidence, rates: Mapping[TargetId, Bounds]
) -> Iterator[tuple[Place, str, Bounds]]:
    """Yield what follows for all relations together, and from the rates under each alone."""
    apart = evidence.space.concepts_are != "classes"
    only = next((t.relation for t in rates if isinstance(t, OfRelationConcept)), None)
    for figure in figures(evidence.space, rates):
        # where there is one relation, figures name none, and stand with the rates they follow from
        relation = {ALL: None, None: only}.get(figure.relation, figure.relation)
        if figure.kind in ("classes", "concept"):
            yield Place(relation, concept=figure.concept), figure.quantity, figure.bounds
        elif figure.kind == "BE" and relation is not None and apart:
            yield Place(relation), "balanced accuracy", _complement(figure.bounds)


def _places(target: TargetId, variants: Sequence[tuple[str, int]]) -> set[Place]:
    """Return its rows: its own, and those of relations and severities that it is another name
    of."""
    columns = target.columns()
    places = {Place(columns["relation"], columns["severity"], columns["concept"])}
    for relation, severity in variants:
        if target.is_named(OfRelation(relation).handle):
            places.add(Place(relation))
        if target.is_named(OfSeverity(relation, severity).handle):
            places.add(Place(relation, severity))
    return places


def _complement(rate: Bounds) -> Bounds:
    return Bounds(1 - rate.estimate, 1 - rate.upper, 1 - rate.lower)
