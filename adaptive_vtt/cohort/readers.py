"""Cohorts from run folders, tables, Inspect's logs and lm-evaluation-harness's samples."""

import glob
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, JournalError, listed, one_line
from ..journal.files import JOURNAL, journal_at
from ..journal.prior import read_prior
from ..utils.importing import pip_install
from .members import Item, Member

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("sample", "relation", "severity", "concept")
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's grades as scores: correct, partly, incorrect, no answer."""
METRICS = ("acc", "exact_match", "acc_norm", "f1", "score")
"""Fields of lm-evaluation-harness's rows that are scores, the first there is."""


# -- run folders -----------------------------------------------------------------------------------


def runs(given: Sequence[Path | str]) -> list[Member]:
    """A member per journal; of what a pattern matches, those of audits that have ended."""
    found: dict[Path, Member] = {}
    for each in given:
        if not glob.has_magic(str(each)) or Path(each).exists():
            found[journal_at(each)] = _run(journal_at(each))
            continue
        matched = [path for path in map(journal_at, _matches(each)) if path.is_file()]
        members = [(path, _run(path)) for path in matched if _ended(path)]
        if not members:
            raise InputError(
                f"cohort: expected run folders of audits that have ended at {str(each)!r}, got "
                f"{len(matched)} journals and none of those; a run folder holds {JOURNAL}"
            )
        found |= members
    return list(found.values())


def _matches(pattern: Path | str) -> list[Path]:
    return [Path(path) for path in sorted(glob.glob(str(pattern)))]


def _run(path: Path) -> Member:
    prior = read_prior(path)
    where = path.parent if path.name == JOURNAL else path
    return Member(f"{prior.model} in {where}", journal=prior)


def _ended(path: Path) -> bool:
    try:
        return read_prior(path).ended
    except JournalError:  # one in which nothing was begun yet, such as this audit's own
        return False


# -- tables ----------------------------------------------------------------------------------------


def table_members(table: "pd.DataFrame", scores: bool) -> list[Member]:
    """A member per column that names no item."""
    rows = table.reset_index(names="sample") if "sample" not in table else table
    models = [column for column in rows if column not in KEYS]
    items = [Item(*_named(row)) for row in rows.to_dict("records")]
    _once(items)
    members = []
    for model in models:
        found = {
            item: _loss(value, scores, f"model {model!r}, row {number}")
            for number, (item, value) in enumerate(zip(items, rows[model], strict=True))
        }
        known = {item: loss for item, loss in found.items() if loss is not None}
        members.append(Member(str(model), known))
    return members


def _named(row: Mapping[Any, Any]) -> tuple[str, str | None, int | None, str | None]:
    relation, concept = row.get("relation"), row.get("concept")
    severity = row.get("severity")
    return (
        str(row["sample"]),
        None if relation is None else str(relation),
        None if severity is None else int(severity),
        None if concept is None else str(concept),
    )


def _once(items: Sequence[Item]) -> None:
    seen: dict[Item, int] = {}
    for number, item in enumerate(items):
        if item in seen:
            raise InputError(
                f"cohort: expected every item once, got {tuple(item)} in row {seen[item]} and "
                f"again in row {number}; name relation, severity and concept in columns"
            )
        seen[item] = number


def _loss(value: Any, scores: bool, where: str) -> float | None:
    """The loss, None where none is known."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isnan(number):
        return None
    if not 0 <= number <= 1:
        what = "a score" if scores else "a loss"
        raise InputError(f"cohort: {where}: expected {what} between 0 and 1, got {value!r}")
    return 1 - number if scores else number


# -- Inspect ---------------------------------------------------------------------------------------


def inspect_members(logs: Iterable[Path | str], scorer: str | None) -> list[Member]:
    """A member per log."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise InputError(
            f"cohort: logs of Inspect are read by inspect-ai: {pip_install('inspect')}"
        ) from None
    members = []
    for path in logs:
        try:
            log = read_eval_log(str(path))
        except Exception as error:
            raise InputError(
                f"cohort: {path}: expected a log of Inspect (.eval, .json), which could not be "
                f"read: {one_line(error)}"
            ) from None
        members.append(Member(str(log.eval.model), _scored(log.samples or (), scorer, str(path))))
    return members


def _scored(samples: Iterable[Any], scorer: str | None, where: str) -> dict[Item, float]:
    """The mean loss of every sample over its epochs."""
    found: dict[Item, list[float]] = {}
    for sample in samples:
        place = f"{where}, sample {sample.id!r}"
        name, score = _chosen(sample.scores or {}, scorer, place)
        value = None if score is None else score.value
        value = GRADES.get(value, value) if isinstance(value, str) else value
        ours = {"concept", "relation", "sample", "severity"} <= set(sample.metadata or {})
        # the scorer of this package's own tasks gives losses, other ones give scores
        loss = _loss(value, not (ours and name == "loss"), place)
        if loss is not None:
            item = Item(*_named(sample.metadata)) if ours else Item(str(sample.id))
            found.setdefault(item, []).append(loss)
    return {item: sum(losses) / len(losses) for item, losses in found.items()}


def _chosen(scores: Mapping[str, Any], scorer: str | None, where: str) -> tuple[str, Any]:
    """The scorer's name, and its score; None where the sample has none."""
    if not scores:
        return "", None
    if (scorer is None and len(scores) > 1) or (scorer is not None and scorer not in scores):
        raise InputError(
            f"cohort: {where}: expected scorer= to name one of {listed(list(scores))}, got "
            f"{scorer!r}"
        )
    name = scorer or next(iter(scores))
    return name.rpartition("/")[2], scores[name]


# -- lm-evaluation-harness -------------------------------------------------------------------------


def lm_eval_members(files: Iterable[Path | str], metric: str | None, item: str) -> list[Member]:
    """A member per file, or per folder of files, which is named after the model."""
    members = []
    for given in map(Path, files):
        paths = sorted(given.rglob("samples_*.jsonl")) if given.is_dir() else [given]
        if not paths:
            raise InputError(
                f"cohort: {given}: expected samples_*.jsonl in this folder, got none; "
                "lm_eval writes them with --log_samples"
            )
        losses: dict[Item, float] = {}
        for path in paths:
            losses |= dict(_rows(path, metric, item))
        members.append(Member(given.name if given.is_dir() else _model(given), losses))
    return members


def _model(path: Path) -> str:
    """The harness writes a model's files into a folder of its name."""
    return path.parent.name or path.stem


def _rows(path: Path, metric: str | None, item: str) -> Iterator[tuple[Item, float]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cohort: {path}: expected a file to read: {one_line(error)}") from None
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"cohort: {where}: expected an object in JSON, got {line[:40]!r}")
        loss = _loss(_metric(row, metric, where), True, where)
        if loss is not None:
            yield Item(_item(row, item, where)), loss


def _metric(row: Mapping[str, Any], metric: str | None, where: str) -> Any:
    name = metric or next((name for name in METRICS if name in row), None)
    if name is None or name not in row:
        raise InputError(
            f"cohort: {where}: expected a score in the field {metric or ' or '.join(METRICS)!r}, "
            f"got {listed(list(row))}; metric= names another"
        )
    return row[name]


def _item(row: Mapping[str, Any], item: str, where: str) -> str:
    doc = row.get("doc")
    inside = doc if isinstance(doc, dict) else {}
    found = row.get(item, inside.get(item))
    if found is None:
        raise InputError(
            f"cohort: {where}: expected the sample's name in the field {item!r} of the row or its "
            f"doc, got {listed([*row, *inside])}; item= names another"
        )
    return str(found)
