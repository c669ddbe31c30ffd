"""An audit in one line, ``adaptive_vtt.audit("folder", my_function)``, and a census likewise."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..datasets import Dataset, as_dataset
from ..datasets.table import Labels
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
from .asking import Audit
from .cheaper import WHOLE, Choice, changed, chosen
from .overview import show
from .progress import Hooks
from .proposed import OVERALL, proposed

HALF_WIDTH = 0.05
"""Half-width of every interval, unless options say otherwise."""


@dataclass(frozen=True)
class Questions:
    """The questions about a dataset, and the ``targets`` that suit them."""

    space: QuestionSpace
    targets: tuple[str, ...]

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of an audit: those given, and defaults for its goal and targets."""
        result = dict(given)
        if "certify" not in given and given.get("strategy") != CENSUS:
            if not {"half_width", "at_most"} & set(given):
                result["half_width"] = HALF_WIDTH
            result.setdefault("targets", [*self.targets, *(given.get("where") or {})])
        return result


def questions(
    dataset: Dataset | QuestionSpace,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    severities: Iterable[int] | None = None,
) -> Questions:
    """Return the questions about a dataset, by the parts given and otherwise by those that
    ``proposed`` suggests; or a space's own.

    Raises InputError where nothing can be asked, and for a space and another part.
    """
    if isinstance(dataset, QuestionSpace):
        space, suggestion = dataset, proposed(dataset.dataset)
        suited = REGISTRY.make(suggestion.oracle, {})
        parts = {"relations": relations, "oracle": oracle, "severities": severities}
        if given := [name for name, part in parts.items() if part is not None]:
            expected, got = f"{given[0]} in the QuestionSpace", "it separately, too"
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
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    severities: Iterable[int] | None = None,
    out: Path | str | None = None,
    sample: bool = False,
    on_progress: Hooks = True,
    **options: Any,
) -> Result:
    """Run an audit in one line: every interval within half_width = 0.05, unless options say
    otherwise.

    A model that costs no money is timed first, and asked everything where that is quicker than
    sampling, or takes less than a minute: rates are exact then.

    Args:
        data: A folder, a table of labels, images or a Dataset (``datasets.as_dataset``); or a
            QuestionSpace, which includes dataset, relations and oracle.
        model: A function (list of images -> n x C of P(yes)) or any other model, see ``Audit``.
        labels: Labels of images that come without.
        concepts: Names of what the model answers, where there are no labels; of a table, the
            columns to ask about.
        relations: Image changes. None: those that suit the data.
        oracle: Rule that decides what is wrong, or its name. None: the one that suits the data.
        severities: Severities of the relations. None: all.
        out: Folder for journal.db, result.json and report.html. An audit with the same settings
            that it holds is resumed by the same call, or, where the journal can keep the call
            (paths, names and numbers), by ``avtt resume OUT --model FILE:NAME``.
        sample: Draw questions even where asking all is quicker, as a ``strategy`` does, too.
        on_progress: Hooks of the run, see ``Audit.run``. True: a table of what was read, and a bar.
        options: Those of ``Audit``. ``targets`` default to those that suit the data.

    Returns:
        The result.

    Raises:
        InputError: Nothing can be asked about the data; and whatever ``Audit`` raises.
    """
    relations = None if relations is None else list(relations)
    severities = None if severities is None else list(severities)
    parts: dict[str, Any] = {"relations": relations, "oracle": oracle, "severities": severities}
    whole = isinstance(data, QuestionSpace)
    if whole and (labels is not None or concepts is not None):
        got = "labels or concepts, too"
        raise unexpected("data", "a QuestionSpace alone", got, "leave them out")
    asked = questions(data if whole else as_dataset(data, labels, concepts), **parts)
    journal = None if out is None else Path(out) / JOURNAL
    adapted, best, own = adapted_model(model_of(model)), Choice(), asked.options(options)
    group = own.get("certify")
    space = asked.space.for_targets(group.targets if group else own.get("targets", ()))
    begun = recall(journal)
    if begun is not None and begun.settings.strategy == CENSUS:
        own = changed(own, WHOLE)
    elif begun is None and not sample:
        own, best = chosen(space, adapted, own)
    notes = {} if labels is not None else _kept(data, {"concepts": concepts, **parts, **own})
    notes |= {"trial_calls": best.calls} if best.calls else {}
    with Audit(space, adapted, journal=journal, notes=notes, **own) as made:
        if made.state().calls == 0 and on_progress:
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            show(space, made.targets, made.model.answers, console)
            if best.sentence is not None:
                console.print(f"{best.sentence} (sample=True insists on sampling)")
        result = made.run(on_progress)
    if out is not None:
        result.save(out)
    return result


def _kept(data: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the note of a call for ``called_again``; {} where JSON cannot hold it."""
    try:
        where = os.path.abspath(os.fspath(data))
        return {"call": json.loads(json.dumps({"data": where, **call}, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def called_again(call: Mapping[str, Any], model: ModelSource, **options: Any) -> Audit:
    """Return the audit of a journal's note of a call of ``audit``, with other ``options``."""
    given = dict(call)
    parts = {name: given.pop(name) for name in ("relations", "oracle", "severities")}
    data = as_dataset(given.pop("data"), concepts=given.pop("concepts"))
    asked = questions(data, **parts)
    return Audit(asked.space, model, **asked.options({**given, **options}))


def census(data: Any, model: ModelSource, **options: Any) -> Result:
    """Ask every question, in one line: exact rates of all there is to ask.

    Args:
        data: As ``adaptive_vtt.audit`` takes it, or a QuestionSpace.
        model: As there.
        options: All others of ``audit`` (``labels``, ``relations``, ``severities``, ``out`` ...)
            and of ``Audit``. No goal, such as ``half_width``, is among them; ``targets`` are added
            to those of every kind. ``out`` gets tables/, too.

    Returns:
        The result; its ``census`` has the tables.

    Raises:
        InputError: The model may cost money, and there is no ``max_cost`` or ``budget``; and
            whatever ``audit`` raises.
    """
    asked = adapted_model(model_of(model))
    if asked.costs_money and not {"max_cost", "budget", "limits"} & set(options):
        raise InputError(
            f"census: expected a limit for model {name_of(asked)!r}, of which every call may cost "
            "money, got none; give max_cost= or budget="
        )
    return audit(data, asked, strategy=CENSUS, **options)
