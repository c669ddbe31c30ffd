"""Functions that run an audit in one line: ``audit("folder", my_function)`` and ``census``."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ..datasets import Dataset, as_dataset
from ..datasets.table import Labels, Metadata
from ..errors import InputError, unexpected
from ..journal import recall
from ..journal.files import JOURNAL
from ..models.base import ModelSource, adapted_model
from ..models.checking import name_of
from ..models.local.python import model_of
from ..oracles import REGISTRY, Oracle
from ..relations import Relation
from ..results.result import Result
from ..space import QuestionSpace
from ..strategies import EVERYTHING as CENSUS
from .all_or_sample import WHOLE, Choice, changed, chosen
from .asking import Audit
from .overview import show
from .progress import Hooks
from .proposed import OVERALL, proposed

HALF_WIDTH = 0.05
"""Default half-width of every interval."""
_READ, _PARTS = ("data", "concepts", "metadata"), ("relations", "oracle", "severities")
"""Arguments of ``audit`` that say what data is read, and what is asked about it."""


@dataclass(frozen=True)
class Questions:
    """The questions about a dataset, and suitable targets."""

    space: QuestionSpace
    targets: tuple[str, ...]

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of an audit with default values of its goal and targets."""
        result = dict(options)
        if "certify" not in options and options.get("strategy") != CENSUS:
            if not {"half_width", "at_most"} & set(options):
                result["half_width"] = HALF_WIDTH
            result.setdefault("targets", [*self.targets, *(options.get("where") or {})])
        return result


def questions(
    dataset: Dataset | QuestionSpace,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    severities: Iterable[int] | None = None,
) -> Questions:
    """Return the questions about a dataset.

    Args:
        dataset: The dataset, or a space, which includes all other parts.
        relations: Image changes. Default None: those that ``proposed`` suggests.
        oracle: The oracle, or its name. Default None: the one that ``proposed`` suggests.
        severities: Severities of the relations. Default None: all.

    Raises:
        InputError: Nothing can be asked, or a space was given with another part.
    """
    if isinstance(dataset, QuestionSpace):
        space, suggestion = dataset, proposed(dataset.dataset)
        suited = REGISTRY.make(suggestion.oracle, {})
        parts = {"relations": relations, "oracle": oracle, "severities": severities}
        if doubled := [name for name, part in parts.items() if part is not None]:
            expected, got = f"{doubled[0]} in the QuestionSpace", "it separately, too"
            raise unexpected("data", expected, got, "leave it out")
    else:
        suggestion = proposed(dataset)
        suited = REGISTRY.make(suggestion.oracle, {})
        chosen = REGISTRY.make(oracle, {}) if isinstance(oracle, str) else oracle or suited
        levels = None if severities is None else [*severities]
        changes = relations or suggestion.relations
        space = QuestionSpace(dataset, changes, oracle=chosen, severities=levels)
    same = type(space.oracle.original) is type(suited)
    return Questions(space, suggestion.targets if same else OVERALL)


