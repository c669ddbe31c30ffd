"""The pages: a list of runs, a run with its report in a frame, and two runs side by side; and the
address of each.

Each of two runs promises that its intervals hold with probability 1 - alpha at every moment. Both
promises hold together with probability at least 1 - alpha_A - alpha_B (the union bound), whatever
the runs share. While they do, two disjoint intervals of the same target leave no way for the two
rates to be equal. Overlapping ones decide nothing, and a difference of estimates has no interval.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ...certify.status import TargetStatus
from ...errors import InputError, one_line
from ...types import JsonObject
from ...utils.figures import COLOURS, money, on_page, outward, percent
from ...utils.figures import figure as intervals
from ...utils.http_server import Call, HttpServer, Rejected, Response
from ..difference import points
from ..report.frame import FILE, SERVED, framed, installed
from ..report.plots import frame
from ..report.section import data
from ..result import bar_of
from ..runs import Listed, Rates, span_of
from .watching import PAGE, Latest, Report, Watch

HERE = Path(__file__).parent
LIST = HERE / "list.js"
Row = tuple[Listed, Latest[Rates]]
ORDERS: dict[str, Callable[[Row], Any]] = {
    "run": lambda row: row[0].name,
    "model": lambda row: (row[0].model, row[0].version or ""),
    "targets": lambda row: -row[0].targets,
    "calls": lambda row: -row[0].calls,
    "cost": lambda row: -row[0].cost,
    "worst": lambda row: -row[1].value.worst.lower if row[1].value and row[1].value.worst else 1.0,
    "state": lambda row: row[0].state,
    "written": lambda row: -(row[0].written or 0.0),
}
"""Column of the list -> its key for sorting."""
ALLOWED = {"connect-src": "'self'", "frame-src": "'self'", "form-action": "'self'"}
"""Directives of the policy of our own pages, added to those of every page."""
UNFRAMED, FRAMED = "frame-ancestors 'none'", "frame-ancestors 'self'"
"""Who may frame our own pages, and a report, in addition to their own policies."""
MAX_FIELDS = 100
"""Fields of an address's query, at most."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

DRAWN = 40
"""Targets that the figure shows, at most; the table has them all."""
Verdict = Literal["lower", "higher", "open", "void"]


# -- two runs ----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A target of both runs."""

    name: str
    a: TargetStatus
    b: TargetStatus

    @property
    def difference(self) -> float:
        """B's estimate less A's: a description, without any guarantee."""
        return self.b.estimate - self.a.estimate

    @property
    def gap(self) -> float:
        """The distance of the intervals, the least difference of the rates; 0 if they overlap."""
        return max(self.a.lower - self.b.upper, self.b.lower - self.a.upper, 0.0)

    @property
    def verdict(self) -> Verdict:
        """The place of B's rate by disjoint intervals, "lower" or "higher" than A's; "open" where
        they overlap; "void" where one of them certifies nothing."""
        if self.a.invalidated or self.b.invalidated:
            return "void"
        if self.b.upper < self.a.lower:
            return "lower"
        return "higher" if self.b.lower > self.a.upper else "open"


class Comparison(NamedTuple):
    """The pairs of two runs.

    Attributes:
        sure: Least probability with which the promises of both runs hold together.
        single: Whether they hold for each target by itself, not for all at once.
        missing: Number of targets that only one run has.
        unlike: Clauses on why rates of one name may mean different things.
    """

    pairs: list[Pair]
    sure: float
    single: bool
    missing: int
    unlike: list[str]

    def count(self, verdict: Verdict) -> int:
        """Return how many pairs have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)


def compare(a: Rates, b: Rates) -> Comparison:
    """Compare the targets that both runs have, in the order of A's certificate."""
    theirs = {row.id: row for row in b.rows}
    pairs = [Pair(row.id.name, row, theirs[row.id]) for row in a.rows if row.id in theirs]
    clauses = {
        "the questions are not the same (other images, labels, relations or seeds of follow-ups), "
        "so that rates may differ because of the questions": a.space != b.space,
        "answers were judged by different oracles, so that a loss is another thing": (
            a.oracle != b.oracle
        ),
        "unanswered questions count differently": a.unanswered != b.unanswered,
    }
    unlike = [clause for clause, holds in clauses.items() if holds]
    missing = len(a.rows) + len(b.rows) - 2 * len(pairs)
    single = "each" in (a.guarantee, b.guarantee)
    return Comparison(pairs, together([a, b]), single, missing, unlike)


