"""The audits that the resilience campaign disturbs, and how it runs them.

Every audit runs by the command line in a forked process of its own, as a user's would: what is
known of it afterwards is its exit code, what it printed, the files it left, and what the model
noted in a log. The journal is read with plain SQLite, whatever its tables are called, so that
the campaign does not share the code that it tries.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from adaptive_vtt.cli import main as avtt
from adaptive_vtt.utils.files import write_text

ASKED = "AVTT_CAMPAIGN_ASKED"
"""The environment variable that names the log of a Python model."""
LATE = (
    "httpx",
    "openai",
    "plotly.graph_objects",
    "torch",
    "torch.fx.experimental.symbolic_shapes",
    "adaptive_vtt.audit",
    "adaptive_vtt.cli.progress",
    "adaptive_vtt.cli.run_folder",
    "adaptive_vtt.models.network.http_json",
    "adaptive_vtt.models.network.openai",
    "adaptive_vtt.results.report.page",
    "adaptive_vtt.config.building",
)
"""Modules that commands import when they need them: a second or more of every run."""
PATIENCE = 120.0
"""Seconds after which a process that has not ended counts as hanging, and is killed."""
MODEL = '''"""A model that errs, takes its time, and notes every call."""

import os
import time


def note(images):
    time.sleep({pause})
    with open(os.environ["{log}"], "a") as log:
        log.write(f"{{len(images)}}\\n")


def light(image):
    return [min(1.0, float(image.mean()) / 128), float(image.max() > 200)]


def everything(images):
    note(images)
    return [light(image) for image in images]


class One:
    """One question per call."""

    answers = "one"
    name = "one"

    def ask(self, prompts):
        from adaptive_vtt.models import Answer

        note(prompts)
        places = {{"bright": 0, "round": 1}}
        return [Answer((light(p.image)[places[p.concepts[0]]],)) for p in prompts]


one = One()
'''
SPEC = """\
[dataset]
labels = "labels.csv"
images = "images"

[model]
{model}

[space]
relations = ["identity", "gaussian_noise", "rotation"]

[oracle]
kind = "{oracle}"

[audit]
budget = {budget}
candidates = 64
seed = 20261122
{audit}

[certify]
half_width = 0.05
targets = ["overall", "relations"]
surrogate = false
"""


# -- folders to audit -------------------------------------------------------------------------


class Kind(NamedTuple):
    """One kind of audit: its [model] section, its oracle, and whether its model keeps a log."""

    name: str
    model: str
    oracle: str = "correctness"
    logs: bool = True
    audit: str = ""


def everything() -> Kind:
    return Kind("all", 'target = "model.py:everything"')


def python_kinds() -> list[Kind]:
    """Return audits of Python models: all answers of an image, one per call, and source answers."""
    return [
        everything(),
        Kind("one", 'target = "model.py:one"'),
        Kind("sources", 'target = "model.py:everything"', oracle="consistency"),
    ]


def write_folder(folder: Path, kind: Kind, *, budget: int, pause: float = 0.0) -> Path:
    """Write a folder with images, model and SPEC.toml, and return the path of the SPEC.toml."""
    if not folder.exists():
        quietly(["init", str(folder)])
    write_text(folder / "model.py", MODEL.format(pause=pause, log=ASKED))
    spec = folder / f"{kind.name}.toml"
    write_text(
        spec, SPEC.format(model=kind.model, oracle=kind.oracle, budget=budget, audit=kind.audit)
    )
    return spec


# -- running the command line -----------------------------------------------------------------


@dataclass
class Ended:
    """Exit code of a process (minus the signal that killed it), its output, and its peak memory."""

    code: int
    said: str
    megabytes: float
    seconds: float
    hung: bool = False

    @property
    def crashed(self) -> bool:
        """Whether it ended with a traceback or by a signal that it was not sent."""
        return "Traceback" in self.said or self.code not in (0, 1, 2, 3, 4, 130)


@dataclass
class Running:
    """A process that runs one command."""

    pid: int
    output: Path
    began: float = field(default_factory=time.monotonic)

    def alive(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self) -> Ended:
        """Wait until it ends, and kill it after ``PATIENCE`` further seconds."""
        until, hung = time.monotonic() + PATIENCE, False
        while self.alive():
            if time.monotonic() > until:
                hung = True
                self.signal(signal.SIGKILL)
            time.sleep(0.005)
        _, status, used = os.wait4(self.pid, 0)
        said = self.output.read_text("utf-8", errors="replace")
        self.output.unlink()
        seconds = time.monotonic() - self.began
        return Ended(os.waitstatus_to_exitcode(status), said, used.ru_maxrss / 1024, seconds, hung)


def started(arguments: Sequence[str], **environment: str) -> Running:
    """Start ``avtt`` with these arguments in a forked process that prints into a file."""
    handle, name = tempfile.mkstemp(prefix="avtt-campaign-")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _become(list(arguments), handle, environment)
    os.close(handle)
    return Running(pid, Path(name))


def ran(arguments: Sequence[str], **environment: str) -> Ended:
    """Run ``avtt`` with these arguments to its end."""
    return started(arguments, **environment).ended()


def quietly(arguments: Sequence[str], **environment: str) -> None:
    """Run as ``ran`` does. Raise RuntimeError with the output if the exit code is not 0."""
    ended = ran(arguments, **environment)
    if ended.code:
        raise RuntimeError(f"avtt {' '.join(arguments)}: {ended.code}: {ended.said[-2000:]}")


def _become(arguments: list[str], output: int, environment: Mapping[str, str]) -> NoReturn:
    """Turn this forked process into a run of the command line, with default signals."""
    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        avtt(arguments)
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm_up() -> None:
    """Import the modules that every run needs, so that each fork starts in milliseconds."""
    import torch

    for name in LATE:
        import_module(name)
    torch.set_num_threads(1)


# -- what is left afterwards ------------------------------------------------------------------

Tables = dict[str, set[tuple[Any, ...]]]
"""Rows of a journal by table."""
RECORDED = ("draw", "call", "question", "source")
"""Columns by which a table is known to record draws or answers, which nothing may change."""


def tables(path: Path) -> Tables:
    """The rows that record draws and answers, as SQLite finds them after a crash.

    Read from a copy, so that the journal stays as it was left; {} where there is none.
    """
    with copied(path) as db:
        kept = [name for name in names(db) if set(columns(db, name)) & set(RECORDED)]
        return {name: set(db.execute(f'SELECT * FROM "{name}"')) for name in kept}


@contextmanager
def copied(path: Path) -> Iterator[sqlite3.Connection]:
    """Copy a journal with its write-ahead log; without a journal, return an empty copy."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / path.name
        for suffix in ("", "-wal"):  # not -shm: rebuilt, as after a crash
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        with closing(sqlite3.connect(copy)) as db:
            yield db


def names(db: sqlite3.Connection) -> list[str]:
    """Return the names of a journal's tables."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def answered(rows: Tables) -> int:
    """Return the number of paid answers: calls, and answers about source images."""
    return len(rows.get("calls", ())) + len(rows.get("sources", ()))


def asked(log: Path) -> list[int]:
    """Return the images of each invocation of a model, from its log."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def certificate(run: Path) -> dict[str, Any]:
    """Return the result of an audit, without times, bill and hash chain."""
    result = json.loads((run / "result.json").read_text("utf-8"))
    return {name: result[name] for name in ("targets", "calls", "questions", "stop_reason")}
