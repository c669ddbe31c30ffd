"""``avtt view``: show runs in the browser while they continue."""

import threading
import webbrowser
from pathlib import Path

import typer

from ..results.view import View


def view(directory: Path, *, port: int = 0, open_: bool = True) -> None:
    """Open runs in the browser, live.

    Example: avtt view runs

    Args:
        directory (DIR|RUNS): Folder that an audit writes, or a folder of such folders.
        port: Port on this machine; 0 takes a free one.
        open_: Open the page in the browser.
    """
    with View(directory, port) as server:
        typer.echo(f"{directory}: {server.url}\nCtrl-C ends it; the audits continue.")
        if open_:
            webbrowser.open(server.url)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            typer.echo("")
