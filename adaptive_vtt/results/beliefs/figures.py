"""Plotly figures (dicts with data and layout) of the tables that ``beliefs`` gives, and of nothing
else: every number in them stands in a table. Names are shown as text, whatever they hold.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known
from ...types import JsonObject
from ...utils.figures import shown as as_text
from ..outcomes import wilson
from .moments import Moments, bound, turned
from .tables import Told

Figure = JsonObject
Tell = Callable[[Told], Moments]
"""The tables of groups, by what they are of."""
BINS = 10
"""Parts of about as many predictions each, by which they are compared with what came."""
NOTHING = "No losses are predicted: this audit explores, or has no surrogate. "
HEAT = [[0, "#fdf5ee"], [1, "#9c3403"]]
APART = [[0, "#0b5fad"], [0.5, "#ffffff"], [1, "#b2420a"]]
SEEN, BAD, CERTIFIED, GREY = "#0b5fad", "#b2420a", "#00725a", "#555f6b"
"""Colours told apart by colour-blind readers, too; a report puts its own in their place."""
SHOWN = {
    "predicted": "predicted loss",
    "sd": "sd of the predicted loss",
    "raw": "raw rate of those asked",
    "asked": "questions asked",
    "difference": "predicted minus raw",
}
"""What a surface may be coloured by: columns, and what they are called."""
LINES = ("predicted", "raw", "certified", "from", "to")
"""Of each panel of curves."""
COLUMNS, PANELS = 4, 24
"""Of small multiples side by side, and in all."""


# -- surfaces ------------------------------------------------------------------------------


def surface(tell: Tell, relation: str | None = None) -> Figure:
    """Heat map of the last moment, concept x relation; with ``relation``, concept x severity. A
    menu colours it by each of ``SHOWN``; dots are the draws since the moment before."""
    of: Told = "relation-concept" if relation is None else "cell"
    moments = tell(of)
    columns, rows, at = _grid(moments, relation)
    known = [name for name in SHOWN if moments.predicts or name in ("asked", "raw")]
    looks = {name: _look(moments, name) for name in known}
    first = "predicted" if moments.predicts else "raw"
    heat: Figure = {
        "type": "heatmap",
        "x": columns,
        "y": rows,
        "hovertemplate": "%{text}<extra></extra>",
    }
    heat |= {"name": SHOWN[first], "meta": {"looks": looks, "shown": SHOWN}, **looks[first]}
    flat = [g for row in at for g in row]
    dots: Figure = {"type": "scatter", "mode": "markers", "name": "draws since the moment before"}
    dots |= {"x": columns * len(rows), "y": [name for name in rows for _ in columns]}
    dots |= {"marker": {"color": SEEN, "opacity": 1, "line": {"color": "#ffffff", "width": 1}}}
    dots |= {"hoverinfo": "skip", "showlegend": False}
    data = [
        bound(heat, moments, of, at, z=first, text="said"),
        bound(dots, moments, of, flat, marker__size="fresh_size"),
    ]
    buttons = [_button(moments, at, name, look) for name, look in looks.items()]
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18, "showactive": True}
    about = "relation" if relation is None else f"severity of {as_text(relation)}"
    axis = {"type": "category", "automargin": True, "showgrid": False}
    x = {
        **axis,
        "title": {"text": "severity" if relation else ""},
        "range": [-0.5, len(columns) - 0.5],
    }
    y = {**axis, "range": [-0.5, len(rows) - 0.5]}  # where the cells end
    title = f"What it believes: concept by {about}{_at(moments)}"
    layout = _layout(title, x, y, "" if moments.predicts else NOTHING)
    return {"data": data, "layout": {**layout, "updatemenus": [menu]}}


def through(tell: Tell) -> Figure:
    """``surface`` at every moment: a slider, and a button that plays."""
    found, tables = surface(tell), {"relation-concept": tell("relation-concept")}
    moments = tables["relation-concept"].draws
    frames = [
        {"name": str(draws), "data": [turned(trace, tables, k) for trace in found["data"]]}
        for k, draws in enumerate(moments)
    ]
    now = {"mode": "immediate", "frame": {"duration": 300, "redraw": True}}
    steps = [
        {"label": frame["name"], "method": "animate", "args": [[frame["name"]], now]}
        for frame in frames
    ]
    play = {"label": "play", "method": "animate", "args": [None, {**now, "fromcurrent": True}]}
    slider: Figure = {"steps": steps, "currentvalue": {"prefix": "draws: "}}
    slider["active"] = max(len(steps) - 1, 0)
    menu = {"type": "buttons", "buttons": [play], "x": 1, "y": 1.18}
    title = {"text": "What it believes: concept by relation"}
    layout = {**found["layout"], "title": title, "sliders": [slider], "updatemenus": [menu]}
    return {"data": found["data"], "layout": layout, "frames": frames}


def _grid(moments: Moments, relation: str | None) -> tuple[list[str], list[str], Any]:
    """Columns, rows (Plotly's first is the lowest) and the group of each cell."""
    places = {
        (g.concept, g.relation if relation is None else g.severity): k
        for k, g in enumerate(moments.groups)
        if relation in (None, g.relation)
    }
    rows = list(dict.fromkeys(concept for concept, _ in places))[::-1]
    columns = list(dict.fromkeys(column for _, column in places))
    at = [[places.get((row, column)) for column in columns] for row in rows]
    return [as_text(c) for c in columns], [as_text(r) for r in rows], at


def _look(moments: Moments, name: str) -> Figure:
    """Colours of a surface, the same at every moment."""
    count = len(moments.draws)
    late = [value for k in range(count // 2, count) for value in moments.known(name, k)]
    bar: Figure = {"thickness": 12, "outlinewidth": 0}
    if name != "asked":
        bar["tickformat"] = ".0%" if name != "sd" else ".1%"
    if name == "difference":
        most = max([0.05, *map(abs, late)])
        return {"colorscale": APART, "zmin": -most, "zmax": most, "colorbar": bar}
    most = 1.0
    if name in ("predicted", "sd"):
        most = max(late, default=1.0) or 1.0
    elif name == "asked":  # which never falls
        most = max(moments.known(name) if count else [], default=1.0) or 1.0
    return {"colorscale": HEAT, "zmin": 0, "zmax": most, "colorbar": bar}


def _button(moments: Moments, at: Any, name: str, look: Figure) -> Figure:
    """What "restyle" takes of the heat map alone: a value per trace."""
    told = bound({"meta": {}}, moments, "", at, z=name)
    new = {key: [value] for key, value in {**look, "z": told["z"]}.items()}
    return {"label": SHOWN[name], "method": "restyle", "args": [new, [0]]}


# -- curves --------------------------------------------------------------------------------


def curves(tell: Tell, concept: str | None = None, relation: str | None = None) -> Figure:
    """Loss against severity, a panel per relation: of ``concept``, or of all together; with
    ``relation``, a panel per concept of that relation."""
    of: Told = "cell" if concept or relation else "severity"
    whole: Told = "relation-concept" if concept or relation else "relation"
    moments = tell(of)
    panels: dict[str, list[int]] = {}
    for k, group in enumerate(moments.groups):
        if relation in (None, group.relation) and concept in (None, group.concept):
            panels.setdefault(str(group.concept if relation else group.relation), []).append(k)
    around, every = tell(whole), len(panels)
    if every > PANELS:
        worst = sorted(panels, key=lambda name: -_worst(moments, panels[name]))[:PANELS]
        panels = {name: at for name, at in panels.items() if name in worst}
    wholes = {
        str(g.concept if relation else g.relation): k
        for k, g in enumerate(around.groups)
        if relation in (None, g.relation) and concept in (None, g.concept)
    }
    data: list[Figure] = []
    for number, (name, at) in enumerate(panels.items()):
        data += _panel(number, name, (moments, of, at), (around, whole, wholes[name]))
    about = "all concepts" if concept is None else as_text(concept)
    title = f"Loss by severity: {as_text(relation) if relation else about}{_at(moments)}"
    title += f", the worst {PANELS} of {every}" if every > PANELS else ""
    layout = _layout(title, {}, {}, "" if moments.predicts else NOTHING)
    tall = _highest(moments, [k for at in panels.values() for k in at])
    reach = [[min(x) - 0.6, max(x) + 0.6] for x in (t["x"] for t in data[:: len(LINES)])]
    grid = _panels([*panels], tall, reach)
    grid["annotations"] += layout.get("annotations", [])
    return {"data": data, "layout": {**layout, **grid}}


def _panel(
    number: int, name: str, told: tuple[Moments, str, list[int]], around: tuple[Moments, str, int]
) -> list[Figure]:
    """Mean with its 95 % band, raw rates as dots the larger the more were asked, and certified
    intervals: whiskers of a severity, dashed lines of all severities together."""
    moments, of, at = told
    x = [moments.groups[k].severity or 0 for k in at]
    axes = {"xaxis": f"x{number + 1}", "yaxis": f"y{number + 1}"} if number else {}
    common: Figure = {"type": "scatter", "x": x, "showlegend": not number, **axes}
    common |= {"meta": {"panel": as_text(name)}, "hovertemplate": "%{text}<extra></extra>"}

    def line(name: str, mode: str, **more: Any) -> Figure:
        return {**common, "name": name, "legendgroup": name, "mode": mode, **more}

    band = {"type": "data", "symmetric": False, "thickness": 9, "width": 0}
    mean = line(
        "predicted, 95 % band", "lines+markers", line={"color": SEEN}, marker={"color": SEEN}
    )
    mean["showlegend"] = not number and moments.predicts
    mean["error_y"] = {**band, "color": "rgba(11, 95, 173, .2)"}
    dot = {"color": BAD, "symbol": "circle-open", "line": {"width": 1.5}}
    raw = line("raw rate, larger: more asked", "markers", marker=dot)
    whisker = line(
        "certified", "markers", marker={"symbol": "line-ew-open", "size": 9, "color": CERTIFIED}
    )
    whisker |= {"hoverinfo": "skip", "error_y": {"type": "data", "color": CERTIFIED, "width": 5}}
    whisker["error_y"]["thickness"] = 2
    whisker["showlegend"] = not number and moments.certifies
    ends = {"color": CERTIFIED, "dash": "dash", "width": 1.5}
    across = {**common, "mode": "lines", "line": ends, "hoverinfo": "skip", "showlegend": False}
    across["x"] = [min(x) - 0.4, max(x) + 0.4]
    table, whole, group = around
    both = [group, group]
    return [
        bound(
            mean,
            moments,
            of,
            at,
            y="predicted",
            error_y__array="above",
            error_y__arrayminus="below",
            text="said",
        ),
        bound(raw, moments, of, at, y="raw", marker__size="size", text="said"),
        bound(whisker, moments, of, at, y="middle", error_y__array="reach"),
        bound({**across, "name": "certified from"}, table, whole, both, y="lower"),
        bound({**across, "name": "certified to"}, table, whole, both, y="upper"),
    ]


def _panels(names: Sequence[str], tall: float, reach: Sequence[Sequence[float]]) -> Figure:
    """The axes of as many panels, in a grid, with a name above each."""
    columns = min(COLUMNS, max(len(names), 1))
    grid = {"rows": ceil(len(names) / columns), "columns": columns, "pattern": "independent"}
    found: Figure = {"grid": {**grid, "ygap": 0.35, "xgap": 0.2}, "annotations": []}
    for k, (name, ends) in enumerate(zip(names, reach, strict=True)):
        end = str(k + 1) if k else ""
        found[f"xaxis{end}"] = {"dtick": 1, "automargin": False, "range": ends}
        found[f"yaxis{end}"] = {
            "range": [-0.08 * tall, tall],
            "tickformat": ".0%",
            "automargin": False,
        }
        place = {"xref": f"x{end} domain", "yref": f"y{end} domain", "x": 0, "y": 1}
        place |= {"xanchor": "left", "yanchor": "bottom", "showarrow": False}
        found["annotations"].append({"text": as_text(name), **place})
    return found


def _worst(moments: Moments, at: Sequence[int]) -> float:
    """The highest loss predicted of any of these groups, or raw where none is."""
    last = moments.columns["predicted" if moments.predicts else "raw"][-1] if moments.draws else []
    return max((last[k] for k in at if last[k] is not None), default=-1.0)


def _highest(moments: Moments, at: Sequence[int]) -> float:
    """Where axes end: by what was predicted in the later half, and raw rates of more than a few."""
    half = len(moments.draws) // 2
    told = [moments.columns["predicted"][k][g] for k in range(half, len(moments.draws)) for g in at]
    last = (
        {name: moments.columns[name][-1] for name in ("raw", "asked", "upper")}
        if moments.draws
        else {}
    )
    told += [last["raw"][g] for g in at if last["asked"][g] >= BINS / 2]
    told += [last["upper"][g] for g in at]
    return min(1.0, 1.15 * max([0.05, *(value for value in told if value is not None)]))


# -- images, and what came of predictions --------------------------------------------------


ABOUT_IMAGE = {"predicted": "predicted loss", "sd": "its sd", "asked": "asked", "failed": "failed"}


def image_map(table: pd.DataFrame, sample: str = "image") -> Figure:
    """A dot per image of the table "images", where its features place it (else predicted loss
    against sd), coloured by predicted loss, sd, asked or failed; ``sample``: what one is called."""
    last = table[table["draws"] == table["draws"].max()]
    placed, predicts = bool(last["x"].notna().any()), bool(last["predicted"].notna().any())
    x, y = ("x", "y") if placed else ("predicted", "sd")
    known = [name for name in ABOUT_IMAGE if last[name].notna().any()]
    told = {name: _plain(last[name]) for name in ABOUT_IMAGE}
    sizes = [5 if not n else 8 for n in told["asked"]]
    marker = {"color": told[known[0]], "colorscale": "Viridis", "showscale": True, "size": sizes}
    marker |= {
        "line": {"color": GREY, "width": 0.5},
        "opacity": 0.85,
        "colorbar": {"thickness": 12},
    }
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "images",
        "x": _plain(last[x]),
        "y": _plain(last[y]),
        "text": [_image_said(row) for row in last.to_dict("records")],
        "customdata": [list(row) for row in zip(*told.values(), strict=True)],
        "marker": marker,
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"looks": {name: k for k, name in enumerate(ABOUT_IMAGE) if name in known}},
    }
    buttons = [
        {"label": ABOUT_IMAGE[n], "method": "restyle", "args": [{"marker.color": [told[n]]}]}
        for n in known
    ]
    names = ("component 1", "component 2") if placed else ("predicted loss", "its sd")
    right, up = ({"title": {"text": text}} for text in names)
    at = f", after {int(last['draws'].iloc[0])} draws" if len(last) else ""
    layout = _layout(f"{sample.capitalize()}s{at}", right, up, "" if predicts else NOTHING)
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18}
    return {"data": [dots], "layout": {**layout, "updatemenus": [menu], "dragmode": "lasso"}}


