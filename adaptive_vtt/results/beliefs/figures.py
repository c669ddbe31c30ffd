"""Plotly figures of the tables of ``beliefs``: every number in them stands in a table.

A trace of a figure is *bound* to such a table, read checkpoint by checkpoint (``Moments``). Its
``meta`` holds the name of the table (``of``), the groups shown (``at``) and the column of each of
its attributes (``bind``). ``at`` has numbers of rows of one moment, nested as the trace has its
values, None if there is no such group. So a figure of one moment can be turned to any other
(``turned``); believed.js does the same. Names are shown as text, whatever they hold.
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
from ...utils.figures import COLOURS, ERRORS, SIGNED, percent, span
from ...utils.figures import shown as as_text
from ..outcomes import SURE, wilson
from .tables import TableName

Figure = JsonObject
TEXT = {"hovertemplate": "%{text}<extra></extra>"}
BINS = 10
"""Parts of about as many predictions each, compared with the actual losses."""
NOTHING = "No losses are predicted: this audit explores, or has no surrogate."
SHOWN = {
    "predicted": "expected error",
    "sd": "sd of the expected error",
    "raw": "observed error rate",
    "asked": "questions asked",
    "difference": "expected minus observed",
}
"""Columns that may colour a surface, and their names."""
ABOUT_IMAGE = {"predicted": "expected error", "sd": "sd", "asked": "asked", "failed": "failed"}
PER_ROW, PANELS = 4, 24
"""Small multiples side by side, and in all."""
SMALLEST, LARGEST = 5, 22
"""Diameters, in pixels, of a dot whose size shows a count."""


# -- tables, moment by moment --------------------------------------------------------------


class Group(NamedTuple):
    """The questions of a row; None stands for all."""

    concept: str | None
    relation: str | None
    severity: int | None

    @property
    def words(self) -> str:
        return ", ".join(str(name) for name in self if name is not None)


@dataclass(frozen=True)
class Moments:
    """A table of beliefs, a moment after the other.

    Attributes:
        of: The name of the table.
        draws: Draws made by each moment.
        groups: The groups of each moment.
        columns: Column name -> per moment a value per group, None if it is not known. They are
            the columns of the table and some more. ``raw`` is the share of failures among questions
            asked, ``difference`` predicted - raw, ``fresh`` draws since the moment before.
            ``above`` and ``below`` are the reach of the 95 % band of the predicted loss, ``middle``
            and ``reach`` those of the certified interval. ``size`` and ``fresh_size`` are of dots,
            ``text`` has all of it in words.
    """

    of: TableName
    draws: list[int]
    groups: list[Group]
    columns: dict[str, list[list[Any]]]

    @classmethod
    def read(cls, of: TableName, table: pd.DataFrame, most: int | None = None) -> "Moments":
        """Return the moments of a table of ``beliefs``, evenly spread and with the last one, so
        that a column has ``most`` values at the most."""
        draws = table["draws"].drop_duplicates().tolist()
        count = len(table) // max(len(draws), 1)
        kept = len(draws) if most is None else max(1, min(len(draws), most // max(count, 1)))
        places = np.unique(np.linspace(len(draws) - 1, 0, kept).round().astype(int))
        chosen = [draws[k] for k in places]
        rows = _derived(table[table["draws"].isin(chosen)].reset_index(drop=True), count)
        # a copy: the arrays that pandas hands out may be read-only
        values = {str(name): np.array(rows[name], object) for name in rows}
        for column in values.values():
            column[pd.isna(column)] = None
        groups = zip(*(values.pop(name)[:count] for name in Group._fields), strict=True)
        values.pop("draws")
        columns = {n: v.reshape(-1, max(count, 1)).tolist() for n, v in values.items()}
        return cls(of, chosen, [Group(*names) for names in groups], columns)

    def last(self, column: str) -> list[Any]:
        """Return a column at the last moment; [] without any moment."""
        return self.columns[column][-1] if self.draws else []

    def late(self, column: str) -> list[Any]:
        """Return all known values of a column in the later half of the moments."""
        half = self.columns[column][len(self.draws) // 2 :]
        return [value for values in half for value in values if value is not None]

    @property
    def certifies(self) -> bool:
        """True if any group has a certified interval at the last moment."""
        return any(value is not None for value in self.last("middle"))

    @property
    def predicts(self) -> bool:
        """True if any loss is predicted."""
        return any(value is not None for values in self.columns["predicted"] for value in values)


Reader = Callable[[TableName], Moments]
"""Gives the moments of a table by its name."""


def reader(table: Callable[[TableName], pd.DataFrame], most: int | None = None) -> Reader:
    """Return a reader of tables, each read once.

    Args:
        table: Gives a table of ``beliefs`` by its name.
        most: Values of a column, at most; None for all.
    """
    return cache(lambda of: Moments.read(of, table(of), most))


def bound(trace: JsonObject, moments: Moments, at: Any, **bind: str) -> JsonObject:
    """Return a trace bound to ``moments``, which lacks the values that stand there. The keyword
    error_y__array stands for the attribute error_y.array."""
    paths = {path.replace("__", "."): column for path, column in bind.items()}
    meta = {**trace.get("meta", {}), "of": moments.of, "at": at, "bind": paths}
    return {**trace, "meta": meta}


def turned(trace: JsonObject, tables: Mapping[Any, Moments], k: int) -> JsonObject:
    """Return a trace with the values of moment ``k`` where it is bound to a table."""
    meta = trace.get("meta", {})
    for path, column in meta.get("bind", {}).items():
        moments = tables[meta["of"]].columns[column]
        values = values_at(moments[k] if moments else [], meta["at"])
        outer, dot, inner = path.partition(".")
        trace = {**trace, outer: {**trace.get(outer, {}), inner: values} if dot else values}
    return trace


def values_at(values: list[Any], at: Any) -> Any:
    """Return the values at a place, or at nested lists of places; None stays None."""
    if isinstance(at, list):
        return [values_at(values, place) for place in at]
    return None if at is None else values[at]


def predicted_text(row: Mapping[Any, Any], more: str = "") -> list[str]:
    """Return a prediction in words, followed by ``more``; [] if there is none."""
    if row["predicted"] is None:
        return []
    sd = "" if row["sd"] is None else f", sd {100 * row['sd']:.1f}"
    return [f"expected error {percent(row['predicted'])}{sd}{more}"]


def _derived(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return ``table``, moments of ``count`` rows one after the other, with all columns."""

    def sizes(counts: pd.Series) -> pd.Series:
        return (SMALLEST + 2 * np.sqrt(counts)).clip(upper=LARGEST).round(1).where(counts > 0, 0.0)

    raw = table["failed"] / table["asked"].where(table["asked"] > 0)
    predicted, band = table["predicted"], SURE * table["sd"]
    fresh = table["drawn"] - table["drawn"].shift(count, fill_value=0)
    derived = table.assign(
        raw=raw,
        difference=predicted - raw,
        above=(predicted + band).clip(0, 1) - predicted,
        below=predicted - (predicted - band).clip(0, 1),
        middle=(table["lower"] + table["upper"]) / 2,
        reach=(table["upper"] - table["lower"]) / 2,
        size=sizes(table["asked"]),
        fresh=fresh,
        fresh_size=sizes(fresh),
    )
    known = derived.astype(object).where(derived.notna(), None)
    return derived.assign(text=[_text(row) for row in known.to_dict("records")])


