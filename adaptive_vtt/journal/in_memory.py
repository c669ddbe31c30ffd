"""A journal in memory, which ends with the process."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

from ..errors import JournalError
from ..types import JsonObject
from .chain import Chain, Link, name_of
from .rows import JSON_FIELD, BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, Row, SourceRow


class MemoryJournal:
    """Journal that behaves as SQLiteJournal does, in time that is linear in the rows written."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._rows: dict[type, dict[int, Any]] = {kind: {} for kind in get_args(Row)}
        self._keys: set[tuple[Any, ...]] = set()
        self._chain = Chain()
        self._links: list[Link] = []

    def facts(self) -> JsonObject:
        return {name: json.loads(value) for name, value in self._facts.items()}

    def set_facts(self, **facts: Any) -> None:
        texts = {name: json.dumps(value) for name, value in facts.items()}
        for name, text in texts.items():
            if self._facts.get(name) != text:
                self._facts[name] = text
                self._keep(FactRow(len(self._rows[FactRow]), name, text))

    def add(self, rows: Sequence[Row]) -> None:
        new: set[tuple[Any, ...]] = set()
        for place, row in enumerate(rows):
            keys = [*_unique_keys(row)]
            valid = len({*keys}) == len(keys)
            valid &= new.isdisjoint(keys) and self._keys.isdisjoint(keys)
            if isinstance(row, CallRow | JudgingRow):
                valid &= ("drawn", row.call) in self._keys
            if isinstance(row, JudgingRow):
                valid &= row.position == len(self._rows[JudgingRow]) + place
            if not valid:
                kind, number = name_of(row)
                raise JournalError(f"journal: {kind} {number} was not drawn, or stands there")
            new.update(keys)
        self._keys |= new
        for row in rows:
            field = JSON_FIELD.get(type(row))
            if field is not None:
                value = getattr(row, field)
                row = replace(row, **{field: type(value)(json.loads(json.dumps(value)))})
            self._keep(row)

    def judging(self) -> list[JudgingRow]:
        return self._sorted(JudgingRow)

    def beliefs(self) -> list[BeliefRow]:
        return self._sorted(BeliefRow)

    def sources(self) -> list[SourceRow]:
        return self._sorted(SourceRow)

    def draws(self, *, proposals: bool = True) -> list[DrawRow]:
        return self._sorted(DrawRow)

    def proposal(self, draw: int) -> bytes:
        if draw not in self._rows[DrawRow]:
            raise JournalError(f"journal: draw {draw} is missing")
        return bytes(self._rows[DrawRow][draw].proposal)

    def calls(self) -> list[CallRow]:
        return [
            replace(c, answers=tuple(sorted(c.answers, key=lambda a: a.question)), pictures=None)
            for c in self._rows[CallRow].values()
        ]

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        calls = self._rows[CallRow].values()
        return {c.call: c.pictures for c in calls if c.pictures is not None}

    def fact_rows(self) -> list[FactRow]:
        return [*self._rows[FactRow].values()]

    def links(self) -> list[Link]:
        return list(self._links)

    @property
    def head(self) -> str:
        return self._chain.head

    def check_storage(self) -> None:
        pass

    def check_place(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _sorted(self, kind: type) -> list[Any]:
        return [row for _, row in sorted(self._rows[kind].items())]

    def _keep(self, row: Row) -> None:
        """Store a row and add its link to the chain."""
        self._rows[type(row)][name_of(row)[1]] = row
        self._links.append(self._chain.add(row))


def _unique_keys(row: Row) -> Iterator[tuple[Any, ...]]:
    """Yield keys that only one row may have: number, call drawn, questions answered."""
    yield name_of(row)
    if isinstance(row, DrawRow):
        yield "drawn", row.call
    elif isinstance(row, CallRow):
        yield from (("answered", answer.question) for answer in row.answers)
    elif isinstance(row, JudgingRow):
        yield "judged", row.call, row.question
