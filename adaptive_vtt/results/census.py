"""Tables of an audit that asks everything: exact rates, figures per relation, severity and class.

All follow from the journaled answers. Rates are exact for the questions there are. For other
images, of which these are a random sample, every rate has an interval (Clopper and Pearson, 1934,
each by itself) that counts each image as one answer: what an image loses varies no more than a coin
of the same mean does.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..families import COLUMNS
from ..journal.facts import Facts, SpaceFacts
from ..journal.rows import EXCLUDED
from ..types import Floats, JsonObject
from ..utils.files import write_text
from ..utils.tables import TABLES, csv_text
from .outcomes import clopper_pearson, confusion

CONFIDENCE = 0.95
"""Of an interval for other images."""
WHERE = ["relation", "severity"]
Tables = dict[str, pd.DataFrame]


def tables(facts: Facts, table: pd.DataFrame, targets: pd.DataFrame) -> Tables:
    """Return "rates", a row per target; "perturbations", a row per relation and severity; and
    "classes", a row per relation, severity and concept.

    Args:
        facts: of the journal.
        table: its outcomes, one row per judged question.
        targets: as in ``results.Result``.
    """
    counted = table[~table["unanswered"].fillna("").astype(str).str.startswith(EXCLUDED)]
    classes = _classes(facts.space, counted)
    perturbations = _without_empty(_perturbations(facts, counted, classes))
    return {
        "rates": _rates(targets),
        "perturbations": perturbations,
        "classes": _without_empty(classes),
    }


def write(folder: Path, census: Tables) -> None:
    """Write each table as tables/NAME.csv in a run folder."""
    for name, table in census.items():
        write_text(folder / TABLES / f"{name}.csv", csv_text(table))


def _rates(targets: pd.DataFrame) -> pd.DataFrame:
    count = targets["questions"] - targets["excluded"]
    exact = targets["estimate"].where(count > 0).to_numpy(float)
    lower, upper = clopper_pearson(exact, targets["images"], CONFIDENCE)
    counts = {"questions": count, "unanswered": targets["unanswered"], "images": targets["images"]}
    found = targets[["target", *COLUMNS]].assign(exact=exact, **counts)
    return found.assign(**{"lower elsewhere": lower, "upper elsewhere": upper})


def _classes(space: SpaceFacts, counted: pd.DataFrame) -> pd.DataFrame:
    """Figures of every concept by itself; one without an answer is judged as its loss says."""
    keys = [*WHERE, "concept"]
    rows = [(*variant, concept) for variant in space.variants for concept in space.concepts]
    every = pd.MultiIndex.from_tuples(rows, names=keys)
    answered = counted.assign(answer=counted["answer"].where(counted["unanswered"].isna()))
    counts = confusion(answered, keys).reindex(every)
    groups = counted.groupby(keys, sort=False)
    present, absent = counts["tp"] + counts["fn"], counts["tn"] + counts["fp"]
    areas = {key: auc(part) for key, part in groups}
    found = pd.DataFrame(
        {
            "questions": groups.size().reindex(every, fill_value=0),
            "unanswered": counts["unanswered"],
            "error": groups["loss"].mean().reindex(every),
            "precision": counts["precision"],
            "recall": counts["sensitivity"],
            "specificity": counts["specificity"],
            "f1": counts["f1"],
            "kappa": counts["kappa"],
            "auc": pd.Series(areas, dtype=float).reindex(every),
            "note": np.where((present == 0) & (absent > 0), "no image has it", ""),
        }
    )
    return found.reset_index()


def _perturbations(facts: Facts, counted: pd.DataFrame, classes: pd.DataFrame) -> pd.DataFrame:
    """Where every image has one class, figures of the class with the largest answer, means over
    classes; else means over concepts. Where masks are judged, also the mean of their scores."""
    return pd.DataFrame(_of_variants(facts, counted, classes))


def _of_variants(
    facts: Facts, counted: pd.DataFrame, classes: pd.DataFrame
) -> Iterator[JsonObject]:
    space, metric = facts.space, facts.settings.oracle.metric
    groups = dict(iter(counted.groupby(WHERE, sort=False)))
    by_class = dict(iter(classes.groupby(WHERE, sort=False)))
    for relation, severity in space.variants:
        mine = groups.get((relation, severity), counted.iloc[:0])
        each = by_class[relation, severity]
        unit = mine[mine["truth"] == 1] if space.concepts_are == "classes" else mine
        row = {
            "relation": relation,
            "severity": severity,
            "questions": len(mine),
            "unanswered": int(mine["unanswered"].notna().sum()),
            "error": float(unit["loss"].mean()),
        }
        if metric is not None:
            row[metric] = float(mine["answer"].mean())
        one = space.concepts_are == "classes" and len(mine)
        yield row | (_one_class(mine, space.concepts, each) if one else _means(each))


def auc(part: pd.DataFrame) -> float:
    """Return the share of pairs of an image that has a concept and one that has not whose answers
    (P(yes)) are in the right order (Mann and Whitney); NaN where a truth is missing, or no answer
    is a number."""
    answer = part["answer"].to_numpy(float)
    known = ~np.isnan(answer)
    yes = part["truth"].to_numpy(float)[known] == 1
    pairs = int(yes.sum()) * int((~yes).sum())
    if not pairs:
        return float("nan")
    ranks = pd.Series(answer[known]).rank().to_numpy()[yes]
    return float((ranks.sum() - len(ranks) * (len(ranks) + 1) / 2) / pairs)


def _one_class(
    mine: pd.DataFrame, concepts: tuple[str, ...], by_class: pd.DataFrame
) -> dict[str, float]:
    """Figures of the class with the largest answer, where every image has one. An image of which
    no class was answered is given none."""
    images, _ = pd.factorize(mine["sample"])
    places = pd.Index(concepts).get_indexer(pd.Index(mine["concept"]))
    shape = (images.max() + 1, len(concepts))
    answers, truths = np.full(shape, np.nan), np.zeros(shape)
    answers[images, places], truths[images, places] = mine["answer"], mine["truth"]
    count, right = len(concepts), truths.argmax(axis=1)
    silent = np.isnan(answers).all(axis=1)
    given = np.where(silent, count, np.nan_to_num(answers, nan=-np.inf).argmax(axis=1))
    table = np.zeros((count, count + 1))
    np.add.at(table, (right, given), 1)
    return _of_confusion(table) | {"auc": _mean(by_class["auc"].to_numpy(float))}


def _of_confusion(table: Floats) -> dict[str, float]:
    """Of true classes x given ones, the last of which is none: means over classes that images
    have."""
    total, hits = table.sum(), table[:, :-1].diagonal()
    there, given = table.sum(axis=1), table.sum(axis=0)[:-1]
    chance, accuracy = float(there @ given) / total**2, hits.sum() / total
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = hits / there, np.where(given > 0, hits / given, 0.0)
        f1 = np.where(there + given > 0, 2 * hits / (there + given), np.nan)
    known = there > 0
    return {
        "accuracy": float(accuracy),
        "balanced accuracy": float(recall[known].mean()),
        "precision": float(precision[known].mean()),
        "recall": float(recall[known].mean()),
        "f1": float(f1[known].mean()),
        "kappa": float((accuracy - chance) / (1 - chance)) if chance < 1 else float("nan"),
    }


def _means(by_class: pd.DataFrame) -> dict[str, float]:
    """Over concepts of which the figure is known."""
    balanced = (by_class["recall"] + by_class["specificity"]) / 2
    names = ("precision", "recall", "f1", "kappa", "auc")
    return {"balanced accuracy": _mean(balanced.to_numpy(float))} | {
        name: _mean(by_class[name].to_numpy(float)) for name in names
    }


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that say nothing of any row, as of figures that answers have not."""
    silent = [c for c in table if table[c].isna().all() or (table[c] == "").all()]
    return table.drop(columns=silent)
