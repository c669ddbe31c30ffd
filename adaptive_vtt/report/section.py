"""What a section of the page is, and the means to make one.

A section is a module with one function, Evidence in and Section out, listed in page.py.
Its template stands beside it. Figures are dictionaries as Plotly takes them; a colour is a
variable of page.css ("var(--accent)"), so that light and dark need no second figure.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

FEW = 10
"""Figures that rest on fewer questions than this are shown as uncertain."""

THIN = "\u202f"
"""The narrow space before a unit, where no line may break."""

SIGNIFICANT = 4
"""Decimals kept of what is plotted."""


@dataclass(frozen=True)
class Section:
    """A part of the page; ``id`` is its anchor, ``html`` must be safe already."""

    title: str
    id: str
    html: Markup


def fragment(template: str, **values: Any) -> Markup:
    """A template of this folder, filled in; every value is escaped."""
    return Markup(_environment().get_template(template).render(values))


def data(id: str, value: Any) -> Markup:
    """``value`` as JSON that page.js reads by ``id``; NaN becomes null, nothing can break out."""
    json = htmlsafe_json_dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return Markup('<script type="application/json" id="{}">{}</script>').format(id, json)


def chart(id: str, views: Mapping[str, Mapping[str, Any]], label: str) -> Markup:
    """A Plotly chart with one figure (data, layout) per view.

    ``<select data-view="ID">`` switches views; ``<select data-only="ID">`` shows, of the
    traces that have a ``meta``, those whose ``meta`` is the value chosen.
    """
    frame = Markup('<div class="chart" id="{}" role="img" aria-label="{}"></div>')
    return frame.format(id, label) + data(f"{id}-data", views)


def plot_text(text: str) -> str:
    """``text`` for a Plotly label, whose small HTML would read tags in it."""
    return escape(text, quote=False)  # it would show &quot; as it stands


def shorten(text: str, most: int) -> str:
    """``text``, cut where it is longer than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


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
    """0.123 as 12.3 %; nothing known is a dash."""
    if share is None or math.isnan(share):
        return "–"
    digits = 0 if share in (0, 1) else 1 if share >= 0.001 else 4
    return f"{100 * share:.{digits}f}{THIN}%"


def figure(value: float | None) -> str:
    """A figure to two decimals; nothing known is a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value + 0.0:.2f}"


def precise(value: float | None) -> str:
    """A figure to three decimals; nothing known is a dash."""
    return "–" if value is None or math.isnan(value) else f"{value + 0.0:.3f}"


def outward(lower: float, upper: float) -> tuple[float, float]:
    """An interval to three decimals, rounded so that it holds what it held."""
    slack = 1e-6  # of a step: what floating point makes of 0.13
    return math.floor(1000 * lower + slack) / 1000, math.ceil(1000 * upper - slack) / 1000


def span(lower: float, upper: float) -> str:
    """An interval in words, rounded outwards."""
    low, high = outward(lower, upper)
    return f"{low + 0.0:.3f} to {high + 0.0:.3f}"


def sure(confidence: float) -> str:
    """0.95 as 95 %."""
    return f"{100 * confidence:g}{THIN}%"


def amount(value: float) -> str:
    """A count or cost with thousands set apart and no idle decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def money(value: float) -> str:
    """A cost to four significant digits, in whatever unit the prices have."""
    return f"{value:,.2f}" if value >= 1000 else f"{value:.4g}"


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
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for show in (percent, figure, precise, sure, amount, duration):
        environment.filters[show.__name__] = show
    return environment
