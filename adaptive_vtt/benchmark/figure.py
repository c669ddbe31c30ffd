"""The page of a comparison: one Plotly figure that opens without a network."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..types import Floats
from .runs import Run
from .summary import by_strategy

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by colour-blind readers too."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
POINTS = 160
GAP, TOP, BOTTOM = 100, 130, 30
"""Pixels between the parts of the page, and around them."""
HALF_WIDTHS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)


def uncertainty_page(runs: Sequence[Run]) -> str:
    """Mean uncertainty over calls: a faint line per run, a strong one per strategy."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for number, (name, mine) in enumerate(by_strategy(runs).items()):
        for run in mine:
            first = run["seed"] == 0
            figure.add_scatter(
                x=run["at"],
                y=run["uncertainty"],
                name=name,
                legendgroup=name,
                showlegend=first,
                mode="lines",
                line={**_line(number), "width": 2.5 if first else 1},
                opacity=1.0 if first else 0.35,
            )
    figure.update_layout(
        title="Uncertainty of the answer GPs over calls (seed 0 strong, the others faint)",
        xaxis_title="calls",
        yaxis_title="mean uncertainty, share of prior",
        template="plotly_white",
        font={"family": "system-ui, sans-serif"},
        yaxis_range=[0, 1.02],
        legend={"orientation": "h", "y": -0.2},
    )
    return _html(figure)


def certified_page(
    runs: Sequence[Run], goal: float, confidence: float, tables: dict[str, pd.DataFrame]
) -> str:
    """Widest interval over calls, calls to the goal, and the tables."""
    from plotly.subplots import make_subplots

    heights = [440, 300, *(_table_height(table) for table in tables.values())]
    area = sum(heights) + GAP * (len(heights) - 1)
    figure = make_subplots(
        rows=len(heights),
        cols=1,
        specs=[[{}], [{}], *([{"type": "table"}] for _ in tables)],
        row_heights=heights,
        vertical_spacing=GAP / area,
        subplot_titles=[
            "Widest interval over calls (median; band: all repeats)",
            f"Calls until every target is within ±{goal:g} (median; dots: repeats)",
            *tables,
        ],
    )
    for number, (name, mine) in enumerate(by_strategy(runs).items()):
        _widths(figure, number, name, mine)
        _bar(figure, number, name, mine)
    last = max(run["at"][-1] for run in runs)
    figure.add_scatter(
        x=[1, last],
        y=[goal, goal],
        mode="lines",
        name=f"stop: ±{goal:g}",
        line={"dash": "dash", "color": "#444", "width": 1.5},
        row=1,
        col=1,
    )
    for row, table in enumerate(tables.values(), start=3):
        figure.add_trace(_sheet(table), row=row, col=1)
    _look(figure, goal, last)
    figure.update_layout(
        title={
            "text": "Strategies compared: all intervals hold at all times with probability "
            f"{confidence:g}",
            "x": 0.02,
            "y": 1 - 24 / (area + TOP + BOTTOM),
            "yanchor": "top",
        },
        template="plotly_white",
        font={"family": "system-ui, sans-serif"},
        height=area + TOP + BOTTOM,
        margin={"t": TOP, "b": BOTTOM, "l": 70, "r": 30},
        legend={"orientation": "h", "x": 0, "y": 1 + 34 / area, "yanchor": "bottom"},
    )
    return _html(figure)


def _look(figure: Any, goal: float, last: int) -> None:
    """The axes."""
    calls = [base * 10**power for power in range(7) for base in (1, 2, 5)]
    figure.update_xaxes(
        title_text="calls",
        type="log",
        tickvals=calls,
        ticktext=[f"{c:,}" for c in calls],
        range=[0, np.log10(last * 1.05)],
        row=1,
        col=1,
    )
    figure.update_yaxes(
        title_text="widest half-width",
        type="log",
        tickvals=HALF_WIDTHS,
        ticktext=[f"{w:g}" for w in HALF_WIDTHS],
        range=[np.log10(0.9 * goal), np.log10(0.56)],
        row=1,
        col=1,
    )
    figure.update_yaxes(title_text="calls", rangemode="tozero", row=2, col=1)


def _widths(figure: Any, number: int, name: str, runs: Sequence[Run]) -> None:
    """A line for the median and a band from least to most; a run that stopped stays there."""
    last = max(run["at"][-1] for run in runs)
    grid = np.unique(np.geomspace(1, last, POINTS).round())
    curves = np.array([_at(run, grid) for run in runs])
    low, middle, high = curves.min(axis=0), np.median(curves, axis=0), curves.max(axis=0)
    figure.add_scatter(
        x=np.concatenate([grid, grid[::-1]]).tolist(),
        y=np.concatenate([high, low[::-1]]).tolist(),
        fill="toself",
        fillcolor=_faint(_colour(number)),
        line={"width": 0},
        hoverinfo="skip",
        legendgroup=name,
        showlegend=False,
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=grid.tolist(),
        y=middle.tolist(),
        mode="lines",
        name=name,
        legendgroup=name,
        line={**_line(number), "width": 2.5},
        row=1,
        col=1,
    )


def _at(run: Run, grid: Floats) -> Floats:
    place = np.searchsorted(run["at"], grid, side="right") - 1
    return np.array(run["half_width"])[np.maximum(place, 0)]


def _bar(figure: Any, number: int, name: str, runs: Sequence[Run]) -> None:
    """The median as a bar, the repeats as dots; nothing for those that did not get there."""
    reached = [run["calls_to"][-1][1] for run in runs]
    middle = float(np.median([np.inf if calls is None else calls for calls in reached]))
    short = np.isinf(middle)
    height = max(run["calls"] for run in runs) if short else middle
    figure.add_bar(
        x=[name],
        y=[height],
        name=name,
        legendgroup=name,
        showlegend=False,
        marker={
            "color": _faint(_colour(number)) if short else _colour(number),
            "pattern": {"shape": "/" if short else ""},
        },
        text=[f"more than {height:,.0f}" if short else f"{height:,.0f}"],
        textposition="inside",
        insidetextanchor="start",
        textfont={"size": 13},
        row=2,
        col=1,
    )
    dots = [calls for calls in reached if calls is not None]
    figure.add_scatter(
        x=[name] * len(dots),
        y=dots,
        mode="markers",
        legendgroup=name,
        showlegend=False,
        marker={"color": "#222", "size": 6, "symbol": "circle-open"},
        name=name,
        row=2,
        col=1,
    )


def _sheet(table: pd.DataFrame) -> Any:
    import plotly.graph_objects as go

    columns = [[_text(value) for value in table[column]] for column in table]
    widest = [
        max(len(text) for text in [*str(h).split(), *column])
        for h, column in zip(table, columns, strict=True)
    ]
    return go.Table(
        header={"values": [str(column) for column in table], "align": "left", "height": 44},
        cells={"values": columns, "align": "left", "height": 26},
        columnwidth=[width + 3 for width in widest],
    )


def _table_height(table: pd.DataFrame) -> int:
    return 54 + 27 * len(table)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(number: int) -> dict[str, Any]:
    return {"color": _colour(number), "dash": DASHES[number // len(COLOURS) % len(DASHES)]}


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _html(figure: Any) -> str:
    return str(figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False}))
