"""Measure time and memory of long audits, and of resuming, verifying and reporting them.

    python -m adaptive_vtt.experiments.engine.long_audits

A cheap model without images is asked N times, in three kinds of audit: ``demo`` (a call answers 10
concepts of an image; 16 targets), ``digits`` (one question per call; overall and 7 relations), and
``plain``, which is ``demo`` without the question GP. Then the journal is resumed without a
question, verified, and reported, each in a new process. Times are processor seconds. Memory is the
growth of the resident set per 1,000 calls over the second half; in an audit of 20,000 calls the
question GP is at its limit by then.

``--whole QUESTIONS`` asks every question of a space instead. It prints the time of a call in each
tenth of the audit and at its end.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.results.report import write_report
from adaptive_vtt.results.result import summarise
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, in_own_process, options, save_table, show
from .digits import RecordedRelation

TILE = 230
NEVER = 0.001
"""Half-width that no audit of this length reaches."""


class Cheap:
    """Model that is right in four of five cases, by a rule that takes no time."""

    needs_image = False
    name = "cheap"

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer:
        key = f"{prompt.sample_id}/{prompt.relation}/{prompt.severity}/{prompt.concepts}"
        wrong = generator(0, key).random(len(prompt.concepts)) < 0.2
        return Answer(tuple((0.3 + 0.4 * wrong).tolist()), cost=0.001)


def audit_of(kind: str, journal: Path, calls: int | None, questions: int = 0) -> Audit:
    """Begin or resume an audit of ``calls`` calls; None: of all of at most ``questions``."""
    all_at_once = kind in ("demo", "plain")
    concepts, samples = (10, 5_000) if all_at_once else (1, 10_000)
    samples = questions // (31 * concepts) or samples
    truths = (np.random.default_rng(0).random((TILE, concepts)) < 0.4).astype(np.int8)
    changes = (RecordedRelation(f"r{i}", (1, 2, 3, 4, 5)) for i in range(6))
    relations = [RecordedRelation("identity", (0,)), *changes]
    sides = [f"concept:c{i}" for i in range(4)] if all_at_once else []
    return Audit(
        QuestionSpace(TiledDataset(truths, samples), relations),
        Cheap("all" if all_at_once else "one"),
        half_width=NEVER,
        targets=["overall", "relations", *sides],
        budget=calls,
        surrogate=kind != "plain",
        journal=journal,
    )


def resident() -> float:
    """Return the MB of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def run(kind: str, journal: Path, calls: int) -> dict[str, float]:
    """Ask ``calls`` times. Return ms per call, and the growth of memory over the second half."""
    sizes: list[float] = []
    start = time.process_time()
    with audit_of(kind, journal, calls) as audit:
        audit.run(lambda _: sizes.append(resident()))
    seconds = time.process_time() - start
    half = len(sizes) // 2
    grown = (sizes[-1] - sizes[half]) / (len(sizes) - half) * 1000
    return {"ms per call": 1000 * seconds / calls, "MB per 1,000 calls": grown}


def whole(kind: str, questions: int, folder: Path) -> dict[str, float]:
    """Return ms per call in each tenth of an audit that asks everything, and in the last calls."""
    times: list[float] = []
    with audit_of(kind, folder / f"{kind}-{questions}.db", None, questions) as audit:
        audit.run(lambda _: times.append(time.process_time()))
    ms = 1000 * np.diff(times)
    tenths = {f"tenth {k + 1}": t.mean() for k, t in enumerate(np.array_split(ms, 10))}
    return {"calls": len(times), **tenths, "last 200": ms[-200:].mean()}


def _report(journal: Path) -> None:
    opened = SQLiteJournal(journal, must_exist=True)
    summarise(opened)
    write_report(opened, journal.with_suffix(".html"))


LATER: dict[str, Callable[[str, Path, int], object]] = {
    "replay": lambda kind, journal, calls: audit_of(kind, journal, calls).close(),
    "verify": lambda kind, journal, calls: verify(SQLiteJournal(journal, must_exist=True)),
    "report": lambda kind, journal, calls: _report(journal),
}


def later(what: str, kind: str, journal: Path, calls: int) -> dict[str, float]:
    """Return the seconds and the peak MB of one of LATER, in a process that does nothing else."""
    start = time.process_time()
    LATER[what](kind, journal, calls)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {f"{what} s": seconds, f"{what} peak MB": peak}


def measure(kind: str, calls: int, folder: Path) -> Row:
    """Return a row of the table."""
    journal = folder / f"{kind}-{calls}.db"
    row: Row = {"audit": kind, "calls": calls}
    if not journal.exists():
        row |= in_own_process(run, kind, journal, calls)
    row["journal MB"] = journal.stat().st_size / 2**20
    for what in LATER:
        row |= in_own_process(later, what, kind, journal, calls)
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"calls": [60], "kinds": ["demo"]},
        calls=[1_000, 4_250, 20_000],
        kinds=dict.fromkeys(("demo", "digits", "plain")),
        whole=[int],
        keep=Path,
    )
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for kind in chosen.kinds:
            for questions in chosen.whole or ():
                times = in_own_process(whole, kind, questions, folder)
                rows.append({"audit": kind, "questions": questions, **times})
            for calls in () if chosen.whole else chosen.calls:
                rows.append(measure(kind, calls, folder))
                show(rows[-1])
    save_table(pd.DataFrame(rows).round(2), chosen.out / "long_audits.csv")


if __name__ == "__main__":
    main()
