"""How an audit ended: its rates and what to know of them, from its journal."""

import json
import math
import webbrowser
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

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
from ..utils.figures import USD, Bar, figure, money, on_page, table_html
from ..utils.files import write_text
from . import census
from .beliefs import PLOTS, TableName, plotted
from .cautions import cautions
from .derived import Bounds, Rates, figures
from .opening import sentence
from .outcomes import FAILED as FAILED
from .outcomes import METRICS as METRICS
from .outcomes import confusion as confusion
from .outcomes import counting
from .outcomes import outcomes as outcomes
from .run import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SCHEMA_VERSION = 1
"""Of result.json (``result_file``); goes up when a field changes its meaning or goes."""
SHOWN = 24
"""Targets that a notebook shows, at most."""
INTERVALS = "intervals"
FOR_PAPER = {
    "targets": ("target", "questions", "estimate", "lower", "upper", "certified", "decided")
}
"""Columns of ``Result.tables`` that a page of LaTeX has room for, where it has none for all."""
RAW = ("target", "estimate", "lower", "upper", "half_width", "certified", "questions")
"""Columns of targets where nothing is certified, but for what each is about."""


class Source(Protocol):
    """What a result was computed from, to look into it; see ``inspection.Inspection``."""

    def failures(self) -> pd.DataFrame:
        """See ``Result.failures``."""

    def picture(self, row: Any) -> Any:
        """See ``Result.picture``."""

    def beliefs(self, of: TableName) -> pd.DataFrame:
        """See ``Result.beliefs``."""

    def perturbations(self) -> pd.DataFrame:
        """See ``Result.tables``."""

    def figures(self) -> dict[str, JsonObject]:
        """Charts by name, as Plotly takes them."""

    def write_report(self, path: Path | None) -> Path:
        """See ``Result.report``."""

    def journaled(self) -> "Result":
        """What the journal comes to by now, without what only a running audit knows."""


