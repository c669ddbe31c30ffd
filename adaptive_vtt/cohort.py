"""Cohorts: losses of three or more other models on the same questions.

They are read from run folders, tables, logs of Inspect and samples of lm-evaluation-harness.
"""

import glob
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import InputError, JournalError, listed, one_line, unexpected
from .journal.files import JOURNAL, journal_at
from .journal.prior import Prior, read_prior
from .space import QuestionSpace
from .types import IDENTITY, Floats, Indices
from .utils.files import text_in
from .utils.importing import needed

if TYPE_CHECKING:
    import pandas as pd

# -- models, and the questions of a space that they answered ---------------------------------------


class Item(NamedTuple):
    """A question that a loss is about.

    Without ``relation`` it is about the source image, or about the first variant if the space has
    no source images. Without ``concept`` it is about the only one.
    """

    sample: str
    relation: str | None = None
    severity: int | None = None
    concept: str | None = None


class Known(NamedTuple):
    """Questions (n,) of a space, ascending, and a model's losses (n,) in [0, 1]."""

    questions: Indices
    losses: Floats

    def of(self, questions: Indices) -> Floats:
        """Return the losses (m,) of other questions, NaN where unknown."""
        if not len(self.questions):
            return np.full(len(questions), np.nan)
        place = np.searchsorted(self.questions, questions).clip(max=len(self.questions) - 1)
        return np.where(self.questions[place] == questions, self.losses[place], np.nan)


@dataclass(frozen=True)
class Member:
    """One model: its ``name``, and its ``losses`` by item or the ``journal`` of its audit."""

    name: str
    losses: Mapping[Item, float] | None = None
    journal: Prior | None = None

    def on(self, space: QuestionSpace) -> Known:
        """Return the losses on questions of a space; items outside the space are omitted."""
        if self.journal is not None:
            then = self.journal.space
            if then.fingerprint != space.fingerprint:
                where = f"cohort: {self.journal.where!r}"
                expected = (
                    f"an audit of this space ({space.dataset.name!r}, {space.size} questions)"
                )
                got = f"one of {then.dataset!r} with {then.size}"
                raise unexpected(where, expected, got, "leave it out")
            return Known(self.journal.questions, self.journal.losses)
        samples = {space.dataset.sample_id(k): k for k in range(len(space.dataset))}
        variants = {(v.relation.name, v.severity): k for k, v in enumerate(space.variants)}
        source = next((k for (r, _), k in variants.items() if r == IDENTITY), 0)
        concepts: dict[str | None, int] = {name: k for k, name in enumerate(space.concepts)}
        if len(concepts) == 1:
            concepts[None] = 0
        losses: dict[int, float] = {}
        for item, loss in (self.losses or {}).items():
            if item.concept is None and None not in concepts:
                where = f"cohort: {self.name!r}, sample {item.sample!r}"
                expected = f"a concept, as the space has {len(concepts)}"
                raise unexpected(where, expected, "none", "add a column 'concept'")
            variant: int | None = source
            if item.relation is not None:
                variant = variants.get((item.relation, item.severity or 0))
            sample, concept = samples.get(item.sample), concepts.get(item.concept)
            if sample is not None and variant is not None and concept is not None:
                losses[space.numbering.number(sample, variant, concept)] = loss
        questions = np.array(sorted(losses), np.int64)
        return Known(questions, np.array([losses[q] for q in questions.tolist()], float))


# -- the cohort ------------------------------------------------------------------------------------


KEYS = ("sample", "relation", "severity", "concept")
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Scores of Inspect's grades: correct, partly, incorrect, no answer. Inspect's ``value_to_float``
has the same, and scores any other word as 0, which is refused here."""
METRICS = ("acc", "exact_match", "acc_norm", "f1", "score")
"""Fields of lm-evaluation-harness's rows that are scores; the first of them is used."""
MIN_MODELS = 3
"""Fewest models of a cohort; fewer do not show how models differ."""


