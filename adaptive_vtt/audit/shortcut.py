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
from ..errors import InputError
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
"""How far intervals reach to either side, unless said otherwise."""


@dataclass(frozen=True)
class Questions:
    """The questions about a dataset, and the ``targets`` that suit them."""

    space: QuestionSpace
    targets: tuple[str, ...]

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of an audit: those given, and what is left to say of its targets.

        Without ``half_width`` and ``at_most`` intervals reach HALF_WIDTH to either side.
        """
        found = dict(given)
        if "certify" in given or given.get("strategy") == CENSUS:
            return found
        if not {"half_width", "at_most"} & set(given):
            found["half_width"] = HALF_WIDTH
        if "targets" not in given:
            found["targets"] = [*self.targets, *(given.get("where") or {})]
        return found


def questions(
    dataset: Dataset | QuestionSpace,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    severities: Iterable[int] | None = None,
) -> Questions:
    """The questions that ``proposed`` proposes; ``relations`` and ``oracle`` (one, or its name) are
    taken where they are given, and so is a space. Raises InputError where nothing can be asked, and
    for a part of a space beside it."""
    found = proposed(dataset.dataset if isinstance(dataset, QuestionSpace) else dataset)
    suited = REGISTRY.make(found.oracle, {})
    if isinstance(dataset, QuestionSpace):
        parts = {"relations": relations, "oracle": oracle, "severities": severities}
        for name in (name for name, part in parts.items() if part is not None):
            raise InputError(
                f"data: expected {name} in the QuestionSpace, got it beside one, too; leave it out"
            )
        space = dataset
    else:
        given = REGISTRY.make(oracle, {}) if isinstance(oracle, str) else oracle or suited
        kept = None if severities is None else [*severities]
        space = QuestionSpace(dataset, relations or found.relations, oracle=given, severities=kept)
    if type(space.oracle.original) is type(suited):
        return Questions(space, found.targets)
    return Questions(space, OVERALL)


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
    """An audit in one line: every interval within half_width = 0.05, unless options say otherwise.

    A model that costs no money is timed first, and asked everything where that is quicker than
    sampling, or takes less than a minute: rates are exact then (``audit.cheaper``).

    - ``data``: a folder, a table of labels, images or a Dataset (``datasets.as_dataset``), with
      ``labels`` where images come without; where nobody has any, ``concepts`` names what the model
      answers, of a table the columns to ask about. Or a QuestionSpace, which says all of it.
    - ``model``: a function (list of images -> n x C of P(yes)) or any other model, see ``Audit``.
    - ``relations``, ``oracle``, and the option ``targets``: by what is known (``audit.proposed``);
      ``severities``: of the relations. Default: all.
    - ``out``: folder for journal.db, result.json and report.html. An audit with the same settings
      that stands there is gone on with, by these lines or, where the journal can keep them (data
      by a path, names and numbers), by ``avtt resume OUT --model FILE:NAME``.
    - ``sample``: draw questions, however cheap the model is; so does a ``strategy``.
    - ``on_progress``: what follows the run, see ``Audit.run``. Default: a table of what was read,
      and a bar.
    - ``options``: those of ``Audit``.

    Raises InputError for data of which nothing can be asked, and whatever ``Audit`` raises.
    """
    relations = None if relations is None else list(relations)
    severities = None if severities is None else list(severities)
    about = {"relations": relations, "oracle": oracle, "severities": severities}
    whole = isinstance(data, QuestionSpace)
    if whole and (labels is not None or concepts is not None):
        raise InputError(
            "data: expected a QuestionSpace alone, got labels or concepts, too; leave them out"
        )
    loaded = data if whole else as_dataset(data, labels, concepts)
    found = questions(loaded, relations, oracle, severities)
    journal = None if out is None else Path(out) / JOURNAL
    asked, best, own = adapted_model(model_of(model)), Choice(), found.options(options)
    begun = recall(journal)
    if begun is not None and begun.settings.strategy == CENSUS:
        own = changed(own, WHOLE)
    elif begun is None and not sample:
        own, best = chosen(found.space, asked, own)
    notes = {} if labels is not None else _kept(data, {"concepts": concepts, **about, **own})
    notes |= {"trial_calls": best.calls} if best.calls else {}
    with Audit(found.space, asked, journal=journal, notes=notes, **own) as made:
        if made.state().calls == 0 and on_progress:
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            show(found.space, made.targets, made.model.answers, console)
            if best.sentence is not None:
                console.print(f"{best.sentence} (sample=True insists on sampling)")
        result = made.run(on_progress)
    if out is not None:
        result.save(out)
    return result


def _kept(data: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    """The note of a call by which ``called_again`` goes on; {} where JSON cannot hold it."""
    try:
        where = os.path.abspath(os.fspath(data))
        return {"call": json.loads(json.dumps({"data": where, **call}, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def called_again(call: Mapping[str, Any], model: ModelSource, **options: Any) -> Audit:
    """The audit of a journal's note of a call of ``audit``, with ``options`` before its own."""
    given = dict(call)
    about = [given.pop(name) for name in ("relations", "oracle", "severities")]
    found = questions(as_dataset(given.pop("data"), concepts=given.pop("concepts")), *about)
    return Audit(found.space, model, **found.options({**given, **options}))


def census(data: Any, model: ModelSource, **options: Any) -> Result:
    """Ask every question, in one line: exact rates of all there is to ask.

    Args:
        data: as ``adaptive_vtt.audit`` takes it, or a QuestionSpace.
        model: as there.
        options: all others of ``audit`` (``labels``, ``relations``, ``severities``, ``out`` ...)
            and of ``Audit``. No goal, such as ``half_width``, is among them; ``targets`` come
            beside those of every kind. ``out`` gets tables/, too.

    Returns:
        The result; its ``census`` has the tables.

    Raises:
        InputError: for a model that may cost money, without ``max_cost`` or ``budget``; and
            whatever ``audit`` raises.
    """
    asked = adapted_model(model_of(model))
    if asked.costs_money and not {"max_cost", "budget", "limits"} & set(options):
        raise InputError(
            f"census: expected a limit for model {name_of(asked)!r}, of which every call may cost "
            "money, got none; give max_cost= or budget="
        )
    return audit(data, asked, strategy=CENSUS, **options)
