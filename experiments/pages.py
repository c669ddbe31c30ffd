"""Write one page, index.html, with all results of ``make bench`` in a folder, within seconds.

    python -m adaptive_vtt.experiments.pages

It has a table for each CSV or JSON file, and links to HTML pages and pictures. Files in ``quick``
come last and are marked, as short runs are no measurements.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from adaptive_vtt.errors import InputError
from adaptive_vtt.results.report.frame import figure_page
from adaptive_vtt.results.report.section import table
from adaptive_vtt.utils.files import write_text

from .program import QUICK, machine, options, show

PAGE = "index.html"
ROWS = 40
"""Most rows of a table on the page."""


def page(folder: Path) -> str:
    """Return the page; raise InputError if the folder has no results."""
    paths = (path for path in folder.rglob("*.*") if path != folder / PAGE)
    files = sorted(paths, key=lambda path: (short(folder, path), path))
    figures = [path for path in files if path.suffix in (".html", ".png")]
    tables = [path for path in files if path.suffix in (".csv", ".json")]
    if not files:
        raise InputError(f"{folder}: expected what experiments wrote, found none; run one first")
    parts = [("Figures", Markup("<br>").join(link(folder, path) for path in figures))]
    for path in tables:
        parts.append((path.stem + " (short run)" * short(folder, path), shown(folder, path)))
    return figure_page(
        "Experiments and benchmarks",
        f"{len(tables)} tables, {sum(short(folder, path) for path in tables)} of them of "
        "short runs, which measure nothing. "
        f"Made {date(time.time())} on {machine()}.",
        parts,
        drawn=False,
    )


def short(folder: Path, path: Path) -> bool:
    """Return whether a short run wrote the file."""
    return QUICK.name in path.relative_to(folder).parts[:-1]


def link(folder: Path, path: Path) -> Markup:
    """Return a link to a file, with its date."""
    name = path.relative_to(folder).as_posix()
    return Markup('<a href="{0}">{0}</a>, {1}').format(name, date(path.stat().st_mtime))


def date(seconds: float) -> str:
    return time.strftime("%d %B %Y, %H:%M", time.localtime(seconds))


def shown(folder: Path, path: Path) -> Markup:
    """Return the tables of a file below their titles, and a link to it."""
    parts = [Markup('<p class="caption">{}</p>').format(link(folder, path))]
    for title, frame in frames(path).items():
        parts.append(Markup("<h3>{}</h3>").format(title) if title else Markup(""))
        parts.append(table(title or path.stem, frame.head(ROWS).map(cell)))
        if len(frame) > ROWS:
            parts.append(Markup("<p>And {:,} more rows.</p>").format(len(frame) - ROWS))
    return Markup("").join(parts)


def cell(value: object) -> object:
    return ("no", "yes")[value] if isinstance(value, bool) else value


def frames(path: Path) -> dict[str, pd.DataFrame]:
    """Return title -> table of a file that ``save_table`` (title "") or ``save_tables`` wrote."""
    if path.suffix == ".csv":
        frame = pd.read_csv(path)
        return {"": frame.rename(columns=lambda c: "" if c.startswith("Unnamed: ") else c)}
    rows = json.loads(path.read_text(encoding="utf-8"))
    titled = rows if isinstance(rows, dict) else {"": rows}
    return {title: pd.DataFrame(records) for title, records in titled.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    folder = options(__doc__, arguments).out
    write_text(folder / PAGE, page(folder))
    show(f"all tables and figures: {folder / PAGE}")


if __name__ == "__main__":
    main()
