"""EndoBench's published results, to stand beside those of an audit.

Source: EndoBench (2025), Tables 2, 3, 5 and 6, with the lesion tasks' names corrected; see
``taxonomy``. Overall accuracies are micro averages over all 6,832 questions; "Random" is
about 24 to 25 % overall. The physicians answered 255 questions, without coordinates.
"""

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from ..datasets.vqa.taxonomy import PROMPTS, SCENES, TASKS
from ..results import Result
from .beside import published_tables

OVERALL = "overall"
GROUPS = ("task", "subtask", "scene", "prompt")
"""Metadata columns by whose values results are published."""


@cache
def accuracies() -> pd.DataFrame:
    """Accuracy in 0..1, one row per model, columns as ``counts``; NaN where none is published."""
    table = pd.DataFrame.from_dict(published_tables("endobench")["accuracy"], orient="index") / 100
    return table.rename(columns=_names()).reindex(columns=list(counts()))


def counts() -> dict[str, int]:
    """How many questions: overall, by task, by subtask where a task has several, by scene."""
    found = {OVERALL: sum(task.questions for task in TASKS)}
    found |= {task.name: task.questions for task in TASKS}
    found |= {name: count for task in TASKS for name, _, count in task.subtasks}
    return found | {scene: count for scene, (_, count) in SCENES.items()}


def compare(result: Result) -> pd.DataFrame:
    """The audit's certified accuracies beside the published ones.

    One row per target of the audit that was published: kind ("overall", "task", "subtask",
    "scene" or "prompt"), what, accuracy, lower and upper of the audit, and one column per
    published model (NaN: not published).
    """
    return beside(result.targets)


def beside(targets: pd.DataFrame) -> pd.DataFrame:
    """``compare`` for a table of targets, as ``Result.targets``."""
    published, rows = accuracies(), []
    for target in targets.to_dict(orient="records"):
        place = _place(target)
        if place is None:
            continue
        kind, what, column = place
        mine = {
            "kind": kind,
            "what": what,
            "accuracy": 1 - target["estimate"],
            "lower": 1 - target["upper"],
            "upper": 1 - target["lower"],
        }
        rows.append(mine | published[column].to_dict())
    first = ["kind", "what", "accuracy", "lower", "upper"]
    return pd.DataFrame(rows, columns=[*first, *published.index])


def _place(target: Mapping[Hashable, Any]) -> tuple[str, str, str] | None:
    """Kind, name, and published column of a row of targets; None where there is none."""
    if target["kind"] == "overall":
        return OVERALL, OVERALL, OVERALL
    if target["kind"] == "concept" and target["rate"] == "error rate":
        name = target["concept"]
        return ("task", name, name) if name in counts() else None
    if target["kind"] == "group" and target["group"] in GROUPS:
        group, what = target["group"], target["value"]
        column = _names().get(PROMPTS.get(what, ""), "") if group == "prompt" else what
        return (group, what, column) if column in counts() else None
    return None


def _names() -> dict[str, str]:
    """Abbreviation -> name."""
    found = {task.short: task.name for task in TASKS}
    found |= {short: name for task in TASKS for name, short, _ in task.subtasks}
    return found | {short: scene for scene, (short, _) in SCENES.items()}
