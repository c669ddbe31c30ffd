"""Figures of beliefs by name."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import pandas as pd

from ...errors import InputError, unknown
from .figures import (
    Figure,
    Tell,
    concepts_unsure,
    curves,
    image_map,
    reliability,
    surface,
    through,
)
from .moments import Moments
from .tables import Told


class _Plot(NamedTuple):
    """Drawn of groups by ``draw``, of one table by ``draw_of``; ``about``: the column whose value
    one may name."""

    draw: Callable[[Tell, str | None], Figure] | None = None
    about: str | None = None
    of: Told = "cell"
    draw_of: Callable[[pd.DataFrame], Figure] | None = None


PLOTS: Mapping[str, _Plot] = {
    "beliefs": _Plot(surface, "relation"),
    "through": _Plot(lambda tell, _: through(tell)),
    "concept": _Plot(curves, "concept"),
    "relation": _Plot(lambda tell, name: curves(tell, relation=name or _last(tell)), "relation"),
    "images": _Plot(of="images", draw_of=image_map),
    "calibration": _Plot(of="predictions", draw_of=reliability),
    "uncertainty": _Plot(of="uncertainty", draw_of=concepts_unsure),
}
"""Name -> how it is drawn."""


def _last(tell: Tell) -> str:
    """The last relation: the first is most often no change."""
    return str(tell("relation").groups[-1].relation)


def plotted(name: str, about: str | None, table: Callable[[Told], pd.DataFrame]) -> Figure:
    """The figure of that name, of ``table``, which gives the tables of ``beliefs``.

    ``about``: which relation ("beliefs", "relation") or concept ("concept") alone. Raises
    InputError for one that there is not, and where nothing was journaled.
    """
    plot = PLOTS[name]
    if about is not None and plot.about is None:
        raise InputError(f"plot {name!r}: expected nothing beside the name, got {about!r}")
    if plot.draw is None:
        assert plot.draw_of is not None
        return plot.draw_of(_there(name, plot.of, table(plot.of)))

    @cache
    def tell(of: Told) -> Moments:
        return Moments.of(_there(name, of, table(of)))

    if about is not None and plot.about is not None:
        places = (getattr(group, plot.about) for group in tell("cell").groups)
        choices = list(dict.fromkeys(places))
        if about not in choices:
            raise unknown(plot.about, about, choices, f"plot {name!r}")
    return plot.draw(tell, about)


def _there(name: str, of: Told, found: pd.DataFrame) -> pd.DataFrame:
    if len(found) or of == "predictions":  # that a strategy tells none is said in the figure
        return found
    raise InputError(
        f"plot {name!r}: expected beliefs in the journal, got none: nothing was learnt yet, or its "
        "answers were judged anew; ask again once the audit has gone on"
    )
