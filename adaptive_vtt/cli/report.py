"""``avtt report``: the report and result anew, from the journal."""

import shlex
from typing import Annotated

import typer

from ..audit.inspection import read_result
from ..results.result import FOR_PAPER
from ..utils.tables import TABLES, write_tables
from .options import Open, Plotly, RunDir, opt
from .run_folder import open_report, rewrite


def report(
    directory: RunDir,
    plotly: Plotly = "inline",
    tables: Annotated[
        bool,
        opt(
            "Also tables/NAME.csv and .tex: targets, derived figures, and all per "
            "perturbation and concept."
        ),
    ] = False,
    open_it: Open = False,
) -> None:
    """Write report.html and result.json again from the journal.

    Example: avtt report runs/first
    """
    page = rewrite(directory, plotly)
    if tables:
        write_tables(directory, read_result(directory).tables(), FOR_PAPER)
        typer.echo(f"wrote {directory / TABLES}")
    typer.echo(f"wrote {page}; not verified: 'avtt verify {shlex.quote(str(directory))}' does")
    if open_it:
        open_report(page)
