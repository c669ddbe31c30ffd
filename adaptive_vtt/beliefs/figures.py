"""Plotly figures (dicts with data and layout) of the tables that ``beliefs`` gives, and of nothing
else: every number in them stands in a table. Names are shown as text, whatever they hold.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd

from ..utils.plotly_text import shown as as_text

Figure = dict[str, Any]
SURE = 1.96
"""Standard deviations to either side of a 95 % band."""
BINS = 10
"""Parts of about as many predictions each, by which they are compared with what came."""
NOTHING = "No losses are predicted: this audit explores, or has no surrogate. "
SHOWN = {
    "predicted": "predicted loss",
    "sd": "sd of the predicted loss",
    "asked": "questions asked",
    "raw": "raw rate of those asked",
    "difference": "predicted minus raw",
}
"""What a surface may be coloured by: columns, and what they are called."""


def surface(table: pd.DataFrame, *, relation: str | None = None) -> Figure:
    """Heat map of the last moment, concept x relation, of the table "relation-concept"; with
    ``relation``, concept x severity, of the table "cell". A menu colours it by each of ``SHOWN``.
    """
    last = _last(table if relation is None else table[table["relation"] == relation])
    axes = _Axes.of(last, "relation" if relation is None else "severity")
    data = _heat(last, axes, "predicted" if _predicts(last) else "raw")
    buttons = [
        {"label": label, "method": "restyle", "args": [_restyled(_colours(last, axes, name))]}
        for name, label in SHOWN.items()
        if _predicts(last) or name in ("asked", "raw")
    ]
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18, "showactive": True}
    return {
        "data": [data],
        "layout": {**_surface_layout(last, relation, _at(last)), "updatemenus": [menu]},
    }


def through(table: pd.DataFrame) -> Figure:
    """``surface`` of predicted losses at every moment: a slider, and a button that plays."""
    shown = "predicted" if _predicts(table) else "raw"
    axes = _Axes.of(table, "relation")
    moments = [int(draws) for draws in table["draws"].drop_duplicates().sort_values()]
    frames = []
    for draws in moments:
        data = _heat(table[table["draws"] == draws], axes, shown)
        frames.append({"name": str(draws), "data": [data]})
    now = {"mode": "immediate", "frame": {"duration": 300, "redraw": True}}
    steps = [
        {"label": frame["name"], "method": "animate", "args": [[frame["name"]], now]}
        for frame in frames
    ]
    play = {"label": "play", "method": "animate", "args": [None, {**now, "fromcurrent": True}]}
    slider = {
        "steps": steps,
        "currentvalue": {"prefix": "draws: "},
        "active": max(len(steps) - 1, 0),
    }
    layout = {**_surface_layout(table, None, ""), "sliders": [slider]}
    layout["updatemenus"] = [{"type": "buttons", "buttons": [play], "x": 1, "y": 1.18}]
    return {"data": frames[-1]["data"] if frames else [], "layout": layout, "frames": frames}


def curves(table: pd.DataFrame, concept: str | None = None) -> Figure:
    """Loss against severity, a colour per relation: mean with its 95 % band, raw rates as dots the
    larger the more were asked, certified intervals as whiskers. Of ``concept`` in the table "cell",
    or of the table "severity"."""
    last = _last(table if concept is None else table[table["concept"] == concept])
    data: list[Figure] = []
    for k, (relation, part) in enumerate(last.groupby("relation", sort=False)):
        data += _curve(str(relation), part.sort_values("severity"), COLOURS[k % len(COLOURS)])
    about = "all concepts" if concept is None else as_text(concept)
    title = f"Loss by severity: {about}{_at(last)}"
    x = {"title": {"text": "severity"}, "dtick": 1}
    note = "" if _predicts(last) else NOTHING
    return {"data": data, "layout": _layout(title, x, {**_SHARE, "title": {"text": "loss"}}, note)}


def image_map(table: pd.DataFrame) -> Figure:
    """A dot per image of the table "images", where its features place it (else predicted loss
    against sd), coloured by predicted loss, sd, asked or failed."""
    last = _last(table)
    placed = bool(last["x"].notna().any())
    x, y = ("x", "y") if placed else ("predicted", "sd")
    first = "predicted" if last["predicted"].notna().any() else "asked"
    names = [as_text(name) for name in last["sample"]]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": _plain(last[x]),
        "y": _plain(last[y]),
        "text": names,
        "customdata": [_plain(row) for row in last[[*ABOUT_IMAGE]].to_numpy(float)],
        "marker": {"color": _plain(last[first]), "colorscale": "Viridis", "showscale": True},
        "hovertemplate": "%{text}<br>predicted %{customdata[0]:.1%}, sd %{customdata[1]:.1%}<br>"
        "%{customdata[3]} of %{customdata[2]} asked failed<extra></extra>",
    }
    buttons = [
        {"label": n, "method": "restyle", "args": [{"marker.color": [_plain(last[n])]}]}
        for n in ABOUT_IMAGE
        if last[n].notna().any()
    ]
    names_of = ("component 1", "component 2") if placed else ("predicted loss", "its sd")
    right, up = ({"title": {"text": text}} for text in names_of)
    note = "" if last["predicted"].notna().any() else NOTHING
    layout = _layout(f"Images{_at(last)}", right, up, note)
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18}
    return {"data": [dots], "layout": {**layout, "updatemenus": [menu], "dragmode": "lasso"}}


ABOUT_IMAGE = ("predicted", "sd", "asked", "failed")


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
        "text": [f"{n} questions" for n in bins["count"]],
        "hovertemplate": "expected %{x:.1%}, lost %{y:.1%} (%{text})<extra></extra>",
    }
    line: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": "as expected",
        "x": [0, 1],
        "y": [0, 1],
    }
    line |= {"line": {"dash": "dash", "color": "#8a94a0"}, "hoverinfo": "skip"}
    x, y = ({**_SHARE, "title": {"text": t}} for t in ("expected before the answer", "lost"))
    return {
        "data": [line, dots],
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
            told = float(inside["predicted"].mean()), mean, *_wilson(mean, len(inside))
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
    said = (
        f"Mean squared error {error:.3f} over {len(loss)} questions, by the plain rate {plain:.3f}"
    )
    if error >= plain:
        return f"{said}: predictions saved no calls. "
    alone = len(loss) * plain / error if error else float("inf")
    return f"{said}: {len(loss)} answers tell about as much as {alone:.0f} without. "


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

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
_SHARE: Figure = {"range": [0, 1], "tickformat": ".0%"}


def _curve(relation: str, part: pd.DataFrame, colour: str) -> list[Figure]:
    name, x = as_text(relation), _plain(part["severity"])
    low = (part["predicted"] - SURE * part["sd"]).clip(0, 1)
    high = (part["predicted"] + SURE * part["sd"]).clip(0, 1)
    common: Figure = {"type": "scatter", "legendgroup": name, "name": name, "x": x}
    edge: Figure = {**common, "mode": "lines", "line": {"width": 0}, "showlegend": False}
    edge |= {"hoverinfo": "skip"}
    band: list[Figure] = [
        {**edge, "y": _plain(high)},
        {**edge, "y": _plain(low), "fill": "tonexty"},
    ]
    band[1]["fillcolor"] = (
        f"rgba({','.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))},.2)"
    )
    mean: Figure = {**common, "mode": "lines+markers", "y": _plain(part["predicted"])}
    mean |= {
        "line": {"color": colour},
        "text": _hover(part),
        "hovertemplate": "%{text}<extra></extra>",
    }
    size = (4 + 3 * np.sqrt(part["asked"])).clip(upper=30)
    raw: Figure = {**common, "mode": "markers", "y": _plain(_raw(part)), "showlegend": False}
    raw |= {"marker": {"color": colour, "symbol": "circle-open", "size": _plain(size)}}
    raw |= {"text": _hover(part), "hovertemplate": "%{text}<extra></extra>"}
    found = [*band, mean, raw]
    known = part[part["lower"].notna()]
    if len(known):
        middle = (known["lower"] + known["upper"]) / 2
        error = {"type": "data", "array": _plain((known["upper"] - known["lower"]) / 2)}
        whisker: Figure = {
            **common,
            "x": _plain(known["severity"]),
            "y": _plain(middle),
            "mode": "markers",
        }
        whisker |= {"marker": {"opacity": 0}, "error_y": {**error, "color": colour}}
        found.append({**whisker, "showlegend": False, "hoverinfo": "skip"})
    return found


def _heat(part: pd.DataFrame, axes: "_Axes", shown: str) -> Figure:
    texts = part.assign(text=_hover(part))
    return {
        "type": "heatmap",
        "x": [as_text(name) for name in axes.columns],
        "y": [as_text(name) for name in axes.rows],
        "text": axes.grid(texts, texts["text"]),
        "hovertemplate": "%{text}<extra></extra>",
        **_colours(part, axes, shown),
    }


def _colours(part: pd.DataFrame, axes: "_Axes", shown: str) -> Figure:
    """The numbers that a surface is coloured by, and the colours."""
    raw, predicted = _raw(part), part["predicted"]
    made = {"raw": raw, "difference": predicted - raw}
    values = axes.grid(part, made.get(shown, part.get(shown)))
    found: Figure = {"z": values, "colorscale": "RdBu" if shown == "difference" else "Viridis"}
    rates = shown in ("predicted", "raw")
    found |= {"zmin": 0 if rates else None, "zmax": 1 if rates else None, "zauto": not rates}
    return {**found, "zmid": 0 if shown == "difference" else None}


def _restyled(trace: Figure) -> Figure:
    """What "restyle" takes: a value per trace, of which there is one."""
    return {name: [value] for name, value in trace.items()}


@dataclass(frozen=True)
class _Axes:
    """Concepts downwards, relations or severities, ``across``, to the right."""

    across: str
    rows: list[Any]
    columns: list[Any]

    @classmethod
    def of(cls, table: pd.DataFrame, across: str) -> "_Axes":
        rows, columns = (table[name].drop_duplicates().tolist() for name in ("concept", across))
        return cls(across, rows[::-1], columns)  # Plotly's first row is the lowest

    def grid(self, part: pd.DataFrame, values: Any) -> list[list[Any]]:
        """Rows of values, None where there is no such group, or its value is not known."""
        places = zip(part["concept"], part[self.across], strict=True)
        found = dict(zip(places, _plain(values), strict=True))
        return [[found.get((row, column)) for column in self.columns] for row in self.rows]


def _surface_layout(table: pd.DataFrame, relation: str | None, at: str) -> Figure:
    about = "relation" if relation is None else f"severity of {as_text(relation)}"
    x = {"title": {"text": "severity" if relation else ""}, "type": "category", "automargin": True}
    y = {"type": "category", "automargin": True}
    return _layout(
        f"What it believes: concept by {about}{at}", x, y, "" if _predicts(table) else NOTHING
    )


def _hover(part: pd.DataFrame) -> list[str]:
    """All that is known of each group, in words."""
    texts = []
    for row in part.to_dict("records"):
        names = [str(row[k]) for k in ("concept", "relation", "severity") if not _none(row[k])]
        lines = [as_text(", ".join(names))]
        if not _none(row["predicted"]):
            sd = "" if _none(row["sd"]) else f" +- {row['sd']:.1%} (sd)"
            lines.append(f"predicted {row['predicted']:.1%}{sd}, single losses {row['spread']:.1%}")
        lines.append(f"{row['failed']} of {row['asked']} asked failed")
        if not _none(row["lower"]):
            lines.append(f"certified {row['lower']:.1%} to {row['upper']:.1%}")
        texts.append("<br>".join(lines))
    return texts


def _raw(part: pd.DataFrame) -> pd.Series:
    """Of the questions asked, the share that failed; NaN where none was."""
    return part["failed"] / part["asked"].where(part["asked"] > 0)


def _last(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["draws"] == table["draws"].max()]


def _at(last: pd.DataFrame) -> str:
    return f", after {int(last['draws'].iloc[0])} draws" if len(last) else ""


def _predicts(table: pd.DataFrame) -> bool:
    return bool(table["predicted"].notna().any())


def _wilson(mean: float, count: int) -> tuple[float, float]:
    """A 95 % interval of a rate by its Wilson score."""
    square = SURE**2 / count
    middle = (mean + square / 2) / (1 + square)
    half = SURE * sqrt(mean * (1 - mean) / count + square / count / 4) / (1 + square)
    return min(middle - half, mean), max(middle + half, mean)


def _layout(title: str, x: Figure, y: Figure, note: str = "") -> Figure:
    layout = {"template": "plotly_white", "title": {"text": title}, "xaxis": x, "yaxis": y}
    if not note:
        return layout
    said = {"text": note.strip(), "showarrow": False, "xref": "paper", "yref": "paper"}
    return {**layout, "annotations": [{**said, "x": 0, "xanchor": "left", "y": 1.08}]}


def _none(value: Any) -> bool:
    return bool(pd.isna(value))


def _plain(values: Any) -> list[Any]:
    """As Python has them, None for what is not known."""
    found: list[Any] = np.asarray(pd.array(values)).tolist()
    return [None if _none(value) else value for value in found]
