"""Follow the runs of a folder: keep the newest report and the newest intervals of each.

``Watch`` reads the folder. It has a ``Latest`` for each report and for the intervals of each run,
and both send their slow jobs to one ``Worker``, a separate process.
"""

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
"""The environment variable with the effect of python -P."""
PATIENCE = 0.5
"""Seconds that a process has to end by itself, after which it is killed."""
PAGE = "report.html"
RETRY_AFTER = 10.0
"""Seconds from a failed job to the next attempt, which is made if its value is still asked for."""
KEPT = 2
"""Number of reports of a run that are kept, as a page may still be loading the older one."""


class Worker:
    """A separate process that does slow jobs, one at a time.

    The process is started for the first job, and again if it was killed. It ends when its parent
    ends, however that happens, because that closes the pipe between them.

    A job is a function at the top of a module. Its arguments and its result are pickled. ``close``
    may be called from another thread while a job runs.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # held while the process is started or ended

    def do(self, job: Callable[..., Done], *arguments: Any) -> Done:
        """Return the job's result. Raise AvttError with a sentence if it fails."""
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
        """End the process, even during a job, and start no other. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._end(0.0)

    def _running(self) -> Connection:
        """Return the pipe to the process, which is started if necessary."""
        with self._lock:
            if self._closed:
                raise EOFError
            if self._pipe is None:
                context = get_context("spawn")  # a fork would share locks and threads of a server
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                # without it, "python -c" imports a re.py of the working folder in place of Python's
                before, os.environ[SAFE] = os.environ.get(SAFE), "1"
                try:
                    self._process.start()
                finally:
                    del os.environ[SAFE]
                    os.environ |= {} if before is None else {SAFE: before}
                theirs.close()
            return self._pipe

    def _end(self, patience: float = PATIENCE) -> int | None:
        """End the process, and return its exit code if it ended by itself within ``patience``."""
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the server ends this process
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
            except Exception as error:  # reading a damaged journal may raise anything
                failure = f"{type(error).__name__}: {one_line(error)[:300]}"
            pipe.send((result, failure))


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Attributes:
        out: Its folder.
        head: Head of the journal when it was read.
        calls: Number of calls in the journal by then.
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
    """The newest value that a slow job made from a journal, which grows.

    A job is started when a value is asked for and the journal has grown. After a job there is a
    pause that is as long as the job was.

    Args:
        make: The job. It returns a value with the head of the journal that it read.
        pool: The executor of jobs.

    Attributes:
        value: The newest value, or None.
        failure: Why the last job failed, or "". A failed job is repeated after RETRY_AFTER seconds.
        busy: Whether a job is running.
    """

    def __init__(self, make: Callable[[], Made], pool: Executor) -> None:
        self._make: Callable[[], Made] = make
        self._pool = pool
        self.value: Made | None = None
        self.failure, self.busy = "", False
        self._head: str | None = None
        self._pause_until = 0.0
        self._lock = threading.Lock()

    def ask(self, head: str) -> None:
        """Start a job if ``head``, the journal's, is not that of the last job. Do not wait."""
        with self._lock:
            if head != self._head and not self.busy and time.monotonic() >= self._pause_until:
                self.busy = True
                self._pool.submit(self._renew, head)

    def _renew(self, head: str) -> None:
        """Do the job, and note the head that it read, or "" if it failed."""
        start, pause = time.monotonic(), 0.0
        try:
            self.value, self.failure = self._make(), ""
            head = self.value.head
        except AvttError as error:
            self.failure, head, pause = one_line(error), "", RETRY_AFTER
        finally:
            with self._lock:
                end = time.monotonic()
                self._head, self.busy = head, False
                self._pause_until = end + max(pause, end - start)


class Watch:
    """The runs of a folder, read again at each call.

    Reports are built one at a time in a separate process, and only if they are asked for.

    Args:
        root: A run folder or a folder of runs.

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
        """End jobs and remove all reports."""
        self._worker.close()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    @property
    def alone(self) -> bool:
        """True if ``root`` is a run itself."""
        return self.root in find(self.root).values()

    def runs(self) -> list[Listed]:
        """Return all runs, the most recently written one first."""
        listed = [read_run(folder, name) for name, folder in find(self.root).items()]
        return sorted(listed, key=lambda run: -(run.written or 0.0))

    def run(self, name: str) -> Listed | None:
        """Return the run of this name, None if there is none."""
        folder = find(self.root).get(name)
        return None if folder is None else read_run(folder, name)

    def report(self, run: Listed) -> Latest[Report]:
        """Return a run's newest report, and start to build another if its journal has grown."""
        with self._lock:
            make = partial(self._build, run.folder)
            latest = self._reports.setdefault(run.folder, Latest(make, self._pool))
        if run.head:
            latest.ask(run.head)
        return latest

    def rates(self, run: Listed) -> Latest[Rates]:
        """Return a run's newest intervals, and start to compute others if its journal has grown.

        A run without targets has none.
        """
        with self._lock:
            make = partial(self._worker.do, read_rates, run.folder)
            latest = self._rates.setdefault(run.folder, Latest(make, self._pool))
        if run.targets:
            latest.ask(run.head)
        return latest

    def page(self, run: Listed, report: str) -> Path | None:
        """Return the file of a run's report by its name, None if it does not exist any more."""
        pages = {built.out.name: built.out / PAGE for built in self._built.get(run.folder, [])}
        return pages.get(report)

    def _build(self, run: Path) -> Report:
        """Build a report of a run, and remove all but its newest ones."""
        out = Path(tempfile.mkdtemp(dir=self._folder.name))
        report = self._worker.do(build_report, run, out)
        reports = [*self._built.get(run, []), report]
        for old in reports[:-KEPT]:
            shutil.rmtree(old.out, ignore_errors=True)
        self._built[run] = reports[-KEPT:]
        return report
