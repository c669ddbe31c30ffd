"""``avtt report``: the report and result anew, from the journal."""

import typer

from .options import RunDir


def report(directory: RunDir) -> None:
    """Write report.html and result.json anew, from the journal alone.

    Example: avtt report runs/first
    """
    from .run_folder import rewrite

    typer.echo(f"wrote {rewrite(directory)}")