class Cohort:
    """Three or more models and their losses, for ``Audit(cohort=)``; ``+`` joins two cohorts.

    Args:
        members: The models; ``from_runs``, ``from_table``, ``from_inspect`` and ``from_lm_eval``
            read them.

    Raises:
        InputError: A name repeats.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        names = self.names
        if again := [name for name in names if names.count(name) > 1]:
            got, why = f"{again[0]!r} twice", "a model's own answers would count for two"
            raise unexpected("cohort", "every model once", got, why)

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return [member.name for member in self.members]

    @property
    def keys(self) -> list[str | None]:
        """Keys of the members' audits; None for members without a journal."""
        return [None if m.journal is None else m.journal.key for m in self.members]

    def __len__(self) -> int:
        return len(self.members)

    def __add__(self, other: "Cohort") -> "Cohort":
        return Cohort((*self.members, *other.members))

    def __repr__(self) -> str:
        return f"Cohort({', '.join(self.names)})"

    def on(self, space: QuestionSpace) -> list[Known]:
        """Return the losses of each member on questions of a space.

        Raises:
            InputError: Fewer than three models have any.
        """
        known = [member.on(space) for member in self.members]
        count = sum(len(losses.questions) > 0 for losses in known)
        if count < MIN_MODELS:
            raise unexpected(
                "cohort",
                f"{MIN_MODELS} models or more with losses on questions of this space",
                f"{count} ({len(self)} in all)",
                "samples, relations, severities and concepts have the names of the dataset and "
                "[space]",
            )
        return known

    @classmethod
    def from_runs(cls, *folders: Path | str) -> "Cohort":
        """Read run folders or journals of earlier audits.

        The name of a member is "MODEL in FOLDER".

        Args:
            folders: Run folders, journals, or patterns such as "runs/*".

        Raises:
            InputError: A pattern matches no audit that has ended.
            JournalError: A file is no journal.
        """
        members: dict[Path, Member] = {}
        for folder in folders:
            if not glob.has_magic(str(folder)) or Path(folder).exists():
                members[journal_at(folder)] = _run(journal_at(folder))
                continue
            paths = [journal_at(match) for match in sorted(glob.glob(str(folder)))]
            journals = [path for path in paths if path.is_file()]
            matched = {path: _run(path) for path in journals if _ended(path)}
            if not matched:
                expected = f"run folders of audits that have ended at {str(folder)!r}"
                got = f"{len(journals)} journals and none of those"
                raise unexpected("cohort", expected, got, f"a run folder holds {JOURNAL}")
            members |= matched
        return cls(list(members.values()))

    @classmethod
    def from_table(cls, table: "pd.DataFrame", *, scores: bool = False) -> "Cohort":
        """Read a table of losses.

        Args:
            table: Losses in [0, 1], NaN where unknown, a row per item. Columns ``sample`` (or the
                index), ``relation``, ``severity`` and ``concept`` identify the item; every other
                column is a model.
            scores: True if the numbers are scores, 1 for a right answer.

        Raises:
            InputError: An item repeats, or a value is out of range.
        """
        rows = table.reset_index(names="sample") if "sample" not in table else table
        items = [_item_of(row) for row in rows.to_dict("records")]
        first_row: dict[Item, int] = {}
        for number, item in enumerate(items):
            if (first := first_row.setdefault(item, number)) != number:
                got = f"{tuple(item)} in row {first} and again in row {number}"
                remedy = "name relation, severity and concept in columns"
                raise unexpected("cohort", "every item once", got, remedy)
        members = []
        for model in (column for column in rows if column not in KEYS):
            losses: dict[Item, float] = {}
            for number, (item, value) in enumerate(zip(items, rows[model], strict=True)):
                loss = _loss(value, scores, f"cohort: model {model!r}, row {number}")
                losses |= {} if loss is None else {item: loss}
            members.append(Member(str(model), losses))
        return cls(members)

    @classmethod
    def from_inspect(cls, *logs: Path | str, scorer: str | None = None) -> "Cohort":
        """Read logs of Inspect (``.eval``), with inspect-ai's own reader.

        The id of a sample names the dataset's sample. Samples of ``avtt``'s own tasks have the
        whole item in their metadata.

        Args:
            logs: A log per model, or folders, in which all logs of a model are joined.
            scorer: Name of the scorer to use, if there are several.

        Raises:
            InputError: inspect-ai is missing, or a log or a score cannot be read.
        """
        with needed("inspect", "cohort: logs of Inspect are read by inspect-ai"):
            from inspect_ai.log import read_eval_log
        members = []
        for source in logs:
            losses: dict[str, dict[Item, float]] = {}  # by model
            for path in _files(Path(source), "*.eval", "logs of Inspect (.eval)"):
                try:
                    log = read_eval_log(str(path))
                except Exception as error:
                    raise InputError(
                        f"cohort: {path}: expected a log of Inspect (.eval, .json), which could "
                        f"not be read: {one_line(error)}"
                    ) from None
                scores = _scored(log.samples or (), scorer, f"cohort: {path}")
                losses.setdefault(str(log.eval.model), {}).update(scores)
            members += [Member(model, of_model) for model, of_model in losses.items()]
        return cls(members)

    @classmethod
    def from_lm_eval(
        cls, *files: Path | str, metric: str | None = None, item: str = "doc_id"
    ) -> "Cohort":
        """Read per-sample results of lm-evaluation-harness (``samples_*.jsonl``).

        Args:
            files: A file or a folder per model.
            metric: The field with the score, if there are several.
            item: The field of a row, or of its ``doc``, that names the dataset's sample.

        Raises:
            InputError: A file or a score cannot be read.
        """
        members, what = [], "samples_*.jsonl, which lm_eval writes with --log_samples,"
        for source in map(Path, files):
            losses: dict[Item, float] = {}
            for path in _files(source, "**/samples_*.jsonl", what):
                losses |= dict(_rows(path, metric, item))
            # the harness writes a model's files into a folder of its name
            name = source.name if source.is_dir() else source.parent.name or source.stem
            members.append(Member(name, losses))
        return cls(members)