def _text(row: Mapping[Any, Any]) -> str:
    names = (row[name] for name in Group._fields)
    lines = [as_text(", ".join(str(name) for name in names if name is not None))]
    known = row["spread"] is not None
    lines += predicted_text(row, f"; single answers: sd {100 * row['spread']:.1f}" if known else "")
    raw = "" if row["raw"] is None else f" ({percent(row['raw'])})"
    lines.append(f"{row['failed']} of {row['asked']} questions asked failed{raw}")
    if row["difference"] is not None:
        lines.append(f"expected minus observed: {100 * row['difference']:+.1f} points")
    if row["lower"] is not None:
        lines.append(f"certified: {span(row['lower'], row['upper'])}")
    return "<br>".join(lines)


# -- drawings ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """A figure in Plotly's form, with its texts and menu.

    Attributes:
        title: Its title.
        data: The traces; those that are bound to a table lack its values.
        layout: The layout.
        note: A sentence below the title, or "".
        choices: Labels of a menu, and the arguments of "restyle" that each sets.
        tables: The tables that traces are bound to.
    """

    title: str
    data: list[Figure]
    layout: Figure
    note: str = ""
    choices: Mapping[str, Sequence[Any]] | None = None
    tables: Sequence[Moments] = ()

    @property
    def bare(self) -> Figure:
        """The figure without title, note and menu, which a page has outside of it."""
        return {"data": self.data, "layout": self.layout}

    @property
    def whole(self) -> Figure:
        """The figure by itself, for a notebook."""
        layout = {"template": "plotly_white", "title": {"text": self.title}, **self.layout}
        if self.note:
            note = {"text": self.note, "showarrow": False, "xref": "paper", "yref": "paper"}
            note |= {"name": "note", "x": 0, "xanchor": "left", "y": 1.08}
            layout["annotations"] = [*layout.get("annotations", []), note]
        if self.choices is not None:
            choices = self.choices.items()
            buttons = [{"label": k, "method": "restyle", "args": args} for k, args in choices]
            layout["updatemenus"] = [{"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.18}]
        return {"data": self.at(-1), "layout": layout}

    def at(self, k: int) -> list[Figure]:
        """Return the traces with the values of moment ``k``."""
        tables = {table.of: table for table in self.tables}
        return [turned(trace, tables, k) for trace in self.data]


# -- surfaces ------------------------------------------------------------------------------


def surface(read: Reader, relation: str | None = None) -> Drawing:
    """Draw a heat map of the last moment, concept x relation; with ``relation``, concept x
    severity. A menu colours it by each of ``SHOWN``; dots are the draws since the moment before."""
    moments = read("relation-concept" if relation is None else "cell")
    places = {
        (g.concept, g.relation if relation is None else g.severity): k
        for k, g in enumerate(moments.groups)
        if relation in (None, g.relation)
    }
    rows = list(dict.fromkeys(concept for concept, _ in places))[::-1]  # Plotly's first is lowest
    columns = list(dict.fromkeys(column for _, column in places))
    at = [[places.get((row, column)) for column in columns] for row in rows]
    x, y = [*map(as_text, columns)], [*map(as_text, rows)]
    names = [name for name in SHOWN if moments.predicts or name in ("asked", "raw")]
    looks = {name: _look(moments, name) for name in names}
    first = "predicted" if moments.predicts else "raw"
    heat = {"type": "heatmap", "x": x, "y": y, "name": SHOWN[first], **TEXT, **looks[first]}
    heat["meta"] = {"looks": looks, "shown": SHOWN}
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
    data = [
        bound(heat, moments, at, z=first, text="text"),
        bound(dots, moments, [group for row in at for group in row], marker__size="fresh_size"),
    ]
    choices = {}
    for name, look in looks.items():
        set_to = {**look, "z": values_at(moments.last(name), at)}
        choices[SHOWN[name]] = [{key: [value] for key, value in set_to.items()}, [0]]
    axis = {"type": "category", "automargin": True, "showgrid": False}
    across = {"title": {"text": "severity" if relation else ""}}
    layout = {  # axes end where the cells do
        "xaxis": {**axis, **across, "range": [-0.5, len(columns) - 0.5]},
        "yaxis": {**axis, "range": [-0.5, len(rows) - 0.5]},
    }
    about = "relation" if relation is None else f"severity of {as_text(relation)}"
    title = f"Predictions: concept by {about}{_after(moments)}"
    return Drawing(title, data, layout, "" if moments.predicts else NOTHING, choices, [moments])


def through(read: Reader) -> Figure:
    """Draw ``surface`` at every moment: a slider, and a button that plays."""
    moments, drawing = read("relation-concept"), surface(read)
    drawn = drawing.whole
    frames = [{"name": str(n), "data": drawing.at(k)} for k, n in enumerate(moments.draws)]
    now = {"mode": "immediate", "frame": {"duration": 300, "redraw": True}}
    names = [frame["name"] for frame in frames]
    steps = [{"label": name, "method": "animate", "args": [[name], now]} for name in names]
    active = max(len(steps) - 1, 0)
    slider = {"steps": steps, "currentvalue": {"prefix": "draws: "}, "active": active}
    play = {"label": "play", "method": "animate", "args": [None, {**now, "fromcurrent": True}]}
    menu = {"type": "buttons", "buttons": [play], "x": 1, "y": 1.18}
    title = {"text": "Predictions: concept by relation"}
    layout = {**drawn["layout"], "title": title, "sliders": [slider], "updatemenus": [menu]}
    return {"data": drawn["data"], "layout": layout, "frames": frames}


def _look(moments: Moments, name: str) -> Figure:
    """Return the colours of a surface, the same at every moment."""
    bar: Figure = {"thickness": 12, "outlinewidth": 0}
    if name != "asked":
        bar["tickformat"] = ".1%" if name == "sd" else ".0%"
    values = moments.late(name)
    if name == "difference":
        most = max([0.05, *map(abs, values)])
        return {"colorscale": SIGNED, "zmin": -most, "zmax": most, "colorbar": bar}
    most = 1.0 if name == "raw" else max(values, default=1.0) or 1.0
    return {"colorscale": ERRORS, "zmin": 0, "zmax": most, "colorbar": bar}


# -- curves --------------------------------------------------------------------------------


def curves(read: Reader, concept: str | None = None, relation: str | None = None) -> Drawing:
    """Draw loss against severity, a panel per relation: of ``concept``, or of all together; with
    ``relation``, a panel per concept of that relation."""
    single = concept or relation
    cells = read("cell" if single else "severity")
    wholes = read("relation-concept" if single else "relation")

    def panels_of(moments: Moments) -> dict[str, list[int]]:
        panels: dict[str, list[int]] = {}
        for k, group in enumerate(moments.groups):
            if relation in (None, group.relation) and concept in (None, group.concept):
                panels.setdefault(str(group.concept if relation else group.relation), []).append(k)
        return panels

    panels, whole_of = panels_of(cells), panels_of(wholes)
    title = f"Loss by severity: {as_text(single) if single else 'all concepts'}{_after(cells)}"
    if (count := len(panels)) > PANELS:
        losses = cells.last("predicted" if cells.predicts else "raw")
        highest = {
            name: max((losses[k] for k in at if losses and losses[k] is not None), default=-1.0)
            for name, at in panels.items()
        }
        worst = sorted(panels, key=lambda name: -highest[name])[:PANELS]
        panels = {name: at for name, at in panels.items() if name in worst}
        title += f", the worst {PANELS} of {count}"
    data: list[Figure] = []
    for number, (name, at) in enumerate(panels.items()):
        axes = {"xaxis": f"x{number + 1}", "yaxis": f"y{number + 1}"} if number else {}
        common = {"meta": {"panel": as_text(name)}, "showlegend": False, **axes}
        data += _panel(common, cells, at, wholes, whole_of[name][0], first=not number)
    note = "" if cells.predicts else NOTHING
    return Drawing(title, data, _axes(cells, panels), note, tables=[cells, wholes])


def _panel(
    common: Figure, cells: Moments, at: list[int], wholes: Moments, whole: int, first: bool
) -> list[Figure]:
    """Draw the mean with its 95 % band, raw rates as dots the larger the more were asked, certified
    intervals as whiskers, and that of all severities as dashed lines; ``first`` has the legend."""
    x = [cells.groups[k].severity or 0 for k in at]

    def line(name: str, mode: str, marker: Figure, listed: bool = True, **more: Any) -> Figure:
        own = {**common, **TEXT, "legendgroup": name, "showlegend": first and listed, **more}
        return _scatter(name, mode, x, marker=marker, **own)

    green, blue = COLOURS["third"], {"color": COLOURS["accent"]}
    band: Figure = {"type": "data", "symmetric": False, "thickness": 9, "width": 0}
    band["color"] = COLOURS["band"]
    mean = line("predicted, 95 % band", "lines+markers", blue, cells.predicts, line=blue)
    ring = {"color": COLOURS["text"], "symbol": "circle-open", "line": {"width": 1.5}}
    raw = line("raw rate, larger: more asked", "markers", ring)
    reach = {"type": "data", "color": green, "width": 5, "thickness": 2}
    end = {"symbol": "line-ew-open", "size": 9, "color": green}
    whisker = line("certified", "markers", end, cells.certifies, error_y=reach, hoverinfo="skip")
    spread = {"error_y__array": "above", "error_y__arrayminus": "below"}
    pen = {"color": green, "dash": "dash", "width": 1.5}
    ends = [min(x) - 0.4, max(x) + 0.4]
    across = (
        (_scatter(f"certified {side}", "lines", ends, **common, line=pen, hoverinfo="skip"), column)
        for side, column in (("from", "lower"), ("to", "upper"))
    )
    return [
        bound({**mean, "error_y": band}, cells, at, y="predicted", **spread, text="text"),
        bound(raw, cells, at, y="raw", marker__size="size", text="text"),
        bound(whisker, cells, at, y="middle", error_y__array="reach"),
        *(bound(trace, wholes, [whole, whole], y=column) for trace, column in across),
    ]


def _axes(cells: Moments, panels: Mapping[str, Sequence[int]]) -> Figure:
    """Return the axes of the panels, in a grid, with a name above each. They end above what was
    predicted in the later half, certified, and the raw rates of more than a few questions."""
    shown = [k for at in panels.values() for k in at]
    raw, asked, upper = (cells.last(name) for name in ("raw", "asked", "upper"))
    values = [row[k] for row in cells.columns["predicted"][len(cells.draws) // 2 :] for k in shown]
    if cells.draws:
        values += [raw[k] for k in shown if asked[k] >= BINS / 2] + [upper[k] for k in shown]
    tall = min(1.0, 1.15 * max([0.05, *(value for value in values if value is not None)]))
    columns = min(PER_ROW, max(len(panels), 1))
    grid = {"rows": ceil(len(panels) / columns), "columns": columns, "pattern": "independent"}
    layout: Figure = {"grid": {**grid, "ygap": 0.35, "xgap": 0.2}, "annotations": []}
    for k, (name, at) in enumerate(panels.items()):
        x, end = [cells.groups[group].severity or 0 for group in at], str(k + 1) if k else ""
        y = {"range": [-0.08 * tall, tall], "tickformat": ".0%", "automargin": False}
        layout[f"yaxis{end}"] = y
        reach = [min(x) - 0.6, max(x) + 0.6]
        layout[f"xaxis{end}"] = {"dtick": 1, "automargin": False, "range": reach}
        place = {"xref": f"x{end} domain", "yref": f"y{end} domain", "x": 0, "y": 1}
        place |= {"xanchor": "left", "yanchor": "bottom", "showarrow": False}
        layout["annotations"].append({"text": as_text(name), **place})
    return layout


# -- images, and predictions against actual losses -----------------------------------------


def image_map(table: pd.DataFrame, sample: str = "image") -> Drawing:
    """Draw a dot per image of the table "images", placed by its features (else by predicted loss
    and sd), coloured by predicted loss, sd, asked or failed; ``sample``: what one is called."""
    last = table[table["draws"] == table["draws"].max()]
    placed, predicts = bool(last["x"].notna().any()), bool(last["predicted"].notna().any())
    values = {name: _plain(last[name]) for name in ABOUT_IMAGE}
    names = [name for name in ABOUT_IMAGE if last[name].notna().any()]
    text = []
    for row in last.astype(object).where(last.notna(), None).to_dict("records"):
        asked = f"{row['failed']} of {row['asked']} asked failed"
        text.append("<br>".join([as_text(row["sample"]), *predicted_text(row), asked]))
    marker = {"color": values[names[0]], "colorscale": ERRORS, "showscale": True, "opacity": 0.85}
    marker |= {"size": [8 if asked else 5 for asked in values["asked"]]}
    marker |= {"line": {"color": COLOURS["muted"], "width": 0.5}, "colorbar": {"thickness": 12}}
    x, y = ("x", "y") if placed else ("predicted", "sd")
    dots = _scatter("images", "markers", _plain(last[x]), _plain(last[y]), text=text, **TEXT)
    dots["customdata"] = [list(row) for row in zip(*values.values(), strict=True)]
    dots |= {"marker": marker, "meta": {"looks": {n: [*ABOUT_IMAGE].index(n) for n in names}}}
    titles = ("component 1", "component 2") if placed else ("expected error", "its sd")
    right, up = ({"title": {"text": title}} for title in titles)
    after = f", after {int(last['draws'].iloc[0])} draws" if len(last) else ""
    layout = {"xaxis": right, "yaxis": up, "dragmode": "lasso"}
    choices = {ABOUT_IMAGE[name]: [{"marker.color": [values[name]]}] for name in names}
    note = "" if predicts else NOTHING
    return Drawing(f"{sample.capitalize()}s{after}", [dots], layout, note, choices)


def reliability(table: pd.DataFrame) -> Drawing:
    """Draw expected against actual losses of the table "predictions": ``BINS`` of about as many
    questions, with 95 % intervals by Wilson."""
    ordered = table.sort_values(["predicted", "draw"], kind="stable")
    x, y, low, high, text = [], [], [], [], []
    parts = np.array_split(np.arange(len(ordered)), max(1, min(BINS, len(ordered) // 5)))
    for inside in (ordered.iloc[part] for part in parts if len(part)):
        mean, count = float(inside["loss"].mean()), len(inside)
        ends = wilson(mean * count, count)
        x.append(float(inside["predicted"].mean()))
        y.append(mean)
        low.append(mean - min(ends[0], mean))
        high.append(max(ends[1], mean) - mean)
        text.append(f"{count} questions")
    dots = _scatter(
        "questions asked",
        "markers",
        x,
        y,
        error_y={"type": "data", "array": high, "arrayminus": low},
        marker={"color": COLOURS["accent"], "size": 9},
        text=text,
        hovertemplate="expected error %{x:.1%}, actual %{y:.1%} (%{text})<extra></extra>",
    )
    end = min(1.0, 1.1 * max([0.1, *map(sum, zip(y, high, strict=True)), *x]))
    pen = {"dash": "dash", "color": COLOURS["muted"]}
    line = _scatter("as expected", "lines", [0, end], [0, end], line=pen, hoverinfo="skip")
    axis = {"range": [-0.01, end], "tickformat": ".0%"}
    right, up = ({**axis, "title": {"text": t}} for t in ("expected error", "actual error"))
    layout = {"xaxis": right, "yaxis": up}
    return Drawing("Calibration of predictions", [line, dots], layout, gain(table))


def gain(table: pd.DataFrame) -> str:
    """Return a sentence on the gain by predictions.

    It compares their mean squared error with that of the mean loss up to then, and gives the
    difference in calls.
    """
    if not len(table):
        return "No draw has an expected loss."
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


def _scatter(name: str, mode: str, x: Any, y: Any = None, **more: Any) -> Figure:
    values = {"x": x} if y is None else {"x": x, "y": y}
    return {"type": "scatter", "mode": mode, "name": name, **values, **more}


def _after(moments: Moments) -> str:
    return f", after {moments.draws[-1]} draws" if moments.draws else ""


def _plain(values: Any) -> list[Any]:
    """Return values of Python's types, None for unknown ones."""
    return [None if pd.isna(value) else value for value in np.asarray(pd.array(values)).tolist()]


