"""Audits run to their end, and what must be the same in two of them."""

from typing import Any

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.targets import selected, size
from adaptive_vtt.families import OfSlice
from adaptive_vtt.journal import Journal
from adaptive_vtt.testing import ScriptedModel

Content = tuple[list[Any], list[Any], dict[int, Any]]


def content(journal: Journal) -> Content:
    """Draws, answers and pictures; all but the time they took and the order they came in."""
    draws = [{**vars(row), "elapsed": None} for row in journal.draws()]
    calls = sorted((c.call, c.cost, c.answers) for c in journal.calls())
    return draws, calls, journal.pictures()


def same_targets(one: Audit, other: Audit) -> bool:
    return one.result().targets.equals(other.result().targets)


def finished(space: QuestionSpace, **options: Any) -> Audit:
    """An audit run to its end without disturbance."""
    audit = Audit(space, options.pop("model", None) or ScriptedModel(), **options)
    audit.run()
    return audit


def counted(space: QuestionSpace, **fields: Any) -> int:
    """The number of questions that have these values in fields of a filter."""
    where = {name: [value] for name, value in fields.items() if value is not None}
    return size(space, selected(space, OfSlice("these"), where))