def figure(pairs: Sequence[Pair]) -> JsonObject:
    """Return both intervals of the first ``DRAWN`` targets, A's above B's, as Plotly takes it."""
    bars = [
        replace(bar_of(status), name=f"{side}: {status.name}", note="")
        for pair in pairs[:DRAWN]
        for side, status in (("A", pair.a), ("B", pair.b))
    ]
    drawn = intervals("", bars)
    # the colours of the letters at the top of the page; Plotly's first row is B's of the last pair
    drawn["data"][0]["marker"]["color"] = [COLOURS["third"], COLOURS["accent"]] * (len(bars) // 2)
    return drawn


def together(runs: Sequence[Rates]) -> float:
    """Return the least probability with which the promises of all ``runs`` hold: the union
    bound."""
    return max(0.0, 1 - sum(1 - run.sure for run in runs))


# -- what pages show ---------------------------------------------------------------------------


def known(run: Listed, rates: Latest[Rates]) -> Rates | None:
    """Return its intervals: of a running audit the newest ones, else only those of its last row."""
    value = rates.value
    stale = value is not None and value.head != run.head and run.state != "running"
    return None if stale else value


def address(name: str) -> str:
    """Return the address of the page of the run of this name."""
    return f"/run/{quote(name, safe='')}/"


def state_of(run: Listed, report: Latest[Report], rates: Latest[Rates]) -> JsonObject:
    """Return the state that a run's page asks for again and again."""
    shown, words, note = report.value, on_page(run.words), ""
    if run.state == "running":
        words = f"running: {run.took}, last entry {run.ago}"
    if report.failure:
        note = f"the report could not be built: {report.failure}"
    elif shown is None:
        note = "the first report is being built" if report.busy else ""
    elif run.calls > shown.calls:
        note = f"report: after {shown.calls:,} calls"
    return {
        "state": run.state,
        "words": words,
        "figures": " · ".join(_figures(run, known(run, rates))),
        "report": None if shown is None else f"report/{shown.out.name}/{PAGE}",
        "note": note,
    }


def _figures(run: Listed, rates: Rates | None) -> Iterator[str]:
    if not run.head:
        return
    if run.census and run.state == "ended":
        yield f"{run.targets} exact rates"
    elif rates is not None:
        yield f"{rates.certified} of {run.targets} targets certified"
        if rates.compared:
            yield rates.compared
        yield from (f"warning: {warning}" for warning in rates.warnings)
    if run.state != "running":
        yield run.took
    yield f"cost {money(run.cost, run.currency)}"
    if run.waiting:
        yield f"{run.waiting} on their way"
    if run.state != "running":
        yield f"changed {run.ago}"


def at_least(share: float) -> str:
    """Return a share that is promised, in percent and rounded down: 0.0567 as 5.6 %."""
    return percent(outward(share, share)[0])


class Site:
    """The pages about what ``watch`` watches."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def answer(self, address: str) -> Response:
        """Return the response to a GET of ``address``, path and query."""
        try:
            parts = urlsplit(address)
            query = parse_qs(parts.query, max_num_fields=MAX_FIELDS)
        except ValueError:  # http://[bad/
            return trouble("Expected an address, got one that cannot be read.", 400)
        try:
            response = self._at([unquote(step) for step in parts.path.split("/")[1:]], query)
        except InputError as error:  # the folder was removed while it was being watched
            return trouble(str(error), 404)
        return response or trouble(f"Nothing is served at {parts.path!r}.", 404)

    def _at(self, steps: Sequence[str], query: Mapping[str, list[str]]) -> Response | None:
        match steps:
            case [""]:
                return self._front(query.get("by", [""])[0])
            case ["compare"]:
                return self._compare(query.get("run", []))
            case ["files", name] if name == FILE:
                return _file(installed())
            case ["run", name, *rest]:
                run = self.watch.run(name)
                if run is None:
                    return trouble(f"There is no run {name!r} here.", 404)
                return self._run(run, rest)
        return None

    def _front(self, by: str) -> Response:
        root, runs = self.watch.root, self.watch.runs()
        if [run.folder for run in runs] == [root]:
            return _moved(address(runs[0].name))
        by = by if by in ORDERS else "written"
        rows = sorted(((run, self.watch.rates(run)) for run in runs), key=ORDERS[by])
        shown = [(run, known(run, rates), rates.failure) for run, rates in rows]
        return _page("runs.html", f"Runs in {root}", root=root, rows=shown, by=by)

    def _compare(self, names: Sequence[str]) -> Response:
        chosen = [run for name in names if (run := self.watch.run(name)) is not None]
        if len(chosen) != 2 or len(names) != 2:
            return trouble("Choose two runs of the list to compare them.", 404)
        latest = [self.watch.rates(run) for run in chosen]
        rates = [known(run, newest) for run, newest in zip(chosen, latest, strict=True)]
        for run, each in zip(chosen, rates, strict=True):
            if each is not None and each.compared:
                already = f"{run.name} compares two models already: {each.compared}. "
                return trouble(already + "Choose two audits of one model each.", 409)
        (a, b), (first, second) = chosen, rates
        comparison = compare(first, second) if first and second else None
        everyone = [self.watch.rates(run).value for run in self.watch.runs()]
        certifying = [each for each in everyone if each is not None and each.rows]
        chart = None
        if comparison is not None and comparison.pairs:
            drawn = data("pairs-chart-data", {"": figure(comparison.pairs)})
            chart = frame("pairs-chart", "Intervals of both runs", [], []) + drawn
        return _page(
            "compare.html",
            f"{a.name} and {b.name}",
            scripts=("page.js", "plots.js", LIST),
            plotly=SERVED,
            at_least=at_least,
            points=points,
            a=a,
            b=b,
            comparison=comparison,  # None while an interval is being computed, or that failed
            failure=next((each.failure for each in latest if each.failure), ""),
            chosen={"count": len(certifying), "sure": together(certifying)},
            chart=chart,
        )

    def _run(self, run: Listed, rest: Sequence[str]) -> Response | None:
        match rest:
            case []:  # what the page asks for stands below its address, which ends in a slash
                return _moved(address(run.name))
            case [""]:
                alone = self.watch.alone
                return _page("run.html", run.name, scripts=[HERE / "run.js"], run=run, alone=alone)
            case ["state"]:
                state = state_of(run, self.watch.report(run), self.watch.rates(run))
                return _response(json.dumps(state).encode(), "application/json")
            case ["report", number, name] if name == PAGE:
                path = self.watch.page(run, number)
                return None if path is None else _file(path, FRAMED)
        return None


def trouble(sentence: str, status: int) -> Response:
    """Return a page with a sentence on what is wrong."""
    return _page("trouble.html", "avtt view", status=status, sentence=sentence)


def _page(
    template: str,
    title: str,
    *,
    status: int = 200,
    scripts: Sequence[Path | str] = (LIST,),
    plotly: str | None = None,
    **values: Any,
) -> Response:
    html = framed(
        HERE / template,
        scripts=scripts,
        styles=[HERE / "view.css"],
        plotly=plotly,
        allowed=ALLOWED,
        title=title,
        address=address,
        span_of=span_of,
        **values,
    )
    return _response(html.encode(), "text/html; charset=utf-8", status=status)


def _file(path: Path, policy: str = UNFRAMED) -> Response:
    kind = guess_type(path.name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return _response(path.read_bytes(), kind + charset, policy)


def _moved(location: str) -> Response:
    return _response(b"", "text/html; charset=utf-8", status=302, Location=location)


def _response(
    body: bytes, kind: str, policy: str = UNFRAMED, status: int = 200, **headers: str
) -> Response:
    own = {"Content-Type": kind, "Content-Security-Policy": policy, **headers}
    return Response(status, body, {**own, **HEADERS})


# -- over HTTP, to one person on this machine ----------------------------------------------------

PATIENCE = 15.0
"""Seconds from a connection, or its last answer, until the head of a request must be there."""


class View(HttpServer):
    """Server of the pages about ``root``, a run folder or a folder of runs; it answers GET alone.

    Raises:
        InputError: There is no such folder, or the port is taken.
    """

    def __init__(self, root: Path, port: int = 0, patience: float = PATIENCE) -> None:
        self._watch = Watch(root)
        self.site = Site(self._watch)
        super().__init__(port, most_bytes=0, patience=patience, idle=patience)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"{super().url}/"

    def error(self, rejected: Rejected) -> Response:
        """Return a page with the reason."""
        sentence = f"{rejected.message[0].upper()}{rejected.message[1:]}."
        return trouble(sentence, rejected.status)

    async def serve(self, call: Call) -> bool:
        """Answer in a thread, as reading runs takes its time."""
        request = call.request
        if request.method != "GET":
            answer = self.error(Rejected(501, f"expected GET, got {request.method[:20]}"))
        else:
            try:
                answer = await asyncio.to_thread(self.site.answer, request.address)
            except Exception as error:  # a mistake of ours must not look like a lost connection
                mistake = f"a mistake of this server: {type(error).__name__}: {one_line(error)}"
                answer = self.error(Rejected(500, mistake))
        await call.send(answer)
        return True

    def close(self) -> None:
        super().close()
        self._watch.close()
