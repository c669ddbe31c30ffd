"""``avtt verify``: whether a run folder is as it was written, and follows from its rows."""

import typer

from .options import Head, RunDir


def verify(
    directory: RunDir,
    head: Head = None,
) -> None:
    """Check that a run folder is as it was written, and that its figures follow from its journal.

    The journal's file, chain and rows are checked, every interval is recomputed
    with code of its own, and every field of result.json and the report's head
    are compared. This finds damage and careless edits. Whoever rewrites the
    whole journal can make it fit itself: against that, keep the head (in
    result.json and the report) elsewhere, and give it as --head. Nothing is
    written, and an audit may be running.

    Example: avtt verify runs/first --head 0123456789abcdef0123456789abcdef
    """
    from .run_checks import check

    typer.echo(check(directory, head))