def _image_said(row: Mapping[Any, Any]) -> str:
    lines = [as_text(row["sample"])]
    if row["predicted"] == row["predicted"]:
        sd = "" if row["sd"] != row["sd"] else f" ± {row['sd']:.1%} (sd)"
        lines.append(f"predicted {row['predicted']:.1%}{sd}")
    return "<br>".join([*lines, f"{row['failed']} of {row['asked']} asked failed"])


def reliability(table: pd.DataFrame) -> Figure:
    """What questions were expected to lose before they were asked, of the table "predictions",
    against what they lost: ``BINS`` of about as many, with 95 % intervals by Wilson."""
    bins = binned(table)
    low, high = bins["mean"] - bins["lower"], bins["upper"] - bins["mean"]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "questions asked",
        "x": _plain(bins["predicted"]),
        "y": _plain(bins["mean"]),
        "error_y": {"type": "data", "array": _plain(high), "arrayminus": _plain(low)},
        "marker": {"color": SEEN, "size": 9},
        "text": [f"{n} questions" for n in bins["count"]],
        "hovertemplate": "expected %{x:.1%}, lost %{y:.1%} (%{text})<extra></extra>",
    }
    line: Figure = {"type": "scatter", "mode": "lines", "name": "as expected"}
    end = min(1.0, 1.1 * max([0.1, *bins["upper"], *bins["predicted"]]))
    line |= {"x": [0, end], "y": [0, end], "line": {"dash": "dash", "color": GREY}}
    axis = {"range": [-0.01, end], "tickformat": ".0%"}
    x, y = ({**axis, "title": {"text": t}} for t in ("expected before the answer", "lost"))
    return {
        "data": [{**line, "hoverinfo": "skip"}, dots],
        "layout": _layout("Are the predictions right?", x, y, gain(table)),
    }


