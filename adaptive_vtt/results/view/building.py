"""A report built beside the audit that is under way."""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ...journal import read_journal
from ...journal.files import JOURNAL

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
