"""``avtt report``: the report and result anew, from the journal."""

import shlex

import typer

from .browser import open_report
from .options import Open, Plotly, RunDir


def report(directory: RunDir, plotly: Plotly = "inline", open_it: Open = False) -> None:
    """Write report.html and result.json anew, from the journal alone, which is not verified.

    Example: avtt report runs/first
    """
    from .run_folder import rewrite

    page = rewrite(directory, plotly)
    typer.echo(f"wrote {page}; not verified: 'avtt verify {shlex.quote(str(directory))}' does")
    if open_it:
        open_report(page)
