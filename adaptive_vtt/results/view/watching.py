"""The runs of a folder, each with the newest report and intervals that could be made of it."""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ...errors import AvttError, one_line
from ...journal import read_journal
from ...journal.files import JOURNAL
from ..runs import Listed, Rates, find, read_rates, read_run

Done = TypeVar("Done")
SAFE = "PYTHONSAFEPATH"
"""The variable that does what python -P does."""
SETTLING = 0.5
"""Seconds in which a process whose pipe is closed ends by itself, so that it has an exit code."""


class Worker:
    """One process for what takes long, begun with the first job and again where it was killed; one
    job at a time. It ends with the process that began it, however that ends: the only other end of
    its pipe goes with that.

    A job is a function of a module, and its arguments and result can be pickled. ``close`` may
    come from another thread, while a job is done.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # held while a process is begun or ended

    def do(self, job: Callable[..., Done], *arguments: Any) -> Done:
        """The job's result. Raises AvttError, in a sentence, where it could not be done."""
        try:
            pipe = self._running()
            pipe.send((job, arguments))
            done, told = pipe.recv()
        except (EOFError, OSError):
            with self._lock:
                code = self._end()
            raise AvttError(
                f"the process that builds pages ended before it was done (exit code {code}); the "
                "terminal of 'avtt view' says why, and the page tries again"
            ) from None
        if told is not None:
            raise AvttError(told)
        return done

    def close(self) -> None:
        """Ends the process for good, whatever it does. A second call does nothing."""
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
                with _standard_modules_first():
                    self._process.start()
                theirs.close()
            return self._pipe

    def _end(self, patience: float = SETTLING) -> int | None:
        """Ends the process, and gives the exit code of one that had ended by itself."""
        process, code = self._process, None
        if process is not None:
            process.join(patience)
            code = process.exitcode
            process.kill()
            process.join()
        self._process = self._pipe = None  # the pipe closes once nobody waits for its answer
        return code


@contextmanager
def _standard_modules_first() -> Iterator[None]:
    """Processes that are begun here take no ``re.py`` of the folder they are begun in for Python's.

    They are started by "python -c", which looks there first unless it is told not to.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        else:
            os.environ[SAFE] = before


def _serve(pipe: Connection) -> None:
    """Does what comes through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    if hasattr(os, "nice"):
        os.nice(10)  # the audit that is watched goes first
    with suppress(EOFError, OSError):
        while True:
            job, arguments = pipe.recv()
            pipe.send(_outcome(job, arguments))


def _outcome(job: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    try:
        return job(*arguments), None
    except AvttError as error:
        return None, one_line(error)
    except Exception as error:  # a damaged journal may raise anything; the next one is asked for
        return None, f"{type(error).__name__}: {one_line(error)[:300]}"


# -- made in the background ------------------------------------------------------------------------


class OfJournal(Protocol):
    """Whatever was made of a journal as it was when ``head`` was its end."""

    @property
    def head(self) -> str: ...


AGAIN = 10.0
"""Seconds after which what failed is tried again, if somebody still asks."""
Made = TypeVar("Made", bound=OfJournal)


class Latest(Generic[Made]):
    """Made when somebody asks and the journal has grown; between two, at least as long as it took.

    ``value`` is the last that could be made, or None; ``failure`` says why the last try failed,
    else "", and there is another after ``AGAIN``. ``busy``: whether one is under way.
    """

    def __init__(self, make: Callable[[], Made], pool: Executor) -> None:
        self._make, self._pool = make, pool
        self.value: Made | None = None
        self.failure, self.busy = "", False
        self._head: str | None = None
        self._rest_until = 0.0
        self._lock = threading.Lock()

    def ask(self, head: str) -> None:
        """Begins a newer one where the journal ends at another ``head``; waits for nothing."""
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


# -- reports ---------------------------------------------------------------------------------------


PAGE = "report.html"


@dataclass(frozen=True)
class Report:
    """A report in the folder ``out``, of the journal up to ``head``, after ``calls`` calls.

    ``files``: what the folder holds, by the name that the page knows it by.
    """

    out: Path
    head: str
    calls: int
    files: dict[str, Path]

    @property
    def name(self) -> str:
        """What tells it from every other report of this server."""
        return self.out.name

    def remove(self) -> None:
        """Deletes its folder."""
        shutil.rmtree(self.out, ignore_errors=True)


def build_report(run: Path, out: Path) -> Report:
    """Writes the report of ``run`` into ``out``. Raises JournalError where the journal cannot be
    read."""
    from ..report import write_report

    with closing(read_journal(run / JOURNAL)) as journal:
        tally, head = journal.tally(), journal.head
        write_report(journal, out / PAGE)
    files = {p.relative_to(out).as_posix(): p for p in out.rglob("*") if p.is_file()}
    return Report(out, head, tally.draws + tally.sources, files)


# -- runs ------------------------------------------------------------------------------------------


KEPT = 2
"""Reports of a run that are kept: a page may still be loading the one before."""


class Watch:
    """``root``: a run folder or a folder of runs, looked at anew whenever something is asked.

    Reports are built one at a time in a process of their own, and only while somebody asks.
    Raises InputError where there is no such folder.
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
        """Ends whatever is being built, and removes what was."""
        self._worker.close()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    @property
    def alone(self) -> bool:
        """Whether ``root`` is a run itself."""
        return self.root in find(self.root).values()

    def runs(self) -> list[Listed]:
        """All runs, the one that was written last first."""
        found = [read_run(folder, name) for name, folder in find(self.root).items()]
        return sorted(found, key=lambda run: -(run.written or 0.0))

    def run(self, name: str) -> Listed | None:
        """The run of this name, None where there is none."""
        folder = find(self.root).get(name)
        return None if folder is None else read_run(folder, name)

    def report(self, run: Listed) -> Latest[Report]:
        """Its newest report; where the journal has grown since, the next one is begun."""
        with self._lock:
            latest = self._reports.setdefault(
                run.folder, Latest(partial(self._build, run.folder), self._pool)
            )
        if run.head:
            latest.ask(run.head)
        return latest

    def file(self, run: Listed, report: str, name: str) -> Path | None:
        """A file of one of its reports; None where there is none, or none any more."""
        built = {each.name: each.files for each in self._built.get(run.folder, [])}
        return built.get(report, {}).get(name)

    def rates(self, run: Listed) -> Latest[Rates]:
        """Its newest intervals, as ``report``; a run that certifies nothing has none."""
        with self._lock:
            make = partial(self._worker.do, read_rates, run.folder)
            latest = self._rates.setdefault(run.folder, Latest(make, self._pool))
        if run.targets:
            latest.ask(run.head)
        return latest

    def _build(self, run: Path) -> Report:
        out = Path(tempfile.mkdtemp(dir=self._folder.name))
        report = self._worker.do(build_report, run, out)
        kept = [*self._built.get(run, []), report]
        for old in kept[:-KEPT]:
            old.remove()
        self._built[run] = kept[-KEPT:]
        return report
