"""MedTest (thesis LYU2308, CUHK 2024): Tables 3 to 10, 13 to 18 and 19 to 23.

The thesis prints a table per model; here the models stand below each other. Its sets and models
are not ours to run, and its relations were drawn from real cut-outs: what can be compared is which
relations hurt most.
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
    """Return the tables that the runs have cells of, ``after`` those of retrained models.

    Raises InputError for a run that fits none.
    """
    every = tables_of("medtest")
    for run in [*runs, *after]:
        if not any(name.startswith(FAMILY) for name in run.rates["relation"].dropna()):
            raise InputError(
                f"{run.folder}: expected rates under MedTest's relations, found none; audit with "
                "relations = ['identity', 'medtest'] and targets = ['relations', 'relation-sides']"
            )
    for run in runs:
        if run.compared:
            _differences(run, every["22-23"])
        elif run.oracle == "MaskDrop":
            _drops(run, every)
        elif run.oracle == "ContainsTruth":
            _answers(run, every)
        else:
            _classes(run, every["17-18"])
    for run in after:
        earlier = before(run, [r for r in runs if not r.compared])
        if run.oracle == "MaskDrop":
            _scores(earlier, run, every["19-21"])
        else:
            _accuracies(earlier, run, every["22-23"])
    return list(every.values())


# -- segmentation: Tables 3 to 10 ------------------------------------------------------------------


def _drops(run: Run, every: Mapping[str, Table]) -> None:
    """Error-finding rates: the score fell by more than t of that of the source image."""
    added = False
    for concept in run.rates["concept"].dropna().unique():
        name, _, limit = str(concept).rpartition(DROP)
        table = every.get({"0.5": "3-6", "0.25": "7-10"}.get(limit, ""))
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
    """Mean Dice or IoU before and after (Tables 19 to 21), of runs that asked everything."""
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


def _answers(run: Run, every: Mapping[str, Table]) -> None:
    found: dict[str, dict[str, Cell]] = {}
    words = wordings(every["13"])
    for question in QUESTIONS:
        for relation, artefact in RELATIONS.items():
            about = {"relation": relation, "concept": question.name}
            if (cell := run.accuracy("relation-concept", **about)) is not None:
                found.setdefault(words[question.name], {})[artefact] = cell
    _check(run, bool(found), "rates of MEDVQA-GI's questions per relation")
    clear = [w for q in QUESTIONS if (w := words[q.name]) in found and not q.vague]
    for number, texts in (("13", [*found]), ("15", clear)):
        rows = {text: found[text] for text in texts}
        common = set.intersection(*map(set, rows.values())) if rows else set()
        rows[AVERAGE] = {
            name: Cell(mean(cells[name] for cells in rows.values()).estimate)
            for name in RELATIONS.values()
            if name in common
        }
        for text, cells in rows.items():
            for artefact, cell in cells.items():
                every[number].add((run.model, run.dataset, text), (artefact,), cell, run.folder)
            for column, cell in _summary(cells).items():
                summary = every[str(int(number) + 1)]
                summary.add((run.model, run.dataset, text), (column,), cell, run.folder)


def _summary(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Original, the mean over relations, and how much lower that is: Tables 14 and 16."""
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
    found = {name: run.figures[key] for key, name in RELATIONS.items() if key in run.figures}
    _check(
        run,
        any("accuracy" in figures for figures in found.values()),
        "accuracy per relation (targets = ['relation-sides'])",
    )
    for artefact, figures in _with_average(found).items():
        for figure, name in FIGURES.items():
            if figure in figures:
                row = run.model, run.dataset, artefact
                table.add(row, (name,), figures[figure], run.folder)


def _with_average(rows: dict[str, dict[str, Cell]]) -> dict[str, dict[str, Cell]]:
    """Rows and their mean, in which the thesis includes the original images."""
    names = set.intersection(*map(set, rows.values()))
    return rows | {
        AVERAGE: {n: Cell(mean(cells[n] for cells in rows.values()).estimate) for n in names}
    }


def _accuracies(earlier: Run, run: Run, table: Table) -> None:
    """Accuracy before and after, and the gain, which a comparison may have certified already."""
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
    """The certified gain in accuracy of a comparison, as Difference."""
    added = False
    for key, artefact in RELATIONS.items():
        if (cell := run.accuracy("relation", relation=key)) is not None:
            table.add((run.model, run.dataset, artefact), ("Difference",), cell, run.folder)
            added = True
    _check(run, added, "differences per relation (targets = ['relations'])")


def _check(run: Run, added: bool, expected: str) -> None:
    if not added:
        raise InputError(f"{run.folder}: expected {expected}, found none among its rates")


# -- what the thesis prints ------------------------------------------------------------------------


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
    found = pd.DataFrame({f"paper: {k}": means[names].mean(axis=1) for k, names in columns.items()})
    ours = {name: relation for relation, name in RELATIONS.items()}
    return found.round(3).rename(index=ours | {ORIGINAL: "original", AVERAGE: "average"})
