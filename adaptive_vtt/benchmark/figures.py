"""The page of a comparison: Plotly's figures and tables, in one file that needs no network."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from markupsafe import Markup

from ..results.report.frame import figure_page
from ..results.report.plots import chart, frame, level_of
from ..results.report.section import amount, data, table
from ..types import Floats, JsonObject
from ..utils.figures import COLOURS, on_page, points, shown
from .runs import Run
from .summary import calls_to_goal

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

INKS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, for colour-blind readers, too; black is light in the dark."""
POINTS = 160
BAR = 36
"""Pixels of height per bar, with the space below it."""
ON_PAGE = 20
"""Most targets with a curve on the page."""
HALF_WIDTHS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)
"""Ticks of their axis, in percentage points."""


def figures(
    runs: Sequence[Run], goal: float | None, targets: Sequence[str] = ()
) -> "dict[str, Figure]":
    """Return the Plotly figures by name.

    They are "widths" (of the widest interval), "mean width", "width of TARGET" for each of several
    ``targets``, and "calls"; or "uncertainty" if nothing is certified.
    """
    if goal is None:
        title = "mean uncertainty, share of prior"
        figure = _over_calls(runs, lambda run: run["uncertainty"], title, False)
        return {"uncertainty": figure.update_yaxes(range=[0, 1.02])}
    drawn = {"widths": _widths(runs, goal, "widest half-width", np.max)}
    if len(targets) > 1:
        drawn["mean width"] = _widths(runs, goal, "mean half-width", np.mean)
        for place, name in enumerate(targets):
            title = f"half-width of {shown(name)}"
            drawn[f"width of {name}"] = _widths(runs, goal, title, partial(np.take, indices=place))
    return {**drawn, "calls": _bars(runs)}


def _widths(
    runs: Sequence[Run], goal: float, title: str, over_targets: Callable[..., Floats]
) -> "Figure":
    """Draw a statistic ``over_targets`` of the half-widths (n, K) of all targets, and the goal."""
    figure = _over_calls(
        runs, lambda run: 100 * over_targets(run["half_widths"], axis=1), f"{title}, points", True
    )
    figure.update_yaxes(type="log", tickvals=HALF_WIDTHS)
    stop = {"at": goal, "text": f"stop: {on_page(points(goal))}", "colour": "muted"}
    return figure.add_shape(level_of(stop, 100, False))


def page(
    runs: Sequence[Run],
    lead: str,
    conclusion: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
    targets: Sequence[str] = (),
) -> str:
    """Return the page: the conclusion, the figures and the tables below the sentence ``lead``.

    The reader chooses among the intervals: the widest of all, and those of ON_PAGE targets at most.
    """
    goal = runs[0]["calls_to"][-1][0] if "calls_to" in runs[0] else None
    parts = []
    if conclusion:
        items = [Markup("<li>{}.</li>").format(on_page(sentence)) for sentence in conclusion]
        parts.append(("Conclusion", Markup("<ul>{}</ul>").format(Markup("").join(items))))
    plots = {n: _plain(figure) for n, figure in figures(runs, goal, targets[:ON_PAGE]).items()}
    calls = plots.pop("calls", None)
    option, names = Markup("<option value='{}'>{}</option>"), {"widths": "widest interval"}
    options = [option.format(name, on_page(names.get(name, name))) for name in plots]
    id, what = ("uncertainty", "Mean uncertainty") if goal is None else ("widths", "Half-width")
    chooser = Markup("<p><label>Show <select data-view='{}'>{}</select></label></p>")
    title = f"{what} over calls (median; band: all repeats)"
    choice = chooser.format(id, Markup("").join(options)) if len(plots) > 1 else Markup("")
    parts.append((title, choice + chart(id, plots, title)))
    if goal is not None and calls is not None:
        title = f"Calls until every target is within {on_page(points(goal))}"
        series = calls["data"][:-1]  # the last one has the dots
        rows = [row for bars in series for row in zip(bars["y"], bars["text"], strict=True)]
        place = frame("calls", title, ["strategy", "calls (median)"], rows)
        title += " (median; dots: repeats)"
        parts.append((title, place + data("calls-data", {"all": calls})))
    parts += [(title, table(title, rows)) for title, rows in tables.items()]
    return figure_page("Strategies compared", lead, parts)


