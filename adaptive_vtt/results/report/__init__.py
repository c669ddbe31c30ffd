"""The report: one HTML page that stands alone, rebuilt from the journal and nothing else."""

from pathlib import Path

from ...journal import Journal

__all__ = ["render", "write_report"]


def render(journal: Journal, *, plotly: str = "inline") -> str:
    """The page as a string. ``plotly``: plotly.js is "inline", inside it; in its "folder", beside
    it; or loaded from Plotly's own address, "cdn". Raises JournalError for a journal
    that holds no audit."""
    from .page import render

    return render(journal, plotly=plotly)


def write_report(journal: Journal, path: Path, *, plotly: str = "inline") -> None:
    """Writes the page to ``path``, whole or not at all, and for ``plotly="folder"`` plotly.min.js
    beside it; raises InputError where it cannot."""
    from .page import write_report

    write_report(journal, path, plotly)
