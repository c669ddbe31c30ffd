"""Tables of an audit that asks everything: exact rates, figures per relation, severity and class.

| concepts are | figures |
|---|---|
| classes, one per image | accuracy, balanced accuracy, macro F1, kappa; recall ... of each |
| labels | label error, precision, recall, specificity, F1, kappa, AUC of each, and their means |
| objects with masks | mean Dice and IoU, and for every threshold the share of scores that drop |
| others, in words or boxes | error; miss and false-alarm rate where both can happen |

All follow from the journaled answers. Rates are exact for the questions there are. For other
images, of which these are a random sample, every rate has an interval (Clopper and Pearson, 1934,
each by itself) that counts each image as one answer: what an image loses varies no more than a coin
of the same mean does.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

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
"""Of an interval for other images."""
DIGITS = 6
"""Significant digits of floats in CSV files."""
WHERE = ["relation", "severity"]
EACH = [*WHERE, "concept"]
MAX_CLASSES = 100
"""Confusion matrices of more classes are left out."""
NONE = "no answer"
"""What an image of which no class was answered is given, in a confusion matrix."""
ANY_WRONG = "any label wrong"
"""Share of images with a wrong label, or more."""
Tables = dict[str, pd.DataFrame]
Variant = tuple[str, int]


def tables(
    facts: Facts, table: pd.DataFrame, targets: pd.DataFrame, calls: Sequence[CallRow] = ()
) -> Tables:
    """Return "rates", a row per target; "perturbations", a row per relation and severity;
    "classes", a row per relation, severity and concept; and, where every image has one class,
    "confusion", a row per relation, severity and true class, and a column per predicted class.

    Args:
        facts: of the journal.
        table: its outcomes, one row per judged question.
        targets: as in ``results.Result``.
        calls: the journal's, for the scores of masks whose drop does not count.
    """
    counted = counting(table)
    found = {"rates": _rates(targets)}
    if facts.settings.oracle.metric is not None:
        scored = _scored(table, calls, facts.settings.oracle.metric)
        asked = (IDENTITY, 0) in {*zip(scored["relation"], scored["severity"], strict=True)}
        variants = dict.fromkeys([*[(IDENTITY, 0)] * asked, *facts.space.variants])
        space = facts.space.model_copy(update={"variants": [*variants]})
        concepts = [name.partition(DROP)[0] for name in space.concepts]
        perturbations = _of_masks(counted, scored, _variants(space))
        classes = _of_masks(counted, scored, _variants(space, concepts))
    elif facts.space.concepts_are == "classes" and not _asked_whole(facts.space):
        rows = _variants(facts.space, facts.space.concepts)
        classes = _errors(counted, rows).assign(recall=lambda table: 1 - table["error"])
        recall = classes["recall"].groupby(level=WHERE, sort=False).mean()
        perturbations = _errors(counted, _variants(facts.space)).assign(
            accuracy=lambda table: 1 - table["error"], **{"balanced accuracy": recall}
        )
    elif facts.space.concepts_are == "classes":
        classes, groups = _of_labels(facts.space, counted), counted.groupby(WHERE, sort=False)
        matrices = {
            (str(r), int(str(s))): _matrix(part, facts.space.concepts) for (r, s), part in groups
        }
        perturbations = _of_classes(facts.space, counted, classes, matrices)
        classes = classes.drop(columns="error")
        if len(facts.space.concepts) <= MAX_CLASSES:
            found["confusion"] = _confusion(facts.space, matrices)
    elif facts.space.concepts_are == "labels":
        classes = _of_labels(facts.space, counted)
        perturbations = _errors(counted, _variants(facts.space)).join(_means(classes))
        if len(facts.space.concepts) > 1:
            worst = counted.groupby([*WHERE, "sample"], sort=False)["loss"].max()
            shares = worst.groupby(level=WHERE, sort=False).mean()
            perturbations.insert(3, ANY_WRONG, shares.reindex(perturbations.index))
        named = {"error": LABEL_ERROR}
        perturbations, classes = perturbations.rename(columns=named), classes.rename(columns=named)
    else:
        each = _variants(facts.space, facts.space.concepts)
        rates = facts.settings.oracle.rates
        perturbations = _errors(counted, _variants(facts.space), rates)
        classes = _errors(counted, each, rates)
    for name, table in (("perturbations", perturbations), ("classes", classes)):
        # without columns that say nothing of any row, as of figures that answers have not
        silent = [c for c in table if table[c].isna().all() or (table[c] == "").all()]
        found[name] = table.drop(columns=silent).reset_index()
    return found


def write(folder: Path, census: Tables) -> None:
    """Write each table as tables/NAME.csv in a run folder."""
    for name, table in census.items():
        write_text(folder / TABLES / f"{name}.csv", csv_text(table, DIGITS))


def altered(folder: Path, census: Tables) -> str:
    """Return the first file of tables/ that says something else than the tables, and where; ""
    where none does."""
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
    counts = {"questions": count, "unanswered": targets["unanswered"], "images": targets["images"]}
    if "any_wrong" in targets:
        counts = {ANY_WRONG: targets["any_wrong"], **counts}
    found = targets[["target", *COLUMNS]].assign(exact=exact, **counts)
    return found.assign(**{"lower elsewhere": lower, "upper elsewhere": upper})


def _variants(space: SpaceFacts, concepts: Iterable[str] | None = None) -> pd.MultiIndex:
    """The rows of a table: every relation and severity, and concept where those are given."""
    if concepts is None:
        return pd.MultiIndex.from_tuples(space.variants, names=WHERE)
    names = [*dict.fromkeys(concepts)]
    rows = [(*variant, concept) for variant in space.variants for concept in names]
    return pd.MultiIndex.from_tuples(rows, names=EACH)


def _errors(
    counted: pd.DataFrame, rows: pd.MultiIndex, rates: Mapping[str, int] = MappingProxyType({})
) -> pd.DataFrame:
    """The mean loss, and the ``rates`` that are about one truth each where there are both."""
    groups = counted.groupby([*rows.names], sort=False)
    found = pd.DataFrame({"questions": groups.size(), "error": groups["loss"].mean()})
    found.insert(1, "unanswered", groups["unanswered"].count())
    if counted["truth"].nunique() > 1:
        for name, truth in rates.items():
            mine = counted[counted["truth"] == truth].groupby([*rows.names], sort=False)
            found[name] = mine["loss"].mean()
    return _with_all(found, rows)


def _with_all(found: pd.DataFrame, rows: pd.MultiIndex) -> pd.DataFrame:
    counts = found.columns.intersection(["questions", "unanswered"])
    found = found.reindex(rows)
    return found.assign(**{name: found[name].fillna(0).astype(int) for name in counts})


# -- labels and classes ------------------------------------------------------------------------


def _of_labels(space: SpaceFacts, counted: pd.DataFrame) -> pd.DataFrame:
    """Figures of every concept by itself; one without an answer is judged as its loss says."""
    rows = _variants(space, space.concepts)
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


def _asked_whole(space: SpaceFacts) -> bool:
    """Return whether every image is asked about all classes, so that any two can be confused."""
    counts = np.array(space.cell_counts)
    return bool((counts.sum(axis=1) == counts[:, 1].sum()).all())


def _means(by_class: pd.DataFrame) -> pd.DataFrame:
    """Over concepts of which the figure is known, per relation and severity."""
    names = ["precision", "recall", "f1", "kappa", "auc"]
    balanced = (by_class["recall"] + by_class["specificity"]) / 2
    every = by_class[names].assign(**{"balanced accuracy": balanced})
    return every[["balanced accuracy", *names]].groupby(level=WHERE, sort=False).mean()


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


def _of_classes(
    space: SpaceFacts,
    counted: pd.DataFrame,
    by_class: pd.DataFrame,
    matrices: dict[Variant, Floats],
) -> pd.DataFrame:
    """Figures of the class with the largest answer; its error is that of images."""
    rows = _variants(space)
    figures = {variant: _of_confusion(matrix) for variant, matrix in matrices.items()}
    table = pd.DataFrame.from_dict(figures, orient="index").reindex([*rows]).set_axis(rows)
    areas = by_class["auc"].groupby(level=WHERE, sort=False).mean()
    found = _errors(counted, rows).join(table)
    if not figures:
        return found
    return found.assign(error=1 - found["accuracy"], auc=areas)


def _matrix(mine: pd.DataFrame, concepts: tuple[str, ...]) -> Floats:
    images, _ = pd.factorize(mine["sample"])
    places = pd.Index(concepts).get_indexer(pd.Index(mine["concept"]))
    shape = (images.max() + 1, len(concepts))
    answers, truths = np.full(shape, np.nan), np.zeros(shape)
    answers[images, places], truths[images, places] = mine["answer"], mine["truth"]
    count, right = len(concepts), truths.argmax(axis=1)
    silent = np.isnan(answers).all(axis=1)
    given = np.where(silent, count, np.nan_to_num(answers, nan=-np.inf).argmax(axis=1))
    matrix = np.zeros((count, count + 1))
    np.add.at(matrix, (right, given), 1)
    return matrix


def _confusion(space: SpaceFacts, matrices: dict[Variant, Floats]) -> pd.DataFrame:
    """Images by true class (rows) and predicted class (columns)."""
    parts = []
    for (relation, severity), matrix in matrices.items():
        part = pd.DataFrame(matrix.astype(int), columns=[*space.concepts, NONE])
        if not part[NONE].any():
            part = part.drop(columns=NONE)
        keys = {"relation": relation, "severity": severity, "true class": space.concepts}
        parts.append(pd.concat([pd.DataFrame(keys), part], axis=1))
    if not parts:
        return pd.DataFrame(columns=[*WHERE, "true class", *space.concepts])
    found = pd.concat(parts, ignore_index=True)
    return found.assign(**{NONE: found[NONE].fillna(0).astype(int)}) if NONE in found else found


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


# -- masks -------------------------------------------------------------------------------------


def _scored(table: pd.DataFrame, calls: Sequence[CallRow], metric: str) -> pd.DataFrame:
    """Every mask once, with its Dice and IoU: of one pair of masks either follows from the other,
    IoU = Dice / (2 - Dice). A score counts whatever the source image scores; those of source
    images stand as unchanged ones, and follow from margins, after - (1 - t) * before."""
    rows = {row.question: row.details or {} for call in calls for row in call.answers}
    details = table["question"].map(rows)
    score = table["answer"].fillna(details.map(lambda of: of.get(SCORE)).astype(float))
    known = table.assign(concept=_part(table, 0), score=score)
    kept = 1 - pd.to_numeric(_part(table, 2))
    before = (score - details.map(lambda of: of.get(MARGIN)).astype(float)) / kept
    before = before.fillna(details.map(lambda of: of.get(SOURCE)).astype(float))
    sources = known.assign(relation=IDENTITY, severity=0, score=before)[before.notna()]
    every = pd.concat([sources, known]).drop_duplicates(["sample", *EACH])
    score = every["score"]
    other = score / (2 - score) if metric == "dice" else 2 * score / (1 + score)
    dice, iou = (score, other) if metric == "dice" else (other, score)
    return every.assign(dice=dice, iou=iou, silent=score.isna())


def _part(table: pd.DataFrame, place: int) -> pd.Series:
    """What was segmented (``place`` 0), and the threshold of its question (2; "": none)."""
    return table["concept"].map(lambda name: str(name).partition(DROP)[place]).astype(object)


def _of_masks(counted: pd.DataFrame, scored: pd.DataFrame, rows: pd.MultiIndex) -> pd.DataFrame:
    """Mean Dice and IoU of all masks, and the shares of drops beyond each threshold."""
    keys = [*rows.names]
    masks = scored.groupby(keys, sort=False)
    found = pd.DataFrame({"questions": masks.size(), "unanswered": masks["silent"].sum()})
    found = found.join(masks[["dice", "iou"]].mean())
    event = _part(counted, 2)
    lost = counted.assign(
        concept=_part(counted, 0), event=("drop > " + event).where(event != "", "error")
    )
    drops = lost.groupby([*keys, "event"], sort=False)["loss"].mean().unstack("event", sort=False)
    return _with_all(found.join(drops), rows)
