"""Audits that are killed or signalled at random moments, resumed, and compared with one that ran
undisturbed; two writers on one folder; and a journal that is deleted under a running audit."""

import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_vtt.experiments.engine.killed_audits import served
from adaptive_vtt.experiments.program import Row
from tests.helpers.endpoint import Behaviour, DemoModel, DemoServer

from . import resilience_audits as audits
from .resilience_audits import ASKED, Ended, Kind, Running, Tables

SIGNALS = (
    signal.SIGKILL,
    signal.SIGTERM,
    signal.SIGKILL,
    signal.SIGINT,
    signal.SIGKILL,
    signal.SIGHUP,
)
MAX_TURNS = 12
"""Attempts at going on with one audit, after which it counts as stuck."""
BUDGET, PAUSE = 30, 0.02


@dataclass
class Disturbed:
    """Figures of one disturbed audit."""

    kills: int = 0
    signals: int = 0
    told: int = 0
    lost: int = 0
    twice: int = 0
    same: bool = False
    stuck: str = ""
    left: Tables | None = None


# -- kills ------------------------------------------------------------------------------------


def kills(folder: Path, moments: int, rng: np.random.Generator) -> list[Row]:
    """Make this number of kills and signals, spread over four kinds of audit, or over fewer."""
    found: list[tuple[Kind, Disturbed]] = []
    kinds = audits.python_kinds()[:moments]
    with ExitStack() as stack:
        if moments > len(kinds):
            kinds.append(chat(stack.enter_context(endpoint(folder / "shapes"))))
        for kind in kinds:
            spec = audits.write_folder(folder / "shapes", kind, budget=BUDGET, pause=PAUSE)
            run = folder / f"{kind.name}-whole"
            whole = audits.ran(
                ["audit", str(spec), "--out", str(run)], **{ASKED: str(folder / f"{kind.name}.log")}
            )
            certificate = audits.certificate(run) if whole.code == 0 else {}
            share, struck = -(-moments // len(kinds)), 0
            for turns in range(2 * share):  # some audits end before the moment comes
                if struck >= share:
                    break
                turn = Turn(kind, spec, folder / f"{kind.name}-{turns}", whole.seconds)
                found.append((kind, turn.disturb(certificate, rng)))
                struck += found[-1][1].kills
    return summary(found)


def summary(found: Sequence[tuple[Kind, Disturbed]]) -> list[Row]:
    """Return a row per promise."""
    runs = [run for _, run in found]
    logged = [run for kind, run in found if kind.logs]
    tried = sum(run.kills for run in runs)
    lost, twice = sum(run.lost for run in runs), sum(run.twice for run in logged)
    stuck = Counter(run.stuck for run in runs if run.stuck)
    same = sum(run.same for run in runs)
    told, signals = sum(run.told for run in runs), sum(run.signals for run in runs)
    return [
        row("kills and signals: journaled rows stay", tried, lost),
        row("Python models: nothing journaled is asked again", sum(r.kills for r in logged), twice),
        row(
            "audits end after kills, by audit or resume",
            len(runs),
            sum(stuck.values()),
            "; ".join(stuck),
        ),
        row("audits end with the undisturbed certificate", len(runs), len(runs) - same),
        row("signals while asking say how to go on", signals, signals - told),
    ]


def row(what: str, tried: int, lost: int, note: str = "") -> Row:
    return {
        "what": what,
        "tried": tried,
        "survived": max(0, tried - lost),
        "lost": lost,
        "note": note,
    }


class Turn:
    """One audit that is disturbed up to three times and then left to end."""

    def __init__(self, kind: Kind, spec: Path, run: Path, seconds: float) -> None:
        self.kind, self.spec, self.run, self.seconds = kind, spec, run, seconds
        self.log = run.with_suffix(".log")
        self.journal = run / "journal.db"

    def disturb(self, whole: Row, rng: np.random.Generator) -> Disturbed:
        """Kill an audit at random moments, and compare its end with the undisturbed ``whole``."""
        found = Disturbed()
        for _ in range(int(rng.integers(1, 4))):
            how = SIGNALS[int(rng.integers(len(SIGNALS)))]
            if not self._struck(found, how, float(rng.uniform(0, self.seconds))):
                break
        ended = self._to_the_end(found)
        found.same = ended.code == 0 and audits.certificate(self.run) == whole
        return found

    def _struck(self, found: Disturbed, how: int, wait: float) -> bool:
        """Run for ``wait`` seconds, then kill. Return False if the audit has ended before."""
        before = self._standing()
        running = self._begin()
        time.sleep(wait)
        alive = running.alive()
        asking = alive and self._asked() > before[1] and not (self.run / "result.json").exists()
        if alive:
            running.signal(how)
            found.kills += 1
        ended = running.ended()
        if how != signal.SIGKILL and asking and ended.code != 0:
            found.signals += 1
            found.told += "resume" in ended.said
        self._compare(found, before, killed=alive)
        return alive

    def _to_the_end(self, found: Disturbed) -> Ended:
        """Resume until the audit ends; begin again if nothing was begun."""
        ended = Ended(1, "", 0.0, 0.0)
        for _ in range(MAX_TURNS):
            before = self._standing()
            ended = self._begin().ended()
            self._compare(found, before, killed=False)
            if ended.code == 0:
                return ended
            if not audits.answered(before[0]) and self.journal.exists():
                ended = self._begin(anew=True).ended()
                self._compare(found, before, killed=False)
                if ended.code == 0:
                    return ended
            if audits.answered(self._standing()[0]) == audits.answered(before[0]):
                break  # not one step further: it will not go on tomorrow either
        found.stuck = ended.said.strip().splitlines()[-1][-160:] if ended.said.strip() else "silent"
        return ended

    def _begin(self, anew: bool = False) -> Running:
        command = ["audit", str(self.spec), "--out", str(self.run)]
        if self.journal.exists() and not anew:
            command = ["resume", str(self.run)]
        return audits.started(command, **{ASKED: str(self.log)})

    def _standing(self) -> tuple[Tables, int]:
        """Return the journal's rows, and the number of the model's invocations."""
        return readable(self.journal), len(audits.asked(self.log))

    def _asked(self) -> int:
        if self.kind.logs:
            return len(audits.asked(self.log))
        return audits.answered(readable(self.journal))

    def _compare(self, found: Disturbed, before: tuple[Tables, int], *, killed: bool) -> None:
        """Return lost rows, and images that were asked without being journaled or in the open
        batch."""
        rows, _ = self._standing()
        found.lost += sum(len(kept - rows.get(table, set())) for table, kept in before[0].items())
        batches = audits.asked(self.log)[before[1] :]
        under_way = batches[-1] if killed and batches else 0
        new = audits.answered(rows) - audits.answered(before[0])
        found.twice += max(0, sum(batches) - under_way - new) if self.kind.logs else 0


def readable(journal: Path) -> Tables:
    """Return the rows of a journal; {} if there is none yet, or none that can be read."""
    try:
        return audits.tables(journal)
    except sqlite3.Error:
        return {}


# -- an endpoint with faults and calls in flight ----------------------------------------------


def serve(port: Any, folder: str) -> None:
    """Serve a demo endpoint that recognises the folder's concepts, in its own process."""
    concepts = (Path(folder) / "labels.csv").read_text().splitlines()[0].split(",")[1:]
    faults = Behaviour(latency=PAUSE, spread=0.5, limited=0.03, broken=0.03, retry_after=0.05)
    with DemoServer(DemoModel(concepts), faults) as server:
        port.send(server.port)
        signal.pause()


@contextmanager
def endpoint(folder: Path) -> Iterator[str]:
    """Yield the address of such an endpoint."""
    audits.write_folder(folder, audits.everything(), budget=BUDGET)
    with served(serve, str(folder)) as url:
        yield url


def chat(url: str) -> Kind:
    """Return an audit of that endpoint, with eight calls in flight."""
    model = "\n".join(
        [
            'kind = "openai"',
            f'url = "{url}/v1"',
            'model = "demo-endoscopist"',
            "in_flight = 8",
            "timeout = 5.0",
            "max_tokens = 32",
            "max_input_tokens = 400",
            "price_input = 2.5",
            "price_output = 10.0",
        ]
    )
    return Kind("endpoint", model, logs=False)


# -- while an audit is running ----------------------------------------------------------------


def concurrent(folder: Path, times: int) -> list[Row]:
    """Try a second writer, a reader, and a deleted journal, with audits that are running."""
    spec = audits.write_folder(
        folder / "concurrent", audits.everything(), budget=BUDGET, pause=0.05
    )
    second = sum(not refused(spec, folder / f"second-{n}", n) for n in range(times))
    read = sum(not read_meanwhile(spec, folder / f"read-{n}", n) for n in range(times))
    gone = sum(not deleted(spec, folder / f"deleted-{n}", n) for n in range(times))
    return [
        row("a second writer is refused, the first undisturbed", times, second),
        row("a running audit can be reported on", times, read),
        row("a journal deleted while the audit runs: exit 2, answers saved", times, gone),
    ]


def refused(spec: Path, run: Path, number: int) -> bool:
    """Return whether ``resume`` of a running audit is refused and asks nothing."""
    running, log = under_way(spec, run, 2 + number), run.with_suffix(".second")
    second = audits.ran(["resume", str(run)], **{ASKED: str(log)})
    first = running.ended()
    once = sum(audits.asked(run.with_suffix(".log"))) == BUDGET
    named = str(running.pid) in second.said
    return second.code == 2 and named and not audits.asked(log) and first.code == 0 and once


def read_meanwhile(spec: Path, run: Path, number: int) -> bool:
    """Return whether ``report`` of a running audit works, and the audit ends as usual."""
    running = under_way(spec, run, 2 + number)
    reading = audits.ran(["report", str(run)])
    first = running.ended()
    return reading.code == 0 and first.code == 0 and audits.ran(["verify", str(run)]).code == 0


def deleted(spec: Path, run: Path, number: int) -> bool:
    """Return whether an audit with a deleted journal reports it and saves its answers."""
    running = under_way(spec, run, 2 + number)
    for path in run.glob("journal.db*"):
        path.unlink()
    ended = running.ended()
    made = len(audits.asked(run.with_suffix(".log")))
    saved = [audits.answered(readable(path)) for path in run.glob("*") if _is_journal(path)]
    return ended.code == 2 and not ended.crashed and max(saved, default=0) >= made


def _is_journal(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[:15] == b"SQLite format 3"


def under_way(spec: Path, run: Path, calls: int) -> Running:
    """Yield an audit that has just made this number of calls."""
    log = run.with_suffix(".log")
    running = audits.started(["audit", str(spec), "--out", str(run)], **{ASKED: str(log)})
    while running.alive() and len(audits.asked(log)) < calls:
        time.sleep(0.005)
    return running
