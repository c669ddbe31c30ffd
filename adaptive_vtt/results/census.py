"""Tables of an audit that asks everything: exact rates, figures per relation, severity and class.

- Classes, one per image: accuracy, balanced accuracy, macro F1, kappa, and recall ... of each.
- Labels: label error, precision, recall, specificity, F1, kappa, AUC of each, and their means.
- Objects with masks: mean Dice and IoU, and for every threshold the share of scores that drop.
- Others, in words or boxes: error, and miss and false-alarm rate if both can happen.

All figures follow from the journaled answers. Rates are exact for the space's questions. If its
images are a random sample, every rate has an interval for other images (Clopper and Pearson, 1934,
each by itself). It counts each image as one answer, as the loss of an image varies at most as much
as a coin of the same mean.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ..families import COLUMNS
from ..journal.facts import Facts, SpaceFacts
from ..journal.rows import CallRow
from ..oracles.base import LABEL_ERROR
from ..oracles.labels import MARGIN
from ..oracles.masks import DROP, SCORE, SOURCE
from ..types import IDENTITY, Floats
from ..utils.files import write_text
from ..utils.tables import TABLES, csv_text
from .outcomes import clopper_pearson, confusion, counting

CONFIDENCE = 0.95
"""Confidence of an interval for other images."""
DIGITS = 6
"""Significant digits of floats in CSV files."""
WHERE = ["relation", "severity"]
EACH = [*WHERE, "concept"]
MAX_CLASSES = 100
"""Confusion matrices of more classes are left out."""
NONE = "no answer"
"""Predicted class of an image without an answer about any class, in a confusion matrix."""
ANY_WRONG = "any label wrong"
"""Share of images with a wrong label, or more."""
Tables = dict[str, pd.DataFrame]


def tables(
    facts: Facts, table: pd.DataFrame, targets: pd.DataFrame, calls: Sequence[CallRow] = ()
) -> Tables:
    """Return the tables by name.

    "rates" has a row per target, "perturbations" one per relation and severity, "classes" one per
    relation, severity and concept. Where every image has one class, "confusion" has a row per
    relation, severity and true class, and a column per predicted class.

    Args:
        facts: Facts of the journal.
        table: Outcomes, one row per judged question.
        targets: The table of targets of a ``results.Result``.
        calls: Calls of the journal, for the scores of masks whose drop does not count.
    """
    counted, space, oracle = counting(table), facts.space, facts.settings.oracle
    every, each = _rows(space), _rows(space, space.concepts)
    counts = np.array(space.cell_counts)
    result = {"rates": _rates(targets)}
    if oracle.metric is not None:
        perturbations, classes = _of_masks(space, counted, _scored(table, calls, oracle.metric))
    elif space.concepts_are == "classes" and (counts.sum(axis=1) == counts[:, 1].sum()).all():
        # every image is asked about all classes, so that any two can be confused
        classes = _of_labels(counted, each)
        groups = counted.groupby(WHERE, sort=False)
        matrices = {variant: _matrix(part, space.concepts) for variant, part in groups}
        perturbations = _of_classes(counted, every, classes, matrices)
        classes = classes.drop(columns="error")
        if len(space.concepts) <= MAX_CLASSES:
            result["confusion"] = _confusion(space.concepts, matrices)
    elif space.concepts_are == "classes":
        perturbations, classes = _errors(counted, every), _errors(counted, each)
        classes["recall"] = 1 - classes["error"]
        perturbations["accuracy"] = 1 - perturbations["error"]
        recalls = classes["recall"].groupby(level=WHERE, sort=False)
        perturbations["balanced accuracy"] = recalls.mean()
    elif space.concepts_are == "labels":
        named = {"error": LABEL_ERROR}
        classes = _of_labels(counted, each).rename(columns=named)
        figures = ["precision", "recall", "f1", "kappa", "auc"]
        balanced = (classes["recall"] + classes["specificity"]) / 2
        means = classes[figures].copy()
        means.insert(0, "balanced accuracy", balanced)
        perturbations = _errors(counted, every).rename(columns=named)
        perturbations = perturbations.join(means.groupby(level=WHERE, sort=False).mean())
        if len(space.concepts) > 1:
            worst = counted.groupby([*WHERE, "sample"], sort=False)["loss"].max()
            perturbations.insert(3, ANY_WRONG, worst.groupby(level=WHERE, sort=False).mean())
    else:
        perturbations = _errors(counted, every, oracle.rates)
        classes = _errors(counted, each, oracle.rates)
    for name, part in {"perturbations": perturbations, "classes": classes}.items():
        # without columns that are empty in all rows, as of figures that answers do not have
        empty = [c for c in part if part[c].isna().all() or (part[c] == "").all()]
        result[name] = part.drop(columns=empty).reset_index()
    return result


def write(folder: Path, census: Tables) -> None:
    """Write each table as tables/NAME.csv in a run folder."""
    for name, table in census.items():
        write_text(folder / TABLES / f"{name}.csv", csv_text(table, DIGITS))


def altered(folder: Path, census: Tables) -> str:
    """Return the first file of tables/ that differs from the tables, as a message; "" if none
    does."""
    for name, table in census.items():
        path = folder / TABLES / f"{name}.csv"
        stated = path.read_text("utf-8", errors="replace") if path.is_file() else None
        if stated is not None and stated.splitlines() != csv_text(table, DIGITS).splitlines():
            return f"{path}: the journal comes to other figures"
    return ""


def _rates(targets: pd.DataFrame) -> pd.DataFrame:
    count = targets["questions"] - targets["excluded"]
    exact = targets["estimate"].where(count > 0).to_numpy(float)
    lower, upper = clopper_pearson(exact, targets["images"], CONFIDENCE)
    wrong = {ANY_WRONG: targets["any_wrong"]} if "any_wrong" in targets else {}
    counts = {"questions": count, "unanswered": targets["unanswered"], "images": targets["images"]}
    elsewhere = {"lower elsewhere": lower, "upper elsewhere": upper}
    return targets[["target", *COLUMNS]].assign(exact=exact, **wrong, **counts, **elsewhere)


def _rows(space: SpaceFacts, concepts: Sequence[str] | None = None) -> pd.MultiIndex:
    """Return the rows of a table: every relation and severity, and concept if those are given."""
    if concepts is None:
        return pd.MultiIndex.from_tuples(space.variants, names=WHERE)
    names = [*dict.fromkeys(concepts)]
    rows = [(*variant, concept) for variant in space.variants for concept in names]
    return pd.MultiIndex.from_tuples(rows, names=EACH)


def _errors(
    counted: pd.DataFrame, rows: pd.MultiIndex, rates: Mapping[str, int] = MappingProxyType({})
) -> pd.DataFrame:
    """Return the mean loss, and the ``rates`` that are about one truth each where there are
    both."""
    groups = counted.groupby([*rows.names], sort=False)
    counts = {"questions": groups.size(), "unanswered": groups["unanswered"].count()}
    table = pd.DataFrame({**counts, "error": groups["loss"].mean()})
    if counted["truth"].nunique() > 1:
        for name, truth in rates.items():
            part = counted[counted["truth"] == truth].groupby([*rows.names], sort=False)
            table[name] = part["loss"].mean()
    return _complete(table, rows)


def _complete(table: pd.DataFrame, rows: pd.MultiIndex) -> pd.DataFrame:
    """Return a table with all ``rows``, also those without questions."""
    counts = ["questions", "unanswered"]
    return table.reindex(rows).fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))


# -- labels and classes ------------------------------------------------------------------------


def _of_labels(counted: pd.DataFrame, rows: pd.MultiIndex) -> pd.DataFrame:
    """Return figures of every concept by itself; one without an answer is judged by its loss."""
    answered = counted.assign(answer=counted["answer"].where(counted["unanswered"].isna()))
    counts = confusion(answered, EACH).reindex(rows)
    present, absent = counts["tp"] + counts["fn"], counts["tn"] + counts["fp"]
    areas = {key: auc(part) for key, part in counted.groupby(EACH, sort=False)}
    figures = counts[["precision", "sensitivity", "specificity", "f1", "kappa"]]
    return _errors(counted, rows).assign(
        **figures.rename(columns={"sensitivity": "recall"}),
        auc=pd.Series(areas, dtype=float).reindex(rows),
        note=np.where((present == 0) & (absent > 0), "no image has it", ""),
    )


def auc(part: pd.DataFrame) -> float:
    """Return the share of pairs of an image with a concept and one without it whose answers
    (P(yes)) are in the right order (Mann and Whitney).

    NaN if a truth is missing, or no answer is a number.
    """
    answer = part["answer"].to_numpy(float)
    known = ~np.isnan(answer)
    yes = part["truth"].to_numpy(float)[known] == 1
    pairs = int(yes.sum()) * int((~yes).sum())
    if not pairs:
        return float("nan")
    ranks = pd.Series(answer[known]).rank().to_numpy()[yes]
    return float((ranks.sum() - len(ranks) * (len(ranks) + 1) / 2) / pairs)


def _of_classes(
    counted: pd.DataFrame,
    rows: pd.MultiIndex,
    by_class: pd.DataFrame,
    matrices: Mapping[Any, Floats],
) -> pd.DataFrame:
    """Return figures of the class with the largest answer; its error is that of images."""
    figures = {variant: _of_confusion(matrix) for variant, matrix in matrices.items()}
    table = pd.DataFrame.from_dict(figures, orient="index").reindex([*rows]).set_axis(rows)
    joined = _errors(counted, rows).join(table)
    areas = by_class["auc"].groupby(level=WHERE, sort=False).mean()
    return joined.assign(error=1 - joined["accuracy"], auc=areas) if figures else joined


def _matrix(part: pd.DataFrame, concepts: Sequence[str]) -> Floats:
    """Return the images of a relation and severity by true class (rows) and predicted class
    (columns); the last column is no answer."""
    images, _ = pd.factorize(part["sample"])
    places, count = pd.Index(concepts).get_indexer(pd.Index(part["concept"])), len(concepts)
    truths = np.zeros((images.max() + 1, count))
    answers = np.full_like(truths, np.nan)
    answers[images, places], truths[images, places] = part["answer"], part["truth"]
    silent = np.isnan(answers).all(axis=1)
    predicted = np.where(silent, count, np.nan_to_num(answers, nan=-np.inf).argmax(axis=1))
    matrix = np.zeros((count, count + 1))
    np.add.at(matrix, (truths.argmax(axis=1), predicted), 1)
    return matrix


def _confusion(concepts: Sequence[str], matrices: Mapping[Any, Floats]) -> pd.DataFrame:
    """Return images by true class (rows) and predicted class (columns)."""
    parts = []
    for (relation, severity), matrix in matrices.items():
        part = pd.DataFrame(matrix.astype(int), columns=[*concepts, NONE])
        keys = {"relation": relation, "severity": severity, "true class": concepts}
        parts.append(pd.concat([pd.DataFrame(keys), part], axis=1))
    if not parts:
        return pd.DataFrame(columns=[*WHERE, "true class", *concepts])
    table = pd.concat(parts, ignore_index=True)
    return table if table[NONE].any() else table.drop(columns=NONE)


def _of_confusion(matrix: Floats) -> dict[str, float]:
    """Return means over the classes that images have."""
    total, hits = matrix.sum(), matrix[:, :-1].diagonal()
    true, predicted = matrix.sum(axis=1), matrix.sum(axis=0)[:-1]
    chance, accuracy = float(true @ predicted) / total**2, hits.sum() / total
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = hits / true, np.where(predicted > 0, hits / predicted, 0.0)
        f1 = np.where(true + predicted > 0, 2 * hits / (true + predicted), np.nan)
    known = true > 0
    return {
        "accuracy": float(accuracy),
        "balanced accuracy": float(recall[known].mean()),
        "precision": float(precision[known].mean()),
        "recall": float(recall[known].mean()),
        "f1": float(f1[known].mean()),
        "kappa": float((accuracy - chance) / (1 - chance)) if chance < 1 else float("nan"),
    }


# -- masks -------------------------------------------------------------------------------------


def _scored(table: pd.DataFrame, calls: Sequence[CallRow], metric: str) -> pd.DataFrame:
    """Return every mask once, with its Dice and IoU, where IoU = Dice / (2 - Dice).

    A score counts whatever the score of its source image is. Masks of source images count as those
    of unchanged images. Their scores follow from the margins, after - (1 - t) * before.
    """
    details = {row.question: row.details or {} for call in calls for row in call.answers}

    def detail(name: str) -> pd.Series:
        return table["question"].map(lambda question: details[question].get(name)).astype(float)

    score = table["answer"].fillna(detail(SCORE))
    known = table.assign(concept=_part(table, 0), score=score)
    before = (score - detail(MARGIN)) / (1 - pd.to_numeric(_part(table, 2)))
    before = before.fillna(detail(SOURCE))
    sources = known.assign(relation=IDENTITY, severity=0, score=before)[before.notna()]
    answers = pd.concat([sources, known]).drop_duplicates(["sample", *EACH])
    score = answers["score"]
    other = score / (2 - score) if metric == "dice" else 2 * score / (1 + score)
    dice, iou = (score, other) if metric == "dice" else (other, score)
    return answers.assign(dice=dice, iou=iou, silent=score.isna())


def _part(table: pd.DataFrame, place: int) -> pd.Series:
    """Return the segmented concept of each question (``place`` 0), or its threshold (2; or "")."""
    return table["concept"].map(lambda name: str(name).partition(DROP)[place]).astype(object)


def _of_masks(
    space: SpaceFacts, counted: pd.DataFrame, scored: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return mean Dice and IoU of all masks, and the shares of drops beyond each threshold, per
    relation and severity, and per concept, too."""
    asked = ((scored["relation"] == IDENTITY) & (scored["severity"] == 0)).any()
    variants = dict.fromkeys([*[(IDENTITY, 0)] * int(asked), *space.variants])
    space = space.model_copy(update={"variants": [*variants]})
    event = "drop > " + _part(counted, 2)
    lost = counted.assign(concept=_part(counted, 0), event=event.where(event != "drop > ", "error"))
    parts = []
    for rows in _rows(space), _rows(space, [name.partition(DROP)[0] for name in space.concepts]):
        masks = scored.groupby([*rows.names], sort=False)
        table = pd.DataFrame({"questions": masks.size(), "unanswered": masks["silent"].sum()})
        drops = lost.groupby([*rows.names, "event"], sort=False)["loss"].mean()
        table = table.join(masks[["dice", "iou"]].mean()).join(drops.unstack("event", sort=False))
        parts.append(_complete(table, rows))
    return parts[0], parts[1]
