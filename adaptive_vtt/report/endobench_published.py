"""EndoBench's published results, to stand beside those of an audit.

Source: EndoBench (2025), Tables 2, 3, 5 and 6, with the lesion tasks' names corrected; see
``taxonomy``. Overall accuracies are micro averages over all 6,832 questions; "Random" is
about 24 to 25 % overall. The physicians answered 255 questions, without coordinates; see
``endobench_physicians``. Of the five granularities, box and contour are columns of Table 3,
image-level follows from what is printed, and the others have no figures; see ``taxonomy``.
"""

import math
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

import pandas as pd

from ..datasets.vqa.taxonomy import GRANULARITIES, IMAGE_LEVEL, PROMPTS, SCENES, TASKS
from ..results import Result
from .beside import published_tables

OVERALL = "overall"
GROUPS = ("task", "subtask", "scene", "prompt", "granularity")
"""Metadata columns by whose values results are published."""
_DRAWN = ("RS", "Box", "Cont", "Mul")
"""What is not image-level."""


@cache
def accuracies() -> pd.DataFrame:
    """Accuracy in 0..1, one row per model, columns as ``counts``; NaN where none is published."""
    table = pd.DataFrame.from_dict(published_tables("endobench")["accuracy"], orient="index") / 100
    table = table.rename(columns=full_names())
    table[IMAGE_LEVEL] = _image_level(table)
    return table.reindex(columns=list(counts()))


def _image_level(table: pd.DataFrame) -> pd.Series:
    """Right answers to everything less those to what has something drawn, over the questions left.

    All of these are known to the question. NaN where one is not published, and for physicians,
    who had other questions.
    """
    size = pd.Series(counts())
    drawn = [full_names()[short] for short in _DRAWN]
    right = (table[[OVERALL, *drawn]] * size[[OVERALL, *drawn]]).round()
    found = right[OVERALL] - right[drawn].sum(axis=1, skipna=False)
    return (found / size[IMAGE_LEVEL]).drop("Physician")


def counts() -> dict[str, int]:
    """How many questions: overall, by task, by subtask where a task has several, by scene, and
    image-level."""
    found = {OVERALL: sum(task.questions for task in TASKS)}
    found |= {task.name: task.questions for task in TASKS}
    found |= {name: count for task in TASKS for name, _, count in task.subtasks}
    found |= {scene: count for scene, (_, count) in SCENES.items()}
    return found | {IMAGE_LEVEL: GRANULARITIES[IMAGE_LEVEL] or 0}


def compare(result: Result) -> pd.DataFrame:
    """The audit's certified accuracies beside the published ones.

    One row per target of the audit that was published, and per granularity: kind ("overall",
    "task", "subtask", "scene", "prompt" or "granularity"), what, accuracy, lower and upper of the
    audit, and one column per published model (NaN: not published).
    """
    return beside(result.targets)


def beside(targets: pd.DataFrame) -> pd.DataFrame:
    """``compare`` for a table of targets, as ``Result.targets``."""
    published, rows = accuracies(), []
    nothing = pd.Series(math.nan, index=published.index)
    for target in targets.to_dict(orient="records"):
        place = _place(target)
        if place is None:
            continue
        kind, what = place
        mine = {
            "kind": kind,
            "what": what,
            "accuracy": 1 - target["estimate"],
            "lower": 1 - target["upper"],
            "upper": 1 - target["lower"],
        }
        rows.append(mine | published.get(column_of(kind, what), nothing).to_dict())
    first = ["kind", "what", "accuracy", "lower", "upper"]
    return pd.DataFrame(rows, columns=[*first, *published.index])


def column_of(kind: str, what: str) -> str:
    """Which column of ``accuracies`` is published of a row of ``compare``; "" for none."""
    if kind == "granularity" and what == IMAGE_LEVEL:
        return IMAGE_LEVEL
    if kind in ("prompt", "granularity"):
        what = full_names().get(PROMPTS.get(what, ""), "")
    return what if what in counts() else ""


def _place(target: Mapping[Hashable, Any]) -> tuple[str, str] | None:
    """Kind and name of a row of targets; None where nothing is published of it.

    A granularity has its place among the five even so.
    """
    kind, what = target["kind"], ""
    if kind == "overall":
        what = OVERALL
    elif kind == "concept" and target["rate"] == "error rate":
        kind, what = "task", target["concept"]
    elif kind == "group" and target["group"] in GROUPS:
        kind, what = target["group"], target["value"]
    return (kind, what) if kind == "granularity" or column_of(kind, what) else None


def full_names() -> dict[str, str]:
    """Abbreviation -> name."""
    found = {task.short: task.name for task in TASKS}
    found |= {short: name for task in TASKS for name, short, _ in task.subtasks}
    return found | {short: scene for scene, (short, _) in SCENES.items()}
