"""Details behind a result, read from its journal: failures, their images, charts, the report."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd

from ..certify.status import TargetStatus
from ..errors import unexpected
from ..journal import Journal, SQLiteJournal, read_journal
from ..journal.files import journal_at
from ..oracles.choice import ASKED
from ..results.export.failures import export_failures
from ..results.outcomes import with_metadata
from ..results.result import Result, summarise
from ..results.run import Run
from ..space import QuestionSpace
from ..types import Image
from ..utils.figures import COLOURS, ERRORS, shown
from ..utils.image_codec import data_address, png

CALLS = "calls answered so far"
COLUMNS = (
    *("sample", "relation", "severity", "concept", "answer", "truth", "loss", "unanswered"),
    *("asked", "answer_text", "reply", "draw", "call", "question"),
)
"""The columns of ``Result.failures``."""
MOMENTS = 200
"""Maximum number of points of a curve, as an audit may have many thousand calls and many targets.
"""
SIDE = 256
"""Maximum width of an image on a page, in pixels."""


def figures(source: Journal | Run) -> dict[str, Any]:
    """Return Plotly figures by name.

    - "widths": half-width of each target over calls, if targets are certified.
    - "conditions": raw error per relation and severity.
    - "concepts": raw error per concept, absent or present.
    - "cost": total cost over calls, with those about source images.

    Raw errors are means over the questions asked. They are not certified, and may be biased, as
    questions were not drawn uniformly.
    """
    import plotly.express as px

    run = Run.of(source)
    if run.table.empty:  # nothing was answered yet
        return {}
    certificate, table = run.certificate, run.table.assign(loss=100 * run.table["loss"])
    style: dict[str, Any] = {"template": "plotly_white", "labels": {"index": CALLS, "mean": "%"}}
    cells: Any = table.groupby(["relation", "severity"])["loss"].agg(["mean", "count"]).unstack()
    asked = [name for name in run.facts.space.relations if name in cells.index]
    cells = cells.loc[asked[::-1]].rename(index=shown)  # the first row is the lowest
    rates, counts = cells["mean"].rename(columns=str), cells["count"].fillna(0).astype(int)
    scale = {"zmin": 0, "zmax": 100, "color_continuous_scale": ERRORS, "origin": "lower"}
    title = "Raw error per relation and severity (%)"
    conditions = px.imshow(rates, title=title, aspect="auto", **scale, **style)
    hover = "%{y}, severity %{x}: %{z:.1f} % of %{text} questions<extra></extra>"
    conditions.update_traces(text=counts.to_numpy(), hovertemplate=hover)
    sides = table.groupby(["truth", "concept"], sort=False)["loss"].agg(["mean", "count"])
    sides = sides.sort_index(level="truth", sort_remaining=False, kind="stable").reset_index()
    sides["truth"] = sides["truth"].map({0: "absent", 1: "present"})
    sides["concept"] = [shown(str(concept)) for concept in sides["concept"]]
    bars = {"x": "concept", "y": "mean", "color": "truth", "hover_data": "count"}
    title = "Raw error per concept (%)"
    concepts = px.bar(sides, barmode="group", title=title, range_y=(0, 100), **bars, **style)
    paid = [(call.elapsed, call.cost) for call in run.calls]
    paid += [(row.elapsed, row.cost) for row in run.sources]
    costs = pd.DataFrame({"cost": np.cumsum([0.0, *(cost for _, cost in sorted(paid))])})
    cost = px.line(_thinned(costs), title="Cost of all answers", **style)
    charts = {"conditions": conditions, "concepts": concepts, "cost": cost}
    if certificate is None or certificate.counted:
        return charts
    tracks = zip(certificate.ids, run.history, strict=True)
    widths = pd.DataFrame({shown(target.name): 100 * t.half_width for target, t in tracks})
    chart = px.line(_thinned(widths), title="Half-width of every interval (%)", **style)
    aim = {"dash": "dash", "color": COLOURS["muted"]}
    return {"widths": chart.add_hline(100 * certificate.aim, line=aim), **charts}


def _thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Return at most MOMENTS rows of a table, evenly spaced, with the first and the last one."""
    return table.iloc[np.unique(np.linspace(0, len(table) - 1, MOMENTS).round().astype(int))]