# -- figures by name -----------------------------------------------------------------------


Table = Callable[[TableName], pd.DataFrame]
"""Gives a table of ``beliefs`` by its name."""


def _of_relation(table: Table, relation: str | None) -> Drawing:
    """Draw the curves of a relation; of the last by default, as the first is mostly no change."""
    return curves(reader(table), relation=relation or str(table("relation")["relation"].iloc[-1]))


PLOTS: Mapping[str, tuple[str | None, Callable[[Table, str | None], Figure]]] = {
    "beliefs": ("relation", lambda table, name: surface(reader(table), name).whole),
    "through": (None, lambda table, _: through(reader(table))),
    "concept": ("concept", lambda table, name: curves(reader(table), name).whole),
    "relation": ("relation", lambda table, name: _of_relation(table, name).whole),
    "images": (None, lambda table, _: image_map(table("images")).whole),
    "calibration": (None, lambda table, _: reliability(table("predictions")).whole),
    "uncertainty": (None, lambda table, _: concepts_unsure(table("uncertainty")).whole),
}
"""Name -> the column whose value one may choose, and the function that draws the figure."""


def plotted(name: str, about: str | None, table: Table) -> Figure:
    """Return the figure of that name.

    Args:
        name: A key of ``PLOTS``.
        about: The one relation ("beliefs", "relation") or concept ("concept") to draw.
        table: Gives a table of ``beliefs`` by its name.

    Raises:
        InputError: There is no such relation or concept, or nothing was journaled.
    """
    column, draw = PLOTS[name]
    if about is not None and column is None:
        raise InputError(f"plot {name!r}: expected nothing after the name, got {about!r}")

    def frame(of: TableName) -> pd.DataFrame:
        rows = table(of)
        if not len(rows) and of != "predictions":  # without any the figure itself says so
            raise InputError(
                f"plot {name!r}: expected beliefs in the journal, got none: nothing was learnt "
                "yet, or its answers were judged again; retry once the audit has continued"
            )
        return rows

    if about is not None and column is not None:
        check_known(column, about, frame("cell")[column].unique().tolist(), f"plot {name!r}")
    return draw(frame, about)
