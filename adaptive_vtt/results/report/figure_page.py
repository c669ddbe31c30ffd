"""A page of figures and tables, in one frame with everything it needs inside."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from .plotly_library import library, policy
from .section import fragment, ours

SCRIPTS = ("page.js", "plots.js")


def figure_page(title: str, lead: str, parts: Sequence[tuple[str, Markup]]) -> str:
    """``lead``: a sentence below the title; ``parts``: a heading each, and what stands there."""
    brought, scripts = library("inline"), [ours(name) for name in SCRIPTS]
    return str(
        fragment(
            "figure_page.html",
            title=title,
            lead=lead,
            parts=parts,
            style=ours("page.css"),
            scripts=scripts,
            policy=policy(scripts, brought),
            library=brought.element,
            loads=brought.said,
        )
    )


def table(label: str, found: pd.DataFrame) -> Markup:
    """A table whose first column names its rows; unknown values are dashes."""
    rows = [[_cell(value) for value in row] for row in found.itertuples(index=False)]
    return fragment("table.html", label=label, heads=[str(c) for c in found], rows=rows)


def _cell(value: Any) -> tuple[float | None, str]:
    """What it is sorted by, None for words, and what is shown."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return float("nan"), "–"
    if isinstance(value, int | float):
        return float(value), f"{value:g}" if isinstance(value, float) else f"{value:,}"
    return None, str(value)
