"""REIC (TSE 2024): Tables I to VI, of audits of captioners under its three relations.

Tables I, V and VI compare reports with people's verdicts, so a run needs labels from ``avtt
label``. Tables II to IV count the reports of the audit. The paper has three follow-ups per image
and relation, and an adaptive audit chooses its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import Journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.oracles.findings import judged, thing
from adaptive_vtt.people.captions import items, summarise
from adaptive_vtt.people.cards import read_folder

from .layout import Cell, Table, tables_of
from .runs import Run

FAMILY = "reic/"
RELATIONS = ("crop", "stretch", "rotate")
LABELS = "labels"
"""Folder of people's verdicts in a run."""
STATUSES = ("ambiguous", "disappeared", "retained")
VERDICTS = ("TP", "FN", "FP", "TN")
GROUPS = {"detection": "no detector", "occlusion": "no occlusion"}
"""Option of the oracle that is switched off -> the row of Table V."""


def tables(runs: Sequence[Run], after: Sequence[Run]) -> list[Table]:
    """Return Tables I to VI.

    Raises:
        InputError: A run is no audit of captions under REIC's relations.
    """
    if after:
        raise InputError(f"{after[0].folder}: --after: REIC retrained no captioner")
    by_number = tables_of("reic")
    for run in runs:
        with run.journal() as journal:
            _counts(run, journal, by_number)
            _verdicts(run, journal, by_number)
    return list(by_number.values())


def _counts(run: Run, journal: Journal, by_number: Mapping[str, Table]) -> None:
    """Add statuses of objects and reports, for Tables II to IV."""
    space, calls = read_facts(journal.facts()).space, journal.calls()
    samples = {draw.call: draw.sample for draw in journal.draws(proposals=False)}
    by_relation: dict[str, list[tuple[str, Any]]] = {}
    for answer in judged(calls):
        relation, _ = space.variants[space.numbering.parts(answer.question)[1]]
        if relation.removeprefix(FAMILY) in RELATIONS:
            case = samples[answer.call], answer.details
            by_relation.setdefault(relation.removeprefix(FAMILY), []).append(case)
    if not by_relation:
        raise InputError(
            f"{run.folder}: expected captions judged under REIC's relations, found none; audit "
            "with relations = ['reic'] and the oracle 'reduced-captions'"
        )
    for relation in RELATIONS:
        cases = by_relation.get(relation, [])
        objects = [(sample, one) for sample, details in cases for one in details["objects"]]
        broken = [(sample, one) for sample, one in objects if one["rule"] is not None]
        status = [one["status"] for _, one in objects]
        of_cases = [{one["status"] for one in details["objects"]} for _, details in cases]
        valid = sum(not each.isdisjoint({"retained", "disappeared"}) for each in of_cases)
        things = {(sample, thing(one)) for sample, one in broken}
        reported = sum(any(o["rule"] is not None for o in d["objects"]) for _, d in cases)
        row = run.model, relation, "run"
        _add(
            run,
            by_number["II"],
            (run.dataset, run.model, f"REIC, {relation}"),
            {
                "eligible": len({sample for sample, details in cases if details["comparable"]}),
                "follow-ups": len(cases),
                "reported": reported,
            },
        )
        _add(
            run,
            by_number["III"],
            row,
            {name: status.count(name) for name in STATUSES}
            | {
                "valid objects": status.count("retained") + status.count("disappeared"),
                "valid cases": valid,
                "reported": len(broken),
            },
        )
        _add(
            run,
            by_number["IV"],
            row,
            {
                "distinct objects": len(things),
                "distinct images": len({sample for sample, _ in things}),
            },
        )


def _verdicts(run: Run, journal: Journal, by_number: Mapping[str, Table]) -> None:
    """Add reports compared with people's verdicts, for Tables I, II (violations), V and VI."""
    labels = read_folder(run.folder / LABELS)
    if labels.empty:
        return
    labelled = items(journal)
    options = read_facts(journal.facts()).begun_with.get("oracle") or {}
    group = next((part for name, part in GROUPS.items() if options.get(name) is False), "all parts")
    for relation in RELATIONS:
        own = [item for item in labelled if item.relation == f"{FAMILY}{relation}"]
        if not own:
            continue
        figures = summarise(own, labels).figures
        for name, level in (("object", figures["objects"]), ("case", figures["cases"])):
            row = run.dataset, name, run.model, relation
            _add(run, by_number["I"], row, _figures(level))
        method = run.dataset, run.model, f"REIC, {relation}"
        _add(run, by_number["II"], method, {"violations": figures["cases"]["tp"]})
        score = figures["objects"]["f1"]
        if score is not None:
            _add(run, by_number["V"], (run.model, relation, group), {"F1": 100 * score})
        for kind in ERROR_TYPES:
            cell = Cell(sum(row.get(kind, 0) for row in figures["types"].values()))
            by_number["VI"].add((kind,), (run.model, relation), cell, run.folder)


def _figures(level: Mapping[str, Any]) -> dict[str, float]:
    """Return counts of labels, and scores in per cent."""
    counts = {name: level[name.lower()] for name in VERDICTS}
    right, total = counts["TP"] + counts["TN"], sum(counts.values())
    known = {"precision": level["precision"], "recall": level["recall"], "F1": level["f1"]}
    if total:
        known = {"accuracy": right / total, **known}
    return counts | {name: 100 * value for name, value in known.items() if value is not None}


def _add(run: Run, table: Table, row: tuple[str, ...], figures: Mapping[str, float]) -> None:
    for name, value in figures.items():
        table.add(row, (name,), Cell(value), run.folder)
