"""``avtt report``: the report and result anew, from the journal."""

import shlex

import typer

from .options import Open, Plotly, RunDir
from .run_folder import open_report, rewrite


def report(directory: RunDir, plotly: Plotly = "inline", open_it: Open = False) -> None:
    """Write report.html and result.json anew from the journal, which is not verified.

    Example: avtt report runs/first
    """
    page = rewrite(directory, plotly)
    typer.echo(f"wrote {page}; not verified: 'avtt verify {shlex.quote(str(directory))}' does")
    if open_it:
        open_report(page)
