"""MedTest: the audit's error rates beside the published ones, relation by relation.

Source: thesis LYU2308 (CUHK 2024): Tables 3 to 10 (segmentation), 13 and 15 (questions), 17 and
18 (classification), and 19 to 23 (after retraining). Its sets and models are not ours to run:
the figures are kept as printed, and compared with nothing but by eye.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from ...datasets.vqa.medvqa_questions import NAMES, recognised
from ...errors import check_known, unknown
from ...families import OfConcept, OfRelation, OfRelationConcept, TargetId
from ...oracles.masks import DROP, METRICS
from ...types import ERROR, IDENTITY
from .evidence import Evidence
from .published import Row, published_tables, table_of
from .section import Section

SETS = {"CVC-300": 60, "CVC-ClinicDB": 612, "CVC-ColonDB": 380, "Kvasir": 1000}
"""The four segmentation sets and how many images each has."""
SEGMENTERS = ("PraNet", "SANet", "TGANet", "SSFormer")
THRESHOLDS = (0.25, 0.5)
CLASSIFIERS = ("AGDN", "DSI-Net")
RETRAINED = ("PraNet", "SANet", "SSFormer")
"""The thesis's segmenters that were retrained."""
ORIGINAL = "Original"
ERRORS = (ERROR, "error rate")
"""Rates whose complement is an accuracy."""
FAMILY = "medtest/"
OURS = {
    "Blood": "blood",
    "Feces": "feces",
    "Instrument": "instrument",
    "Spot": "specularity",
    "Saturation": "saturation",
    "Contrast": "contrast",
    "White Balance": "white_balance",
    "WhiteBalance": "white_balance",
    "Blur": "blur",
    "Text": "text",
    ORIGINAL: ORIGINAL,
}
"""The thesis's names of the relations -> ours."""


def section(evidence: Evidence) -> Section | None:
    """None where nothing is certified, or nothing was published of such questions."""
    if not evidence.standings or not all_of_medtest(evidence):
        return None
    oracle = evidence.settings.oracle
    told = [
        (each, rates(each.id, evidence.concepts, oracle.name, oracle.metric))
        for each in evidence.standings
    ]
    models = list(dict.fromkeys(model for _, known in told for model in known))
    if not models:
        return None
    segmentation = models[0] in SEGMENTERS
    rows = (Row.of(each.id.name, each, map(known.get, models)) for each, known in told if known)
    return table_of("medtest", rows, models, "source of segmentation" if segmentation else "source")


def all_of_medtest(evidence: Evidence) -> bool:
    """Whether no image was changed by anything else."""
    relations = {relation for relation, _ in evidence.variants} - {IDENTITY}
    return bool(relations) and all(name.startswith(FAMILY) for name in relations)


@cache
def error_finding_rates(metric: str = "dice", threshold: float = 0.25) -> pd.DataFrame:
    """EFR in 0..1 (Tables 3 to 10): one row per relation, columns (model, set), and under
    (model, "all") the average over the four sets, weighted by their sizes.

    Kept: never write to it. Raises InputError for a metric or a threshold that the thesis does not
    have.
    """
    check_known("metric", metric, METRICS, "published EFR")
    if threshold not in THRESHOLDS:
        raise unknown("threshold", str(threshold), [str(t) for t in THRESHOLDS], "published EFR")
    table, columns = published_tables("medtest")["segmentation_EFR"], {}
    word = {"dice": "Dice", "iou": "IoU"}[metric]
    for model in SEGMENTERS:
        rows = table["EFR_percent"][f"{model}@{threshold:g}"]
        of_model = pd.DataFrame.from_dict(rows, orient="index", columns=table["columns"]) / 100
        own = {name: of_model[f"{name} {word}"] for name in SETS}
        columns.update({(model, name): rates for name, rates in own.items()})
        weighted = [SETS[name] / sum(SETS.values()) * rates for name, rates in own.items()]
        columns[model, "all"] = pd.concat(weighted, axis=1).sum(axis=1)
    return pd.DataFrame(columns).rename(index=OURS)


@cache
def classification() -> pd.DataFrame:
    """Tables 17 and 18: one row per relation and "Original"; columns (model, figure), the
    figures being accuracy, cohen_kappa and f1. Averages over rows are left out. Kept: never
    write to it."""
    tables = published_tables("medtest")["classification"]
    return _by_classifier(tables, tables["columns"])


def answers(questions: Iterable[str] | None = None) -> pd.DataFrame:
    """GPT-4V's accuracy (Tables 13 and 15): one row per question, by the names that the audit's
    concepts have; columns "Original" and the nine relations.

    ``questions``: those wanted (default: all 18). Table 15 is Table 13 without the four vague
    ones, and 14 and 16 are averages of rows of the two.
    """
    table = published_tables("medtest")["vqa_gpt4v"]
    every = pd.DataFrame.from_dict(table["accuracy"], orient="index", columns=table["columns"])
    every = every.drop(index="Average").rename(index=recognised, columns=OURS)
    wanted = NAMES if questions is None else [*questions]
    return every.loc[[name for name in NAMES if name in wanted]]


