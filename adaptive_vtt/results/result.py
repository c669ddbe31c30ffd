"""How an audit ended: its rates and what to know of them, from its journal."""

import json
import webbrowser
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pandas as pd

from ..certify.decisions import Compared, compared
from ..certify.further import COLUMNS
from ..certify.tracks import members_of
from ..certify.verify import Interval, recompute, versus_decision
from ..certify.verify_counting import counted
from ..engine.repeat_probes import Repeated, repeated
from ..errors import InputError, unknown
from ..families import OfConcept, OfRelation, Overall, TargetId
from ..journal import Journal
from ..journal.facts import CertificateFacts, Facts, ProtocolFacts, SpaceFacts, read_facts
from ..journal.rows import EXCLUDED, CallRow, DrawRow, SourceRow
from ..oracles.base import error_of
from ..oracles.findings import (
    Findings,
    JudgeFindings,
    cost_of,
    found,
    found_by_judge,
    unconfirmed_of,
)
from ..types import JsonObject
from ..utils.figures import USD, Bar, figure, money, on_page, table_html
from ..utils.files import write_text
from . import census
from .beliefs import PLOTS, Told, plotted
from .cautions import cautions, is_mute
from .derived import Bounds, Rates, figures
from .opening import sentence
from .outcomes import FAILED as FAILED
from .outcomes import METRICS as METRICS
from .outcomes import any_wrong, judged
from .outcomes import confusion as confusion
from .outcomes import outcomes as outcomes

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


