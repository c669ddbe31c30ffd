"""The result of an audit: its rates and what to know about them, from its journal."""

import math
import webbrowser
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..certify.further import COLUMNS, Range, longest
from ..certify.status import Compared, TargetStatus
from ..engine.repeat_probes import Repeated
from ..errors import InputError, unknown
from ..families import OfConcept, OfRelation, Overall, TargetId
from ..journal import Journal
from ..journal.facts import ProtocolFacts, SpaceFacts
from ..oracles.base import error_of
from ..oracles.findings import Findings, JudgeFindings, caption_findings, judge_findings
from ..types import JsonObject
from ..utils.figures import CHANGED_ORIGINAL, USD, Bar, figure, money, on_page, table_html
from . import census
from .beliefs import PLOTS, TableName, beliefs, plotted
from .cautions import cautions
from .derived import Bounds, Rates, figures
from .opening import sentence
from .outcomes import counting
from .run import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SCHEMA_VERSION = 1
"""Version of result.json (result.schema.json); rises when a field changes its meaning or goes."""
SHOWN = 24
"""Targets that a notebook shows, at most."""
INTERVALS = "intervals"
FOR_PAPER = {
    "targets": ("target", "questions", "estimate", "lower", "upper", "certified", "decided")
}
"""Columns of ``Result.tables`` that fit on a page of LaTeX, where not all do."""
RAW = ("target", "estimate", "lower", "upper", "half_width", "certified", "questions")
"""Columns of targets where nothing is certified, with those that say what each is about."""


class Source(Protocol):
    """Gives a result access to what it was computed from; see ``inspection.Inspection``."""

    def failures(self) -> pd.DataFrame:
        """Return the table of ``Result.failures``."""

    def export(self, folder: Path, least_loss: float) -> None:
        """Write the folder of ``Result.export``."""

    def picture(self, row: Any) -> Any:
        """Return the images of ``Result.picture``."""

    def figures(self) -> "dict[str, Figure]":
        """Return Plotly figures by name."""

    def write_report(self, path: Path | None) -> Path:
        """Write the report; see ``Result.report``."""

    def perturbations(self) -> pd.DataFrame:
        """Return a table of ``Result.tables``."""

    def save(self, folder: Path) -> None:
        """Write the files of ``Result.save``."""

    def reading(self) -> AbstractContextManager[Run]:
        """Return the run, as its journal is by now."""


