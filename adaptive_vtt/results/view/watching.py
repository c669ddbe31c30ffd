"""The runs of a folder, each with the newest report and intervals that could be made of it."""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...errors import AvttError, one_line
from ...journal import read_journal
from ...journal.files import JOURNAL
from ..runs import Listed, Rates, find, read_rates, read_run

Done = TypeVar("Done")
SAFE = "PYTHONSAFEPATH"
"""The variable that does what python -P does."""
SETTLING = 0.5
"""Seconds in which a process whose pipe is closed ends by itself, so that it has an exit code."""
PAGE = "report.html"
AGAIN = 10.0
"""Seconds after which a failed job is tried again, if it is still asked for."""
KEPT = 2
"""Reports of a run that are kept: a page may still be loading the one before."""


class Worker:
    """A process for slow jobs, one at a time.

    It begins with the first job, and again if it was killed. It ends with its parent, even if that
    is killed, as the other end of its pipe is closed then.

    A job is a function of a module, and its arguments and result can be pickled. ``close`` may be
    called from another thread while a job runs.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # held while a process is begun or ended

    def do(self, job: Callable[..., Done], *arguments: Any) -> Done:
        """Return the job's result. Raise AvttError with a sentence where it fails."""
        try:
            pipe = self._running()
            pipe.send((job, arguments))
            result, failure = pipe.recv()
        except (EOFError, OSError):
            with self._lock:
                code = self._end()
            raise AvttError(
                f"the process that builds pages ended before it was done (exit code {code}); the "
                "terminal of 'avtt view' says why, and the page tries again"
            ) from None
        if failure is not None:
            raise AvttError(failure)
        return result

    def close(self) -> None:
        """End the process for good, even during a job. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._end(0.0)

    def _running(self) -> Connection:
        with self._lock:
            if self._closed:
                raise EOFError
            if self._pipe is None:
                context = get_context("spawn")  # a fork would share locks and threads of a server
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                # "python -c" would take a re.py of the working folder for Python's own
                before, os.environ[SAFE] = os.environ.get(SAFE), "1"
                try:
                    self._process.start()
                finally:
                    del os.environ[SAFE]
                    os.environ |= {} if before is None else {SAFE: before}
                theirs.close()
            return self._pipe

    def _end(self, patience: float = SETTLING) -> int | None:
        """End the process, and return the exit code of one that had ended by itself."""
        process, code = self._process, None
        if process is not None:
            process.join(patience)
            code = process.exitcode
            process.kill()
            process.join()
        self._process = self._pipe = None  # the pipe closes once nobody waits for its answer
        return code


def _serve(pipe: Connection) -> None:
    """Do the jobs that come through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    if hasattr(os, "nice"):
        os.nice(10)  # the audit that is watched comes first
    with suppress(EOFError, OSError):
        while True:
            job, arguments = pipe.recv()
            result, failure = None, None
            try:
                result = job(*arguments)
            except AvttError as error:
                failure = one_line(error)
            except Exception as error:  # a damaged journal may raise anything; the next may not
                failure = f"{type(error).__name__}: {one_line(error)[:300]}"
            pipe.send((result, failure))


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        out: Its folder.
        head: Head of the journal that it was made from.
        calls: Number of calls of that journal.
    """

    out: Path
    head: str
    calls: int


def build_report(run: Path, out: Path) -> Report:
    """Write the report of ``run`` into ``out``. Raise JournalError if the journal cannot be
    read."""
    from ..report import write_report

    with closing(read_journal(run / JOURNAL)) as journal:
        tally, head = journal.tally(), journal.head
        write_report(journal, out / PAGE)
    return Report(out, head, tally.draws + tally.sources)


Made = TypeVar("Made", Report, Rates)


class Latest(Generic[Made]):
    """The newest value that a slow job has made from a growing journal.

    A job begins when a value is asked for and the journal has grown. The pause between two jobs is
    as long as a job takes.

    Attributes:
        value: The newest value, or None.
        failure: Why the last job failed, or ""; it is repeated after ``AGAIN`` seconds.
        busy: Whether a job runs.
    """

    def __init__(self, make: Callable[[], Made], pool: Executor) -> None:
        self._make: Callable[[], Made] = make
        self._pool = pool
        self.value: Made | None = None
        self.failure, self.busy = "", False
        self._head: str | None = None
        self._rest_until = 0.0
        self._lock = threading.Lock()

    def ask(self, head: str) -> None:
        """Begin a job if the journal ends at another ``head``, without waiting for it."""
        with self._lock:
            if head != self._head and not self.busy and time.monotonic() >= self._rest_until:
                self.busy = True
                self._pool.submit(self._renew, head)

    def _renew(self, head: str) -> None:
        began, least = time.monotonic(), 0.0
        try:
            self.value, self.failure = self._make(), ""
            head = self.value.head
        except AvttError as error:
            self.failure, head, least = one_line(error), "", AGAIN
        finally:
            with self._lock:
                now = time.monotonic()
                self._head, self.busy = head, False
                self._rest_until = now + max(least, now - began)


class Watch:
    """A run folder or a folder of runs, ``root``, read again whenever something is asked.

    Reports are built one at a time in a separate process, and only while somebody asks.

    Raises:
        InputError: There is no such folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        find(root)
        self._worker, self._pool = Worker(), ThreadPoolExecutor(1)
        self._folder = tempfile.TemporaryDirectory(prefix="avtt-view-")
        self._built: dict[Path, list[Report]] = {}
        self._reports: dict[Path, Latest[Report]] = {}
        self._rates: dict[Path, Latest[Rates]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End running jobs, and remove all reports."""
        self._worker.close()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    @property
    def alone(self) -> bool:
        """True if ``root`` is a run itself."""
        return self.root in find(self.root).values()

    def runs(self) -> list[Listed]:
        """Return all runs, the one that was written last first."""
        listed = [read_run(folder, name) for name, folder in find(self.root).items()]
        return sorted(listed, key=lambda run: -(run.written or 0.0))

    def run(self, name: str) -> Listed | None:
        """Return the run of this name, None if there is none."""
        folder = find(self.root).get(name)
        return None if folder is None else read_run(folder, name)

    def report(self, run: Listed) -> Latest[Report]:
        """Return a run's newest report, and begin another if its journal has grown."""
        with self._lock:
            make = partial(self._build, run.folder)
            latest = self._reports.setdefault(run.folder, Latest(make, self._pool))
        if run.head:
            latest.ask(run.head)
        return latest

    def rates(self, run: Listed) -> Latest[Rates]:
        """Return a run's newest intervals, and begin a job if its journal has grown.

        A run that certifies nothing has none.
        """
        with self._lock:
            make = partial(self._worker.do, read_rates, run.folder)
            latest = self._rates.setdefault(run.folder, Latest(make, self._pool))
        if run.targets:
            latest.ask(run.head)
        return latest

    def page(self, run: Listed, report: str) -> Path | None:
        """Return the page of one of its reports; None if there is none, or it was removed."""
        built = {each.out.name: each.out / PAGE for each in self._built.get(run.folder, [])}
        return built.get(report)

    def _build(self, run: Path) -> Report:
        out = Path(tempfile.mkdtemp(dir=self._folder.name))
        report = self._worker.do(build_report, run, out)
        reports = [*self._built.get(run, []), report]
        for old in reports[:-KEPT]:
            shutil.rmtree(old.out, ignore_errors=True)
        self._built[run] = reports[-KEPT:]
        return report
