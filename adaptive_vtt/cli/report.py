"""``avtt report``: write the report and result again from the journal."""

import shlex
from pathlib import Path

import typer

from ..audit.inspection import read_result
from ..results.result import FOR_PAPER
from ..utils.tables import TABLES, write_tables
from .run_folder import open_report, rewrite


def report(
    directory: Path, *, plotly: str = "inline", tables: bool = False, open_: bool = False
) -> None:
    """Write report.html and result.json again from the journal.

    Example: avtt report runs/first

    Args:
        tables: Write tables/NAME.csv and .tex, too: targets, derived figures, and rates per
            perturbation and concept.
    """
    page = rewrite(directory, plotly)
    if tables:
        write_tables(directory, read_result(directory).tables(), FOR_PAPER)
        typer.echo(f"wrote {directory / TABLES}")
    typer.echo(f"wrote {page}; 'avtt verify {shlex.quote(str(directory))}' checks every figure")
    if open_:
        open_report(page)
