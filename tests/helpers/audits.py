"""Audits run to their end, and the content that must be the same in two of them."""

from typing import Any

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.targets import selected, size
from adaptive_vtt.families import OfSlice
from adaptive_vtt.journal import Journal
from adaptive_vtt.testing import ScriptedModel

Content = tuple[list[Any], list[Any], dict[int, Any]]


def content(journal: Journal) -> Content:
    """Return draws, answers and pictures, without times and the order of arrival."""
    draws = [{**vars(row), "elapsed": None} for row in journal.draws()]
    calls = sorted((c.call, c.cost, c.answers) for c in journal.calls())
    return draws, calls, journal.pictures()


def same_targets(one: Audit, other: Audit) -> bool:
    return one.result().targets.equals(other.result().targets)


def finished(space: QuestionSpace, **options: Any) -> Audit:
    """Return an audit that has run to its end."""
    audit = Audit(space, options.pop("model", None) or ScriptedModel(), **options)
    audit.run()
    return audit


def counted(space: QuestionSpace, **fields: Any) -> int:
    """Return the number of questions with these values in the fields of a filter."""
    where = {name: [value] for name, value in fields.items() if value is not None}
    return size(space, selected(space, OfSlice("these"), where))
