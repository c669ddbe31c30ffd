"""What commands print: sentences as they are, and tables."""

import re
import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def folded(words: str, start: str = "") -> str:
    """``words`` after ``start``, folded under themselves at the terminal's width, at 80 columns
    where there is none. Paths and commands in quotes stay whole, to be copied."""
    kept = re.sub(r"'avtt [^']*'", lambda command: command[0].replace(" ", "\xa0"), words)
    width = max(shutil.get_terminal_size((80, 24)).columns, len(start) + 40)
    return textwrap.fill(
        kept,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\xa0", " ")


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