def audit(
    data: Any,
    model: ModelSource,
    *,
    labels: Labels | None = None,
    concepts: list[str] | None = None,
    metadata: Metadata | None = None,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    severities: Iterable[int] | None = None,
    out: Path | str | None = None,
    sample: bool = False,
    on_progress: Hooks = True,
    **options: Any,
) -> Result:
    """Run an audit in one line, by default until all half-widths are 0.05.

    A model that costs no money is timed first. If asking all questions is faster than sampling, or
    takes less than a minute, all are asked, and rates are exact.

    Args:
        data: A folder, a table of labels, images or a Dataset (``datasets.as_dataset``); or a
            QuestionSpace, which includes dataset, relations and oracle.
        model: A function (list of images -> n x C of P(yes)) or any other model; see ``Audit``.
        labels: Labels of images, if the data has none. Their index, or a column, may name files.
        concepts: Names of the model's answers for data without labels, or the columns of a table
            to ask about. Default None: all columns of labels.
        metadata: Columns of the table that describe images, or a table with a row per image, joined
            as labels are. ``targets=["group:site"]`` certifies each value of a column. Default
            None: all columns that are no labels.
        relations: Image changes. Default None: those that suit the data.
        oracle: Rule by which an answer is wrong, or its name. Default None: the one that suits the
            data.
        severities: Severities of the relations. Default None: all.
        out: Folder for journal.db, result.json and report.html. The same call resumes an audit with
            the same settings there. So does ``avtt resume OUT --model FILE:NAME`` if the arguments
            are paths, names and numbers, which the journal can keep.
        sample: Whether to sample even if asking everything is faster; a ``strategy`` implies it.
        on_progress: Hooks of the run; see ``Audit.run``. True: a table of the data, and a bar.
        **options: Options of ``Audit``. ``targets`` default to those that suit the data.

    Returns:
        The result.

    Raises:
        InputError: Nothing can be asked about the data, or ``Audit`` refuses an option.
    """
    relations = None if relations is None else list(relations)
    severities = None if severities is None else list(severities)
    parts: dict[str, Any] = {"relations": relations, "oracle": oracle, "severities": severities}
    is_space, given = isinstance(data, QuestionSpace), (labels, concepts, metadata)
    if is_space and any(part is not None for part in given):
        got = "labels, concepts or metadata, too"
        raise unexpected("data", "a QuestionSpace alone", got, "leave them out")
    asked = questions(data if is_space else as_dataset(data, *given), **parts)
    journal = None if out is None else Path(out) / JOURNAL
    adapted, best, own = adapted_model(model_of(model)), Choice(), asked.options(options)
    group = own.get("certify")
    space = asked.space.for_targets(group.targets if group else own.get("targets", ()))
    begun = recall(journal)
    if begun is not None and begun.settings.strategy == CENSUS:
        own = changed(own, WHOLE)
    elif begun is None and not sample:
        own, best = chosen(space, adapted, own)
    call = {"concepts": concepts, "metadata": metadata, **parts, **own}
    notes = {} if labels is not None else _kept(data, call)
    notes |= {"trial_calls": best.calls} if best.calls else {}
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if on_progress and space.dataset.has_images:  # which takes seconds, and prints nothing else
        console.print(f"preparing: reading your {len(space.dataset):,} images ...")
    with Audit(space, adapted, journal=journal, notes=notes, **own) as made:
        if made.state().calls == 0 and on_progress:
            show(space, made.targets, made.model.answers, console)
            if best.sentence is not None:
                console.print(f"{best.sentence} (sample=True insists on sampling)")
        result = made.run(on_progress)
    if out is not None:
        result.save(out)
    return result


def _kept(data: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a note of a call, which ``called_again`` repeats; {} if JSON cannot hold it."""
    try:
        where = os.path.abspath(os.fspath(data))
        return {"call": json.loads(json.dumps({"data": where, **call}, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def called_again(call: Mapping[str, Any], model: ModelSource, **options: Any) -> Audit:
    """Return the audit that a call of ``audit`` began.

    Args:
        call: The note of the call in the journal.
        model: The model.
        **options: Options that replace those of the call.
    """
    asked, own = questions_again(call), {k: v for k, v in call.items() if k not in _READ + _PARTS}
    return Audit(asked.space, model, **asked.options({**own, **options}))


def questions_again(call: Mapping[str, Any]) -> Questions:
    """Return the questions of a call of ``audit``, whose data is read again.

    Args:
        call: The note of the call in the journal. An oracle with options is a table with its kind.
    """
    parts: dict[str, Any] = {name: call[name] for name in _PARTS}
    if isinstance(parts["oracle"], dict):
        options = dict(parts["oracle"])
        parts["oracle"] = REGISTRY.make(options.pop("kind"), options)
    asked = questions(as_dataset(**{name: call.get(name) for name in _READ}), **parts)
    return replace(asked, space=asked.space.for_targets(call.get("targets") or ()))


def census(data: Any, model: ModelSource, **options: Any) -> Result:
    """Ask all questions in one line, so that rates are exact.

    Args:
        data: A folder, a table, images, a Dataset or a QuestionSpace, as in ``audit``.
        model: The model, as in ``audit``.
        **options: Other arguments of ``audit`` (``labels``, ``metadata``, ``relations``, ``out``
            ...) and of ``Audit``, but no goal such as ``half_width``. ``targets`` are added to
            those of all kinds. ``out`` also gets a folder tables/.

    Returns:
        The result; its ``census`` has the tables.

    Raises:
        InputError: The model may cost money, and there is no ``max_cost`` or ``budget``; or
            ``audit`` refuses an argument.
    """
    asked = adapted_model(model_of(model))
    if asked.costs_money and not {"max_cost", "budget", "limits"} & set(options):
        raise InputError(
            f"census: expected a limit for model {name_of(asked)!r}, whose calls may cost money, "
            "got none; give max_cost= or budget="
        )
    return audit(data, asked, strategy=CENSUS, **options)
