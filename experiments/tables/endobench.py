"""EndoBench (2025): Tables 2, 3, 5 and 6, accuracies per task, scene, visual prompt and subtask.

The lesion tasks of Table 2 have their corrected names (``taxonomy``). "overall" is the micro
average over all 6,832 questions. Physicians (section 4.1, B.2) answered 255 questions. Their counts
of right answers follow from the printed percentages, so their row has intervals (Clopper and
Pearson, 95 % each). The published models were asked zero-shot, one question per prompt, and their
replies were read by the letter of the option.
"""

from collections.abc import Sequence

from adaptive_vtt.datasets.vqa.taxonomy import PROMPTS, SCENES, TASKS
from adaptive_vtt.errors import InputError

from .layout import Cell, Table, tables_of
from .runs import Run

OVERALL = "overall"
THOUGHT = " (chain of thought)"
DIRECT, STEPWISE = "Direct inference", "Zero-shot CoT"
TEMPLATE = "chain-of-thought"
"""The prompt template of runs that are the second row of Table 6."""
NUMBERS = ("2", "3", "5")


def tables(runs: Sequence[Run], after: Sequence[Run]) -> list[Table]:
    """Return Tables 2, 3, 5 and 6. Raise InputError for a run that has no cell of them."""
    if after:
        raise InputError(f"{after[0].folder}: --after: EndoBench retrained no model")
    by_number = tables_of("endobench")
    for run in runs:
        shorts = [short for number in NUMBERS for (short,) in by_number[number].columns]
        cells = {short: c for short in shorts if (c := _accuracy(run, short)) is not None}
        if run.compared or not cells:
            raise InputError(
                f"{run.folder}: expected accuracies of EndoBench's tasks, found none; audit with "
                "targets = ['overall', 'concepts', 'group:subtask', 'group:scene', "
                "'group:prompt']"
            )
        thought = run.template == TEMPLATE
        for number in NUMBERS:
            for (short,) in by_number[number].columns:
                if short in cells:
                    row = run.model + THOUGHT * thought, run.dataset
                    by_number[number].add(row, (short,), cells[short], run.folder)
        if OVERALL in cells:
            row = run.dataset, STEPWISE if thought else DIRECT
            by_number["6"].add(row, (run.model,), cells[OVERALL], run.folder)
    return list(by_number.values())


def names() -> dict[str, str]:
    """Return abbreviation -> name of tasks, subtasks and scenes."""
    tasks = {task.short: task.name for task in TASKS}
    subtasks = {short: name for task in TASKS for name, short, _ in task.subtasks}
    return {**tasks, **subtasks, **{short: scene for scene, (short, _) in SCENES.items()}}


def _accuracy(run: Run, short: str) -> Cell | None:
    """Return the accuracy of a column: overall, or of a task, scene, subtask or visual prompt."""
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
