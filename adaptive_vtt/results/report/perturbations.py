"""Per perturbation and concept: what is certified, and what follows, as a census has it exactly.

Accuracy, recall and specificity are 1 less a certified rate. Accuracy over several classes, macro
figures and Cohen's kappa under a relation are those of ``results.derived``, of the rates under that
relation alone: every relation is asked of the same images, so classes have the same shares.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup

from ...families import OfConcept, OfRelation, OfRelationConcept, OfSeverity, TargetId, shared
from ...oracles.base import LABEL_ERROR, MISCLASSIFICATION
from ...types import ERROR
from ..derived import ALL, Bounds, Figure, figures
from .evidence import Evidence, Standing
from .plots import MAX_ROWS, table
from .section import Section, beside, span

KINDS = ("overall", "concept", "relation", "severity", "relation-concept")
"""Families of targets that have a row."""
ERRORS = (ERROR, "error rate", LABEL_ERROR, MISCLASSIFICATION)
COMPLEMENTS = {
    **dict.fromkeys(ERRORS, "accuracy"),
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
    """None where no target is about a concept under a relation: relations alone are certified."""
    found = _rows(evidence)
    if not any(place.relation and place.concept for place in found):
        return None
    whole = {place: row for place, row in found.items() if place.concept is None}
    each = {place: row for place, row in found.items() if place.concept is not None}
    parts = {"Of all concepts together": whole, "Of each concept": each}
    certificate = evidence.certificate
    return Section.of(
        "Per perturbation",
        "perturbations",
        "perturbations.html",
        parts=[(name, _shown(name, evidence, rows)) for name, rows in parts.items() if rows],
        together=certificate is not None and certificate.guarantee == "all",
        left_out=max(0, max(map(len, parts.values())) - MAX_ROWS),
        folder=evidence.folder,
    )


def _shown(name: str, evidence: Evidence, rows: Rows) -> Markup:
    """A table of figures with their intervals in words, relations without what all share."""
    shown, family = _named(rows), shared(evidence.relations)
    shown["relation"] = [relation.removeprefix(family) for relation in shown["relation"]]
    if not any(place.concept for place in rows):
        shown = shown.drop(columns="concept")
    for figure in _figures(rows):
        cells = [row.get(figure) for row in rows.values()]
        shown[figure] = ["–" if b is None else _cell(b) for b in cells]
    return table(name, shown.head(MAX_ROWS))


def perturbations(evidence: Evidence) -> pd.DataFrame:
    """A row per relation, severity and concept that a target is about ("all": all of them); columns
    NAME, NAME lower, NAME upper of every figure, NaN where it is not certified. No rows where no
    target is about a relation."""
    found = _rows(evidence)
    if not any(place.relation for place in found):
        return pd.DataFrame()
    columns = {}
    for name in _figures(found):
        cells = [row.get(name) for row in found.values()]
        for end, field in (("", "estimate"), (" lower", "lower"), (" upper", "upper")):
            columns[name + end] = [float("nan") if b is None else getattr(b, field) for b in cells]
    return pd.concat([_named(found), pd.DataFrame(columns)], axis=1)


def _rows(evidence: Evidence) -> Rows:
    """Each place's figures by name. A target whose interval was emptied has none."""
    certificate, found = evidence.certificate, dict[Place, dict[str, Bounds]]()
    if certificate is None or evidence.paired:
        return found
    there = [s for s in evidence.standings if s.id.kind in KINDS and not s.emptied]
    for standing in there:
        for place in _places(standing.id, evidence.variants):
            found.setdefault(place, {}).update(_told(evidence, standing))
    if certificate.guarantee == "all":  # figures of several rates need intervals that hold at once
        for place, figure in _derived(evidence, {s.id: s.bounds for s in there}):
            found.setdefault(place, {}).setdefault(figure.quantity, figure.bounds)
    relations = [None, *evidence.relations]
    concepts = [None, *evidence.concepts]

    def order(place: Place) -> tuple[int, ...]:
        relation, severity, concept = place
        return relations.index(relation), severity or 0, concepts.index(concept)

    return {place: found[place] for place in sorted(found, key=order)}


def _told(evidence: Evidence, standing: Standing) -> dict[str, Bounds]:
    """The rate that is certified, and where it is one of wrong answers, 1 less it."""
    name = standing.id.rate
    found = {name: standing.bounds}
    if name in COMPLEMENTS and COMPLEMENTS.keys() >= evidence.settings.oracle.rates.keys():
        found[COMPLEMENTS[name]] = _complement(standing.bounds)
    return found


def _derived(
    evidence: Evidence, rates: Mapping[TargetId, Bounds]
) -> Iterator[tuple[Place, Figure]]:
    """What follows for all relations together, and from the rates under each alone."""
    space = evidence.facts.space
    for figure in figures(space, rates):
        if figure.kind in ("classes", "concept"):
            yield Place(concept=figure.subject or None), figure
        elif figure.kind == "BE" and figure.subject != ALL and space.concepts_are != "classes":
            accuracy = replace(
                figure, quantity="balanced accuracy", bounds=_complement(figure.bounds)
            )
            yield Place(figure.subject), accuracy
    for relation in evidence.relations:
        alone: dict[TargetId, Bounds] = {
            OfConcept(t.concept, t.side, t.rate): bounds
            for t, bounds in rates.items()
            if isinstance(t, OfRelationConcept) and t.relation == relation and t.side is not None
        }
        for figure in figures(space, alone):
            yield Place(relation, concept=figure.subject or None), figure


def _places(target: TargetId, variants: Sequence[tuple[str, int]]) -> set[Place]:
    """Its rows: its own, and those of relations and severities that it is another name of."""
    told = target.columns()
    found = {Place(told["relation"], told["severity"], told["concept"])}
    for relation, severity in variants:
        if target.is_named(OfRelation(relation).handle):
            found.add(Place(relation))
        if target.is_named(OfSeverity(relation, severity).handle):
            found.add(Place(relation, severity))
    return found


def _named(found: Rows) -> pd.DataFrame:
    """The columns that say what a row is about; severity only where a target is about one."""
    named = pd.DataFrame(found.keys(), columns=Place._fields).astype(object)
    if named["severity"].isna().all():
        named = named.drop(columns="severity")
    return named.where(named.notna(), "all")


def _figures(found: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in found.values() for name in row))


def _complement(rate: Bounds) -> Bounds:
    return Bounds(1 - rate.estimate, 1 - rate.upper, 1 - rate.lower)


def _cell(bounds: Bounds) -> str:
    share, lower, upper = (float(n) for n in (bounds.estimate, bounds.lower, bounds.upper))
    return f"{beside(share, lower, upper)} ({span(lower, upper)})"
