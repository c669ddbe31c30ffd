"""``avtt report``: the report and result anew, from the journal; the page of a census."""

import shlex
from typing import Annotated

import typer

from ..audit.inspection import read_result
from ..errors import InputError
from ..results.census import holds_census, write_page
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
            "perturbation and concept.",
            flags="--tables",
        ),
    ] = False,
    open_it: Open = False,
) -> None:
    """Write report.html and result.json again from the journal.

    In the folder of a census: census.html, from census.json.

    Example: avtt report runs/first
    """
    if holds_census(directory):
        if plotly != "inline":
            raise InputError(f"--plotly: expected inline, for a census's page, got {plotly!r}")
        page = write_page(directory)  # its tables are there already
        typer.echo(f"wrote {page}; not verified: 'avtt census' checks its seals")
    else:
        page = rewrite(directory, plotly)
        if tables:
            write_tables(directory, read_result(directory).tables(), FOR_PAPER)
            typer.echo(f"wrote {directory / TABLES}")
        typer.echo(f"wrote {page}; not verified: 'avtt verify {shlex.quote(str(directory))}' does")
    if open_it:
        open_report(page)
