"""MedMNIST-C (Di Salvo et al., 2024): Table 2, robustness, and Table 3, augmentations.

BE of a corruption is the mean balanced error over its severities, divided by AlexNet's on the same
set. rBE is the rise of this error above the error on clean images, divided by AlexNet's rise. The
paper prints means over its twelve sets. A run is about one set, and a model with several runs has a
row with their mean.
"""

from collections.abc import Iterator, Sequence

from adaptive_vtt.errors import InputError
from adaptive_vtt.relations.medmnistc import CATEGORIES
from adaptive_vtt.results.derived import baseline
from adaptive_vtt.types import IDENTITY

from .layout import Cell, Table, mean, tables_of
from .runs import Run, before

FAMILY = "medmnistc/"
AVERAGE = "AVG"


def tables(runs: Sequence[Run], after: Sequence[Run]) -> list[Table]:
    """Return Table 2 of ``runs``, and Table 3: their AUC, and the gains of the runs ``after``.

    Raises:
        InputError: A run has no figures under MedMNIST-C's relations.
    """
    robustness, augmentations = tables_of("medmnistc").values()
    for run in [*runs, *after]:
        corrupted = [name for name in run.figures if name.startswith(FAMILY)]
        if run.compared or not corrupted:
            raise InputError(
                f"{run.folder}: expected balanced accuracy under MedMNIST-C's relations, found "
                "none; run a census, or an audit with relations = ['identity', "
                "'medmnistc/<set>'] and targets = ['relation-sides']"
            )
    for run in runs:
        for column, cell in _robustness(run):
            robustness.add((run.model, run.dataset), (column,), cell, run.folder)
        if (area := _area(run)) is not None:
            augmentations.add((run.model,), (run.dataset,), area, run.folder)
    _means(robustness)
    for run in after:
        first, second = _area(before(run, runs)), _area(run)
        if first is None or second is None:
            raise InputError(f"{run.folder}: expected AUC, which a census has, found none")
        gain = Cell(second.estimate - first.estimate)
        augmentations.add((f"{run.model}, gain",), (run.dataset,), gain, run.folder)
    for cells in augmentations.ours.values():
        cells[(AVERAGE,)] = mean(cells.values())
    return [robustness, augmentations]


def _robustness(run: Run) -> Iterator[tuple[str, Cell]]:
    """Yield the columns of Table 2 that follow from balanced accuracies, in the paper's order."""
    accuracies = {
        name: figures["balanced accuracy"]
        for name, figures in run.figures.items()
        if name == IDENTITY or (name.startswith(FAMILY) and "balanced accuracy" in figures)
    }
    clean = accuracies.pop(IDENTITY, None)
    bases = {name: base for name in accuracies if (base := baseline(name)) is not None}
    if clean is not None:
        yield "bACC clean", clean
    yield "bACC corrupted", mean(accuracies.values())
    if clean is not None and bases:
        rises = []
        for name, base in bases.items():
            cell = accuracies[name]
            ends = (
                (clean.estimate - cell.estimate) / base.rise,
                *sorted(
                    [(clean.lower - cell.upper) / base.rise, (clean.upper - cell.lower) / base.rise]
                ),
            )
            rises.append(Cell(*ends))
        yield "rBE", mean(rises)
    ratios = {
        name: Cell(*(end / base.corrupted for end in accuracies[name].complement))
        for name, base in bases.items()
    }
    if ratios:
        yield "BE", mean(ratios.values())
    for category, corruptions in CATEGORIES.items():
        cells = [cell for name, cell in ratios.items() if name.rpartition("/")[2] in corruptions]
        if cells:
            yield category, mean(cells)


def _area(run: Run) -> Cell | None:
    """Return the mean AUC over the corruptions, None without one."""
    areas = [f["AUC"] for name, f in run.figures.items() if name.startswith(FAMILY) and "AUC" in f]
    return mean(areas) if areas else None


def _means(table: Table) -> None:
    """Add a row of means for every model with several sets."""
    for model in dict.fromkeys(row[0] for row in table.ours):
        sets = [cells for row, cells in table.ours.items() if row[0] == model]
        if len(sets) > 1:
            columns = [c for c in sets[0] if all(c in cells for cells in sets)]
            row = model, f"mean of {len(sets)} sets"
            table.ours[row] = {c: mean(cells[c] for cells in sets) for c in columns}
