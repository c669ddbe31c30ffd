"""Plotly figures of an audit, by name, from its journal alone."""

from typing import Any

import numpy as np
import pandas as pd

from ..certify.tracks import tracks
from ..journal import Journal
from ..journal.facts import read_facts
from ..results.outcomes import judged
from ..utils.plotly_text import shown

AXIS = {"title": {"text": "calls answered so far"}, "rangemode": "tozero"}
MOMENTS = 200
"""Curves have at most so many points."""
Figure = dict[str, Any]


def figures(journal: Journal) -> dict[str, Figure]:
    """Name -> figure (data, layout), as ``plotly.graph_objects.Figure`` takes it.

    "widths": every target's half-width over calls, where targets are certified. "conditions": raw
    error per relation and severity. "concepts": raw error per concept, where it is absent and
    where it is present. "cost": what all answers cost, over calls. Raw figures are over the
    questions asked, which were not chosen evenly: they carry no guarantee.
    """
    facts, draws, calls = (
        read_facts(journal.facts()),
        journal.draws(proposals=False),
        journal.calls(),
    )
    table = judged(facts, draws, calls)
    found = {"conditions": _conditions(table, facts.space.relations), "concepts": _concepts(table)}
    found["cost"] = _cost(np.array([call.cost for call in calls], float))
    if facts.certificate is not None:
        histories = tracks(facts.certificate, draws, calls)
        names = [target.name for target in facts.certificate.ids]
        widths = np.stack([track.half_width for track in histories])
        found = {"widths": _widths(names, widths, facts.certificate.aim), **found}
    return found


def _widths(names: list[str], widths: np.ndarray, aim: float) -> Figure:
    at = _moments(widths.shape[1])
    lines = [_line(at, 100 * row[at], name) for name, row in zip(names, widths, strict=True)]
    layout = _layout("Half-width of every interval (%)", {**AXIS}, {"rangemode": "tozero"})
    pen, height = {"dash": "dash", "color": "#8a94a0"}, 100 * aim
    aimed = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height}
    return {"data": lines, "layout": {**layout, "shapes": [{**aimed, "line": pen}]}}


def _conditions(table: pd.DataFrame, relations: list[str]) -> Figure:
    asked = [name for name in relations if name in set(table["relation"])]
    cells = _raw(table, ["relation", "severity"]).unstack("severity").sort_index(axis="columns")
    cells = cells.loc[asked[::-1]]  # Plotly's first row is the lowest
    shares: Any = cells["mean"]
    counts = cells["count"].fillna(0).astype(int)
    said = counts.map(lambda n: f"{n} questions")
    data = {
        "type": "heatmap",
        "x": [str(severity) for severity in shares.columns],
        "y": [shown(str(relation)) for relation in shares.index],
        "z": _plain(100 * shares),
        "zmin": 0,
        "zmax": 100,
        "colorscale": "Oranges",
        "text": said.to_numpy().tolist(),
        "hovertemplate": "%{y}, severity %{x}: %{z:.1f} % of %{text}<extra></extra>",
    }
    x, y = {"title": {"text": "severity"}, "type": "category"}, {"automargin": True}
    return {"data": [data], "layout": _layout("Raw error per relation and severity (%)", x, y)}


def _concepts(table: pd.DataFrame) -> Figure:
    rates = _raw(table, ["concept", "truth"])
    data = []
    for truth, name in ((0, "absent"), (1, "present")):
        here = rates[rates.index.get_level_values("truth") == truth]
        bar = {
            "type": "bar",
            "name": name,
            "x": [shown(str(c)) for c in here.index.get_level_values("concept")],
            "y": (100 * here["mean"]).tolist(),
            "text": [f"{n} questions" for n in here["count"]],
        }
        data += [bar] if len(here) else []
    layout = _layout("Raw error per concept (%)", {"automargin": True}, {"range": [0, 100]})
    return {"data": data, "layout": {**layout, "barmode": "group"}}


def _cost(costs: np.ndarray) -> Figure:
    total = np.concatenate([[0.0], costs.cumsum()])
    at = _moments(len(total))
    layout = _layout("Cost of all answers", {**AXIS}, {"rangemode": "tozero"})
    return {"data": [_line(at, total[at], "cost")], "layout": layout}


def _raw(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean loss and number of the questions asked, per group."""
    return table.groupby(by, sort=False)["loss"].agg(["mean", "count"])


def _moments(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, MOMENTS).round().astype(int))


def _line(x: np.ndarray, y: np.ndarray, name: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": shown(name),
        "x": x.tolist(),
        "y": y.tolist(),
    }


def _layout(title: str, x: dict[str, Any], y: dict[str, Any]) -> Figure:
    return {"template": "plotly_white", "title": {"text": title}, "xaxis": x, "yaxis": y}


def _plain(table: pd.DataFrame) -> list[list[float | None]]:
    """Rows of numbers, None for what is not known."""
    rows: list[list[float]] = table.to_numpy(float).tolist()
    return [[None if np.isnan(value) else value for value in row] for row in rows]
