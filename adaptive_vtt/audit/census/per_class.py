"""Figures of a census per relation and severity, and there per concept."""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from ...results.outcomes import confusion
from ...space import QuestionSpace, Variant
from ...types import JsonObject


def of_variant(
    outcomes: pd.DataFrame, space: QuestionSpace, variant: Variant, by_class: pd.DataFrame
) -> JsonObject:
    """The row of a relation and severity; ``by_class``: its table of ``of_concepts``."""
    mine = _asked_under(outcomes, variant)
    row = {
        "relation": variant.relation.name,
        "severity": variant.severity,
        "questions": len(mine),
        "unanswered": int((mine["unanswered"] != "").sum()),
        "error": float(mine["loss"].mean()),
    }
    classes = space.oracle.concepts_are == "classes"
    return row | (_one_class(mine) if classes else _means(by_class))


def of_concepts(outcomes: pd.DataFrame, space: QuestionSpace, variant: Variant) -> pd.DataFrame:
    """A row per concept, under one relation and severity."""
    mine = _asked_under(outcomes, variant)
    told = mine.assign(answer=mine["answer"].where(mine["unanswered"] == ""))
    counts = confusion(told.assign(concept=told["concept"].astype(str)), "concept")
    counts = counts.reindex([str(concept) for concept in space.concepts])
    present, absent = counts["tp"] + counts["fn"], counts["tn"] + counts["fp"]
    by_concept = mine.groupby("concept", observed=False)
    found = pd.DataFrame(
        {
            "relation": variant.relation.name,
            "severity": variant.severity,
            "concept": list(space.concepts),
            "questions": by_concept.size().to_numpy(),
            "unanswered": counts["unanswered"].to_numpy(),
            "error": by_concept["loss"].mean().to_numpy(),
            "precision": counts["precision"].to_numpy(),
            "recall": counts["sensitivity"].to_numpy(),
            "specificity": counts["specificity"].to_numpy(),
            "f1": counts["f1"].to_numpy(),
            "kappa": counts["kappa"].to_numpy(),
            "auc": [auc(part) for _, part in by_concept],
        }
    )
    missing = np.where((present == 0) & (absent > 0), "no image has it", "")
    return found.assign(note=missing)


def _asked_under(outcomes: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """The outcomes under a relation and severity that count."""
    relation, severity = outcomes["relation"], outcomes["severity"]
    here = (relation == variant.relation.name) & (severity == variant.severity)
    return outcomes[here & outcomes["loss"].notna()]


def auc(part: pd.DataFrame) -> float:
    """Of answers (P(yes)) for truths: the share of pairs in the right order (Mann and Whitney);
    NaN where a truth is missing, or no answer is a number."""
    told = part[part["answer"].notna()]
    yes = (told["truth"] == 1).to_numpy()
    pairs = int(yes.sum()) * int((~yes).sum())
    if not pairs:
        return float("nan")
    ranks = rankdata(told["answer"].to_numpy())[yes]
    return float((ranks.sum() - len(ranks) * (len(ranks) + 1) / 2) / pairs)


def _one_class(mine: pd.DataFrame) -> dict[str, float]:
    """Figures of the class with the largest answer, where every image has one. An image of which
    no class was answered is given none."""
    images = mine.assign(sample=mine["sample"].astype(str))
    answers = images.pivot(index="sample", columns="concept", values="answer").to_numpy(float)
    truths = images.pivot(index="sample", columns="concept", values="truth").to_numpy()
    count, right = truths.shape[1], truths.argmax(axis=1)
    given = np.where(
        np.isnan(answers).all(axis=1), count, np.nan_to_num(answers, nan=-np.inf).argmax(axis=1)
    )
    table = np.zeros((count, count + 1))
    np.add.at(table, (right, given), 1)
    total, hits = table.sum(), table[:, :count].diagonal()
    there, said = table.sum(axis=1), table.sum(axis=0)[:count]
    chance = float(there @ said) / total**2
    accuracy = hits.sum() / total
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = hits / there, np.where(said > 0, hits / said, 0.0)
        f1 = np.where(there + said > 0, 2 * hits / (there + said), np.nan)
    known = there > 0
    areas = [auc(part) for _, part in mine.groupby("concept", observed=True)]
    return {
        "accuracy": float(accuracy),
        "balanced accuracy": float(recall[known].mean()),
        "precision": float(precision[known].mean()),
        "recall": float(recall[known].mean()),
        "f1": float(f1[known].mean()),
        "kappa": float((accuracy - chance) / (1 - chance)) if chance < 1 else float("nan"),
        "auc": float(np.nanmean(areas)) if not np.isnan(areas).all() else float("nan"),
    }


def _means(by_class: pd.DataFrame) -> dict[str, float]:
    """Over concepts of which the figure is known."""
    balanced = (by_class["recall"] + by_class["specificity"]) / 2
    names = ("precision", "recall", "f1", "kappa", "auc")
    means = {name: float(by_class[name].mean()) for name in names}
    return {"balanced accuracy": float(balanced.mean()), **means}