def binned(table: pd.DataFrame) -> pd.DataFrame:
    """The bins of ``reliability``: predicted, mean, lower, upper, count."""
    ordered = table.sort_values(["predicted", "draw"], kind="stable")
    parts = np.array_split(np.arange(len(ordered)), max(1, min(BINS, len(ordered) // 5)))
    records = []
    for part in parts:
        inside = ordered.iloc[part]
        if len(inside):
            mean = float(inside["loss"].mean())
            low, high = wilson(mean * len(inside), len(inside))
            told = float(inside["predicted"].mean()), mean, min(low, mean), max(high, mean)
            records.append((*told, len(inside)))
    return pd.DataFrame(records, columns=["predicted", "mean", "lower", "upper", "count"])


def gain(table: pd.DataFrame) -> str:
    """One sentence: how much of the losses' variance predictions foresaw, beside their plain mean
    up to then, and what that is in calls."""
    if not len(table):
        return "No draw tells what its question was expected to lose. "
    loss = table["loss"].to_numpy(float)
    before = (np.concatenate([[0.0], loss.cumsum()[:-1]]) + 0.5) / (np.arange(len(loss)) + 1)
    plain = float(np.square(loss - before).mean())
    error = float(np.square(loss - table["predicted"].to_numpy(float)).mean())
    said = f"Mean squared error {error:.3f} over {len(loss)} calls, by the plain rate {plain:.3f}"
    if error >= plain:
        return f"{said}: predictions saved no calls. "
    alone = len(loss) * plain / error if error else float("inf")
    return f"{said}: {len(loss)} calls tell about as much as {alone:,.0f} without. "


def concepts_unsure(table: pd.DataFrame) -> Figure:
    """u- and u+ of every concept over draws, of the table "uncertainty"."""
    data = []
    for (concept, side), part in table.groupby(["concept", "side"], sort=False):
        sign, dash = ("+", "solid") if side else ("-", "dot")
        line: Figure = {"type": "scatter", "mode": "lines+markers", "line": {"dash": dash}}
        line |= {"name": f"{as_text(concept)} u{sign}", "x": _plain(part["draws"])}
        data.append({**line, "y": _plain(part["uncertainty"])})
    x = {"title": {"text": "draws"}, "type": "log"}
    y = {"title": {"text": "share of the prior"}, "rangemode": "tozero"}
    return {"data": data, "layout": _layout("Uncertainty of the answer GPs", x, y)}


# -- parts ---------------------------------------------------------------------------------


def _at(moments: Moments) -> str:
    return f", after {moments.draws[-1]} draws" if moments.draws else ""


def _layout(title: str, x: Figure, y: Figure, note: str = "") -> Figure:
    layout = {"template": "plotly_white", "title": {"text": title}, "xaxis": x, "yaxis": y}
    if not note:
        return layout
    said = {"text": note.strip(), "showarrow": False, "xref": "paper", "yref": "paper"}
    return {
        **layout,
        "annotations": [{**said, "name": "note", "x": 0, "xanchor": "left", "y": 1.08}],
    }


def _plain(values: Any) -> list[Any]:
    """As Python has them, None for what is not known."""
    found: list[Any] = np.asarray(pd.array(values)).tolist()
    return [None if pd.isna(value) else value for value in found]


# -- figures by name -------------------------------------------------------------------------------


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
        check_known(plot.about, about, choices, f"plot {name!r}")
    return plot.draw(tell, about)


def _there(name: str, of: Told, found: pd.DataFrame) -> pd.DataFrame:
    if len(found) or of == "predictions":  # that a strategy tells none is said in the figure
        return found
    raise InputError(
        f"plot {name!r}: expected beliefs in the journal, got none: nothing was learnt yet, or its "
        "answers were judged anew; ask again once the audit has gone on"
    )