# -- run folders, tables, files --------------------------------------------------------------------


def _run(path: Path) -> Member:
    """Return the member of a journal."""
    prior = read_prior(path)
    where = path.parent if path.name == JOURNAL else path
    return Member(f"{prior.model} in {where}", journal=prior)


def _ended(path: Path) -> bool:
    """Return whether a journal is that of an audit that has ended."""
    try:
        return read_prior(path).ended
    except JournalError:  # nothing was begun in it yet, as in this audit's own journal
        return False


def _files(source: Path, pattern: str, what: str) -> list[Path]:
    """Return a file itself, or the files of a folder; raise InputError if the folder has none."""
    paths = sorted(source.glob(pattern)) if source.is_dir() else [source]
    if not paths:
        raise unexpected(f"cohort: {source}", f"{what} in this folder", "none")
    return paths


def _item_of(row: Mapping[Any, Any]) -> Item:
    """Return the item that the fields ``KEYS`` of a row identify."""
    kinds = zip(KEYS, (str, str, int, str), strict=True)
    fields: dict[str, Any] = {k: kind(row[k]) for k, kind in kinds if row.get(k) is not None}
    return Item(**fields)


def _loss(value: Any, scores: bool, where: str) -> float | None:
    """Return the loss of a cell, None if it is unknown; raise InputError if it is out of range."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isnan(number):
        return None
    if not 0 <= number <= 1:
        what = "a score" if scores else "a loss"
        raise unexpected(where, f"{what} between 0 and 1", repr(value))
    return 1 - number if scores else number


# -- Inspect ---------------------------------------------------------------------------------------


def _scored(samples: Iterable[Any], scorer: str | None, where: str) -> dict[Item, float]:
    """Return the mean loss of every sample over its epochs."""
    losses: dict[Item, list[float]] = {}
    for sample in samples:
        ours = set(KEYS) <= set(sample.metadata or {})
        place = f"{where}, sample {sample.id!r}"
        loss = score_loss(sample.scores or {}, scorer, place, ours=ours)
        if loss is not None:
            item = _item_of(sample.metadata) if ours else Item(str(sample.id))
            losses.setdefault(item, []).append(loss)
    return {item: sum(by_epoch) / len(by_epoch) for item, by_epoch in losses.items()}


def score_loss(
    scores: Mapping[str, Any], scorer: str | None, where: str, *, ours: bool = False
) -> float | None:
    """Return the loss of a sample, 1 - its score; None without a score.

    Args:
        scores: Name of a scorer -> its score, in [0, 1] or a grade.
        scorer: Name of the scorer to use; None: the only one.
        where: The sample, for error messages.
        ours: True for samples of this package's own tasks, whose scorer "loss" gives losses.

    Raises:
        InputError: There are several scorers and none was chosen, or the score is no such value.
    """
    if not scores:
        return None
    if (scorer is None and len(scores) > 1) or (scorer is not None and scorer not in scores):
        raise unexpected(where, f"scorer= to name one of {listed(list(scores))}", repr(scorer))
    name = scorer or next(iter(scores))
    value = scores[name].value
    if isinstance(value, str):
        value = GRADES.get(value, GRADES.get(value.lower(), value))
    return _loss(value, not (ours and name.rpartition("/")[2] == "loss"), where)


# -- lm-evaluation-harness -------------------------------------------------------------------------


def _rows(path: Path, metric: str | None, item: str) -> Iterator[tuple[Item, float]]:
    """Yield item and loss of each row with a score in a file of lm-evaluation-harness."""
    try:
        lines = text_in(path).splitlines()
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
        name = metric or next((name for name in METRICS if name in row), None)
        if name not in row:
            field = repr(metric or " or ".join(METRICS))
            got, remedy = listed(list(row)), "metric= names another"
            raise unexpected(f"cohort: {where}", f"a score in the field {field}", got, remedy)
        doc = row["doc"] if isinstance(row.get("doc"), dict) else {}
        sample = row.get(item, doc.get(item))
        if sample is None:
            expected = f"the sample's name in the field {item!r} of the row or its doc"
            got = listed([*row, *doc])
            raise unexpected(f"cohort: {where}", expected, got, "item= names another")
        if (loss := _loss(row[name], True, f"cohort: {where}")) is not None:
            yield Item(str(sample)), loss
