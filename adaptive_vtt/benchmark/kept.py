"""The finished audits of a comparison, in a file of its folder, for resuming it and adding repeats.

Each line is JSON, appended as an audit ends: facts of the comparison, or a run. A last line
without its end was cut off by a crash, and is dropped; its audit is run again.
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
"""Facts that may change while some runs stay valid. STRATEGY, before the name of a row: the content
of its strategy; when it changes, that row is run again. BUDGET, the most calls of an audit: when it
rises, the audits that were not certified are run again."""
MISSING = "nothing"
"""Stands for a missing value in messages."""


class KeptRuns:
    """The runs of a folder.

    Args:
        out: The folder. The file is written when there is a first run or fact to keep, and never if
            this is None.

    Attributes:
        runs: Finished runs by strategy and seed.
        facts: Facts of the comparison that the file has.
        outdated: Runs of each strategy that must be made again under the expected facts.

    Raises:
        InputError: The file is not one of kept runs.
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
        """Set facts of the comparison, and drop the runs that they outdate.

        A larger budget outdates runs that were not certified, another strategy outdates its own.
        Facts are written with the next run, as values that JSON can hold.

        Raises:
            InputError: The file has runs of another comparison.
        """
        for name, value in facts.items():
            now, then = json.loads(json.dumps(value, default=str)), self.facts.get(name)
            changed = name in self.facts and then != now
            larger = name == BUDGET and then is not None and (now is None or now > then)
            if name not in self.facts or larger or (changed and name.startswith(STRATEGY)):
                self._unwritten[name] = now
                self.outdated.update(strategy for strategy, _ in self._learn(name, now))
            elif changed:
                raise InputError(
                    f"{self.path}: holds audits of another comparison, with "
                    f"{_difference(name, self.facts[name], now)}: the same call continues it; "
                    "give another folder (out), or remove this file"
                )

    def note(self, **facts: Any) -> None:
        """Set facts and write them at once."""
        self.expect(**facts)
        self._append([])

    def keep(self, run: Run) -> None:
        """Write one finished run, before this returns."""
        self.runs[run["strategy"], run["seed"]] = run
        self._append([{"run": run}])

    def left(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs whose run is not kept."""
        return [job for job in jobs if (job.name, job.seed) not in self.runs]

    def of(self, jobs: Sequence[Job]) -> list[Run]:
        """Return the runs of the jobs, in their order; all are kept."""
        return [self.runs[job.name, job.seed] for job in jobs]

    def _append(self, records: list[JsonObject]) -> None:
        if self.path is None:
            return
        if self._unwritten:
            records = [{"facts": self._unwritten}, *records]
        text = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
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
                record = json.loads(line)
                if "run" in record:
                    run = record["run"]
                    self.runs[str(run["strategy"]), int(run["seed"])] = run
                else:
                    for name, value in record["facts"].items():
                        self._learn(name, value)
            except (ValueError, TypeError, KeyError, RecursionError):
                raise InputError(
                    f"{path}, line {number}: expected a run that 'avtt compare' kept, got "
                    "something else; remove the file to run everything again"
                ) from None
        if whole != text:
            write_text(path, whole)

    def _learn(self, name: str, value: Any) -> list[tuple[str, int]]:
        """Set a fact and drop the runs that it outdates; return their strategies and seeds."""
        changed, dropped = name in self.facts and self.facts[name] != value, []
        for key, run in [*self.runs.items()]:
            certified = all(run.get("certified", [False]))
            outdated = not certified if name == BUDGET else name == f"{STRATEGY}{key[0]}"
            if changed and outdated:
                dropped.append(key)
                del self.runs[key]
        self.facts[name] = value
        return dropped


def _difference(name: str, then: Any, now: Any) -> str:
    """Return the first field in which two values differ, and both values there."""
    while isinstance(then, dict) and isinstance(now, dict):
        field = next(f for f in {**then, **now} if then.get(f) != now.get(f))
        name, then, now = f"{name}.{field}", then.get(field), now.get(field)
    first, second = (MISSING if v is None else json.dumps(v) for v in (then, now))
    return f"{name} {first}, not {second}"
