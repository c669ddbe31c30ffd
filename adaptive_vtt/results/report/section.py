"""A section of the page, and the means to make one.

A section is made by a function, ``Evidence`` in and ``Section`` out, that page.py lists. Its
template is named as the section's id; figures are made by plots.py. Rates and half-widths are shown
in percent.
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
from .. import difference

HERE = Path(__file__).parent
FEW = 10
"""Figures that rest on fewer questions than this are shown as uncertain."""
THIN = "\u202f"
"""The narrow space before a unit, where no line may break."""
SIGNIFICANT = 4
"""Decimals kept of plotted values."""
MAX_ROWS = 400
"""Rows of a table that a page shows, at most; the files written with it have all."""


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        title: Its title.
        id: Its anchor.
        html: Its content, escaped.
        late: Large data, put at the end of the page so that the page is painted first.
    """

    title: str
    id: str
    html: Markup
    late: Markup | str = ""


def fragment(template: str, folder: Path = HERE, /, **values: Any) -> Markup:
    """Fill in a template of a folder, or of this one; every value is escaped."""
    return Markup(_environment(folder).get_template(template).render(values))


# -- data and tables -------------------------------------------------------------------------------


def data(id: str, value: Any) -> Markup:
    """Return ``value`` as JSON that page.js reads by ``id``; NaN becomes null, and no text can end
    the script."""
    json = htmlsafe_json_dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return Markup('<script type="application/json" id="{}">{}</script>').format(id, json)


def packed(id: str, value: Any) -> Markup:
    """Return a large ``value`` without NaN as ``data``, with gzip, for ``avtt.unpacked``."""
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
        label: Its description for screen readers.
        rows: Its rows; page.js sorts a column by the number in each cell.
        words: Whether cells are sentences, which wrap and are aligned to the left.
    """

    def cell(value: Any) -> str:
        if value is None or pd.isna(value):
            return "–"
        if isinstance(value, float):
            return f"{value:g}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    cells = [[cell(value) for value in row] for row in rows.itertuples(index=False)]
    heads = [str(column) for column in rows]
    return fragment("table.html", label=label, heads=heads, rows=cells, words=words)


# -- figures in words ------------------------------------------------------------------------------


percent = partial(figures.percent, space=THIN)
estimated = partial(figures.estimate_percent, space=THIN)
"""An estimate with the decimals of its interval."""


def span(lower: float, upper: float) -> str:
    """Return an interval in per cent, rounded outwards, or "exact"."""
    whole = figures.is_exact(lower, upper)
    return figures.EXACT if whole else figures.span(lower, upper, THIN)


def figure(value: float | None) -> str:
    """Return a figure to two decimals; an unknown one is a dash."""
    return "–" if value is None or math.isnan(value) else f"{value + 0.0:.2f}"


def within(half_width: float | None) -> str:
    """Return a half-width in points, rounded up: ±1.5 points; an unknown one is a dash."""
    if half_width is None or math.isnan(half_width):
        return "–"
    return f"±{figures.tenths(figures.outward(0, half_width)[1])}{THIN}points"


def aim(half_width: float) -> str:
    """Return a half-width that a user chose, unrounded: ±2.5 points."""
    return f"±{100 * half_width:g}{THIN}points"


def exact(share: float) -> str:
    """Return a share that a user chose, unrounded: 2.5 %."""
    return f"{100 * share:g}{THIN}%"


def capital(rate: str) -> str:
    """Return a name with a capital, and the rest as it is."""
    return f"{rate[0].upper()}{rate[1:]}"


def amount(value: float) -> str:
    """Return a count or cost with thousands set apart and no idle decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def as_command(text: str) -> Markup:
    """Return a command that breaks before an option, never within its name."""
    words = [
        Markup('<span class="option">{}</span>').format(w) if w[:2] == "--" else w
        for w in text.split(" ")
    ]
    return Markup("<code>{}</code>").format(Markup(" ").join(words))


def duration(seconds: float) -> str:
    """Return seconds in the unit a person would use."""
    if seconds < 60:
        return f"{seconds:.1f}{THIN}s"
    minutes, over = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left:02} min" if hours else f"{minutes} min {over:02} s"


@cache
def _environment(folder: Path) -> Environment:
    environment = templates_of(folder, HERE)
    filters: list[Any] = [figure, within, aim, exact, amount, capital, duration, as_command]
    filters += [figures.money, figures.on_page, figures.in_points]
    functions: list[Any] = [figures.is_exact, difference.points, difference.point_span, span]
    functions += [difference.extent, difference.wrong]
    environment.filters |= {each.__name__: each for each in filters}
    environment.filters |= {"percent": percent, "estimated": estimated}
    environment.globals |= {each.__name__: each for each in functions}
    environment.globals |= {"as_table": table}
    return environment