class Source(Protocol):
    """What a result was computed from, to look into it; see ``inspection.Inspection``."""

    def failures(self) -> pd.DataFrame:
        """See ``Result.failures``."""

    def picture(self, row: Any) -> Any:
        """See ``Result.picture``."""

    def beliefs(self, of: Told) -> pd.DataFrame:
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

    def beliefs(self, of: Told = "cell") -> pd.DataFrame:
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
            raise InputError(f"plot {name!r}: expected nothing beside the name, got {about!r}")
        if name == INTERVALS:
            rows = self.targets.to_dict("records")
            return Figure(figure(self._caption, [*map(_bar, rows)]))
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
        found = self._source("save").journaled()
        census.write(Path(folder), dict(found.census))
        text = json.dumps(found.to_dict(), indent=1, allow_nan=False)
        write_text(Path(folder) / "result.json", text + "\n")
        return self.report(Path(folder) / "report.html")

    def tables(self) -> dict[str, pd.DataFrame]:
        """ "targets"; "derived" and "perturbations" (per relation and concept, see
        ``report.perturbations``) where there are any. Of a comparison "differences", how much
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
        found = self.targets["certified"].astype(bool)
        return found & (self.targets["decided"] != "open") if "decided" in self.targets else found

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
        whole = self.guarantee is not None and bool(self.targets["certified"].astype(bool).all())
        return self._staged("ended") if whole and self.reason else on_page(self._stage)

    def _staged(self, ended: str) -> str:
        asked = f"{self.calls} calls, {self.questions} questions, {self.paid}"
        if self.guarantee is None:
            return f"nothing certified; {asked}; {ended}"
        done = int(self.targets["certified"].astype(bool).sum())
        return f"{done} of {len(self.targets)} targets certified; {asked}; {ended}"

    @property
    def paid(self) -> str:
        """What was booked against the cap, in words, and what of it is in doubt."""
        doubt = f" ({'; '.join(self.in_doubt)})" if self.in_doubt else ""
        return f"cost {money(self.cost, self.currency)}{doubt}"

    def __repr__(self) -> str:
        return f"Result({'; '.join(filter(None, [self.headline, self._stage]))})"

    def _repr_html_(self) -> str:
        rows = [_bar(row) for row in self.targets.head(SHOWN).to_dict("records")]
        more = len(self.targets) - len(rows)
        notes = [f"and {more} more targets: result.targets"] if more else []
        notes += [] if self.guarantee is None else [self.guarantee]
        notes += [f"warning: {warning}" for warning in self.warnings]
        first = rows[0] if rows else None
        title = "No target" if first is None else f"{first.name}: {first.words}"
        title = self.headline or title
        return table_html(title, self._stage, rows, notes)


def _bar(row: Mapping[Hashable, Any]) -> Bar:
    done, questions = bool(row["certified"]), int(row["questions"])
    told = f"{questions} questions" + (", certified" if done else "")
    estimate, lower, upper = (float(row[name]) for name in ("estimate", "lower", "upper"))
    return Bar(str(row["target"]), estimate, lower, upper, done, told)


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def summarise(journal: Journal, intervals: list[JsonObject] | None = None) -> Result:
    """The result of a journal: certified targets where there are any, else raw figures.

    While an audit is running it knows its ``intervals`` (``Audit.intervals``); where they are not
    given they are taken from the journal, or recomputed from its rows.
    """
    facts, sources, judging = read_facts(journal.facts()), journal.sources(), journal.judging()
    calls, draws = journal.calls(), journal.draws(proposals=False)
    table, certificate, rates = judged(facts, draws, calls), facts.certificate, {}
    if certificate is None:
        targets = _targets(table, facts)
    else:
        found_rows = facts.intervals if intervals is None else intervals
        targets = _certified(facts, found_rows, draws, calls)
        # figures of several rates hold only where their intervals hold at once
        if certificate.guarantee == "all" and not certificate.paired:
            bounds = (Bounds(t.estimate, t.lower, t.upper) for t in targets.itertuples())
            rates = dict(zip(certificate.ids, bounds, strict=True))
    repeat_probes = repeated(sources, calls)
    unconfirmed = unconfirmed_of(calls, sources, judging)
    return Result(
        targets=targets,
        calls=len(draws) + len(sources),
        questions=len(table),
        cost=cost_of(calls, sources, judging),
        unconfirmed=unconfirmed,
        in_doubt=tuple(facts.money_in_doubt(unconfirmed)),
        reason=facts.ended.reason if facts.ended else None,
        waiting=len(draws) - len(calls),
        derived=derive(facts.space, rates),
        lost=facts.interrupted,
        captions=found(calls, draws),
        repeat_probes=repeat_probes,
        warnings=tuple(cautions(facts, targets, repeat_probes, calls)),
        scoring=facts.settings.oracle.regime,
        protocol=facts.protocol,
        judge=found_by_judge(judging, calls),
        currency=facts.currency,
        head=journal.head,
        guarantee=None if certificate is None else certificate.promise,
        headline=sentence(facts, _rows(targets), calls),
        versus=tuple(compared(certificate, _rows(targets), draws, calls, facts.known_a)),
        census=census.tables(facts, table, targets, calls)
        if certificate and certificate.counted
        else {},
    )


def derive(space: SpaceFacts, rates: Rates) -> pd.DataFrame:
    """``results.derived.figures`` as a table: quantity, estimate, lower, upper, note; no row where
    nothing follows."""
    columns = ["quantity", "estimate", "lower", "upper", "note"]
    found = [(f.name, f.bounds, f.note) for f in figures(space, rates)]
    return pd.DataFrame(
        [(name, b.estimate, b.lower, b.upper, note) for name, b, note in found], columns=columns
    )


def _rows(targets: pd.DataFrame) -> list[JsonObject]:
    return [{str(name): value for name, value in r.items()} for r in targets.to_dict("records")]


def warned(
    facts: Facts, draws: list[DrawRow], calls: list[CallRow], sources: list[SourceRow]
) -> tuple[str, ...]:
    """``Result.warnings`` from the rows of a journal."""
    targets = pd.DataFrame()
    if facts.certificate is not None:
        targets = _certified(facts, facts.intervals, draws, calls)
    return tuple(cautions(facts, targets, repeated(sources, calls), calls))


def certified_table(facts: Facts, calls: list[CallRow]) -> pd.DataFrame:
    """``Result.targets`` of an audit that asks everything, from its journal."""
    return _certified(facts, facts.intervals, [], calls)


def _certified(
    facts: Facts,
    rows: list[JsonObject] | None,
    draws: list[DrawRow],
    calls: list[CallRow],
) -> pd.DataFrame:
    """``rows``: a table of intervals; None where they are to be computed from draws and calls."""
    certificate = facts.certificate
    assert certificate is not None
    if certificate.counted:
        counts = counted(certificate, facts.population, calls) if rows is None else rows
        table = pd.DataFrame(counts).assign(emptied=False, invalidated=False)
        table = _constant(_identified(table, certificate.ids), certificate)
        return _any_wrong(table, facts, calls)
    if rows is None:
        found = enumerate(recompute(certificate, draws, calls))
        rows = [_recomputed(interval, certificate, k) for k, interval in found]
    answered = {c.call: c for c in calls}
    asked, excluded = [0] * len(rows), [0] * len(rows)
    for draw in draws:
        if draw.call not in answered:
            continue
        out = {a.question for a in answered[draw.call].answers if a.excluded}
        told = [answer.question for answer in answered[draw.call].answers]
        for k, members in enumerate(members_of(certificate, draw, told)):
            asked[k] += len(members)
            excluded[k] += len(out.intersection(members))
    table = pd.DataFrame(rows).assign(questions=asked, excluded=excluded)
    table = table.astype({name: "Int64" for name in COLUMNS if name in table})
    if is_mute(calls):
        table["certified"] = False
    return _constant(_identified(table, certificate.ids), certificate)


def _any_wrong(table: pd.DataFrame, facts: Facts, calls: list[CallRow]) -> pd.DataFrame:
    """With the share of images that have any wrong label, of targets that are known exactly."""
    exact = table["certified"].to_numpy(bool)
    shares = [any_wrong(facts, calls, k) if exact[k] else np.nan for k in range(len(table))]
    return table if np.isnan(shares).all() else table.assign(any_wrong=shares)


def _constant(table: pd.DataFrame, certificate: CertificateFacts) -> pd.DataFrame:
    """With each target's best constant answer and its rate, where there are any."""
    if not any(certificate.constants):
        return table
    found = [certificate.constant(place) for place in range(len(table))]
    return table.assign(
        constant=[float("nan") if one is None else one.rate for one in found],
        constant_answer=pd.Series([one and one.answer for one in found], dtype=object),
    )


