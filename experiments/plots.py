"""Helpers of all figures: colours, lines, bands, and the layout."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from adaptive_vtt.types import Floats

COLOURS = {
    "random": "#7f7f7f",
    "unpredictability": "#E69F00",
    "uncertainty": "#0072B2",
    "uncertainty+unpredictability": "#D55E00",
}
"""Colours of the paper's strategies (a) to (d), in its order. They are of Okabe and Ito's palette,
which colour-blind readers can distinguish, too."""


def band(x: Floats, low: Floats, high: Floats, colour: str, **more: Any) -> go.Scatter:
    """Return the area between two curves, in a faint hexadecimal ``colour``."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.2)",
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
        **more,
    )


def tidy(figure: go.Figure, title: str, *, height: int) -> None:
    """Give a figure the common layout: a white background, a title, and the legend below it."""
    figure.update_layout(
        template="simple_white",
        title={"text": title, "x": 0.02, "y": 1 - 16 / height, "yanchor": "top"},
        legend={"orientation": "h", "y": 1 - 46 / height, "yref": "container", "yanchor": "top"},
        margin={"l": 90, "r": 30, "t": 105, "b": 60},
        height=height,
    )


def line(x: Floats, y: Floats, colour: str, *, dash: str = "solid", **more: Any) -> go.Scatter:
    """Return a line that is two pixels wide."""
    style = {"color": colour, "width": 2, "dash": dash}
    return go.Scatter(x=x, y=y, mode="lines", line=style, **more)
