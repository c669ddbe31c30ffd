"""Plotly figures that bring a still SVG picture, for where no script runs: exported notebooks, code
hosts.

What this package draws, and no more: lines, dots, bars, maps, error bars, small multiples. It is
white on every page, as its colours are made for that.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any
from uuid import uuid4

from plotly.graph_objects import Figure

from ..types import JsonObject
from .figures import shorten

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 680, 360, 110, 34, 34
PANEL = 170
"""The height of each row of small multiples."""
COLOURS = ("#0b5fad", "#b2420a", "#00725a", "#7a5195", "#8a94a0", "#c08a00")
INK = "#1b2129"
MAX_NAMED, LETTERS = 8, 16
"""Names in the key, and letters of each name, at most."""
Trace = Mapping[str, Any]
Place = Callable[[Any], float | None]


def svg(figure: Mapping[str, Any]) -> str:
    """The picture; names are text, whatever they hold."""
    layout, data = figure.get("layout", {}), figure.get("data", ())
    panels: dict[str, list[tuple[Trace, str]]] = {}
    for k, trace in enumerate(data):
        at = panels.setdefault(str(trace.get("xaxis", "x"))[1:], [])
        at.append((trace, _colour(trace, COLOURS[k % len(COLOURS)])))
    grid = layout.get("grid") or {"rows": 1, "columns": 1}
    rows, columns = int(grid["rows"]), int(grid["columns"])
    high = HEIGHT if rows == 1 else PANEL * rows
    title = layout.get("title", "")
    title = title.get("text", "") if isinstance(title, Mapping) else title or ""
    parts = [_text(8, 18, str(title), size=14)]
    for k, (end, traces) in enumerate(panels.items()):
        left, right = float(LEFT), WIDTH - 20.0
        if columns > 1:
            wide = WIDTH / columns
            left, right = k % columns * wide + 44, (k % columns + 1) * wide - 10
        top = TOP + (k // columns) * (high - TOP - BOTTOM) / rows
        bottom = top + (high - TOP - BOTTOM) / rows - (0 if rows == 1 else 30)
        box = left, top + (0 if rows == 1 else 14), right, bottom
        axes = layout.get(f"xaxis{end}") or {}, layout.get(f"yaxis{end}") or {}
        parts += _panel(traces, axes, box, layout)
        if len(panels) > 1:
            notes = [n for n in layout.get("annotations", ()) if n.get("xref") == f"x{end} domain"]
            parts += [_text(left, box[1] - 4, _cut(n["text"])) for n in notes]
    named = [
        (trace["name"], colour)
        for traces in panels.values()
        for trace, colour in traces
        if trace.get("name") and trace.get("showlegend") is not False
        if trace["type"] != "heatmap"
    ]
    for k, (name, colour) in enumerate(named[:MAX_NAMED]):
        x, y = 10 + (k % 4) * 165, high + 12 + 16 * (k // 4)
        parts.append(f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{escape(colour)}"/>')
        parts.append(_text(x + 8, y, _cut(name, 24)))
    whole = high + 20 + 16 * ((min(len(named), MAX_NAMED) + 3) // 4)
    size = f'width="{WIDTH}" height="{whole}" viewBox="0 0 {WIDTH} {whole}"'
    font = f'font-family="system-ui, sans-serif" fill="{INK}"'
    page = _rect(0, 0, WIDTH, whole, "#ffffff")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{page}{"".join(parts)}</svg>'


def _panel(
    traces: Sequence[tuple[Trace, str]],
    axes: tuple[Mapping[str, Any], Mapping[str, Any]],
    box: tuple[float, float, float, float],
    layout: Mapping[str, Any],
) -> Iterator[str]:
    left, top, right, bottom = box
    x, marks = _scale([t for t, _ in traces], "x", axes[0], left, right)
    y, heights = _scale([t for t, _ in traces], "y", axes[1], bottom, top)
    for place, words in marks:
        yield _text(place, bottom + 14, words, "middle")
    for place, words in heights:
        yield _line(left, place, right, place, INK, 'stroke-opacity=".15"')
        yield _text(left - 6, place + 4, words, "end")
    if axes[0].get("zeroline") and (zero := x(0)) is not None:
        yield _line(zero, top, zero, bottom, INK, 'stroke-opacity=".5"')
    for shape in layout.get("shapes", ()):
        if shape.get("type") == "line" and (height := y(shape["y0"])) is not None:
            yield _line(left, height, right, height, INK, 'stroke-dasharray="5 4"')
    bars = [t for t, _ in traces if t["type"] == "bar"]
    for trace, colour in traces:
        if trace["type"] == "heatmap":
            yield from _map(trace, x, y)
        elif trace["type"] == "bar":
            yield from _bars(trace, colour, x, y, (bars.index(trace), len(bars)))
        else:
            yield from _dots(trace, colour, x, y)


def _map(trace: Trace, x: Place, y: Place) -> Iterator[str]:
    known = [v for row in trace["z"] for v in row if v is not None]
    low = _first(trace.get("zmin"), min(known, default=0))
    high = _first(trace.get("zmax"), max(known, default=1))
    columns, rows = ([place(v) or 0.0 for v in trace[n]] for n, place in (("x", x), ("y", y)))
    wide, tall = _step(columns), _step(rows)
    for row, values in zip(rows, trace["z"], strict=True):
        for column, value in zip(columns, values, strict=True):
            if value is not None:
                fill = _shade(trace.get("colorscale"), (value - low) / ((high - low) or 1))
                yield _rect(column - wide / 2, row - tall / 2, wide, tall, fill)


def _bars(trace: Trace, colour: str, x: Place, y: Place, place: tuple[int, int]) -> Iterator[str]:
    centres, zero = [x(v) or 0.0 for v in trace["x"]], y(0) or 0.0
    wide = 0.8 * _step(centres) / place[1]
    for centre, value in zip(centres, trace["y"], strict=True):
        if (height := y(value)) is not None:
            start = centre - 0.4 * _step(centres) + place[0] * wide
            yield _rect(start, min(height, zero), wide, abs(zero - height), colour)


def _dots(trace: Trace, colour: str, x: Place, y: Place) -> Iterator[str]:
    mode = trace.get("mode", "lines")
    points = [(x(a), y(b)) for a, b in zip(trace["x"], trace["y"], strict=True)]
    if "lines" in mode:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points if a is not None and b is not None)
        dash = trace.get("line", {}).get("dash")
        more = ' stroke-dasharray="5 4"' if dash in ("dash", "dot") else ""
        yield f'<polyline points="{path}" fill="none" stroke="{escape(colour)}"{more}/>'
    for error, place, values in (("error_x", x, trace["x"]), ("error_y", y, trace["y"])):
        bars = trace.get(error) or {}
        for k, (value, (a, b)) in enumerate(zip(values, points, strict=True)):
            above = (bars.get("array") or [None] * len(values))[k]
            below = _first((bars.get("arrayminus") or [None] * len(values))[k], above)
            if above is None or value is None or a is None or b is None:
                continue
            one, other = place(value - below), place(value + above)
            ink = str(bars.get("color", colour))
            flat = error == "error_x"
            yield _line(one, b, other, b, ink) if flat else _line(a, one, a, other, ink)
    if "markers" in mode:
        yield from _circles(trace.get("marker") or {}, colour, points)


def _circles(
    marker: Mapping[str, Any], colour: str, points: Sequence[tuple[float | None, float | None]]
) -> Iterator[str]:
    sizes, shades = marker.get("size", 6), marker.get("color", colour)
    known = [v for v in shades if isinstance(v, int | float)] if _many(shades) else []
    low, high = min(known, default=0), max(known, default=1)
    hollow = "open" in str(marker.get("symbol", ""))
    for k, (a, b) in enumerate(points):
        radius = (sizes[k] if _many(sizes) else sizes) / 2
        fill = shades[k] if _many(shades) else colour
        if isinstance(fill, int | float):
            fill = _shade(marker.get("colorscale"), (fill - low) / ((high - low) or 1))
        if a is not None and b is not None and radius and fill is not None:
            look = f'fill="none" stroke="{escape(fill)}"' if hollow else f'fill="{escape(fill)}"'
            yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius:.1f}" {look}/>'


def _scale(
    traces: Sequence[Trace], name: str, axis: Mapping[str, Any], start: float, end: float
) -> tuple[Place, list[tuple[float, str]]]:
    """Where a value stands, and the marks of the axis with their words."""
    values = [v for t in traces for v in t[name] if v is not None]
    if axis.get("type") == "category" or any(isinstance(v, str) for v in values):
        names = list(dict.fromkeys(values))
        step = (end - start) / max(len(names), 1)
        places = {v: start + (k + 0.5) * step for k, v in enumerate(names)}
        room = max(3, int(abs(step) / 7)) if name == "x" else LETTERS
        return places.get, [(places[v], _cut(v, room)) for v in names]
    to = math.log10 if axis.get("type") == "log" else float
    known = [to(v) for v in values if to is float or v > 0]
    low, high = min(known, default=0.0), max(known, default=1.0)
    pad = 0.05 * ((high - low) or 1)
    start_at = 0.0 if axis.get("rangemode") == "tozero" else low - pad
    low, high = axis.get("range") or (start_at, high + pad)
    width = (high - low) or 1.0

    def place(value: Any) -> float | None:
        if value is None or (to is not float and value <= 0):
            return None
        return start + (end - start) * (min(max(to(value), low), high) - low) / width

    suffix = str(axis.get("ticksuffix", ""))
    format = ".0%" if "%" in str(axis.get("tickformat", "")) else "g"
    whole = to is not float or axis.get("dtick") == 1
    marks = [v if to is float else 10**v for v in _marks(low, high) if not whole or v == round(v)]
    told = [f"{round(v, 6):{format}}{suffix}" for v in marks]
    return place, [(place(v) or start, words) for v, words in zip(marks, told, strict=True)]


def _marks(low: float, high: float) -> list[float]:
    """Four to eight round numbers between."""
    rough = (high - low) / 5 or 1.0
    power = 10 ** math.floor(math.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda k: abs(k * power - rough))
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _shade(scale: Any, share: float) -> str:
    from plotly.colors import get_colorscale, sample_colorscale

    stops = get_colorscale(scale or "Viridis") if not isinstance(scale, list | tuple) else scale
    return str(sample_colorscale([list(stop) for stop in stops], [min(max(share, 0), 1)])[0])


def _colour(trace: Trace, other: str) -> str:
    held = [(trace.get(n) or {}).get("color") for n in ("line", "marker")]
    return next((c for c in held if isinstance(c, str)), other)


def _step(places: Sequence[float]) -> float:
    return abs(places[1] - places[0]) if len(places) > 1 else 60.0


def _many(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


def _cut(words: Any, most: int = LETTERS) -> str:
    return escape(shorten(unescape(str(words)), most), quote=False)


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 11) -> str:
    plain = escape(unescape(words), quote=False)
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{plain}</text>'


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{escape(fill)}"/>'


def _line(a: Any, b: Any, c: Any, d: Any, colour: str, more: str = "") -> str:
    ends = f'x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"'
    return f'<line {ends} stroke="{escape(colour)}" {more}/>'


class NotebookFigure(Figure):  # type: ignore[misc]  # plotly has no types
    """Notebooks that run Plotly show it; exported ones, and code hosts, a still picture of it.

    Where scripts run the picture goes once Plotly's figure has come.
    """

    _ipython_display_ = None
    """Plotly's own would be asked before the method below, and shows no still picture."""

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, validate: bool = True, **options: Any
    ) -> JsonObject:
        found = super()._repr_mimebundle_(include, exclude, validate, **options) or {}
        picture = svg(self.to_plotly_json())
        address = b64encode(picture.encode()).decode("ascii")
        id = f"still-{uuid4().hex}"
        still = f'<img id="{id}" alt="figure" src="data:image/svg+xml;base64,{address}">'
        script = f'<script>if (window.Plotly) document.getElementById("{id}").remove()</script>'
        live = found.get("text/html", "")
        html = f"{live}{still}{script if live else ''}"
        return {**found, "text/html": html, "image/svg+xml": picture}
