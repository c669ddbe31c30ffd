"""What commands print: sentences as they are, and tables."""

from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def plain_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """One that takes brackets in names for no markup and :x: for no picture, and colours nothing
    by itself."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    *,
    words: Collection[str] = (),
    sums: Iterable[Sequence[object]] = (),
    gap: int = 1,
) -> Table:
    """Rows under ``columns``, then ``sums`` below a line; ``gap``: columns of the terminal between.

    The first column folds where the terminal is narrow, those of ``words`` wrap; all others hold
    numbers, which stand to the right.
    """
    found = Table(title=title, box=SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False)
    for place, name in enumerate(columns):
        if place and name not in words:
            found.add_column(name, justify="right", no_wrap=True)
        else:
            found.add_column(name, overflow="fold")
    for row in rows:
        found.add_row(*map(str, row))
    found.add_section()
    for row in sums:
        found.add_row(*map(str, row))
    return found