@dataclass(frozen=True, repr=False)
class Result:
    """How an audit ended. Notebooks show its intervals as a table.

    ``targets``: one row per target with target, estimate, lower, upper, half_width,
    certified, questions, and, in audits that certify, pseudo_outcome_mean (the estimate by the
    draws alone, without today's predictions), size, variance_ratio (of the draws with their
    predictions against uniform ones without), effective_draws, and more_calls with more_calls_least
    and more_calls_most, its range (NA where nothing can be forecast yet). In others, estimates are
    raw sample figures and carry no interval (NaN). ``derived``: what follows from certified
    targets (balanced accuracy, kappa, BE ...), one row per quantity with estimate, lower,
    upper and note (what to mind, or ""); no rows where nothing follows.
    constant and constant_answer: what the best answer that never depends on the image (always the
    same class, Yes, No or letter) would lose on the same questions, known from the labels.
    any_wrong, where labels were asked about and counted: the share of images with any wrong label.
    The columns kind, concept, side, rate, relation, severity, group, value and filter say what a
    target is about, see ``families``; ``target`` is its name for people.
    ``reason``: why it stopped, None while it has not. ``scoring``: how replies in words were
    read, None where there are none; ``protocol``: how the model was asked, see
    ``journal.facts``. ``lost``: calls that were on their way when the audit was interrupted or
    ended by an error, and may have been paid for twice. ``captions``: what
    was found in captions. ``head``: the journal's, which follows from every row of it
    (journal/chain.py).
    ``repeat_probes``: how many answers asked again differ. ``warnings``: what to know before
    trusting the rest, a sentence each. In audits that certify, ``targets`` also says whether
    an interval ``emptied``, whether its draws contradict it (``invalidated``, emptied or not),
    and how many questions were ``excluded`` as they did not count. ``guarantee``: what holds of
    the intervals, and how surely, in words; None where nothing is certified. ``headline``: the
    error on images as they are and on all, in words (``opening``). In audits with
    ``at_most``, ``decided`` says on which side of it a target lies: "above", "below" (at most at
    it), or "open". ``versus``: in comparisons of two models, how every target stands; where both
    were asked, ``targets`` are rates of pairs, (1 + delta) / 2. ``judge``: what a judge of replies
    was asked, and what that cost, within ``cost``. ``unconfirmed``: the part of ``cost`` that no
    server confirmed, so that it may not have been charged: failed attempts, and replies without
    counts, at the most one can cost. ``in_doubt``: that in words, and what lost calls may have cost
    beside ``cost``. ``census``: of an audit that asks everything the tables of ``results.census``:
    "rates", "perturbations" and "classes".
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
        """One row per wrong answer (loss 0.5 or more), in draw order.

        Columns: sample (the image's id), relation, severity, concept, answer (P(yes) or a score;
        NaN: none), truth (of the source image), loss, unanswered (why, or None), asked (the
        question or item in words, or None), said (a reply in words, or None), draw, call,
        question; where the audit ran in this process also the dataset's metadata, which no journal
        keeps.
        """
        return self._source("failures").failures()

    def picture(self, row: "int | pd.Series[Any]") -> Any:
        """The images behind a row of ``failures()``, by its number or as such: an
        ``inspection.Picture`` with ``source`` and ``follow_up``, which notebooks show."""
        return self._source("picture").picture(row)

    def beliefs(self, of: TableName = "cell") -> pd.DataFrame:
        """What was believed as the audit went on, a row per concept, relation, severity and moment:
        concept, relation, severity, draws, predicted, sd, spread, asked, failed, lower, upper.

        ``of``: of other groups, of images, and more; see ``adaptive_vtt.results.beliefs.beliefs``.
        """
        return self._source("beliefs").beliefs(of)

    def plot(self, name: str = INTERVALS, about: str | None = None) -> "Figure":
        """The Plotly figure of that name: "intervals" (all targets), one of ``inspection.figures``,
        or of what was believed (``beliefs``): "beliefs" (concept x relation; ``about`` one
        relation), "through" (the same as the audit went on), "concept" (over severity, a panel per
        relation; ``about`` one concept), "relation" (of one relation, by default the last, over
        concepts), "images", "calibration" and "uncertainty".

        Raises InputError naming all there are for a name that is none of them.
        """
        from plotly.graph_objects import Figure

        if name in PLOTS:
            return Figure(plotted(name, about, self.beliefs))
        if about is not None:
            raise InputError(f"plot {name!r}: expected nothing after the name, got {about!r}")
        if name == INTERVALS:
            return Figure(figure(self._caption, [*map(_bar, self.statuses)]))
        charts = self._source("plot").figures()
        if name not in charts:
            raise unknown("figure", name, [INTERVALS, *charts, *PLOTS], "plot")
        return Figure(charts[name])

    def report(self, path: Path | str | None = None, *, open: bool = False) -> Path:
        """Writes the report, one HTML page, and gives its path. Default: report.html beside the
        journal, or in a new temporary folder. ``open``: in the browser, too."""
        written = self._source("report").write_report(None if path is None else Path(path))
        if open:
            webbrowser.open(written.resolve().as_uri())
        return written

    def save(self, folder: Path | str) -> Path:
        """Write result.json and report.html into a folder, and of an audit that asked everything
        its tables; return the report's path.

        The files say what the journal comes to by now, so that ``avtt verify`` follows them: of an
        audit that has not ended, that leaves out what only the running audit knows (forecasts of
        calls, and estimates by today's predictions).
        """
        written = self._source("save").journaled()
        census.write(Path(folder), dict(written.census))
        text = json.dumps(written.to_dict(), indent=1, allow_nan=False)
        write_text(Path(folder) / "result.json", text + "\n")
        return self.report(Path(folder) / "report.html")

    def tables(self) -> dict[str, pd.DataFrame]:
        """ "targets"; "derived" and "perturbations" (per relation and concept, see
        ``report.rates.perturbations``) where there are any. Of a comparison "differences", how much
        more the second model errs, as shares; its ``targets`` are rates of pairs."""
        if self.versus:
            return {"differences": self._differences()}
        found = {"targets": self.targets, "derived": self.derived}
        if self.census:
            return {**found, **self.census}
        found["perturbations"] = self._source("tables").perturbations()
        return {name: table for name, table in found.items() if name == "targets" or len(table)}

    def _differences(self) -> pd.DataFrame:
        found = pd.DataFrame([asdict(row) for row in self.versus])
        signs = {"difference": "delta", "lower": "upper", "upper": "lower"}
        more = {name: 0 - found[of] for name, of in signs.items()}  # no minus zero
        others = found.columns.drop(["target", *signs.values()])
        return found[["target"]].assign(**more).join(found[others])

    def inspected(self, source: Source) -> Self:
        """The same result, to be looked into."""
        return replace(self, source=source)

    @property
    def reached(self) -> pd.Series:
        """Whether all that was asked of a target is known, one bool per row of ``targets``: it is
        certified, and decided where that was asked."""
        reached = [status.reached for status in self.statuses]
        return pd.Series(reached, self.targets.index, dtype=bool)

    @property
    def unreached(self) -> list[TargetStatus]:
        """The targets of which something that was asked is not known."""
        return [status for status in self.statuses if not status.reached]

    @property
    def further(self) -> Range | None:
        """How many more calls certify all of these; None where that cannot be told yet."""
        return longest(status.more_calls for status in self.unreached)

    def to_dict(self) -> JsonObject:
        """The result as result.json has it (``result_file``); what is unknown is null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "targets": _records(self.targets),
            "derived": _records(self.derived),
            "calls": self.calls,
            "questions": self.questions,
            "cost": self.cost,
            "unconfirmed": self.unconfirmed,
            "currency": None if self.currency == USD else self.currency,
            "stop_reason": self.reason,
            "waiting": self.waiting,
            "scoring": self.scoring,
            "protocol": None if self.protocol is None else self.protocol.as_dict(),
            "lost": self.lost,
            "captions": None if self.captions is None else asdict(self.captions),
            "journal_head": self.head,
            "repeat_probes": None if self.repeat_probes is None else self.repeat_probes.as_dict(),
            "warnings": list(self.warnings),
            "guarantee": self.guarantee,
            "headline": self.headline,
            "versus": [asdict(row) for row in self.versus] or None,
            "judge": None if self.judge is None else asdict(self.judge),
            "census": {n: _records(table) for n, table in self.census.items()} or None,
        }

    as_dict = to_dict

    def _source(self, what: str) -> Source:
        if self.source is None:
            raise InputError(
                f"result.{what}: expected a result with its journal, got figures alone; "
                "Audit.result() and adaptive_vtt.read_result(DIR) give one"
            )
        return self.source

    @property
    def _stage(self) -> str:
        return self._staged("still open" if self.reason is None else f"ended: {self.reason}")

    @property
    def _caption(self) -> str:
        """The stage as a page has it; where all is certified, that is why the audit ended."""
        whole = self.guarantee is not None and all(s.certified for s in self.statuses)
        return self._staged("ended") if whole and self.reason else on_page(self._stage)

    def _staged(self, ended: str) -> str:
        asked = f"{self.calls} calls, {self.questions} questions, {self.paid}"
        if self.guarantee is None:
            return f"nothing certified; {asked}; {ended}"
        done = sum(status.certified for status in self.statuses)
        return f"{done} of {len(self.statuses)} targets certified; {asked}; {ended}"

    @property
    def paid(self) -> str:
        """What was booked against the cap, in words, and what of it is in doubt."""
        doubt = f" ({'; '.join(self.in_doubt)})" if self.in_doubt else ""
        return f"cost {money(self.cost, self.currency)}{doubt}"

    def __repr__(self) -> str:
        return f"Result({'; '.join(filter(None, [self.headline, self._stage]))})"

    def _repr_html_(self) -> str:
        rows = [_bar(status) for status in self.statuses[:SHOWN]]
        more = len(self.statuses) - len(rows)
        notes = [f"and {more} more targets: result.targets"] if more else []
        notes += [] if self.guarantee is None else [self.guarantee]
        notes += [f"warning: {warning}" for warning in self.warnings]
        first = rows[0] if rows else None
        title = "No target" if first is None else f"{first.name}: {first.words}"
        title = self.headline or title
        return table_html(title, self._stage, rows, notes)