def retrained(task: str) -> pd.DataFrame:
    """Tables 19 to 23: scores before and after retraining, means over models and, of segmenters,
    their two sets; ``task``: "segmentation" or "classification". Rows: "original", every relation,
    "average"; columns "paper: accuracy before" and so on."""
    if task == "classification":
        scores = {"accuracy": retrained_classification()[[*CLASSIFIERS]]}
    else:
        every = pd.concat([retrained_segmentation(model) for model in RETRAINED], axis=1)
        metrics = every.columns.get_level_values(0).str.split().str[-1]
        scores = {metric: every.loc[:, metrics == metric] for metric in ("Dice", "IoU")}
    means = {
        f"paper: {metric} {when}": pd.DataFrame(table.xs(when, axis=1, level=1)).mean(axis=1)
        for metric, table in scores.items()
        for when in ("before", "after")
    }
    found = pd.DataFrame(means)
    found.loc["average"] = found.mean()
    names = {ORIGINAL: "original", "average": "average"}
    return found.round(3).rename(index=lambda n: names.get(n, f"{FAMILY}{n}"))


def retrained_segmentation(model: str) -> pd.DataFrame:
    """Tables 19 to 21: mean Dice and IoU of PraNet, SANet or SSFormer before and after training
    on perturbed images, too; one row per relation and "Original"."""
    table = published_tables("medtest")["segmentation_retraining"]
    check_known("model", model, table["scores"], "published retraining")
    name, columns = "", []
    for column in table["columns"]:  # "CVC-300 Dice before", "after", ...
        name = column.removesuffix(" before") if column.endswith(" before") else name
        columns.append((name, "before" if column.endswith(" before") else "after"))
    rows = pd.DataFrame.from_dict(table["scores"][model], orient="index")
    rows.columns = pd.MultiIndex.from_tuples(columns)
    return rows.drop(index="Average").rename(index=OURS)


def retrained_classification() -> pd.DataFrame:
    """Tables 22 and 23: accuracy of both classifiers before and after; rows as above."""
    tables = published_tables("medtest")["classification_retraining"]["accuracy_before_after"]
    return _by_classifier(tables, ["before", "after"])


def _by_classifier(tables: Mapping[str, Any], columns: list[str]) -> pd.DataFrame:
    parts = {
        model: pd.DataFrame.from_dict(tables[model], orient="index", columns=columns)
        for model in CLASSIFIERS
    }
    return pd.concat(parts, axis=1).drop(index="Average").rename(index=OURS)


def rates(
    target: TargetId, concepts: Iterable[str], oracle: str, metric: str | None
) -> Mapping[str, float]:
    """What was published of a target of an audit under MedTest's relations: model -> rate of
    errors (0..1), {} where nothing was.

    ``concepts``: of the audit; ``oracle``: its class; ``metric``: of a MaskDrop.
    """
    relation = _relation(target)
    concept = target.columns()["concept"]
    if oracle == "MaskDrop":
        return {} if concept is None or metric is None else _efr(target, relation, metric)
    if relation is None or target.rate not in ERRORS:
        return {}
    if oracle == "TopClass" and isinstance(target, OfRelation):
        # of more classes an image is several answers, of which two are wrong
        return misclassified(target.relation) if len([*concepts]) <= 2 else {}
    if oracle == "ContainsTruth" and set(concepts) <= set(NAMES):
        asked = [concept] if isinstance(target, OfRelationConcept) else concepts
        questions = answers(str(name) for name in asked)
        return {"GPT-4V": 1 - float(questions[relation].mean())} if relation in questions else {}
    return {}


def misclassified(relation: str) -> Mapping[str, float]:
    """Tables 17 and 18: classifier -> share of images under this relation whose class it misses."""
    row = _relation(OfRelation(relation))
    if row not in classification().index:
        return {}
    table = pd.DataFrame(classification().xs("accuracy", axis=1, level=1))
    return _means(1 - table.loc[[row]])


def _efr(target: TargetId, relation: str | None, metric: str) -> Mapping[str, float]:
    """EFRs of a relation, or of all nine; {} for a threshold that was not published."""
    limit = float(target.columns()["concept"].rpartition(DROP)[2] or 0)
    if limit not in THRESHOLDS or (relation is None and not isinstance(target, OfConcept)):
        return {}
    table = pd.DataFrame(error_finding_rates(metric, limit).xs("all", axis=1, level=1))
    return _means(table if relation is None else table.loc[[relation]])


def _means(table: pd.DataFrame) -> dict[str, float]:
    return {str(name): float(table[name].mean()) for name in table}


def _relation(target: TargetId) -> str | None:
    """The row of the published tables; None where the target has no relation of theirs."""
    if not isinstance(target, OfRelation | OfRelationConcept):
        return None
    name = ORIGINAL if target.relation == IDENTITY else target.relation.removeprefix(FAMILY)
    return name if name in OURS.values() else None
