"""What a section of the page is, and the means to make one.

A section is a module with one function, Evidence in and Section out, listed in page.py.
Its template stands beside it; figures are made by plots.py. Every rate and every half-width is in
percent.
"""

import gzip
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from json import dumps
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from ...utils import figures
from ...utils.web import templates_of

HERE = Path(__file__).parent
FEW = 10
"""Figures that rest on fewer questions than this are shown as uncertain."""
THIN = "\u202f"
"""The narrow space before a unit, where no line may break."""
SIGNIFICANT = 4
"""Decimals kept of what is plotted."""
MAX_ROWS = 400
"""Rows of a table that a page shows, at most; the files that are written beside it have all."""


@dataclass(frozen=True)
class Section:
    """A section with its title and its anchor ``id``; ``html`` must be safe already. ``late`` is
    large data that stands at the end of the page, so that the rest is painted first."""

    title: str
    id: str
    html: Markup
    late: Markup | str = ""

    @classmethod
    def of(
        cls,
        evidence: object,
        title: str,
        id: str,
        template: str,
        late: Markup | str = "",
        **values: Any,
    ) -> "Section":
        """Return the section that a template of this folder makes of ``values``, and of what the
        evidence has under its own names."""
        context = {**vars(evidence), "evidence": evidence, **values}
        return cls(title, id, fragment(template, **context), late)


def fragment(template: str, folder: Path = HERE, /, **values: Any) -> Markup:
    """Fill in a template of a folder, or of this one; every value is escaped."""
    return Markup(_environment(folder).get_template(template).render(values))


# -- data and tables -------------------------------------------------------------------------------


def data(id: str, value: Any) -> Markup:
    """Return ``value`` as JSON that page.js reads by ``id``; NaN becomes null, nothing can break
    out."""
    json = htmlsafe_json_dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return Markup('<script type="application/json" id="{}">{}</script>').format(id, json)


def packed(id: str, value: Any) -> Markup:
    """As ``data``, for what is large and plain already: with gzip, so read by ``avtt.unpacked``."""
    json = dumps(value, separators=(",", ":"), allow_nan=False)
    text = b64encode(gzip.compress(json.encode(), mtime=0)).decode("ascii")
    return Markup('<script type="text/plain" id="{}">{}</script>').format(id, text)


def plain(value: Any) -> Any:
    """Return ``value`` for JSON: floats short, NaN and infinity null."""
    if isinstance(value, float):
        return round(value, SIGNIFICANT) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return value


def table(label: str, rows: pd.DataFrame, *, words: bool = False) -> Markup:
    """Return a table to sort, whose first column names its rows; unknown values are dashes.

    Args:
        label: What it shows, for those who do not see it.
        rows: Its rows; texts stand as they are.
        words: Whether cells are sentences, which break and stand to the left.
    """
    cells = [[_cell(value) for value in row] for row in rows.itertuples(index=False)]
    heads = [str(column) for column in rows]
    return fragment("table.html", label=label, heads=heads, rows=cells, words=words)


def _cell(value: Any) -> str:
    """Return what a cell shows; page.js sorts by the number in it."""
    if value is None or pd.isna(value):
        return "–"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else f"{value:,}"
    return str(value)


# -- figures in words ------------------------------------------------------------------------------


percent = partial(figures.percent, space=THIN)
beside = partial(figures.beside, space=THIN)
span = partial(figures.span, space=THIN)


def figure(value: float | None) -> str:
    """Return a figure to two decimals; nothing known is a dash."""
    return "–" if value is None or math.isnan(value) else f"{value + 0.0:.2f}"


def within(half_width: float | None) -> str:
    """Return a half-width in points, rounded up: ±1.5 points; nothing known is a dash."""
    if half_width is None or math.isnan(half_width):
        return "–"
    return f"±{figures.tenths(figures.outward(0, half_width)[1])}{THIN}points"


def aim(half_width: float) -> str:
    """Return a half-width that was asked for, as it was given: ±2.5 points."""
    return f"±{100 * half_width:g}{THIN}points"


def exact(share: float) -> str:
    """Return a share that somebody chose, as they gave it: 2.5 %."""
    return f"{100 * share:g}{THIN}%"


def amount(value: float) -> str:
    """Return a count or cost with thousands set apart and no idle decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """Return seconds in the unit a person would use."""
    if seconds < 60:
        return f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


@cache
def _environment(folder: Path) -> Environment:
    environment = templates_of(folder, HERE)
    shown = {"percent": percent, "beside": beside, "figure": figure, "within": within}
    shown |= {"aim": aim, "exact": exact, "amount": amount, "duration": duration}
    shown |= {"money": figures.money, "on_page": figures.on_page, "in_points": figures.in_points}
    environment.filters.update(shown)
    environment.globals.update(span=span, as_table=table)
    return environment