def _over_calls(
    runs: Sequence[Run], values: Callable[[Run], Sequence[float] | Floats], title: str, log: bool
) -> "Figure":
    """Draw a line for the median of the repeats and a band from the least to the largest value.

    A run that stopped keeps its last value.
    """
    import plotly.express as px

    grid = np.unique(np.geomspace(1, max(run["at"][-1] for run in runs), POINTS).round())
    curves = pd.concat(
        pd.Series(values(run), run["at"], name=title)
        .groupby(level=0)
        .last()  # source images may be asked about between two steps with the same calls
        .reindex(grid, method="ffill")
        .bfill()
        .rename_axis("calls")
        .reset_index()
        .assign(strategy=shown(run["strategy"]))
        for run in runs
    )
    spread = curves.groupby(["strategy", "calls"], sort=False)[title].agg(["min", "median", "max"])
    lines = {"color": "strategy", "line_dash": "strategy", "color_discrete_sequence": INKS}
    labels = {"median": title}
    figure = px.line(spread.reset_index(), x="calls", y="median", log_x=log, labels=labels, **lines)
    for line in figure.data:
        band = spread.loc[line.name]
        figure.add_scatter(
            x=[*grid, *grid[::-1]],
            y=[*band["max"], *band["min"][::-1]],
            fill="toself",
            fillcolor=line.line.color,
            opacity=0.18,
            line_width=0,
            hoverinfo="skip",
            name=f"{line.name}: all repeats",
            legendgroup=line.name,
            showlegend=False,
        )
    return figure


def _bars(runs: Sequence[Run]) -> "Figure":
    """Draw the median of calls as a bar and the repeats as dots.

    If half of them or more did not reach the goal, the bar has the calls made, in a series named
    "median more than".
    """
    import plotly.express as px

    calls = calls_to_goal(runs).rename(columns=shown)
    asked = pd.Series({shown(run["strategy"]): run["calls"] for run in runs})
    medians = calls.median()
    bars = pd.DataFrame({"strategy": calls.columns, "calls": medians.where(np.isfinite, asked)})
    bars["series"] = np.where(np.isinf(medians), "median more than", "median")
    bars["text"] = [
        amount(median) if math.isfinite(median) else f"more than {amount(n)}"
        for median, n in zip(np.ceil(medians), bars["calls"], strict=True)
    ]
    hatched = {"median": "", "median more than": "/"}
    series = {"pattern_shape": "series", "pattern_shape_map": hatched, "text": "text"}
    series |= {"category_orders": {"series": [*hatched]}}
    colours = [COLOURS["accent"]]
    figure = px.bar(bars, x="calls", y="strategy", color_discrete_sequence=colours, **series)
    figure.update_traces(textposition="inside", insidetextanchor="start", constraintext="none")
    figure.update_traces(marker_pattern_fillmode="overlay")  # text is legible on a solid bar
    repeats = calls.melt(var_name="strategy", value_name="calls").replace(np.inf, np.nan).dropna()
    dots = {"color": COLOURS["text"], "size": 7, "symbol": "circle-open"}
    places = {"x": repeats["calls"], "y": repeats["strategy"]}
    figure.add_scatter(**places, name="repeats", mode="markers", marker=dots)
    names = {"categoryorder": "array", "categoryarray": [*calls], "autorange": "reversed"}
    height = 110 + BAR * len(bars)
    figure.update_layout(height=height, showlegend=False, barmode="overlay", yaxis=names)
    return figure


def _plain(figure: "Figure") -> JsonObject:
    """Return data and layout as plain lists, for the page, which has its own template."""
    plain: JsonObject = figure.to_plotly_json()
    del plain["layout"]["template"], plain["layout"]["margin"]
    for record, trace in zip(plain["data"], figure.data, strict=True):
        for name in ("x", "y", "text"):
            if name in record:
                record[name] = np.asarray(trace[name]).tolist()
    return plain