def _recomputed(found: Interval, certificate: CertificateFacts, k: int) -> JsonObject:
    """The row of target ``k`` of ``Result.targets`` for an audit that has not ended."""
    half_width, decides = (found.upper - found.lower) / 2, certificate.decides
    only = decides and certificate.half_width is None
    reached = found.decided != "open" if only else half_width <= certificate.aim
    told: JsonObject = {"decided": found.decided} if decides else {}
    if certificate.versus is not None:
        ends = found.lower, found.upper
        side = versus_decision(certificate.versus, k, *ends, found.decided)
        reached = side != "open"
        told = {"decision": "open" if found.invalidated else side}
    row = {
        "target": found.target,
        "estimate": found.estimate,
        "pseudo_outcome_mean": found.estimate,
        "lower": found.lower,
        "upper": found.upper,
        "half_width": half_width,
        "certified": reached and not found.invalidated,
        "emptied": found.emptied,
        "invalidated": found.invalidated,
    }
    return row | told


def _targets(table: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    """Raw figures, by the same units as certified ones (``certify.targets.selected``)."""
    rates, classes = facts.settings.oracle.rates, facts.space.concepts_are == "classes"
    error = error_of(facts.space.concepts_are, rates)
    unit = table[table["truth"] == 1] if classes else table
    found: dict[TargetId, pd.DataFrame] = {Overall(error): unit}
    for concept, part in table.groupby("concept", sort=False):
        for rate, truth in rates.items():
            about = OfConcept(str(concept), truth, rate)
            found[about] = part[part["truth"] == truth]
    for relation, part in unit.groupby("relation", sort=False):
        found[OfRelation(str(relation), error)] = part
    return _identified(pd.DataFrame([_target(*item) for item in found.items()]), list(found))


def _identified(table: pd.DataFrame, ids: Sequence[TargetId]) -> pd.DataFrame:
    """With the fields of each target's identity as columns, and its other names where any has."""
    fields = pd.DataFrame([target.columns() for target in ids], index=table.index)
    if any(target.also for target in ids):
        also = [list(target.also) or None for target in ids]
        fields["also"] = pd.Series(also, fields.index, object)
    return table.join(fields.astype({"side": "Int64", "severity": "Int64"}))


def _target(about: TargetId, part: pd.DataFrame) -> JsonObject:
    """Raw figures; questions that do not count are left out of the mean."""
    counted = part[~part["unanswered"].fillna("").astype(str).str.startswith(EXCLUDED)]
    return {
        "target": about.name,
        "estimate": float(counted["loss"].mean()) if len(counted) else float("nan"),
        **dict.fromkeys(("lower", "upper", "half_width"), float("nan")),
        "certified": False,
        "questions": len(part),
    }
