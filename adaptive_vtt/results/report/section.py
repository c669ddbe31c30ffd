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
from functools import cache
from json import dumps
from pathlib import Path
from typing import Any

from jinja2 import Environment
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from ...utils import figures
from ...utils.figures import outward, tenths
from ...utils.web import templates_of

FEW = 10
"""Figures that rest on fewer questions than this are shown as uncertain."""

THIN = "\u202f"
"""The narrow space before a unit, where no line may break."""

SIGNIFICANT = 4
"""Decimals kept of what is plotted."""


@dataclass(frozen=True)
class Section:
    """``id`` is its anchor, ``html`` must be safe already; ``late`` is large data that stands at
    the end of the page, so that the rest is painted first."""

    title: str
    id: str
    html: Markup
    late: Markup | str = ""

    @classmethod
    def of(
        cls, title: str, id: str, template: str, late: Markup | str = "", **values: Any
    ) -> "Section":
        """The section that a template of this folder makes of ``values``."""
        return cls(title, id, fragment(template, **values), late)


def fragment(template: str, **values: Any) -> Markup:
    """A template of this folder, filled in; every value is escaped."""
    return Markup(_environment().get_template(template).render(values))


def ours(name: str) -> Markup:
    """A file of this folder, to stand in a page as it is."""
    return Markup((Path(__file__).parent / name).read_text(encoding="utf-8"))


def data(id: str, value: Any) -> Markup:
    """``value`` as JSON that page.js reads by ``id``; NaN becomes null, nothing can break out."""
    json = htmlsafe_json_dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return Markup('<script type="application/json" id="{}">{}</script>').format(id, json)


def packed(id: str, value: Any) -> Markup:
    """As ``data``, for what is large and plain already: with gzip, so read by ``avtt.unpacked``."""
    json = dumps(value, separators=(",", ":"), allow_nan=False)
    text = b64encode(gzip.compress(json.encode(), mtime=0)).decode("ascii")
    return Markup('<script type="text/plain" id="{}">{}</script>').format(id, text)


def plain(value: Any) -> Any:
    """``value`` for JSON: floats short, NaN and infinity null."""
    if isinstance(value, float):
        return round(value, SIGNIFICANT) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return value


def percent(share: float | None) -> str:
    """0.123 as 12.3 %, with a space that does not break; nothing known is a dash."""
    return figures.percent(share, THIN)


def beside(share: float, lower: float, upper: float) -> str:
    """An estimate as exact as its interval beside it: 12.3 %."""
    return figures.beside(share, lower, upper, THIN)


def figure(value: float | None) -> str:
    """A figure to two decimals; nothing known is a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value + 0.0:.2f}"


def span(lower: float, upper: float) -> str:
    """An interval in percent, rounded outwards: 8.5 to 11.5 %."""
    return figures.span(lower, upper, THIN)


def within(half_width: float | None) -> str:
    """A half-width in percentage points, rounded up: ±1.5 points; nothing known is a dash."""
    if half_width is None or math.isnan(half_width):
        return "–"
    return f"±{tenths(outward(0, half_width)[1])}{THIN}points"


def aim(half_width: float) -> str:
    """A half-width that was asked for, as it was given: ±2.5 points."""
    return f"±{100 * half_width:g}{THIN}points"


def exact(share: float) -> str:
    """A share somebody chose, as they gave it: 2.5 %."""
    return f"{100 * share:g}{THIN}%"


def sure(confidence: float) -> str:
    """0.95 as 95 %."""
    return f"{100 * confidence:g}{THIN}%"


def amount(value: float) -> str:
    """A count or cost with thousands set apart and no idle decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """Seconds in the unit a person would use."""
    if seconds < 60:
        return f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


@cache
def _environment() -> Environment:
    environment = templates_of(Path(__file__).parent)
    for show in (percent, beside, figure, within, aim, exact, sure, amount, duration):
        environment.filters[show.__name__] = show
    return environment
