"""Two models compared: the questions that only one of them answered rightly, with both answers."""

from collections.abc import Mapping
from typing import Any

from ...certify.compared import ALIKE
from ...journal.rows import AnswerRow, CallRow
from .album import Album
from .evidence import Evidence
from .gallery import SAID, cards, view
from .section import THIN, Section
from .wording import asked

INTRO = (
    "Every call in which one model lost more than the other, the largest differences first: "
    "A is the old model, B the new one"
)


def section(evidence: Evidence) -> Section:
    """All disagreements; gallery.js makes cards of them."""
    album = Album()
    found = [(call, _apart(call)) for call in evidence.calls]
    kept = [(call, rows) for call, rows in found if rows]
    kept.sort(key=lambda item: (_pictures(evidence, item[0]) is None, -_size(item[1])))
    items = [_item(evidence, call, rows, album) for call, rows in kept]
    sides = [(1, "the new model, B"), (0, "the old model, A")]
    return cards(evidence, items, album, intro=INTRO, truth=("Who lost less", sides))


def _apart(call: CallRow) -> list[AnswerRow]:
    rows = [a for a in call.answers if a.loss not in (None, ALIKE) and not a.excluded]
    return sorted(rows, key=lambda row: -abs((row.loss or 0) - ALIKE))


def _size(rows: list[AnswerRow]) -> float:
    return abs((rows[0].loss or 0) - ALIKE)


def _pictures(evidence: Evidence, call: CallRow) -> tuple[bytes, bytes] | None:
    return evidence.pictures.get(call.call)


def _item(evidence: Evidence, call: CallRow, rows: list[AnswerRow], album: Album) -> dict[str, Any]:
    asked = evidence.asked(rows[0].question)
    source, follow_up = _pictures(evidence, call) or (None, None)
    change = evidence.change(asked.relation, asked.severity)
    views = [view(album, follow_up, change)]
    if source is not None and source != follow_up:
        views.insert(0, view(album, source, "source"))
    return {
        "id": call.call,
        "sample": evidence.drawn[call.call].sample,
        "relation": evidence.relations.index(asked.relation),
        "severity": asked.severity,
        "change": change,
        "views": views,
        "lines": [_line(evidence, row) for row in rows],
        "note": "",
        "targets": sorted(evidence.targets_of(call.call, (row.question for row in rows))),
    }


def _line(evidence: Evidence, row: AnswerRow) -> dict[str, Any]:
    details = row.details or {}
    both = "; ".join(f"{name.upper()} {_said(evidence, details.get(name, {}))}" for name in "ab")
    side = f"is {'present' if row.truth else 'absent'}"
    return {
        "key": row.question % len(evidence.concepts),
        "truth": int((row.loss or 0) > ALIKE),
        "name": evidence.asked(row.question).concept,
        "is": side if evidence.sided else "",
        "said": both,
        "at": None,
        "asked": asked(row),
    }


def _said(evidence: Evidence, told: Mapping[str, Any]) -> str:
    """What a model said, and how far that was wrong."""
    said, loss = told.get("said"), float(told.get("loss", 0))
    lost = {0.0: "right", 1.0: "wrong"}.get(loss, f"lost {loss:.2f}")
    if isinstance(said, dict):
        words = f"no answer ({said['unanswered']})" if "unanswered" in said else "an answer"
    elif isinstance(said, int | float):
        words = f"{'score' if evidence.scored else 'P(yes)'} {100 * said:.0f}{THIN}%"
    else:
        words = f"“{str(said)[:SAID]}”"
    return f"{words}, {lost}"
