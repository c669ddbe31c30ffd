"""A real audit in another process that runs for as long as a test needs it."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.results.runs import read_run
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

LIMITS = {"budget": 90, "half_width": 0.05, "targets": ["overall", "relations"]}
PACE = 0.5
"""Seconds per answer until the audit is hurried, so that it lasts longer than any test."""


class Waiting(ScriptedModel):
    """Model that answers slowly, and at once when the file ``go`` exists."""

    def __init__(self, go: Path) -> None:
        super().__init__(refuse=0.1)
        self.go = go

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        end = time.monotonic() + PACE
        while not self.go.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return super().ask(prompts)


def small_space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(16, 2), ["identity", "gaussian_noise"])


@dataclass
class Watched:
    """An audit in ``folder``, run by the process ``pid``."""

    folder: Path
    pid: int

    def hurry(self) -> None:
        """Let the audit run to its end at once."""
        (self.folder.parent / "go").touch()
        self.end = os.waitpid(self.pid, 0)[1]
        self.pid = 0

    def kill(self) -> None:
        """Kill the process."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


@contextmanager
def watched(folder: Path, seed: int = 1) -> Iterator[Watched]:
    """Yield an audit that is running in ``folder``, and kill it in the end."""
    folder.mkdir(parents=True)
    child = os.fork()
    if child == 0:
        try:
            model = Waiting(folder.parent / "go")
            path = folder / "journal.db"
            with Audit(small_space(), model, journal=path, seed=seed, **LIMITS) as audit:  # type: ignore[arg-type]
                audit.run()
            os._exit(0)
        finally:
            os._exit(1)
    running = Watched(folder, child)
    try:
        until(lambda: read_run(folder).calls > 1)
        yield running
    finally:
        running.kill()


def until(check: object, seconds: float = 60.0) -> None:
    """Wait until the function ``check`` returns something true."""
    end = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
