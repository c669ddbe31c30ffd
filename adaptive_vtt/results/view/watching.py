"""The runs of a folder, each with the newest report and intervals that could be made of it."""

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ..runs import Rates, Run, find, read_rates, read_run
from .building import Report, build_report
from .latest import Latest
from .worker import Worker

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

    def runs(self) -> list[Run]:
        """All runs, the one that was written last first."""
        found = [read_run(folder, name) for name, folder in find(self.root).items()]
        return sorted(found, key=lambda run: -(run.written or 0.0))

    def run(self, name: str) -> Run | None:
        """The run of this name, None where there is none."""
        folder = find(self.root).get(name)
        return None if folder is None else read_run(folder, name)

    def report(self, run: Run) -> Latest[Report]:
        """Its newest report; where the journal has grown since, the next one is begun."""
        with self._lock:
            latest = self._reports.setdefault(
                run.folder, Latest(partial(self._build, run.folder), self._pool)
            )
        if run.head:
            latest.ask(run.head)
        return latest

    def file(self, run: Run, report: str, name: str) -> Path | None:
        """A file of one of its reports; None where there is none, or none any more."""
        built = {each.name: each.files for each in self._built.get(run.folder, [])}
        return built.get(report, {}).get(name)

    def rates(self, run: Run) -> Latest[Rates]:
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
