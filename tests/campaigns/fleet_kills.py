"""``avtt fleet`` over the loopback endpoint of ``serve-demo``, of which processes, the fleet's own
among them, are killed with SIGKILL at random moments; resumed until it ends. The server keeps the
bill.

    python -m tests.campaigns.fleet_kills [--quick] [--kills 50] [--out bench]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_vtt.audit.fleet import FLEET
from adaptive_vtt.audit.fleet.broker import Member, read_fleet_db
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.demo import phantom
from adaptive_vtt.demo.server import Behaviour, DemoModel, DemoServer
from adaptive_vtt.errors import JournalError
from adaptive_vtt.experiments.engine.endpoints import bill
from adaptive_vtt.experiments.engine.killed_audits import served
from adaptive_vtt.experiments.program import Row, options, told
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_lost
from adaptive_vtt.journal.files import JOURNAL
from adaptive_vtt.journal.rows import CallRow
from adaptive_vtt.utils.files import write_text

FRAMES, SIDE = 60, 64
HALF_WIDTHS = {"wide": 0.3, "middle": 0.25, "narrow": 0.2}
CAP = 1.0
SPEC = """[dataset]
kind = "phantom"
count = {count}
size = {size}
concepts = ["polyp", "instrument"]
[space]
relations = ["identity", "gaussian_noise"]
[model]
kind = "openai"
url = "{url}/v1"
model = "demo-endoscopist"
timeout = 5.0
retries = 1
in_flight = 4
max_input_tokens = 600
max_tokens = 64
price_input = 25.0
price_output = 100.0
[audit]
candidates = 256
[certify]
half_width = 0.2
targets = ["overall"]
surrogate = false
"""
"""Prices are ten times those of a provider, so that caps are numbers easy to read."""
MEMBER = """[[member]]
spec = "SPEC.toml"
name = "{name}"
set.certify.half_width = {half_width}
"""
TURNS = 60


def serve(port: Any, behaviour: Behaviour) -> None:
    """A server process: puts its port into the pipe and serves until it is ended."""
    frames = phantom(FRAMES, size=SIDE, concepts=["polyp", "instrument"])
    with DemoServer(DemoModel(frames, error=0.2, worse=0.2), behaviour) as server:
        port.send(server.port)
        signal.pause()


def write_fleet(folder: Path, url: str, cap: float) -> Path:
    """A FLEET.toml of three members that ask the endpoint at ``url``."""
    write_text(folder / "SPEC.toml", SPEC.format(count=FRAMES, size=SIDE, url=url))
    members = [MEMBER.format(name=n, half_width=w) for n, w in HALF_WIDTHS.items()]
    text = f"[fleet]\nmax_cost = {cap}\nat_a_time = 2\n" + "".join(members)
    write_text(folder / "FLEET.toml", text)
    return folder / "FLEET.toml"


def charged_by(url: str) -> tuple[float, int]:
    """What the server charged for all it answered, at the prices of the spec, and how many
    answers those were."""
    said = bill(url)
    charged = said["prompt_tokens"] * 25.0 + said["completion_tokens"] * 100.0
    return float(charged) / 1e6, int(said["answered"])


def kills(wanted: int) -> list[Row]:
    """Fleets that are killed until ``wanted`` kills were made, each resumed to its end."""
    rng, made = np.random.default_rng(5), 0
    rows: list[Row] = []
    while made < wanted:
        with (
            tempfile.TemporaryDirectory() as scratch,
            served(serve, Behaviour(latency=0.05, truncated=0.05, limited=0.05)) as url,
        ):
            path = write_fleet(Path(scratch), url, CAP * (1 + len(rows) % 3))
            found = disturbed(path, min(wanted - made, 10), rng)
            made += found["kills"]
            rows.append({"fleet": len(rows), **found, **judged(path, url)})
    return rows


def disturbed(path: Path, most: int, rng: np.random.Generator) -> Row:
    """Runs the fleet, killing a member or the fleet's own process at random moments."""
    out, done, turns = path.parent / "out", 0, 0
    while turns < TURNS:
        running = started(path, out, resume=leased(out))
        turns += 1
        while running.poll() is None:
            time.sleep(float(rng.uniform(0.1, 1.0)))
            if done >= most or running.poll() is not None or not asking(out):
                continue
            pids = members_of(running.pid)
            if not pids:
                continue
            pid = running.pid if rng.random() < 0.2 else int(rng.choice(pids))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            done += 1
        code = running.wait()
        if code == 0:
            break
    return {"kills": done, "runs": turns, "code": code}


def started(path: Path, out: Path, *, resume: bool) -> "subprocess.Popen[bytes]":
    """``avtt fleet`` in a process of its own."""
    run = "from adaptive_vtt.cli import main; main()"
    words = [sys.executable, "-c", run, "fleet", str(path), "--out", str(out)]
    log = (path.parent / "log.txt").open("ab")
    with log:
        return subprocess.Popen([*words, *["--resume"] * resume], stdout=log, stderr=log)


def asking(out: Path) -> bool:
    """Whether any member has calls on their way."""
    return any(member.state == "asking" for member in members(out))


def leased(out: Path) -> bool:
    """Whether any member leased anything."""
    return any(member.money > 0 for member in members(out))


def members(out: Path) -> list[Member]:
    """The members' rows; none where no fleet was begun yet."""
    if (out / FLEET).exists():
        with suppress(JournalError):  # it is being made
            return read_fleet_db(out / FLEET)[1]
    return []


def members_of(parent: int) -> list[int]:
    """The processes that another started, on Linux."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def judged(path: Path, url: str) -> Row:
    """What the server charged, the broker holds and the journals tell; whether all agree."""
    out, (charged, answered) = path.parent / "out", charged_by(url)
    cap = float(re.findall(r"max_cost = (\S+)", path.read_text())[0])
    held, spent, known, lost, verified = members(out), 0.0, 0, 0, 0
    for member in held:
        with closing(read_journal(out / member.name / JOURNAL)) as journal:
            verify(journal)
            verified += 1
            spent += sum(call.cost for call in journal.calls())
            known += sum(_is_answered(call) for call in journal.calls())
            lost += read_lost(journal.facts()).interrupted
    return {
        "cap": cap,
        "charged": round(charged, 4),
        "journaled": round(spent, 4),
        "held": round(sum(m.money for m in held), 4),
        "kept": charged <= sum(m.money for m in held) + 1e-9 <= cap + 2e-9,
        "calls lost": lost,
        "answered twice": answered - known,
        "verified": verified,
        "certified": sum(m.figures.get("certified", 0) for m in held),
    }


def _is_answered(call: CallRow) -> bool:
    """Whether the server answered; else attempts failed until the model gave up."""
    return not all(answer.unanswered for answer in call.answers)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={"kills": 3}, kills=50)
    told(kills(chosen.kills), chosen.out / "fleet_kills.csv")


if __name__ == "__main__":
    main()
