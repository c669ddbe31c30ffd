"""MedTest (thesis LYU2308, CUHK 2024): Tables 3 to 10, 13 to 18 and 19 to 23.

The thesis prints a table per model, and here the models share a table. Its sets and models are not
public, and its relations have real cut-outs. So compare the order of the relations, and not the
figures.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from adaptive_vtt.datasets.vqa.medvqa_questions import QUESTIONS, recognised
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.masks import DROP
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.types import IDENTITY

from .layout import Cell, Table, mean, tables_of
from .runs import Run, before

FAMILY = "medtest/"
ORIGINAL, AVERAGE = "Original", "Average"
RELATIONS = {
    IDENTITY: ORIGINAL,
    f"{FAMILY}blood": "Blood",
    f"{FAMILY}feces": "Feces",
    f"{FAMILY}instrument": "Instrument",
    f"{FAMILY}specularity": "Spot",
    f"{FAMILY}saturation": "Saturation",
    f"{FAMILY}contrast": "Contrast",
    f"{FAMILY}white_balance": "White Balance",
    f"{FAMILY}blur": "Blur",
    f"{FAMILY}text": "Text",
}
"""Our names of the relations -> the thesis's, in its order."""
METRICS = {"dice": "Dice", "iou": "IoU"}
FIGURES = {
    "accuracy": "Accuracy",
    "kappa": "Cohen's kappa",
    "precision": "Precision",
    "recall": "Recall",
    "F1": "F1",
}


def tables(runs: Sequence[Run], after: Sequence[Run]) -> list[Table]:
    """Return all tables with the cells of ``runs`` and of the runs ``after`` retraining.

    Raises:
        InputError: A run has no cell of any table.
    """
    by_number = tables_of("medtest")
    for run in [*runs, *after]:
        if not any(name.startswith(FAMILY) for name in run.rates["relation"].dropna()):
            raise InputError(
                f"{run.folder}: expected rates under MedTest's relations, found none; audit with "
                "relations = ['identity', 'medtest'] and targets = ['relations', 'relation-sides']"
            )
    for run in runs:
        if run.compared:
            _differences(run, by_number["22-23"])
        elif run.oracle == "MaskDrop":
            _drops(run, by_number)
        elif run.oracle == "ContainsTruth":
            _answers(run, by_number)
        else:
            _classes(run, by_number["17-18"])
    for run in after:
        earlier = before(run, [r for r in runs if not r.compared])
        if run.oracle == "MaskDrop":
            _scores(earlier, run, by_number["19-21"])
        else:
            _accuracies(earlier, run, by_number["22-23"])
    return list(by_number.values())


# -- segmentation: Tables 3 to 10 ------------------------------------------------------------------


def _drops(run: Run, by_number: Mapping[str, Table]) -> None:
    """Add error-finding rates: shares of scores that fall by more than t of the source's score."""
    added = False
    for concept in run.rates["concept"].dropna().unique():
        name, _, limit = str(concept).rpartition(DROP)
        table = by_number.get({"0.5": "3-6", "0.25": "7-10"}.get(limit, ""))
        for relation, artefact in RELATIONS.items():
            cell = run.rate("relation-concept", relation=relation, concept=concept)
            if table is not None and cell is not None and relation != IDENTITY:
                several = run.rates["concept"].str.rpartition(DROP)[0].dropna().nunique() > 1
                images = f"{run.dataset}, {name}" if several else run.dataset
                column = images, METRICS[run.metric or "dice"]
                table.add((run.model, artefact), column, cell, run.folder)
                added = True
    _check(run, added, "error-finding rates at t = 0.5 or 0.25 per relation")


def _scores(earlier: Run, run: Run, table: Table) -> None:
    """Add mean Dice or IoU before and after retraining (Tables 19 to 21), of censuses."""
    for one, when in ((earlier, "Before"), (run, "After")):
        with one.journal() as journal:
            scores = outcomes(journal).groupby("relation")["answer"].mean()
        rows = {name: scores[key] for key, name in RELATIONS.items() if key in scores}
        rows[AVERAGE] = pd.Series(rows).mean()
        if (one.rates["cell"].map(lambda cell: cell.upper - cell.lower) > 1e-9).any():
            raise InputError(
                f"{one.folder}: expected exact rates, as mean scores have no intervals, got an "
                "audit of a part of the questions; run a census"
            )
        for artefact, score in rows.items():
            column = one.dataset, METRICS[one.metric or "dice"], when
            table.add((earlier.model, artefact), column, Cell(score), one.folder)


# -- questions: Tables 13 to 16 --------------------------------------------------------------------


