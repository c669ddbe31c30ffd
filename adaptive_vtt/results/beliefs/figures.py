"""Plotly figures of the tables that ``beliefs`` gives, and of nothing else: every number in them
stands in a table. Names are shown as text, whatever they hold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known
from ...types import JsonObject
from ...utils.figures import COLOURS, ERRORS, SIGNED
from ...utils.figures import shown as as_text
from ..outcomes import wilson
from .moments import Moments, bound, predicted_words, turned
from .tables import Told

Figure = JsonObject
Tell = Callable[[Told], Moments]
"""The tables of groups, by what they are of."""
TEXT = {"hovertemplate": "%{text}<extra></extra>"}
BINS = 10
"""Parts of about as many predictions each, by which they are compared with what came."""
NOTHING = "No losses are predicted: this audit explores, or has no surrogate."
SHOWN = {
    "predicted": "expected error",
    "sd": "sd of the expected error",
    "raw": "observed error rate",
    "asked": "questions asked",
    "difference": "expected minus observed",
}
"""What a surface may be coloured by: columns, and what they are called."""
ABOUT_IMAGE = {"predicted": "expected error", "sd": "sd", "asked": "asked", "failed": "failed"}
PER_ROW, PANELS = 4, 24
"""Of small multiples side by side, and in all."""


@dataclass(frozen=True)
class Drawing:
    """A figure, as Plotly takes it: ``data`` and ``layout``; and what a page says around it, but a
    notebook does not: ``title``, ``note``, and ``choices`` of a menu, label -> what "restyle" sets.
    """

    title: str
    data: list[Figure]
    layout: Figure
    note: str = ""
    choices: Mapping[str, Sequence[Any]] | None = None

    @property
    def bare(self) -> Figure:
        """The figure without what a page says around it."""
        return {"data": self.data, "layout": self.layout}

    @property
    def whole(self) -> Figure:
        """The figure that stands alone."""
        layout = {"template": "plotly_white", "title": {"text": self.title}, **self.layout}
        if self.note:
            note = {"text": self.note, "showarrow": False, "xref": "paper", "yref": "paper"}
            note |= {"name": "note", "x": 0, "xanchor": "left", "y": 1.08}
            layout["annotations"] = [*layout.get("annotations", []), note]
        if self.choices is not None:
            buttons = [
                {"label": label, "method": "restyle", "args": args}
                for label, args in self.choices.items()
            ]
            layout["updatemenus"] = [{"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18}]
        return {"data": self.data, "layout": layout}


# -- surfaces ------------------------------------------------------------------------------


def surface(tell: Tell, relation: str | None = None) -> Drawing:
    """Draw a heat map of the last moment, concept x relation; with ``relation``, concept x
    severity. A menu colours it by each of ``SHOWN``; dots are the draws since the moment before."""
    of: Told = "relation-concept" if relation is None else "cell"
    moments = tell(of)
    places = {
        (g.concept, g.relation if relation is None else g.severity): k
        for k, g in enumerate(moments.groups)
        if relation in (None, g.relation)
    }
    rows = list(dict.fromkeys(concept for concept, _ in places))[::-1]  # Plotly's first is lowest
    columns = list(dict.fromkeys(column for _, column in places))
    at = [[places.get((row, column)) for column in columns] for row in rows]
    x, y = [as_text(c) for c in columns], [as_text(r) for r in rows]
    known = [name for name in SHOWN if moments.predicts or name in ("asked", "raw")]
    looks = {name: _look(moments, name) for name in known}
    first = "predicted" if moments.predicts else "raw"
    meta = {"looks": looks, "shown": SHOWN}
    heat = {"type": "heatmap", "x": x, "y": y, "name": SHOWN[first], **TEXT, "meta": meta}
    heat |= looks[first]
    edge = {"color": COLOURS["surface"], "width": 1}
    dots = _scatter(
        "draws since the moment before",
        "markers",
        x * len(rows),
        [name for name in y for _ in columns],
        marker={"color": COLOURS["accent"], "opacity": 1, "line": edge},
        hoverinfo="skip",
        showlegend=False,
    )
    flat = [group for row in at for group in row]
    data = [
        bound(heat, moments, of, at, z=first, text="said"),
        bound(dots, moments, of, flat, marker__size="fresh_size"),
    ]
    choices = {}
    for name, look in looks.items():
        z = bound({"meta": {}}, moments, "", at, z=name)["z"]
        choices[SHOWN[name]] = [{key: [value] for key, value in {**look, "z": z}.items()}, [0]]
    axis = {"type": "category", "automargin": True, "showgrid": False}
    across = {"text": "severity" if relation else ""}
    layout = {  # axes end where the cells do
        "xaxis": {**axis, "title": across, "range": [-0.5, len(columns) - 0.5]},
        "yaxis": {**axis, "range": [-0.5, len(rows) - 0.5]},
    }
    about = "relation" if relation is None else f"severity of {as_text(relation)}"
    title = f"Predictions: concept by {about}{_after(moments)}"
    return Drawing(title, data, layout, "" if moments.predicts else NOTHING, choices)


def through(tell: Tell) -> Figure:
    """Draw ``surface`` at every moment: a slider, and a button that plays."""
    drawn, tables = surface(tell).whole, {"relation-concept": tell("relation-concept")}
    frames = [
        {"name": str(draws), "data": [turned(trace, tables, k) for trace in drawn["data"]]}
        for k, draws in enumerate(tables["relation-concept"].draws)
    ]
    now = {"mode": "immediate", "frame": {"duration": 300, "redraw": True}}
    steps = [
        {"label": frame["name"], "method": "animate", "args": [[frame["name"]], now]}
        for frame in frames
    ]
    active = max(len(steps) - 1, 0)
    slider = {"steps": steps, "currentvalue": {"prefix": "draws: "}, "active": active}
    play = {"label": "play", "method": "animate", "args": [None, {**now, "fromcurrent": True}]}
    menu = {"type": "buttons", "buttons": [play], "x": 1, "y": 1.18}
    title = {"text": "Predictions: concept by relation"}
    layout = {**drawn["layout"], "title": title, "sliders": [slider], "updatemenus": [menu]}
    return {"data": drawn["data"], "layout": layout, "frames": frames}


def _look(moments: Moments, name: str) -> Figure:
    """Return the colours of a surface, the same at every moment."""
    count = len(moments.draws)
    late = [value for k in range(count // 2, count) for value in moments.known(name, k)]
    bar: Figure = {"thickness": 12, "outlinewidth": 0}
    if name != "asked":
        bar["tickformat"] = ".0%" if name != "sd" else ".1%"
    if name == "difference":
        most = max([0.05, *map(abs, late)])
        return {"colorscale": SIGNED, "zmin": -most, "zmax": most, "colorbar": bar}
    most = 1.0
    if name in ("predicted", "sd"):
        most = max(late, default=1.0) or 1.0
    elif name == "asked":  # which never falls
        most = max(moments.known(name) if count else [], default=1.0) or 1.0
    return {"colorscale": ERRORS, "zmin": 0, "zmax": most, "colorbar": bar}


# -- curves --------------------------------------------------------------------------------


def curves(tell: Tell, concept: str | None = None, relation: str | None = None) -> Drawing:
    """Draw loss against severity, a panel per relation: of ``concept``, or of all together; with
    ``relation``, a panel per concept of that relation."""
    of: Told = "cell" if concept or relation else "severity"
    moments, whole = tell(of), tell("relation-concept" if concept or relation else "relation")

    def panels_of(groups: Moments) -> dict[str, list[int]]:
        panels: dict[str, list[int]] = {}
        for k, group in enumerate(groups.groups):
            if relation in (None, group.relation) and concept in (None, group.concept):
                name = str(group.concept if relation else group.relation)
                panels.setdefault(name, []).append(k)
        return panels

    panels, wholes = panels_of(moments), panels_of(whole)
    every = len(panels)
    if every > PANELS:
        worst = sorted(panels, key=lambda name: -_worst(moments, panels[name]))[:PANELS]
        panels = {name: at for name, at in panels.items() if name in worst}
    data: list[Figure] = []
    for number, (name, at) in enumerate(panels.items()):
        axes = {"xaxis": f"x{number + 1}", "yaxis": f"y{number + 1}"} if number else {}
        common = {"meta": {"panel": as_text(name)}, "showlegend": False, **axes}
        data += _losses(common, moments, of, at, first=not number)
        data += _whole(common, whole, wholes[name], data[-1]["x"])
    about = as_text(relation) if relation else as_text(concept) if concept else "all concepts"
    title = f"Loss by severity: {about}{_after(moments)}"
    title += f", the worst {PANELS} of {every}" if every > PANELS else ""
    tall = _highest(moments, [k for at in panels.values() for k in at])
    severities = [[moments.groups[k].severity or 0 for k in at] for at in panels.values()]
    reach = [[min(x) - 0.6, max(x) + 0.6] for x in severities]
    layout = _panels([*panels], tall, reach)
    return Drawing(title, data, layout, "" if moments.predicts else NOTHING)


def _losses(common: Figure, moments: Moments, of: str, at: list[int], first: bool) -> list[Figure]:
    """Draw the mean with its 95 % band, raw rates as dots the larger the more were asked, and
    certified intervals as whiskers; the ``first`` panel has the legend."""
    x = [moments.groups[k].severity or 0 for k in at]

    def line(name: str, mode: str, marker: Figure, shown: bool = True, **more: Any) -> Figure:
        own = {**common, **TEXT, "legendgroup": name, "showlegend": first and shown, **more}
        return _scatter(name, mode, x, marker=marker, **own)

    band = {"type": "data", "symmetric": False, "thickness": 9, "width": 0}
    band["color"] = COLOURS["band"]
    blue = {"color": COLOURS["accent"]}
    mean = line("predicted, 95 % band", "lines+markers", blue, moments.predicts, line=blue)
    ring = {"color": COLOURS["text"], "symbol": "circle-open", "line": {"width": 1.5}}
    raw = line("raw rate, larger: more asked", "markers", ring)
    end = {"symbol": "line-ew-open", "size": 9, "color": COLOURS["third"]}
    reach = {"type": "data", "color": COLOURS["third"], "width": 5, "thickness": 2}
    whisker = line("certified", "markers", end, moments.certifies, error_y=reach, hoverinfo="skip")
    spread = {"error_y__array": "above", "error_y__arrayminus": "below"}
    mean = {**mean, "error_y": band}
    return [
        bound(mean, moments, of, at, y="predicted", **spread, text="said"),
        bound(raw, moments, of, at, y="raw", marker__size="size", text="said"),
        bound(whisker, moments, of, at, y="middle", error_y__array="reach"),
    ]


def _whole(common: Figure, whole: Moments, at: list[int], x: list[int]) -> list[Figure]:
    """Draw the certified interval of all severities together: dashed lines across."""
    pen = {"color": COLOURS["third"], "dash": "dash", "width": 1.5}
    across = {**common, "line": pen, "hoverinfo": "skip"}
    ends = [min(x) - 0.4, max(x) + 0.4]
    of, both = "relation-concept" if whole.groups[at[0]].concept else "relation", [at[0], at[0]]
    return [
        bound(_scatter(f"certified {side}", "lines", ends, **across), whole, of, both, y=column)
        for side, column in (("from", "lower"), ("to", "upper"))
    ]


def _panels(names: Sequence[str], tall: float, reach: Sequence[Sequence[float]]) -> Figure:
    """Return the axes of as many panels, in a grid, with a name above each."""
    columns = min(PER_ROW, max(len(names), 1))
    grid = {"rows": ceil(len(names) / columns), "columns": columns, "pattern": "independent"}
    layout: Figure = {"grid": {**grid, "ygap": 0.35, "xgap": 0.2}, "annotations": []}
    for k, (name, ends) in enumerate(zip(names, reach, strict=True)):
        end = str(k + 1) if k else ""
        y = {"range": [-0.08 * tall, tall], "tickformat": ".0%", "automargin": False}
        layout[f"yaxis{end}"] = y
        layout[f"xaxis{end}"] = {"dtick": 1, "automargin": False, "range": ends}
        place = {"xref": f"x{end} domain", "yref": f"y{end} domain", "x": 0, "y": 1}
        place |= {"xanchor": "left", "yanchor": "bottom", "showarrow": False}
        layout["annotations"].append({"text": as_text(name), **place})
    return layout


def _worst(moments: Moments, at: Sequence[int]) -> float:
    """Return the highest loss predicted of any of these groups, or raw where none is."""
    last = moments.columns["predicted" if moments.predicts else "raw"][-1] if moments.draws else []
    return max((last[k] for k in at if last[k] is not None), default=-1.0)


def _highest(moments: Moments, at: Sequence[int]) -> float:
    """Return where axes end: by what was predicted in the later half, and raw rates of more than a
    few."""
    columns, values = moments.columns, list[float | None]([0.05])
    for k in range(len(moments.draws) // 2, len(moments.draws)):
        values += [columns["predicted"][k][group] for group in at]
    if moments.draws:
        raw, asked, upper = (columns[name][-1] for name in ("raw", "asked", "upper"))
        values += [raw[group] for group in at if asked[group] >= BINS / 2]
        values += [upper[group] for group in at]
    return min(1.0, 1.15 * max(value for value in values if value is not None))


# -- images, and what came of predictions --------------------------------------------------


def image_map(table: pd.DataFrame, sample: str = "image") -> Drawing:
    """Draw a dot per image of the table "images", where its features place it (else predicted loss
    against sd), coloured by predicted loss, sd, asked or failed; ``sample``: what one is called."""
    last = table[table["draws"] == table["draws"].max()]
    placed, predicts = bool(last["x"].notna().any()), bool(last["predicted"].notna().any())
    x, y = ("x", "y") if placed else ("predicted", "sd")
    values = {name: _plain(last[name]) for name in ABOUT_IMAGE}
    known = [name for name in ABOUT_IMAGE if last[name].notna().any()]
    words = []
    for row in last.to_dict("records"):
        asked = f"{row['failed']} of {row['asked']} asked failed"
        words.append("<br>".join([as_text(row["sample"]), *predicted_words(row), asked]))
    dots = _scatter(
        "images",
        "markers",
        _plain(last[x]),
        _plain(last[y]),
        text=words,
        customdata=[list(row) for row in zip(*values.values(), strict=True)],
        marker={
            "color": values[known[0]],
            "colorscale": ERRORS,
            "showscale": True,
            "size": [8 if asked else 5 for asked in values["asked"]],
            "line": {"color": COLOURS["muted"], "width": 0.5},
            "opacity": 0.85,
            "colorbar": {"thickness": 12},
        },
        meta={"looks": {name: k for k, name in enumerate(ABOUT_IMAGE) if name in known}},
        **TEXT,
    )
    names = ("component 1", "component 2") if placed else ("expected error", "its sd")
    right, up = ({"title": {"text": text}} for text in names)
    after = f", after {int(last['draws'].iloc[0])} draws" if len(last) else ""
    layout = {"xaxis": right, "yaxis": up, "dragmode": "lasso"}
    choices = {ABOUT_IMAGE[name]: [{"marker.color": [values[name]]}] for name in known}
    note = "" if predicts else NOTHING
    return Drawing(f"{sample.capitalize()}s{after}", [dots], layout, note, choices)


def reliability(table: pd.DataFrame) -> Drawing:
    """Draw what questions were expected to lose before they were asked, of the table "predictions",
    against what they lost: ``BINS`` of about as many, with 95 % intervals by Wilson."""
    bins = binned(table)
    low, high = bins["mean"] - bins["lower"], bins["upper"] - bins["mean"]
    dots = _scatter(
        "questions asked",
        "markers",
        _plain(bins["predicted"]),
        _plain(bins["mean"]),
        error_y={"type": "data", "array": _plain(high), "arrayminus": _plain(low)},
        marker={"color": COLOURS["accent"], "size": 9},
        text=[f"{n} questions" for n in bins["count"]],
        hovertemplate="expected error %{x:.1%}, actual %{y:.1%} (%{text})<extra></extra>",
    )
    end = min(1.0, 1.1 * max([0.1, *bins["upper"], *bins["predicted"]]))
    pen = {"dash": "dash", "color": COLOURS["muted"]}
    line = _scatter("as expected", "lines", [0, end], [0, end], line=pen, hoverinfo="skip")
    axis = {"range": [-0.01, end], "tickformat": ".0%"}
    x, y = ({**axis, "title": {"text": t}} for t in ("expected error", "actual error"))
    layout = {"xaxis": x, "yaxis": y}
    return Drawing("Calibration of predictions", [line, dots], layout, gain(table))


def binned(table: pd.DataFrame) -> pd.DataFrame:
    """Return the bins of ``reliability``: predicted, mean, lower, upper, count."""
    ordered = table.sort_values(["predicted", "draw"], kind="stable")
    parts = np.array_split(np.arange(len(ordered)), max(1, min(BINS, len(ordered) // 5)))
    records = []
    for part in parts:
        inside = ordered.iloc[part]
        if len(inside):
            mean = float(inside["loss"].mean())
            low, high = wilson(mean * len(inside), len(inside))
            predicted = float(inside["predicted"].mean())
            records.append((predicted, mean, min(low, mean), max(high, mean), len(inside)))
    return pd.DataFrame(records, columns=["predicted", "mean", "lower", "upper", "count"])


def gain(table: pd.DataFrame) -> str:
    """Return one sentence: how much of the losses' variance predictions foresaw, beside their plain
    mean up to then, and what that is in calls."""
    if not len(table):
        return "No draw tells what its question was expected to lose."
    loss = table["loss"].to_numpy(float)
    before = (np.concatenate([[0.0], loss.cumsum()[:-1]]) + 0.5) / (np.arange(len(loss)) + 1)
    plain = float(np.square(loss - before).mean())
    error = float(np.square(loss - table["predicted"].to_numpy(float)).mean())
    words = f"Mean squared error {error:.3f} over {len(loss)} calls; {plain:.3f} by the mean alone"
    if error >= plain:
        return f"{words}: predictions saved no calls."
    alone = len(loss) * plain / error if error else float("inf")
    return f"{words}: {len(loss)} calls are worth {alone:,.0f} without predictions."


def concepts_unsure(table: pd.DataFrame) -> Drawing:
    """Draw u- and u+ of every concept over draws, of the table "uncertainty"."""
    data = []
    for (concept, side), part in table.groupby(["concept", "side"], sort=False):
        name, pen = f"{as_text(concept)} u{'+' if side else '-'}", "solid" if side else "dot"
        x, y = _plain(part["draws"]), _plain(part["uncertainty"])
        data.append(_scatter(name, "lines+markers", x, y, line={"dash": pen}))
    layout = {
        "xaxis": {"title": {"text": "draws"}, "type": "log"},
        "yaxis": {"title": {"text": "share of the prior"}, "rangemode": "tozero"},
    }
    return Drawing("Uncertainty of the answer GPs", data, layout)


def _scatter(
    name: str, mode: str, x: Sequence[Any], y: Sequence[Any] | None = None, **more: Any
) -> Figure:
    values = {"x": x} if y is None else {"x": x, "y": y}
    return {"type": "scatter", "mode": mode, "name": name, **values, **more}


def _after(moments: Moments) -> str:
    return f", after {moments.draws[-1]} draws" if moments.draws else ""


def _plain(values: Any) -> list[Any]:
    """Return values as Python has them, None for what is not known."""
    found: list[Any] = np.asarray(pd.array(values)).tolist()
    return [None if pd.isna(value) else value for value in found]


# -- figures by name -------------------------------------------------------------------------------


class _Plot(NamedTuple):
    """A figure: drawn of groups by ``draw``, of one table by ``draw_of``; ``about``: the column
    whose value one may name."""

    draw: Callable[[Tell, str | None], Figure] | None = None
    about: str | None = None
    of: Told = "cell"
    draw_of: Callable[[pd.DataFrame], Drawing] | None = None


PLOTS: Mapping[str, _Plot] = {
    "beliefs": _Plot(lambda tell, name: surface(tell, name).whole, "relation"),
    "through": _Plot(lambda tell, _: through(tell)),
    "concept": _Plot(lambda tell, name: curves(tell, name).whole, "concept"),
    "relation": _Plot(
        # the last relation unless one is named: the first is most often no change
        lambda tell, name: (
            curves(tell, relation=name or str(tell("relation").groups[-1].relation)).whole
        ),
        "relation",
    ),
    "images": _Plot(of="images", draw_of=image_map),
    "calibration": _Plot(of="predictions", draw_of=reliability),
    "uncertainty": _Plot(of="uncertainty", draw_of=concepts_unsure),
}
"""Name -> how it is drawn."""


def plotted(name: str, about: str | None, table: Callable[[Told], pd.DataFrame]) -> Figure:
    """Return the figure of that name, of ``table``, which gives the tables of ``beliefs``.

    ``about``: which relation ("beliefs", "relation") or concept ("concept") alone.

    Raises:
        InputError: There is no such relation or concept, or nothing was journaled.
    """
    plot = PLOTS[name]
    if about is not None and plot.about is None:
        raise InputError(f"plot {name!r}: expected nothing beside the name, got {about!r}")

    def there(of: Told) -> pd.DataFrame:
        rows = table(of)
        if len(rows) or of == "predictions":  # that a strategy tells none is said in the figure
            return rows
        raise InputError(
            f"plot {name!r}: expected beliefs in the journal, got none: nothing was learnt yet, or "
            "its answers were judged anew; ask again once the audit has gone on"
        )

    if plot.draw is None:
        assert plot.draw_of is not None
        return plot.draw_of(there(plot.of)).whole

    @cache
    def tell(of: Told) -> Moments:
        return Moments.of(there(of))

    if about is not None and plot.about is not None:
        choices = dict.fromkeys(getattr(group, plot.about) for group in tell("cell").groups)
        check_known(plot.about, about, list(choices), f"plot {name!r}")
    return plot.draw(tell, about)
