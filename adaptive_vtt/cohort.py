"""Cohorts: what three or more other models lost on the same questions.

They are read from run folders, tables, Inspect's logs and lm-evaluation-harness's samples.
"""

import glob
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import InputError, JournalError, listed, one_line
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
    """What a loss is about. Without ``relation`` it is the source image, where the space has it,
    else its only variant; without ``concept`` the only one."""

    sample: str
    relation: str | None = None
    severity: int | None = None
    concept: str | None = None


class Known(NamedTuple):
    """Questions (n,) of a space, ascending, and a model's losses (n,) in [0, 1]."""

    questions: Indices
    losses: Floats

    def of(self, questions: Indices) -> Floats:
        """(m,): the losses of other questions, NaN where none is known."""
        if not len(self.questions):
            return np.full(len(questions), np.nan)
        place = np.searchsorted(self.questions, questions).clip(max=len(self.questions) - 1)
        return np.where(self.questions[place] == questions, self.losses[place], np.nan)


@dataclass(frozen=True)
class Member:
    """One model: its ``name``, and the ``losses`` of items, or what a ``journal`` holds."""

    name: str
    losses: Mapping[Item, float] | None = None
    journal: Prior | None = None

    def on(self, space: QuestionSpace) -> Known:
        """What is known of the questions of a space; items that are none of it are left out."""
        if self.journal is not None:
            then = self.journal.space
            if then.fingerprint != space.fingerprint:
                raise InputError(
                    f"cohort: {self.journal.where!r}: expected an audit of this space "
                    f"({space.dataset.name!r}, {space.size} questions), got one of "
                    f"{then.dataset!r} with {then.size}; leave it out"
                )
            return Known(self.journal.questions, self.journal.losses)
        return _known(self.name, self.losses or {}, space)


def _known(name: str, losses: Mapping[Item, float], space: QuestionSpace) -> Known:
    samples = {space.dataset.sample_id(k): k for k in range(len(space.dataset))}
    variants = {(v.relation.name, v.severity): k for k, v in enumerate(space.variants)}
    concepts = {concept: k for k, concept in enumerate(space.concepts)}
    source = next((k for (r, _), k in variants.items() if r == IDENTITY), 0)
    found: dict[int, float] = {}
    for item, loss in losses.items():
        if item.concept is None and len(concepts) > 1:
            raise InputError(
                f"cohort: {name!r}, sample {item.sample!r}: expected a concept, as the space has "
                f"{len(concepts)}, got none; add a column 'concept'"
            )
        sample = samples.get(item.sample)
        where = (item.relation, item.severity or 0)
        variant = source if item.relation is None else variants.get(where)  # type: ignore[arg-type]  # not None
        concept = 0 if item.concept is None else concepts.get(item.concept)
        if sample is not None and variant is not None and concept is not None:
            found[space.numbering.number(sample, variant, concept)] = loss
    questions = np.array(sorted(found), np.int64)
    return Known(questions, np.array([found[q] for q in questions.tolist()], float))


# -- the cohort ------------------------------------------------------------------------------------


KEYS = ("sample", "relation", "severity", "concept")
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Inspect's grades as scores, as its ``value_to_float`` has them, which takes any other word for 0
where one is refused here: correct, partly, incorrect, no answer."""
METRICS = ("acc", "exact_match", "acc_norm", "f1", "score")
"""Fields of lm-evaluation-harness's rows that are scores, the first there is."""
MIN_MODELS = 3
"""Models that make a cohort: of fewer no spread can be learned."""


