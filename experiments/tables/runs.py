"""Read runs for the papers' tables: the folder of an audit, a census or a comparison."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from adaptive_vtt import read_result
from adaptive_vtt.errors import InputError
from adaptive_vtt.families import COLUMNS
from adaptive_vtt.journal import Journal, read_journal
from adaptive_vtt.journal.facts import Facts, read_facts
from adaptive_vtt.journal.files import JOURNAL
from adaptive_vtt.oracles.base import LABEL_ERROR, MISCLASSIFICATION
from adaptive_vtt.types import ERROR

from .layout import Cell

ERRORS = (ERROR, "error rate", LABEL_ERROR, MISCLASSIFICATION)
"""Rates whose complement is an accuracy."""
FIGURES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced accuracy",
    "kappa": "kappa",
    "Cohen's kappa": "kappa",
    "precision": "precision",
    "macro precision": "precision",
    "recall": "recall",
    "macro recall": "recall",
    "f1": "F1",
    "macro F1": "F1",
    "auc": "AUC",
}
"""Name of a figure in audits and censuses -> its name in the tables."""


@dataclass(frozen=True)
class Run:
    """A run folder, read.

    Attributes:
        folder: The folder.
        model: Name of the model, or the user's name for it.
        dataset: Name of the set of images, or the user's name for it.
        oracle: Name of the oracle's class.
        metric: Metric of masks, "dice" or "iou".
        template: Name of the prompt template, None without one.
        rates: A row per target: its columns (``families.COLUMNS``), and "cell" with its mean loss,
            or with the difference of error rates in a comparison (first model minus second).
        figures: Relation -> figure (``FIGURES``) -> cell, over all concepts together.
        compared: Whether two models were compared.
    """

    folder: Path
    model: str
    dataset: str
    oracle: str
    metric: str | None
    template: str | None
    rates: pd.DataFrame
    figures: dict[str, dict[str, Cell]]
    compared: bool = False

    def rate(self, kind: str, **about: str) -> Cell | None:
        """Return the cell of the first target of ``kind`` with these columns, None without one."""
        wanted = {"kind": kind, **about}.items()
        rows = (row for row in self._rows if all(row[column] == value for column, value in wanted))
        return next((row["cell"] for row in rows), None)

    @cached_property
    def _rows(self) -> list[Any]:
        return self.rates.to_dict("records")

    def accuracy(self, kind: str, **about: str) -> Cell | None:
        """Return 1 minus the error rate of such a target, None without one."""
        for rate in ERRORS:
            if (cell := self.rate(kind, rate=rate, **about)) is not None:
                return cell if self.compared else cell.complement
        return None

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal."""
        with closing(read_journal(self.folder / JOURNAL)) as journal:
            yield journal


def read_run(argument: str) -> Run:
    """Read a run: FOLDER, FOLDER=MODEL, FOLDER=MODEL@SET or FOLDER=@SET.

    Raises:
        InputError: The folder holds no run, or nothing is certified in it.
        JournalError: The run cannot be read.
    """
    path, _, named = argument.partition("=")
    model, _, dataset = named.partition("@")
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{path}: expected the folder of a run, found none")
    run = _audit(folder)
    return replace(run, model=model or run.model, dataset=dataset or run.dataset)


def before(run: Run, runs: Sequence[Run]) -> Run:
    """Return the one of ``runs`` that the ``run`` of a retrained model is compared with.

    It has the same set and metric, and also the same model if there are several such runs.
    """
    same = [r for r in runs if (r.dataset, r.metric) == (run.dataset, run.metric)]
    same = [r for r in same if r.model == run.model] or same
    if len(same) != 1:
        raise InputError(
            f"{run.folder}: expected one run without --after of the model {run.model!r} on the set "
            f"{run.dataset!r}, got {len(same)}; name models and sets as RUN=MODEL@SET"
        )
    return same[0]


def _audit(folder: Path) -> Run:
    """Read a folder, with the names of model and set that its journal has."""
    result = read_result(folder)
    with closing(read_journal(folder / JOURNAL)) as journal:
        facts = read_facts(journal.facts())
    if facts.certificate is None:
        raise InputError(
            f"{folder}: expected certified or exact rates, got an audit that certifies nothing; "
            "run it again with --half-width, or as a census"
        )
    rates = result.targets[list(COLUMNS)].copy()
    if result.versus:
        rates["cell"] = [Cell(row.delta, row.lower, row.upper) for row in result.versus]
        return _run(folder, facts, rates, {}, compared=True)
    valid = ~result.targets["invalidated"].astype(bool)
    ends = result.targets[["estimate", "lower", "upper"]].astype(float).to_numpy().tolist()
    rates["cell"] = [
        Cell(*row) if holds else Cell(math.nan) for row, holds in zip(ends, valid, strict=True)
    ]
    perturbations = result.tables().get("perturbations")
    if result.census and perturbations is not None:
        return _run(folder, facts, rates, _exact(perturbations))
    return _run(folder, facts, rates, _figures(perturbations))


def _run(
    folder: Path,
    facts: Facts,
    rates: pd.DataFrame,
    figures: dict[str, dict[str, Cell]],
    compared: bool = False,
) -> Run:
    settings = facts.settings
    return Run(
        folder,
        settings.model,
        facts.space.dataset,
        settings.oracle.name,
        settings.oracle.metric,
        facts.protocol.template,
        rates,
        figures,
        compared,
    )


def _figures(table: pd.DataFrame | None) -> dict[str, dict[str, Cell]]:
    """Return the figures of all concepts and severities together, from a table of the result."""
    if table is None:
        return {}
    rows = table[(table["concept"] == "all") & (table["relation"] != "all")]
    if "severity" in rows:
        rows = rows[rows["severity"] == "all"]
    by_relation = {}
    for row in rows.to_dict("records"):
        figures = {
            FIGURES[name]: Cell(row[name], row[f"{name} lower"], row[f"{name} upper"])
            for name in FIGURES
            if name in row and row[name] == row[name]
        }
        if "recall" in figures:  # macro recall is balanced accuracy
            figures.setdefault("balanced accuracy", figures["recall"])
        by_relation[row["relation"]] = figures
    return by_relation


def _exact(perturbations: pd.DataFrame) -> dict[str, dict[str, Cell]]:
    """Return the figures of a census by relation, means over severities."""
    means = perturbations.groupby("relation", sort=False).mean(numeric_only=True)
    return {
        str(relation): {FIGURES[n]: Cell(v, v, v) for n, v in row.items() if n in FIGURES}
        for relation, row in means.to_dict("index").items()
    }
