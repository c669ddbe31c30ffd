"""The finished audits of a comparison, in a file of its folder: it goes on with those, whether it
was interrupted or is asked for more repeats.

Each line is JSON, appended as an audit ends: what the comparison is made of, or a run. A last line
without its end was cut off by a crash, and is dropped; the audit it was of is run again.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..types import JsonObject
from ..utils.files import text_in, write_text
from .runs import Job, Run

RUNS = "runs.jsonl"
STRATEGY, BUDGET = "strategy ", "budget"
"""Facts that runs outlive in part. Before the name of a row: what its strategy is made of; another
one, and that row is run again. The most calls of an audit: more, and those are run again that were
not certified before they were made."""
MISSING = "nothing"
"""What messages call a value that is not there."""


class KeptRuns:
    """The runs that the folder ``out`` keeps: ``runs``, by strategy and seed.

    ``facts``: what the comparison is made of, as far as the file says. Nothing is written before
    there is a run or a fact worth keeping; never where ``out`` is None. ``outdated``: by strategy,
    how many runs are to be made anew under what was expected. Raises InputError where the file is
    none of its kind.
    """

    def __init__(self, out: Path | None) -> None:
        self.path = None if out is None else out / RUNS
        self.facts: JsonObject = {}
        self.runs: dict[tuple[str, int], Run] = {}
        self.outdated: Counter[str] = Counter()
        self._unwritten: JsonObject = {}
        if self.path is not None:
            self._read(self.path)

    def expect(self, **facts: Any) -> None:
        """Says what the comparison is made of, in values that JSON can hold; written with the next
        run. Forgets the runs that a larger budget or another strategy makes anew. Raises InputError
        where runs are kept of another comparison."""
        for name, value in facts.items():
            now = json.loads(json.dumps(value, default=str))
            if name not in self.facts or _replaces(name, self.facts[name], now):
                self._unwritten[name] = now
                self.outdated.update(strategy for strategy, _ in self._learn(name, now))
            elif self.facts[name] != now:
                where, then, instead = _difference(name, self.facts[name], now)
                raise InputError(
                    f"{self.path}: holds audits of another comparison, with {where} {then}, not "
                    f"{instead}: what began it goes on with it; give another folder (out), or "
                    "remove this file"
                )

    def note(self, **facts: Any) -> None:
        """The same, written at once."""
        self.expect(**facts)
        self._append([])

    def keep(self, run: Run) -> None:
        """Writes one finished run, before this returns."""
        self.runs[run["strategy"], run["seed"]] = run
        self._append([{"run": run}])

    def left(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of the jobs whose run is not kept."""
        return [job for job in jobs if (job.name, job.seed) not in self.runs]

    def of(self, jobs: Sequence[Job]) -> list[Run]:
        """The runs of the jobs, in their order; all are kept."""
        return [self.runs[job.name, job.seed] for job in jobs]

    def _append(self, records: list[JsonObject]) -> None:
        if self.path is None:
            return
        if self._unwritten:
            records = [{"facts": self._unwritten}, *records]
        text = "".join(json.dumps(each, allow_nan=False) + "\n" for each in records)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            why = error.strerror or error
            raise InputError(f"{self.path}: cannot be written: {why}") from None
        self._unwritten = {}

    def _read(self, path: Path) -> None:
        try:
            text = text_in(path, errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        whole = text[: text.rfind("\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, KeyError, RecursionError):
                raise InputError(
                    f"{path}, line {number}: expected a run that 'avtt compare' kept, got "
                    "something else; remove the file to run everything again"
                ) from None
        if whole != text:
            write_text(path, whole)

    def _take(self, record: JsonObject) -> None:
        if "run" in record:
            run = record["run"]
            self.runs[str(run["strategy"]), int(run["seed"])] = run
        else:
            for name, value in record["facts"].items():
                self._learn(name, value)

    def _learn(self, name: str, value: Any) -> list[tuple[str, int]]:
        """Takes in a fact, and forgets the runs that are none of it: their strategies and seeds."""
        forgotten = []
        if name in self.facts and self.facts[name] != value:
            forgotten = [key for key, run in self.runs.items() if _outdated(run, name)]
        self.facts[name] = value
        for key in forgotten:
            del self.runs[key]
        return forgotten


def _replaces(name: str, then: Any, now: Any) -> bool:
    """Whether some runs outlive this change of a fact."""
    if name == BUDGET:
        return then is not None and (now is None or now > then)
    return name.startswith(STRATEGY) and then != now


def _outdated(run: Run, name: str) -> bool:
    """Whether a run has to be made anew after the fact of this name has changed."""
    if name == BUDGET:
        return not all(run.get("certified", [False]))
    return name == f"{STRATEGY}{run['strategy']}"


def _difference(name: str, then: Any, now: Any) -> tuple[str, str, str]:
    """The first field in which two values differ, and what each has there."""
    while isinstance(then, dict) and isinstance(now, dict):
        field = next(f for f in {**then, **now} if then.get(f) != now.get(f))
        name, then, now = f"{name}.{field}", then.get(field), now.get(field)
    first, second = (MISSING if v is None else json.dumps(v) for v in (then, now))
    return name, first, second
