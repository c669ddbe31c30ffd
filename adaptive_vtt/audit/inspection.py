"""What can be looked up behind a result: wrong answers, their pictures, charts, the report."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..journal import Journal, SQLiteJournal, read_journal
from ..oracles.choice import ASKED
from ..results.beliefs import Told, beliefs
from ..results.outcomes import FAILED, with_metadata
from ..results.result import Result, summarise
from ..results.run import Run
from ..space import QuestionSpace
from ..types import Image, JsonObject
from ..utils.figures import COLOURS, ERRORS, shown
from ..utils.image_codec import data_address

AXIS = {"title": {"text": "calls answered so far"}, "rangemode": "tozero"}
MOMENTS = 200
"""Curves have at most so many points."""
Figure = JsonObject


def figures(source: Journal | Run) -> dict[str, Figure]:
    """Name -> figure (data, layout), as ``plotly.graph_objects.Figure`` takes it.

    "widths": every target's half-width over calls, where targets are certified. "conditions": raw
    error per relation and severity. "concepts": raw error per concept, where it is absent and
    where it is present. "cost": what all answers cost, those about source images included, over
    calls. Raw figures are over the questions asked, which were not chosen evenly: they carry no
    guarantee.
    """
    run = Run.of(source)
    paid = [(call.elapsed, call.cost) for call in run.calls]
    paid += [(source.elapsed, source.cost) for source in run.sources]
    charts = {
        "conditions": _conditions(run.table, run.facts.space.relations),
        "concepts": _concepts(run.table),
        "cost": _cost(np.array([cost for _, cost in sorted(paid)], float)),
    }
    if run.certificate is None or run.certificate.counted:
        return charts
    names = [target.name for target in run.certificate.ids]
    widths = np.stack([track.half_width for track in run.history])
    return {"widths": _widths(names, widths, run.certificate.aim), **charts}


def _widths(names: list[str], widths: np.ndarray, aim: float) -> Figure:
    at = _moments(widths.shape[1])
    lines = [_line(at, 100 * row[at], name) for name, row in zip(names, widths, strict=True)]
    layout = _layout("Half-width of every interval (%)", {**AXIS}, {"rangemode": "tozero"})
    pen, height = {"dash": "dash", "color": COLOURS["muted"]}, 100 * aim
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
        "colorscale": ERRORS,
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


def _layout(title: str, x: JsonObject, y: JsonObject) -> Figure:
    return {"template": "plotly_white", "title": {"text": title}, "xaxis": x, "yaxis": y}


def _plain(table: pd.DataFrame) -> list[list[float | None]]:
    """Rows of numbers, None for what is not known."""
    rows: list[list[float]] = table.to_numpy(float).tolist()
    return [[None if np.isnan(value) else value for value in row] for row in rows]


COLUMNS = (
    "sample",
    "relation",
    "severity",
    "concept",
    "answer",
    "truth",
    "loss",
    "unanswered",
    "asked",
    "said",
    "reply",
    "draw",
    "call",
    "question",
)
"""The columns of ``Result.failures``."""
SIDE = 256
"""Pictures are shown at most so wide, in pixels of a page."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A follow-up and the source image that it was made of (None where nobody has it), H x W x C
    uint8; ``title`` says what was asked, answered and true. Notebooks show both."""

    title: str
    source: Image | None
    follow_up: Image

    def __repr__(self) -> str:
        return f"Picture({self.title}; {' x '.join(map(str, self.follow_up.shape))})"

    def _repr_html_(self) -> str:
        shown = [("source", self.source), ("asked about", self.follow_up)]
        figures = "".join(_figure(name, image) for name, image in shown if image is not None)
        style = "font:13px/1.5 system-ui,sans-serif"
        return f'<div style="{style}"><div>{escape(self.title)}</div>{figures}</div>'


class Inspection:
    """A journal, and the space it is about where that is at hand; see ``results.Source``.

    A journal in a file is opened each time, so it may be closed meanwhile; its rows are read again
    where some were added.
    """

    def __init__(self, journal: Journal, space: QuestionSpace | None = None) -> None:
        self._path = journal.path if isinstance(journal, SQLiteJournal) else None
        self._journal, self._space = journal, space
        self._run: Run | None = None

    def failures(self) -> pd.DataFrame:
        with self._reading() as run:
            table = run.table
            rows = [(a, call.reply) for call in run.calls for a in call.answers]
        wrong = table[table["loss"] >= FAILED].reset_index(drop=True)
        words = {
            "said": wrong["question"].map({a.question: a.said for a, _ in rows}),
            "reply": wrong["question"].map({a.question: reply or None for a, reply in rows}),
        }
        asked = {a.question: (a.details or {}).get(ASKED, {}).get("question") for a, _ in rows}
        words["asked"] = wrong["question"].map(asked)
        told = wrong.assign(**words)[[*COLUMNS]]
        if self._space is None:
            return told
        sources = self._space.numbering.parts(told["question"].to_numpy(np.int64))[0]
        return with_metadata(told, self._space.dataset, sources)

    def picture(self, row: "int | pd.Series[Any]") -> Picture:
        if not isinstance(row, pd.Series):
            table = self.failures()
            if not -len(table) <= row < len(table):
                raise InputError(
                    f"picture: expected a row of failures(), 0 to {len(table) - 1}, got {row}"
                )
            row = table.iloc[row]
        source, follow_up = self._images(int(row["question"]), int(row["call"]))
        return Picture(_title(row), source, follow_up)

    def beliefs(self, of: Told) -> pd.DataFrame:
        with self._reading() as run:
            return beliefs(run, of)

    def perturbations(self) -> pd.DataFrame:
        from ..results.report.evidence import Evidence
        from ..results.report.perturbations import perturbations

        with self._reading() as run:
            return perturbations(Evidence(run))

    def figures(self) -> dict[str, JsonObject]:
        with self._reading() as run:
            return figures(run)

    def write_report(self, path: Path | None) -> Path:
        from ..results.report import write_report

        if path is None:
            folder = Path(mkdtemp(prefix="avtt-")) if self._path is None else self._path.parent
            path = folder / "report.html"
        with self._reading() as run:
            write_report(run, path)
        return path

    def journaled(self) -> Result:
        with self._reading() as run:
            return summarise(run)

    @contextmanager
    def _reading(self) -> Iterator[Run]:
        kept = nullcontext(self._journal)
        with kept if self._path is None else closing(read_journal(self._path)) as journal:
            if self._run is None or self._run.head != journal.head:
                self._run = Run(journal)
            self._run.journal = journal  # the one before may be closed; at one head all are alike
            yield self._run

    def _images(self, question: int, call: int) -> tuple[Image | None, Image]:
        """Source and follow-up: made again, else as kept in the journal, a thumbnail."""
        with self._reading() as run:
            if self._space is not None and self._space.dataset.has_images:
                number = self._space.numbering.image_of(question)
                source, follow_up = self._space.pair(number)
                return source.image, follow_up.require_image()
            kept = run.pictures.get(call)
        if kept is None:
            raise InputError(
                f"picture: expected the images of call {call}, found none: the dataset has none, "
                "or the result was read from a journal that kept no picture of it"
            )
        return _decoded(kept[0]), _decoded(kept[1])


def read_result(folder: Path | str) -> Result:
    """The result of a run folder, or of a journal's file, as it is now; the audit may be running.

    Runs nothing that the folder names, so pictures are thumbnails. Raises JournalError where no
    audit was begun.
    """
    with Run.opened(folder) as run:
        return summarise(run).inspected(Inspection(run.journal))


def _title(row: "pd.Series[Any]") -> str:
    said = row["said"] if isinstance(row["said"], str) else None
    if said is None and isinstance(row["unanswered"], str):
        said = f"unanswered: {row['unanswered']}"
    if said is None:
        said = f"answered {row['answer']:.2f}"
    truth = "" if pd.isna(row["truth"]) else f", truth {row['truth']:g}"
    change = f"{row['relation']} {row['severity']}" if row["severity"] else str(row["relation"])
    return f"{row['sample']}, {change}: {row['concept']} {said}{truth}"


def _figure(name: str, image: Image) -> str:
    wide = min(SIDE, max(image.shape[1], SIDE // 2))
    return (
        '<figure style="display:inline-block;margin:4px 12px 4px 0">'
        f'<img src="{data_address(image)}" alt="{name}" width="{wide}" '
        'style="image-rendering:pixelated">'
        f'<figcaption style="opacity:.75">{name}</figcaption></figure>'
    )


def _decoded(png: bytes) -> Image:
    import cv2

    image = np.asarray(cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED))
    image = image[:, :, None] if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return np.asarray(image, np.uint8)
