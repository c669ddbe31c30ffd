"""The report: one HTML page that stands alone, rebuilt from the journal and nothing else."""

from pathlib import Path

from ..journal import Journal

__all__ = ["render", "write_report"]


def render(journal: Journal) -> str:
    """The page as a string. Raises JournalError for a journal that holds no audit."""
    from .page import render

    return render(journal)


def write_report(journal: Journal, path: Path) -> None:
    """Writes the page to ``path``, whole or not at all; raises InputError where it cannot."""
    from .page import write_report

    write_report(journal, path)
