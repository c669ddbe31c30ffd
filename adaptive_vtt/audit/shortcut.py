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
from .overview import show
from .progress import Hooks
from .proposed import OVERALL, proposed

HALF_WIDTH = 0.05
"""How far intervals reach to either side, unless said otherwise."""


@dataclass(frozen=True)
class Questions:
    """The questions about a dataset, the ``targets`` that suit them, and ``why``."""

    space: QuestionSpace
    targets: tuple[str, ...]
    why: str

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
    dataset: Dataset,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
) -> Questions:
    """The questions that ``proposed`` proposes; ``relations`` and ``oracle`` (one, or its name) are
    taken where they are given. Raises InputError where nothing can be asked."""
    found = proposed(dataset)
    suited = REGISTRY.make(found.oracle, {})
    given = REGISTRY.make(oracle, {}) if isinstance(oracle, str) else oracle or suited
    space = QuestionSpace(dataset, relations or found.relations, oracle=given)
    if type(given) is type(suited):
        return Questions(space, found.targets, found.why)
    return Questions(space, OVERALL, f"the oracle is {type(given).__name__}")


def audit(
    data: Any,
    model: ModelSource,
    *,
    labels: Labels | None = None,
    concepts: list[str] | None = None,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    out: Path | str | None = None,
    on_progress: Hooks = True,
    **options: Any,
) -> Result:
    """An audit in one line: every interval within half_width = 0.05, unless options say otherwise.

    - ``data``: a folder, a table of labels, images or a Dataset (``datasets.as_dataset``), with
      ``labels`` where images come without; where nobody has any, ``concepts`` names what the model
      answers, of a table the columns to ask about.
    - ``model``: a function (list of images -> n x C of P(yes)) or any other model, see ``Audit``.
    - ``relations``, ``oracle``, and the option ``targets``: by what is known (``audit.proposed``).
    - ``out``: folder for journal.db, result.json and report.html. An audit with the same settings
      that stands there is gone on with, by these lines or, where the journal can keep them (data
      by a path, names and numbers), by ``avtt resume OUT --model FILE:NAME``.
    - ``on_progress``: what follows the run, see ``Audit.run``. Default: a table of what was read,
      and a bar.
    - ``options``: those of ``Audit``.

    Raises InputError for data of which nothing can be asked, and whatever ``Audit`` raises.
    """
    relations = None if relations is None else list(relations)
    found = questions(as_dataset(data, labels, concepts), relations, oracle)
    journal = None if out is None else Path(out) / JOURNAL
    call = {"concepts": concepts, "relations": relations, "oracle": oracle, **options}
    notes = {} if labels is not None else _kept(data, call)
    with Audit(found.space, model, journal=journal, notes=notes, **found.options(options)) as begun:
        if begun.state().calls == 0 and on_progress:
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            show(found.space, begun.targets, begun.model.answers, console, found.why)
        result = begun.run(on_progress)
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
    data, concepts, relations, oracle = map(given.pop, ("data", "concepts", "relations", "oracle"))
    found = questions(as_dataset(data, concepts=concepts), relations, oracle)
    return Audit(found.space, model, **found.options({**given, **options}))


def census(
    data: Any,
    model: ModelSource,
    *,
    labels: Labels | None = None,
    concepts: list[str] | None = None,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    out: Path | str | None = None,
    **options: Any,
) -> Result:
    """Ask every question, in one line: exact rates of all there is to ask.

    Args:
        data: as ``adaptive_vtt.audit`` takes it, with ``labels``, ``concepts``, ``relations`` and
            ``oracle``.
        model: as there.
        out: folder for journal.db, result.json, report.html and tables/. A census with the same
            settings that stands there is continued.
        options: those of ``Audit`` and ``audit``. No goal, such as ``half_width``, is among them;
            ``targets`` come beside those of every kind.

    Returns:
        The result; its ``census`` has the tables "rates", "perturbations" and "classes".

    Raises:
        InputError: for a model that may cost money, without ``max_cost`` or ``budget``; and
            whatever ``Audit`` raises.
    """
    asked = adapted_model(model_of(model))
    if asked.costs_money and not {"max_cost", "budget", "limits"} & set(options):
        raise InputError(
            f"census: expected a limit for model {name_of(asked)!r}, of which every call may cost "
            "money, got none; give max_cost= or budget="
        )
    return audit(
        data,
        model,
        labels=labels,
        concepts=concepts,
        relations=relations,
        oracle=oracle,
        out=out,
        strategy=CENSUS,
        **options,
    )