@dataclass(frozen=True, repr=False)
class Result:
    """The result of an audit. Notebooks show its intervals as a table.

    Attributes:
        targets: A row per target: target (its name for people), estimate, lower, upper, half_width,
            certified, questions; kind, concept, side, rate, relation, severity, group, value and
            filter identify its questions (see ``families``). Without a certificate, estimates are
            raw sample figures without interval (NaN). Audits that certify add pseudo_outcome_mean
            (the estimate by the draws alone), size, variance_ratio (of the draws with their
            predictions against uniform ones without) and effective_draws. More columns are
            more_calls with its range more_calls_least to more_calls_most (NA before any forecast),
            emptied, invalidated (its draws contradict its interval) and excluded (questions that
            did not count). Some audits have decided ("above", "below" or "open" against
            ``at_most``), constant and constant_answer (the best constant answer and its loss). An
            audit that asked everything has any_wrong (share of images with any wrong label). If
            two models were asked, rates are those of pairs, (1 + delta) / 2.
        calls: Calls drawn, answers about source images included.
        questions: Judged questions.
        cost: Cost of all answers.
        reason: Why the audit stopped; None while it has not.
        waiting: Calls without an answer.
        derived: Figures that follow from certified targets (balanced accuracy, kappa, BE ...), a
            row per quantity with estimate, lower, upper and note.
        scoring: How replies in words were read; None if there are none.
        protocol: How the model was asked, see ``journal.facts``.
        lost: Calls that were in flight when the audit was interrupted, perhaps paid for twice.
        captions: Objects in captions; None in other audits.
        head: Hash of the journal, which depends on every row (journal/chain.py).
        repeat_probes: How many repeated answers differ.
        warnings: Cautions about the result, a sentence each.
        guarantee: The guarantee of the intervals in words; None if nothing is certified.
        headline: The error on original and on all images, in words (``opening``).
        versus: The targets of a comparison of two models, else empty.
        judge: Questions to a judge of replies, and their cost, within ``cost``.
        unconfirmed: The part of ``cost`` that no server confirmed: failed attempts, and replies
            without counts, at the highest possible price.
        in_doubt: That in words, and what lost calls may have cost in addition.
        currency: ISO 4217 code of the currency of all costs.
        census: The tables of ``results.census`` for an audit that asks everything, else empty.
        statuses: The status of every target.
        source: The journal or run that it was made of; None if it was read from a file.
    """

    targets: pd.DataFrame
    calls: int
    questions: int
    cost: float
    reason: str | None
    waiting: int
    derived: pd.DataFrame
    scoring: str | None = None
    protocol: ProtocolFacts | None = None
    lost: int = 0
    captions: Findings | None = None
    head: str = ""
    repeat_probes: Repeated | None = None
    warnings: tuple[str, ...] = ()
    guarantee: str | None = None
    headline: str | None = None
    versus: tuple[Compared, ...] = ()
    judge: JudgeFindings | None = None
    unconfirmed: float = 0.0
    in_doubt: tuple[str, ...] = ()
    currency: str = USD
    census: Mapping[str, pd.DataFrame] = field(default_factory=dict, compare=False)
    statuses: tuple[TargetStatus, ...] = field(default=(), compare=False)
    source: Source | None = field(default=None, compare=False)

    def failures(self) -> pd.DataFrame:
        """Return a row per wrong answer (loss 0.5 or more), in draw order.

        Columns are sample (the image's id), relation, severity, concept, answer (P(yes) or a
        score, NaN for none), truth (of the source image) and loss. Then come unanswered (the
        reason, or None), asked (the question or item in words, or None), answer_text (a reply in
        words, or None), draw, call and question. If the audit ran in this process, the dataset's
        metadata follow, which no journal keeps.
        """
        return self._source("failures").failures()

    def export(self, folder: Path | str, least_loss: float = 0.5) -> Path:
        """Export the failures as a dataset, as ``avtt export DIR --failures FOLDER`` does.

        Args:
            folder: The folder to write into; new, or empty.
            least_loss: Least loss that counts as a failure, 0 to 1.

        Returns:
            The folder.

        Raises:
            InputError: The folder is in use, there are no images, or nothing failed; or the result
                was read from a run folder.
        """
        self._source("export").export(Path(folder), least_loss)
        return Path(folder)

    def picture(self, row: "int | pd.Series[Any]") -> Any:
        """Return the images behind a row of ``failures()``.

        Args:
            row: The row, or its number.

        Returns:
            An ``inspection.Picture`` with ``source`` and ``follow_up``, which notebooks show.
        """
        return self._source("picture").picture(row)

    def beliefs(self, of: TableName = "cell") -> pd.DataFrame:
        """Return the predictions during the audit.

        Each row is for a concept, relation, severity and moment. Columns are
        concept, relation, severity, draws, predicted, sd, spread, asked, failed, lower and upper.

        Args:
            of: Other groups, images, and more; see ``adaptive_vtt.results.beliefs.beliefs``.
        """
        with self._source("beliefs").reading() as run:
            return beliefs(run, of)

    def plot(self, name: str = INTERVALS, about: str | None = None) -> "Figure":
        """Return a Plotly figure.

        Args:
            name: "intervals" (all targets), one of ``inspection.figures``, or of predictions:
                "beliefs" (concept x relation), "through" (the same during the audit), "concept"
                (over severity, a panel per relation), "relation" (over concepts), "images",
                "calibration" and "uncertainty".
            about: The relation of "beliefs" and "relation" (default: the last), the concept of
                "concept".

        Raises:
            InputError: There is no such figure; the error names all.
        """
        from plotly.graph_objects import Figure

        if name in PLOTS:
            return Figure(plotted(name, about, self.beliefs))
        if about is not None:
            raise InputError(f"plot {name!r}: expected nothing after the name, got {about!r}")
        if name == INTERVALS:
            whole = self.guarantee is not None and all(s.certified for s in self.statuses)
            # if all is certified, that is why the audit ended
            caption = self._stage("ended") if whole and self.reason else on_page(self._stage())
            return Figure(figure(caption, [*map(bar_of, self.statuses)]))
        charts = self._source("plot").figures()
        if name not in charts:
            raise unknown("figure", name, [INTERVALS, *charts, *PLOTS], "plot")
        return charts[name]

    def report(self, path: Path | str | None = None, *, open: bool = False) -> Path:
        """Write the report, one HTML page, and return its path.

        Args:
            path: Default: report.html next to the journal, or in a new temporary folder.
            open: Whether to open it in the browser.
        """
        written = self._source("report").write_report(None if path is None else Path(path))
        if open:
            webbrowser.open(written.resolve().as_uri())
        return written

    def save(self, folder: Path | str) -> Path:
        """Write result.json, report.html and, for an audit that asked everything, its tables.

        The files hold the result of the journal by now, so that ``avtt verify`` can recompute
        them. For an audit that has not ended they omit what only the running audit knows: forecasts
        of calls, and estimates by today's predictions.

        Args:
            folder: The folder to write into.

        Returns:
            The report's path.
        """
        self._source("save").save(Path(folder))
        return Path(folder) / "report.html"

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the result by name.

        They are "targets", "derived" and "perturbations" (per relation and concept, see
        ``report.rates.perturbations``) unless empty, or the tables of a census. A comparison has
        "differences" alone: the new model's error rate minus the old one's, in shares, so above 0
        the new model is wrong more often.
        """
        if self.versus:
            rows = pd.DataFrame([asdict(row) for row in self.versus])
            signs = {"new - old": "delta", "lower": "upper", "upper": "lower"}
            more = {name: 0 - rows[column] for name, column in signs.items()}  # no minus zero
            others = rows.columns.drop(["target", *signs.values()])
            return {"differences": rows[["target"]].assign(**more).join(rows[others])}
        first = {"targets": self.targets, "derived": self.derived}
        if self.census:
            return {**first, **self.census}
        tables = {**first, "perturbations": self._source("tables").perturbations()}
        return {name: table for name, table in tables.items() if name == "targets" or len(table)}

    @property
    def reached(self) -> pd.Series:
        """True per row of ``targets`` if it is certified, and decided if that was requested."""
        reached = [status.reached for status in self.statuses]
        return pd.Series(reached, self.targets.index, dtype=bool)

    @property
    def unreached(self) -> list[TargetStatus]:
        """The targets that are not certified, or not decided if that was requested."""
        return [status for status in self.statuses if not status.reached]

    @property
    def further(self) -> Range | None:
        """How many more calls certify all of these; None before any forecast."""
        return longest(status.more_calls for status in self.unreached)

    def to_dict(self) -> JsonObject:
        """Return the fields of result.json (``result.schema.json``); what is unknown is None."""
        targets = _records(self.targets)
        if any(status.id.also for status in self.statuses):  # too long for a table
            for row, status in zip(targets, self.statuses, strict=True):
                row["also"] = [*status.id.also] or None
        same = ("calls", "questions", "cost", "unconfirmed", "waiting", "scoring", "lost")
        parts = {"captions": self.captions, "judge": self.judge}
        return {
            "schema_version": SCHEMA_VERSION,
            "targets": targets,
            "derived": _records(self.derived),
            **{name: getattr(self, name) for name in (*same, "guarantee", "headline")},
            "currency": None if self.currency == USD else self.currency,
            "stop_reason": self.reason,
            "protocol": self.protocol and self.protocol.as_dict(),
            "journal_head": self.head,
            "repeat_probes": self.repeat_probes and self.repeat_probes.as_dict(),
            "warnings": list(self.warnings),
            "versus": [asdict(row) for row in self.versus] or None,
            **{name: None if part is None else asdict(part) for name, part in parts.items()},
            "census": {n: _records(table) for n, table in self.census.items()} or None,
        }

    def _source(self, what: str) -> Source:
        if self.source is None:
            raise InputError(
                f"result.{what}: expected a result with its journal, got figures alone; "
                "Audit.result() and adaptive_vtt.read_result(DIR) give one"
            )
        return self.source

    def _stage(self, ended: str | None = None) -> str:
        """Return in words how much was asked and certified, and why the audit ended."""
        ended = ended or ("still open" if self.reason is None else f"ended: {self.reason}")
        asked = f"{self.calls} calls, {self.questions} questions, {self.paid}"
        done = sum(status.certified for status in self.statuses)
        count = f"{done} of {len(self.statuses)} targets certified"
        return f"{'nothing certified' if self.guarantee is None else count}; {asked}; {ended}"

    @property
    def paid(self) -> str:
        """The cost that counts against the cap, in words, and the part of it that is in doubt."""
        doubt = f" ({'; '.join(self.in_doubt)})" if self.in_doubt else ""
        return f"cost {money(self.cost, self.currency)}{doubt}"

    def __repr__(self) -> str:
        return f"Result({'; '.join(filter(None, [self.headline, self._stage()]))})"

    def _repr_html_(self) -> str:
        rows = [bar_of(status) for status in self.statuses[:SHOWN]]
        more = len(self.statuses) - len(rows)
        notes = [f"and {more} more targets: result.targets"] if more else []
        notes += [] if self.guarantee is None else [self.guarantee]
        notes += [f"warning: {warning}" for warning in self.warnings]
        first = f"{rows[0].name}: {rows[0].words}" if rows else "No target"
        return table_html(self.headline or first, self._stage(), rows, notes)


def bar_of(status: TargetStatus) -> Bar:
    """Return a target as a line of a figure or table."""
    notes = f"{status.questions} questions" + (", certified" if status.certified else "")
    ends = status.estimate, status.lower, status.upper
    return Bar(status.name, *ends, status.certified, notes, CHANGED_ORIGINAL * status.id.signed)


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def summarise(source: Journal | Run) -> Result:
    """Return the result of a run or its journal: certified targets if there are any, else raw
    figures."""
    run = Run.of(source)
    facts, certificate = run.facts, run.certificate
    statuses = run.statuses if certificate else raw(run)
    rates: dict[TargetId, Bounds] = {}
    # figures of several rates hold only where their intervals hold at once
    if certificate and certificate.guarantee == "all" and not certificate.paired:
        rates = {s.id: Bounds(s.estimate, s.lower, s.upper) for s in statuses}
    tables: dict[str, pd.DataFrame] = {}
    targets = frame(statuses, certified=certificate is not None)
    if certificate and certificate.counted and not certificate.drops:
        tables = census.tables(facts, run.table, targets, run.calls)
    return Result(
        targets=targets,
        statuses=tuple(statuses),
        calls=len(run.draws) + len(run.sources),
        questions=len(run.table),
        cost=run.cost,
        unconfirmed=run.unconfirmed,
        in_doubt=tuple(facts.money_in_doubt(run.unconfirmed)),
        reason=facts.ended.reason if facts.ended else None,
        waiting=len(run.draws) - len(run.calls),
        derived=derive(facts.space, rates),
        lost=facts.interrupted,
        captions=caption_findings(run.calls, run.draws),
        repeat_probes=run.repeat_probes,
        warnings=tuple(cautions(run)),
        scoring=facts.settings.oracle.regime,
        protocol=facts.protocol,
        judge=judge_findings(run.judging, run.calls),
        currency=facts.currency,
        head=run.head,
        guarantee=None if certificate is None else certificate.promise,
        headline=sentence(run),
        versus=tuple(run.compared),
        census=tables,
    )


def derive(space: SpaceFacts, rates: Rates) -> pd.DataFrame:
    """Return ``results.derived.figures`` as a table: quantity, estimate, lower, upper, note."""
    columns = ["quantity", "estimate", "lower", "upper", "note"]
    rows = [(f.name, *astuple(f.bounds), f.note) for f in figures(space, rates)]
    return pd.DataFrame(rows, columns=columns)


def frame(statuses: Sequence[TargetStatus], *, certified: bool = True) -> pd.DataFrame:
    """Return a table with a row per target; see ``Result.targets`` for its columns.

    Args:
        statuses: The targets.
        certified: False for raw figures, which have the first columns alone.
    """
    rows = [{**s.row(), "questions": s.questions, "excluded": s.excluded} for s in statuses]
    rows = rows if certified else [{name: row[name] for name in RAW} for row in rows]
    rows = [row | status.id.columns() for row, status in zip(rows, statuses, strict=True)]
    integers = {*COLUMNS, "side", "severity"}  # or missing
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    whole = {name: pd.array(columns[name], "Int64") for name in columns if name in integers}
    table = pd.DataFrame(columns | whole)
    baselines = [status.baseline for status in statuses]
    if any(baselines):
        table["constant"] = [math.nan if one is None else one.rate for one in baselines]
        table["constant_answer"] = pd.Series(
            [one and one.answer for one in baselines], dtype=object
        )
    shares = pd.Series([status.any_wrong for status in statuses], dtype=float)
    return table if shares.isna().all() else table.assign(any_wrong=shares)


def raw(run: Run) -> list[TargetStatus]:
    """Return raw figures, by the same units as certified ones (``certify.targets.selected``)."""
    space, table = run.facts.space, run.table
    rates, classes = run.facts.settings.oracle.rates, space.concepts_are == "classes"
    error = error_of(space.concepts_are, rates)
    concepts, relations, truths = (
        table[name].to_numpy() for name in ("concept", "relation", "truth")
    )
    unit = truths == 1 if classes else np.ones(len(table), bool)
    parts: dict[TargetId, npt.NDArray[np.bool_]] = {Overall(error): unit}
    for concept in dict.fromkeys(concepts):
        for rate, truth in rates.items():
            parts[OfConcept(concept, truth, rate)] = (concepts == concept) & (truths == truth)
    for relation in dict.fromkeys(relations[unit]):
        parts[OfRelation(relation, error)] = (relations == relation) & unit
    # questions that do not count are left out of the mean
    losses, nan = counting(table)["loss"].reindex(table.index), math.nan
    means = {id: float(losses[part].mean()) for id, part in parts.items()}
    return [
        TargetStatus(id=id, estimate=means[id], lower=nan, upper=nan, questions=int(part.sum()))
        for id, part in parts.items()
    ]