def _bar(status: TargetStatus) -> Bar:
    notes = f"{status.questions} questions" + (", certified" if status.certified else "")
    ends = status.estimate, status.lower, status.upper
    return Bar(status.name, *ends, status.certified, notes, signed=status.id.signed)


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def summarise(source: Journal | Run) -> Result:
    """Return the result of a run or its journal: certified targets where there are any, else raw
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
    """``results.derived.figures`` as a table: quantity, estimate, lower, upper, note; no row where
    nothing follows."""
    columns = ["quantity", "estimate", "lower", "upper", "note"]
    rows = [(f.name, f.bounds, f.note) for f in figures(space, rates)]
    return pd.DataFrame(
        [(name, b.estimate, b.lower, b.upper, note) for name, b, note in rows], columns=columns
    )


def frame(statuses: Sequence[TargetStatus], *, certified: bool = True) -> pd.DataFrame:
    """Return one row per target: what the journal keeps of it, the questions asked, what it is
    about, and its best constant answer; of raw figures the first columns alone."""
    rows = []
    for status in statuses:
        row = {**status.row(), "questions": status.questions, "excluded": status.excluded}
        rows.append(row if certified else {name: row[name] for name in RAW})
    table = pd.DataFrame(rows)
    table = table.astype({name: "Int64" for name in COLUMNS if name in table})
    ids = [status.id for status in statuses]
    about = pd.DataFrame([target.columns() for target in ids], index=table.index)
    if any(target.also for target in ids):
        also = [list(target.also) or None for target in ids]
        about["also"] = pd.Series(also, about.index, object)
    table = table.join(about.astype({"side": "Int64", "severity": "Int64"}))
    baselines = [status.baseline for status in statuses]
    if any(baselines):
        table = table.assign(
            constant=[math.nan if one is None else one.rate for one in baselines],
            constant_answer=pd.Series([one and one.answer for one in baselines], dtype=object),
        )
    shares = pd.Series([status.any_wrong for status in statuses], dtype=float)
    return table if shares.isna().all() else table.assign(any_wrong=shares)


def raw(run: Run) -> list[TargetStatus]:
    """Raw figures, by the same units as certified ones (``certify.targets.selected``)."""
    space, table = run.facts.space, run.table
    rates, classes = run.facts.settings.oracle.rates, space.concepts_are == "classes"
    error = error_of(space.concepts_are, rates)
    unit = table[table["truth"] == 1] if classes else table
    parts: dict[TargetId, pd.DataFrame] = {Overall(error): unit}
    for concept, part in table.groupby("concept", sort=False):
        for rate, truth in rates.items():
            parts[OfConcept(str(concept), truth, rate)] = part[part["truth"] == truth]
    for relation, part in unit.groupby("relation", sort=False):
        parts[OfRelation(str(relation), error)] = part
    statuses = []
    for about, part in parts.items():
        # questions that do not count are left out of the mean
        mean = float(counting(part)["loss"].mean())
        statuses.append(
            TargetStatus(
                id=about, estimate=mean, lower=math.nan, upper=math.nan, questions=len(part)
            )
        )
    return statuses
