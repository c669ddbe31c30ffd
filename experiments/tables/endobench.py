"""EndoBench (2025): Tables 2, 3, 5 and 6, accuracies per task, scene, visual prompt and subtask.

The lesion tasks of Table 2 have their corrected names (``taxonomy``). "overall" is the micro
average over all 6,832 questions. Physicians (section 4.1, B.2) answered 255 questions; the counts
behind their percentages follow from what is printed, so their row has intervals (Clopper and
Pearson, 95 % each by itself). The published models were asked zero-shot, one question per prompt,
and read by the letter of their reply.
"""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from adaptive_vtt.datasets.vqa.taxonomy import PROMPTS, SCENES, TASKS
from adaptive_vtt.errors import InputError
from adaptive_vtt.results.outcomes import clopper_pearson

from .layout import Cell, Table, published
from .runs import Run

OVERALL = "overall"
THOUGHT = " (chain of thought)"
DIRECT, STEPWISE = "Direct inference", "Zero-shot CoT"
TEMPLATE = "chain-of-thought"
"""The prompt template of runs that are the second row of Table 6."""
PHYSICIAN, CONFIDENCE = "Physician", 0.95
SETS = "EndoBench"


def names() -> dict[str, str]:
    """Return abbreviation -> name of tasks, subtasks and scenes."""
    found = {task.short: task.name for task in TASKS}
    found |= {short: name for task in TASKS for name, short, _ in task.subtasks}
    return found | {short: scene for scene, (short, _) in SCENES.items()}


def counts() -> dict[str, int]:
    """Return how many questions there are overall, and by task, subtask and scene."""
    found = {OVERALL: sum(task.questions for task in TASKS)}
    found |= {task.name: task.questions for task in TASKS}
    found |= {name: count for task in TASKS for name, _, count in task.subtasks}
    return found | {scene: count for scene, (_, count) in SCENES.items()}


@cache
def accuracies() -> pd.DataFrame:
    """Return published accuracies in 0..1, a row per model, columns as ``counts``; NaN where none
    is published. Do not change it."""
    table = pd.DataFrame.from_dict(published("endobench")["accuracy"], orient="index") / 100
    return table.rename(columns=names()).reindex(columns=list(counts()))


def physicians() -> dict[str, Cell]:
    """Return the physicians' accuracy with its interval by abbreviation, where counts are known."""
    stored: dict[str, list[int]] = dict(published("endobench")["physicians"])
    for task in TASKS:
        parts = [stored[short] for _, short, _ in task.subtasks if short in stored]
        if task.short not in stored and parts:
            stored[task.short] = [sum(column) for column in zip(*parts, strict=True)]
    return {
        short: Cell(right / asked, *map(float, clopper_pearson(right / asked, asked, CONFIDENCE)))
        for short, (right, asked) in stored.items()
    }


COLUMNS = {
    "2": [OVERALL, *(task.short for task in TASKS)],
    "3": [*(short for short, _ in SCENES.values()), *PROMPTS.values()],
    "5": [short for task in TASKS for _, short, _ in task.subtasks],
}
"""Number of a table -> its columns, abbreviated."""
TITLES = {"2": "twelve tasks", "3": "scenes and visual prompts", "5": "subtasks"}


def tables(runs: Sequence[Run], after: Sequence[Run]) -> list[Table]:
    """Return Tables 2, 3, 5 and 6. Raises InputError for a run that has no cell of them."""
    if after:
        raise InputError(f"{after[0].folder}: --after: EndoBench retrained no model")
    every = _empty()
    for run in runs:
        found = {short: c for short in _shorts() if (c := _accuracy(run, short)) is not None}
        if run.compared or not found:
            raise InputError(
                f"{run.folder}: expected accuracies of EndoBench's tasks, found none; audit with "
                "targets = ['overall', 'concepts', 'group:subtask', 'group:scene', "
                "'group:prompt']"
            )
        thought = run.template == TEMPLATE
        for number, columns in COLUMNS.items():
            for short in columns:
                if short in found:
                    row = run.model + THOUGHT * thought, run.dataset
                    every[number].add(row, (short,), found[short], run.folder)
        if OVERALL in found:
            row = run.dataset, STEPWISE if thought else DIRECT
            every["6"].add(row, (run.model,), found[OVERALL], run.folder)
    return list(every.values())


def _shorts() -> list[str]:
    return list(dict.fromkeys(short for columns in COLUMNS.values() for short in columns))


def _accuracy(run: Run, short: str) -> Cell | None:
    """The accuracy of a column: overall, of a task, of a scene, a subtask or a visual prompt."""
    if short == OVERALL:
        tasks = {task.name for task in TASKS}
        asked = set(run.rates["concept"].dropna())
        return run.accuracy("overall") if asked <= tasks else None
    name = names()[short]
    cell = run.accuracy("concept", concept=name)
    for group, value in (
        ("scene", name),
        ("subtask", name),
        ("prompt", {short: prompt for prompt, short in PROMPTS.items()}.get(short, "")),
    ):
        cell = cell or run.accuracy("group", group=group, value=value)
    return cell


def _empty() -> dict[str, Table]:
    found = {}
    for number, columns in COLUMNS.items():
        title = f"Accuracy in % by {TITLES[number]} (EndoBench, Table {number})"
        table = Table(f"endobench-{number}", title, ("model", "set"), scale=100, digits=2)
        for model, values in published("endobench")["accuracy"].items():
            if any(short in values for short in columns) and THOUGHT not in model:
                known = [short for short in columns if short in values]
                table.publish((model, SETS), [(s,) for s in known], [values[s] for s in known])
        for short, cell in physicians().items():
            if short in columns:
                table.published_cell((PHYSICIAN, SETS), (short,), cell)
        found[number] = table
    title = "Accuracy in %, direct or step by step (EndoBench, Table 6)"
    found["6"] = Table("endobench-6", title, ("set", "prompt"), scale=100, digits=2)
    both = {
        model.removesuffix(THOUGHT): (
            published("endobench")["accuracy"][model.removesuffix(THOUGHT)],
            values,
        )
        for model, values in published("endobench")["accuracy"].items()
        if model.endswith(THOUGHT)
    }
    for place, row in enumerate((DIRECT, STEPWISE)):
        columns = [(model,) for model in both]
        found["6"].publish((SETS, row), columns, [pair[place][OVERALL] for pair in both.values()])
    return found