class Cohort:
    """Three or more models and what they lost, NaN where that is unknown: for ``Audit(cohort=)``.

    ``from_runs``, ``from_table``, ``from_inspect`` and ``from_lm_eval`` make one of what there is;
    ``+`` puts two together. Raises InputError for names that repeat.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        names = self.names
        again = next((name for name in names if names.count(name) > 1), None)
        if again is not None:
            raise InputError(
                f"cohort: expected every model once, got {again!r} twice; a model's own answers "
                "would count for two"
            )

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.members]

    @property
    def keys(self) -> list[str | None]:
        """Those of the members' audits, None for members without a journal."""
        return [None if m.journal is None else m.journal.key for m in self.members]

    def __len__(self) -> int:
        return len(self.members)

    def __add__(self, other: "Cohort") -> "Cohort":
        return Cohort((*self.members, *other.members))

    def __repr__(self) -> str:
        return f"Cohort({', '.join(self.names)})"

    def on(self, space: QuestionSpace) -> list[Known]:
        """What is known of each member in a space.

        Raises InputError for fewer than three of which anything is known.
        """
        found = [member.on(space) for member in self.members]
        some = sum(len(known.questions) > 0 for known in found)
        if some < MIN_MODELS:
            raise InputError(
                f"cohort: expected {MIN_MODELS} models or more with losses on questions of this "
                f"space, got {some} ({len(self)} in all); samples, relations, severities and "
                "concepts go by the names that the dataset and [space] give them"
            )
        return found

    @classmethod
    def from_runs(cls, *folders: Path | str) -> "Cohort":
        """Of run folders or journals of earlier audits; a pattern such as "runs/*" is all that it
        matches. The name is the model's, and with it the folder's where models share one.

        Raises InputError where nothing matches, JournalError for a file that is no journal.
        """
        found: dict[Path, Member] = {}
        for each in folders:
            if not glob.has_magic(str(each)) or Path(each).exists():
                found[journal_at(each)] = _run(journal_at(each))
                continue
            journals = map(journal_at, sorted(glob.glob(str(each))))
            matched = [path for path in journals if path.is_file()]
            members = [(path, _run(path)) for path in matched if _ended(path)]
            if not members:
                raise InputError(
                    f"cohort: expected run folders of audits that have ended at {str(each)!r}, got "
                    f"{len(matched)} journals and none of those; a run folder holds {JOURNAL}"
                )
            found |= members
        return cls(list(found.values()))

    @classmethod
    def from_table(cls, table: "pd.DataFrame", *, scores: bool = False) -> "Cohort":
        """Of a table item x model of losses in [0, 1], or of ``scores``, 1 where all is right.

        Columns ``sample`` (else the index), ``relation``, ``severity`` and ``concept`` name the
        item, every other column is a model. NaN: unknown.
        """
        rows = table.reset_index(names="sample") if "sample" not in table else table
        models = [column for column in rows if column not in KEYS]
        items = [_named(row) for row in rows.to_dict("records")]
        _once(items)
        members = []
        for model in models:
            found = {
                item: _loss(value, scores, f"cohort: model {model!r}, row {number}")
                for number, (item, value) in enumerate(zip(items, rows[model], strict=True))
            }
            known = {item: loss for item, loss in found.items() if loss is not None}
            members.append(Member(str(model), known))
        return cls(members)

    @classmethod
    def from_inspect(cls, *logs: Path | str, scorer: str | None = None) -> "Cohort":
        """Of Inspect's logs (``.eval``), by inspect-ai's own reader: a model each, or folders, in
        which all logs of a model count as one.

        The sample's id is the question's or the dataset's sample; samples of ``avtt``'s own tasks
        say all in their metadata. ``scorer``: whose scores count, where there are several.
        """
        with needed("inspect", "cohort: logs of Inspect are read by inspect-ai"):
            from inspect_ai.log import read_eval_log
        members = []
        for given in logs:
            folder = Path(given)
            paths = sorted(folder.glob("*.eval")) if folder.is_dir() else [given]
            if not paths:
                raise InputError(
                    f"cohort: {given}: expected logs of Inspect (.eval) in this folder, got none"
                )
            losses: dict[str, dict[Item, float]] = {}  # by model
            for path in paths:
                try:
                    log = read_eval_log(str(path))
                except Exception as error:
                    raise InputError(
                        f"cohort: {path}: expected a log of Inspect (.eval, .json), which could "
                        f"not be read: {one_line(error)}"
                    ) from None
                found = _scored(log.samples or (), scorer, f"cohort: {path}")
                losses.setdefault(str(log.eval.model), {}).update(found)
            members += [Member(model, of_model) for model, of_model in losses.items()]
        return cls(members)

    @classmethod
    def from_lm_eval(
        cls, *files: Path | str, metric: str | None = None, item: str = "doc_id"
    ) -> "Cohort":
        """Of per-sample results of lm-evaluation-harness (``samples_*.jsonl``), a file or the
        folder of a model each.

        ``metric``: which field is the score, where there are several. ``item``: the field of a row,
        or of its ``doc``, that names the dataset's sample.
        """
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
            # the harness writes a model's files into a folder of its name
            name = given.name if given.is_dir() else given.parent.name or given.stem
            members.append(Member(name, losses))
        return cls(members)


# -- run folders -----------------------------------------------------------------------------------


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


def _named(row: Mapping[Any, Any]) -> Item:
    kinds = zip(KEYS, (str, str, int, str), strict=True)
    found: dict[str, Any] = {key: kind(row[key]) for key, kind in kinds if row.get(key) is not None}
    return Item(**found)


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
        raise InputError(f"{where}: expected {what} between 0 and 1, got {value!r}")
    return 1 - number if scores else number


# -- Inspect ---------------------------------------------------------------------------------------


def _scored(samples: Iterable[Any], scorer: str | None, where: str) -> dict[Item, float]:
    """The mean loss of every sample over its epochs."""
    found: dict[Item, list[float]] = {}
    for sample in samples:
        ours = set(KEYS) <= set(sample.metadata or {})
        place = f"{where}, sample {sample.id!r}"
        loss = score_loss(sample.scores or {}, scorer, place, ours=ours)
        if loss is not None:
            item = _named(sample.metadata) if ours else Item(str(sample.id))
            found.setdefault(item, []).append(loss)
    return {item: sum(losses) / len(losses) for item, losses in found.items()}


def score_loss(
    scores: Mapping[str, Any], scorer: str | None, where: str, *, ours: bool = False
) -> float | None:
    """1 - the score that ``scorer``, or the only one, gave in [0, 1] or as a grade; None where
    there is none. ``ours``: the sample is of this package's own tasks, whose scorer gives losses.

    Raises InputError for several scorers of which none was chosen, and for any other value.
    """
    if not scores:
        return None
    if (scorer is None and len(scores) > 1) or (scorer is not None and scorer not in scores):
        raise InputError(
            f"{where}: expected scorer= to name one of {listed(list(scores))}, got {scorer!r}"
        )
    name = scorer or next(iter(scores))
    value = scores[name].value
    if isinstance(value, str):
        value = GRADES.get(value, GRADES.get(value.lower(), value))
    return _loss(value, not (ours and name.rpartition("/")[2] == "loss"), where)


# -- lm-evaluation-harness -------------------------------------------------------------------------


def _rows(path: Path, metric: str | None, item: str) -> Iterator[tuple[Item, float]]:
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
        loss = _loss(_metric(row, metric, where), True, f"cohort: {where}")
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
