"""Folded sentences, tables and JSON, as commands print them."""

import json
import re
import shlex
import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..utils.web import text_of

if TYPE_CHECKING:
    import pandas as pd

WHOLE = re.compile(r"'avtt [^']*'|\d (?:%|points|calls|questions|images|items|labels)(?!\w)")
"""Pattern of what no line break divides: commands in quotes, and numbers with their units."""


def print_json(value: Any) -> None:
    """Print a value as JSON. Raise ValueError for NaN and infinities, which JSON lacks."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def filled(name: str, **values: object) -> str:
    """Return the text ``name`` of ``templates``, which may quote words for a shell."""
    values["quote"] = lambda word: shlex.quote(str(word))
    return text_of(__package__, f"{name}.txt", **values).rstrip("\n")


def folded(text: str, start: str = "", columns: int = 0) -> str:
    """Return ``text`` behind ``start``, folded at ``columns``, with a hanging indent.

    Commands in quotes stay whole, to be copied, and so do numbers with their units. Default of
    ``columns``: the terminal's width.
    """
    kept = WHOLE.sub(lambda part: part[0].replace(" ", "\xa0"), text)
    width = max(columns or shutil.get_terminal_size((80, 24)).columns, len(start) + 40)
    wrapper = textwrap.TextWrapper(width, start, " " * len(start))
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return "\n".join(map(wrapper.fill, kept.split("\n"))).replace("\xa0", " ")


class _Folding(Console):
    """Console that folds texts as ``folded`` does."""

    def print(self, *objects: Any, **options: Any) -> None:
        if len(objects) == 1 and isinstance(text := objects[0], str) and not options:
            objects, options = (folded(text, columns=self.width),), {"soft_wrap": True}
        super().print(*objects, **options)


def plain_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console that prints markup and emoji codes as they are, and highlights nothing."""
    return _Folding(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def print_filled(name: str, table: Table, **values: object) -> None:
    """Print a text of ``templates``, in which the line [table] stands for a table."""
    console = plain_console()
    for line in filter(None, filled(name, **values).split("\n")):
        console.print(table if line == "[table]" else line)


def print_frame(title: str, frame: "pd.DataFrame", *, narrow: bool = False) -> None:
    """Print a table with a title; a share has one decimal, a missing cell a dash.

    ``narrow``: one word of a heading per line, no gaps, and numbers as they are.
    """

    import pandas as pd  # slow, and few commands need it

    def cell(value: Any) -> str:
        if pd.isna(value):
            return "-"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return f"{100 * value:.1f} %" if value <= 1 and not narrow else f"{value:g}"
        return str(value).replace("+", "+\n") if narrow else str(value)

    cells = frame.astype(object).map(cell).to_numpy().tolist()
    names = [str(name).replace(" ", "\n") if narrow else str(name) for name in frame]
    plain_console().print(table_of(names, cells, title, gap=0 if narrow else 1))


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    *,
    words: Collection[str] = (),
    sums: Iterable[Sequence[object]] = (),
    gap: int = 1,
) -> Table:
    """Return a table of ``rows``, then ``sums`` below a line, with ``gap`` spaces between columns.

    The first column and those of ``words`` fold in a narrow terminal. All others have numbers,
    aligned to the right.
    """
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False)
    for place, name in enumerate(columns):
        if place and name not in words:
            table.add_column(name, justify="right", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    for section in (rows, sums):
        for row in section:
            table.add_row(*map(str, row))
        table.add_section()
    return table
