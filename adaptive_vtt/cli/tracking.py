"""Figures of an audit on the command line, sent where its spec says."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import typer

from ..audit import Audit
from ..config import TrackSpec
from ..errors import InputError
from ..results.tracking import Follower, backend, tracked


def check(section: TrackSpec | None, out: Path) -> None:
    """Raises InputError where the package is missing that the figures are to be sent by."""
    if section is not None:
        backend(section.to, section.project, out)


@contextmanager
def following(audit: Audit, section: TrackSpec | None, out: Path) -> Iterator[list[Follower]]:
    """The hook that sends figures as the section says; none without it, nor where the package is
    missing, as of an audit that is gone on with elsewhere."""
    with ExitStack() as until:
        found = []
        if section is not None:
            try:
                hook = tracked(
                    audit,
                    section.to,
                    every=section.every,
                    project=section.project,
                    folder=out,
                    warn=_warn,
                )
                found.append(until.enter_context(hook))
            except InputError as error:
                _warn(f"{error}; the audit goes on without")
        yield found


def _warn(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)
