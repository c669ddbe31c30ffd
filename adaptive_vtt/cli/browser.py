"""The report in the browser, for those who ask for it."""

import webbrowser
from pathlib import Path

import typer


def open_report(report: Path) -> None:
    """Opens it, or says that there is no browser."""
    try:
        opened = webbrowser.open(report.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        typer.echo(f"avtt: no browser was found; open {report.resolve()} in one", err=True)