def _answers(run: Run, by_number: Mapping[str, Table]) -> None:
    """Add accuracies per question and relation."""
    by_text: dict[str, dict[str, Cell]] = {}
    words = wordings(by_number["13"])
    for question in QUESTIONS:
        for relation, artefact in RELATIONS.items():
            about = {"relation": relation, "concept": question.name}
            if (cell := run.accuracy("relation-concept", **about)) is not None:
                by_text.setdefault(words[question.name], {})[artefact] = cell
    _check(run, bool(by_text), "rates of MEDVQA-GI's questions per relation")
    clear = [w for q in QUESTIONS if (w := words[q.name]) in by_text and not q.vague]
    for number, texts in (("13", [*by_text]), ("15", clear)):
        rows = {text: by_text[text] for text in texts}
        common = set.intersection(*map(set, rows.values())) if rows else set()
        rows[AVERAGE] = {
            name: Cell(mean(cells[name] for cells in rows.values()).estimate)
            for name in RELATIONS.values()
            if name in common
        }
        for text, cells in rows.items():
            for artefact, cell in cells.items():
                by_number[number].add((run.model, run.dataset, text), (artefact,), cell, run.folder)
            for column, cell in _summary(cells).items():
                summary = by_number[str(int(number) + 1)]
                summary.add((run.model, run.dataset, text), (column,), cell, run.folder)


def _summary(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Return original, mean over relations, and their difference, as in Tables 14 and 16."""
    changed = [cell.estimate for name, cell in cells.items() if name != ORIGINAL]
    if ORIGINAL not in cells or not changed:
        return {}
    average = sum(changed) / len(changed)
    return {
        ORIGINAL: cells[ORIGINAL],
        "Average Perturbation": Cell(average),
        "Difference": Cell(cells[ORIGINAL].estimate - average),
    }


# -- classification: Tables 17, 18, 22 and 23 ------------------------------------------------------


def _classes(run: Run, table: Table) -> None:
    """Add accuracy and other figures per relation."""
    rows = {name: run.figures[key] for key, name in RELATIONS.items() if key in run.figures}
    _check(
        run,
        any("accuracy" in figures for figures in rows.values()),
        "accuracy per relation (targets = ['relation-sides'])",
    )
    for artefact, figures in _with_average(rows).items():
        for figure, name in FIGURES.items():
            if figure in figures:
                row = run.model, run.dataset, artefact
                table.add(row, (name,), figures[figure], run.folder)


def _with_average(rows: dict[str, dict[str, Cell]]) -> dict[str, dict[str, Cell]]:
    """Return rows and their mean, which includes the original images as in the thesis."""
    names = set.intersection(*map(set, rows.values()))
    return rows | {
        AVERAGE: {n: Cell(mean(cells[n] for cells in rows.values()).estimate) for n in names}
    }


def _accuracies(earlier: Run, run: Run, table: Table) -> None:
    """Add accuracy before and after retraining, and the gain if no comparison has certified it."""
    rows = {
        artefact: {"Initial": first, "Enhanced": second}
        for key, artefact in RELATIONS.items()
        if (first := earlier.figures.get(key, {}).get("accuracy")) is not None
        and (second := run.figures.get(key, {}).get("accuracy")) is not None
    }
    _check(run, bool(rows), f"accuracy under the relations of {earlier.folder}")
    for artefact, cells in _with_average(rows).items():
        row = earlier.model, run.dataset, artefact
        for column, cell in cells.items():
            table.add(row, (column,), cell, run.folder)
        gain = Cell(cells["Enhanced"].estimate - cells["Initial"].estimate)
        table.ours[row].setdefault(("Difference",), gain)


def _differences(run: Run, table: Table) -> None:
    """Add the gains in accuracy that a comparison certified."""
    added = False
    for key, artefact in RELATIONS.items():
        if (cell := run.accuracy("relation", relation=key)) is not None:
            table.add((run.model, run.dataset, artefact), ("Difference",), cell, run.folder)
            added = True
    _check(run, added, "differences per relation (targets = ['relations'])")


def _check(run: Run, added: bool, expected: str) -> None:
    if not added:
        raise InputError(f"{run.folder}: expected {expected}, found none among its rates")


# -- figures of the thesis -------------------------------------------------------------------------


def wordings(table: Table) -> dict[str, str]:
    """Return our name of a question -> its words in Table 13."""
    words = [*table.published().index.get_level_values("question")]
    return {str(recognised(text)): text for text in words if text != AVERAGE}


def retrained(task: str) -> pd.DataFrame:
    """Return means over the thesis's retrained models, and of segmenters over its two sets.

    Args:
        task: "segmentation" (Tables 19 to 21) or "classification" (22 and 23).

    Returns:
        A row per relation by our names, "original" and "average"; columns "paper: accuracy
        before" and so on.
    """
    table = tables_of("medtest")["22-23" if task == "classification" else "19-21"].published()
    means = table.groupby(level="artefact", sort=False).mean()
    if task == "classification":
        columns = {"accuracy before": ["Initial"], "accuracy after": ["Enhanced"]}
    else:
        columns = {
            f"{metric} {when.lower()}": [
                c for c in map(str, means) if c.endswith(f"{metric}, {when}")
            ]
            for metric in METRICS.values()
            for when in ("Before", "After")
        }
    table = pd.DataFrame({f"paper: {k}": means[names].mean(axis=1) for k, names in columns.items()})
    ours = {name: relation for relation, name in RELATIONS.items()}
    return table.round(3).rename(index=ours | {ORIGINAL: "original", AVERAGE: "average"})
