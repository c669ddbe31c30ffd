"""A real audit in another process that goes on for as long as a test wants it to."""

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
"""Seconds per answer while nobody hurries it: all of them last longer than any test."""


class Waiting(ScriptedModel):
    """Answers at once where the file ``go`` stands, else slowly."""

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
    """``folder``: where it runs; ``pid``: of the process."""

    folder: Path
    pid: int

    def hurry(self) -> None:
        """From now on it answers at once, and comes to its end."""
        (self.folder.parent / "go").touch()
        self.end = os.waitpid(self.pid, 0)[1]
        self.pid = 0

    def kill(self) -> None:
        """Ends the process as it stands."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


@contextmanager
def watched(folder: Path, seed: int = 1) -> Iterator[Watched]:
    """An audit that is under way in ``folder``; killed in the end where it is still there."""
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
    """Waits until the function ``check`` finds something."""
    end = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)