@dataclass(frozen=True, repr=False)
class Picture:
    """Follow-up and source image of a question. Notebooks show both.

    Attributes:
        title: A text with the question, the answer and the truth.
        source: The source image, H x W x C of uint8; None if it is not available.
        follow_up: The image that was asked about, in the same form.
    """

    title: str
    source: Image | None
    follow_up: Image

    def __repr__(self) -> str:
        return f"Picture({self.title}; {' x '.join(map(str, self.follow_up.shape))})"

    def _repr_html_(self) -> str:
        figures = []
        for name, image in (("source", self.source), ("asked about", self.follow_up)):
            if image is not None:
                width = min(SIDE, max(image.shape[1], SIDE // 2))
                figures.append(
                    '<figure style="display:inline-block;margin:4px 12px 4px 0">'
                    f'<img src="{data_address(png(image))}" alt="{name}" width="{width}" '
                    'style="image-rendering:pixelated">'
                    f'<figcaption style="opacity:.75">{name}</figcaption></figure>'
                )
        style, body = "font:13px/1.5 system-ui,sans-serif", "".join(figures)
        return f'<div style="{style}"><div>{escape(self.title)}</div>{body}</div>'


class Inspection:
    """Access to a journal, and to its space if known; see ``results.Source``.

    A journal in a file is opened for each access, so that it may be closed in between. It is read
    again only if it has changed.

    Args:
        journal: The journal.
        space: The questions. Default None: unknown.
    """

    def __init__(self, journal: Journal, space: QuestionSpace | None = None) -> None:
        self._path = journal.path if isinstance(journal, SQLiteJournal) else None
        self._journal, self._space = journal, space
        self._run: Run | None = None

    def failures(self) -> pd.DataFrame:
        with self.reading() as run:
            table = run.table
            rows = [(answer, call.reply) for call in run.calls for answer in call.answers]
        wrong = table[table["loss"] >= run.facts.least_failing].reset_index(drop=True)
        words = {
            "answer_text": {a.question: a.answer_text for a, _ in rows},
            "reply": {a.question: reply or None for a, reply in rows},
            "asked": {
                a.question: (a.details or {}).get(ASKED, {}).get("question") for a, _ in rows
            },
        }
        wrong = wrong.assign(**{name: wrong["question"].map(text) for name, text in words.items()})
        wrong = wrong[[*COLUMNS]]
        if self._space is None:
            return wrong
        sources = self._space.numbering.parts(wrong["question"].to_numpy(np.int64))[0]
        return with_metadata(wrong, self._space.dataset, sources)

    def export(self, folder: Path, least_loss: float) -> None:
        if self._space is None:
            remedy = "type 'avtt export', or repeat the Python that began the audit"
            raise unexpected("result.export", "a result of run()", "one read from files", remedy)
        with self.reading() as run:
            export_failures(run, self._space, folder, least_loss=least_loss)

    def picture(self, row: "int | pd.Series[Any]") -> Picture:
        if not isinstance(row, pd.Series):
            table = self.failures()
            if not -len(table) <= row < len(table):
                raise unexpected("picture", f"a row of failures(), 0 to {len(table) - 1}", row)
            row = table.iloc[row]
        question, call = int(row["question"]), int(row["call"])
        text, reason = row["answer_text"], row["unanswered"]
        if not isinstance(text, str):
            silent = isinstance(reason, str)
            text = f"unanswered: {reason}" if silent else f"answered {row['answer']:.2f}"
        truth = "" if pd.isna(row["truth"]) else f", truth {row['truth']:g}"
        change = f"{row['relation']} {row['severity']}" if row["severity"] else row["relation"]
        title = f"{row['sample']}, {change}: {row['concept']} {text}{truth}"
        with self.reading() as run:
            if self._space is not None and self._space.dataset.has_images:
                source, follow_up = self._space.pair(self._space.numbering.image_of(question))
                return Picture(title, source.image, follow_up.require_image())
            kept = run.pictures.get(call)
        if kept is None:
            got = "none: the dataset has none, or the journal kept no picture of it"
            raise unexpected("picture", f"the images of call {call}", got)
        return Picture(title, *map(_decoded, kept))

    def figures(self) -> dict[str, Any]:
        with self.reading() as run:
            return figures(run)

    def write_report(self, path: Path | None) -> Path:
        from ..results.report import write_report

        if path is None:
            folder = Path(mkdtemp(prefix="avtt-")) if self._path is None else self._path.parent
            path = folder / "report.html"
        with self.reading() as run:
            write_report(run, path)
        return path

    def perturbations(self) -> pd.DataFrame:
        from ..results.report.evidence import Evidence
        from ..results.report.rates import perturbations

        with self.reading() as run:
            return perturbations(Evidence(run))

    def save(self, folder: Path) -> None:
        from ..results.report.page import write_run

        with self.reading() as run:
            write_run(run, folder)

    @contextmanager
    def reading(self) -> Iterator[Run]:
        kept = nullcontext(self._journal)
        with kept if self._path is None else closing(read_journal(self._path)) as journal:
            if self._run is None or self._run.head != journal.head:
                self._run = Run(journal)
            self._run.journal = journal  # the same content; the object before may be closed
            yield self._run


def result_of(
    journal: Journal, space: QuestionSpace | None = None, statuses: Sequence[TargetStatus] = ()
) -> Result:
    """Return the result of a journal, with access to its details.

    Args:
        journal: The journal.
        space: The questions. Default None: unknown.
        statuses: The state of all targets, from an audit that is open. Default: from the journal.
    """
    return replace(summarise(Run(journal, statuses or None)), source=Inspection(journal, space))


def read_result(folder: Path | str) -> Result:
    """Read the present result of a run, which may be in progress.

    No code that the run names is executed, so that images are only thumbnails.

    Args:
        folder: A run folder, or a journal's file.

    Returns:
        The result.

    Raises:
        JournalError: No audit was begun there.
    """
    with closing(read_journal(journal_at(folder))) as journal:
        return result_of(journal)


def _decoded(png: bytes) -> Image:
    import cv2

    image = np.asarray(cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED))
    image = image[:, :, None] if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return np.asarray(image, np.uint8)
