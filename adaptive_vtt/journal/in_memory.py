"""A journal that goes when the process goes."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..errors import JournalError
from ..types import JsonObject
from .chain import Chain, Link, Row
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, SourceRow


class MemoryJournal:
    """Behaves as SQLiteJournal does; every write takes time for its rows alone."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._fact_rows: list[FactRow] = []
        self._draws: dict[int, DrawRow] = {}
        self._calls: dict[int, CallRow] = {}
        self._sources: dict[int, SourceRow] = {}
        self._judging: list[JudgingRow] = []
        self._beliefs: dict[int, BeliefRow] = {}
        self._drawn: set[int] = set()
        self._answered: set[int] = set()
        self._chain = Chain()
        self._links: list[Link] = []

    def facts(self) -> JsonObject:
        return {name: json.loads(value) for name, value in self._facts.items()}

    def set_facts(self, **facts: Any) -> None:
        texts = {name: json.dumps(value) for name, value in facts.items()}
        for name, text in texts.items():
            if self._facts.get(name) != text:
                row = FactRow(len(self._fact_rows), name, text)
                self._facts[name] = text
                self._fact_rows.append(row)
                self._link(row)

    def add_draws(self, rows: list[DrawRow]) -> None:
        self._check_new("draws", [row.draw for row in rows], self._draws)
        self._check_new("draws of calls", [row.call for row in rows], self._drawn)
        self._drawn.update(row.call for row in rows)
        for row in rows:
            self._draws[row.draw] = row
            self._link(row)

    def add_calls(self, rows: list[CallRow]) -> None:
        new: set[int] = set()
        answered: set[int] = set()
        for row in rows:
            known = row.call in self._calls or row.call in new or row.call not in self._drawn
            questions = {a.question for a in row.answers}
            repeated = questions & self._answered or questions & answered
            if known or repeated or len(questions) < len(row.answers):
                raise JournalError(f"journal: call {row.call} was not drawn, or stands there")
            new.add(row.call)
            answered |= questions
        self._answered |= answered
        for row in rows:
            self._calls[row.call] = row
            self._link(row)

    def add_sources(self, rows: list[SourceRow]) -> None:
        self._check_new("sources", [row.source for row in rows], self._sources)
        for row in rows:
            kept = replace(row, answers=tuple(json.loads(json.dumps(row.answers))))
            self._sources[row.source] = kept
            self._link(kept)

    def add_judging(self, rows: list[JudgingRow]) -> None:
        known = {(row.call, row.question) for row in self._judging}
        for position, row in enumerate(rows, len(self._judging)):
            same = (row.call, row.question) in known
            if same or row.position != position or row.call not in self._drawn:
                raise JournalError(f"journal: judging of call {row.call} stands there")
            known.add((row.call, row.question))
        for row in rows:
            self._judging.append(replace(row, said=tuple(json.loads(json.dumps(row.said)))))
            self._link(self._judging[-1])

    def judging(self) -> list[JudgingRow]:
        return list(self._judging)

    def add_beliefs(self, rows: list[BeliefRow]) -> None:
        self._check_new("beliefs after draws", [row.draws for row in rows], self._beliefs)
        for row in rows:
            kept = replace(row, figures=json.loads(json.dumps(row.figures)))
            self._beliefs[row.draws] = kept
            self._link(kept)

    def beliefs(self) -> list[BeliefRow]:
        return [self._beliefs[draws] for draws in sorted(self._beliefs)]

    def sources(self) -> list[SourceRow]:
        return [self._sources[s] for s in sorted(self._sources)]

    def draws(self, *, proposals: bool = True) -> list[DrawRow]:
        return [self._draws[d] for d in sorted(self._draws)]

    def proposal(self, draw: int) -> bytes:
        if draw not in self._draws:
            raise JournalError(f"journal: draw {draw} is missing")
        return self._draws[draw].proposal

    def calls(self) -> list[CallRow]:
        return [
            replace(c, answers=tuple(sorted(c.answers, key=lambda a: a.question)), pictures=None)
            for c in self._calls.values()
        ]

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        return {c.call: c.pictures for c in self._calls.values() if c.pictures is not None}

    def fact_rows(self) -> list[FactRow]:
        return list(self._fact_rows)

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

    def _check_new(self, what: str, numbers: list[int], known: Collection[int]) -> None:
        if not set(known).isdisjoint(numbers) or len(set(numbers)) < len(numbers):
            raise JournalError(f"journal: one of the {what} {numbers} stands there")

    def _link(self, row: Row) -> None:
        self._links.append(self._chain.add(row))
