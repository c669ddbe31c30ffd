"""Figures of beliefs by name."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pandas as pd

from ..errors import InputError, unknown
from .figures import (
    Figure,
    concepts_unsure,
    curves,
    image_map,
    reliability,
    surface,
    through,
)
from .tables import Told


class _Plot(NamedTuple):
    of: Told
    draw: Callable[[pd.DataFrame], Figure]
    about: str | None = None
    """The column whose value one may name; then it is drawn of the table "cell"."""
    draw_of: Callable[[pd.DataFrame, str], Figure] | None = None


PLOTS: Mapping[str, _Plot] = {
    "beliefs": _Plot(
        "relation-concept", surface, "relation", lambda table, name: surface(table, relation=name)
    ),
    "through": _Plot("relation-concept", through),
    "concept": _Plot("severity", curves, "concept", curves),
    "images": _Plot("images", image_map),
    "calibration": _Plot("predictions", reliability),
    "uncertainty": _Plot("uncertainty", concepts_unsure),
}
"""Name -> what is drawn, of which table."""


def plotted(name: str, about: str | None, table: Callable[[Told], pd.DataFrame]) -> Figure:
    """The figure of that name, of ``table``, which gives the tables of ``beliefs``.

    ``about``: which relation ("beliefs") or concept ("concept") alone. Raises InputError for one
    that there is not, and where nothing was journaled.
    """
    plot = PLOTS[name]
    if about is None:
        return plot.draw(_there(name, plot.of, table(plot.of)))
    if plot.about is None or plot.draw_of is None:
        raise InputError(f"plot {name!r}: expected nothing beside the name, got {about!r}")
    cells = _there(name, "cell", table("cell"))
    choices = cells[plot.about].drop_duplicates().tolist()
    if about not in choices:
        raise unknown(plot.about, about, choices, f"plot {name!r}")
    return plot.draw_of(cells, about)


def _there(name: str, of: Told, found: pd.DataFrame) -> pd.DataFrame:
    if len(found) or of == "predictions":  # that a strategy tells none is said in the figure
        return found
    raise InputError(
        f"plot {name!r}: expected beliefs in the journal, got none: nothing was learnt yet, or its "
        "answers were judged anew; ask again once the audit has gone on"
    )
