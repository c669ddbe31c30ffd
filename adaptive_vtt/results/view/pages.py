"""The pages: a list of runs, a run with its report in a frame, and two runs beside each other."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from ...utils.html_templates import templates_of
from ..report.plotly_library import installed
from ..report.plots import frame
from ..report.section import data
from ..runs import Rates, Run
from .building import Report
from .comparison import Comparison, figure, together
from .latest import Latest

HERE = Path(__file__).parent
FILES = {
    "page.css": HERE.parent / "report" / "page.css",
    "view.css": HERE / "view.css",
    "list.js": HERE / "list.js",
    "page.js": HERE.parent / "report" / "page.js",
    "plots.js": HERE.parent / "report" / "plots.js",
    "plotly.min.js": installed(),
    "run.js": HERE / "run.js",
}
"""What the pages load, by name."""
Row = tuple[Run, Latest[Rates]]
ORDERS: dict[str, Callable[[Row], Any]] = {
    "run": lambda row: row[0].name,
    "model": lambda row: (row[0].model, row[0].version or ""),
    "targets": lambda row: -row[0].targets,
    "calls": lambda row: -row[0].calls,
    "cost": lambda row: -row[0].cost,
    "worst": lambda row: -_worst(row[1]),
    "state": lambda row: row[0].state,
    "written": lambda row: -(row[0].written or 0.0),
}
"""Columns of the list, and what each is sorted by."""


def known(run: Run, rates: Latest[Rates]) -> Rates | None:
    """Its intervals: of a running audit the newest ones, else none but those of its last row."""
    found = rates.value
    stale = found is not None and found.head != run.head and run.state != "running"
    return None if stale else found


def _worst(rates: Latest[Rates]) -> float:
    return rates.value.worst.lower if rates.value and rates.value.worst else -1.0


def address(name: str) -> str:
    """Where the page of the run of this name stands."""
    return f"/run/{quote(name, safe='')}/"


def runs_page(root: Path, rows: Sequence[Row], by: str) -> str:
    """All runs as a table, sorted by one of ``ORDERS``."""
    by = by if by in ORDERS else "written"
    ordered = [(run, known(run, r), r.failure) for run, r in sorted(rows, key=ORDERS[by])]
    return _fill("runs.html", root=root, rows=ordered, by=by)


def run_page(run: Run, alone: bool) -> str:
    """A run's page; ``alone``: there is no list to go back to."""
    return _fill("run.html", run=run, alone=alone)


def compare_page(
    a: Run, b: Run, found: Comparison | None, among: Sequence[Rates], failure: str
) -> str:
    """Two runs; ``found`` is None while an interval is being computed, or where that failed.
    ``among``: the intervals of all runs from which the two were chosen."""
    certifying = [rates for rates in among if rates.rows]
    chosen = {"count": len(certifying), "sure": together(certifying)}
    drawn = found is not None and bool(found.pairs)
    return _fill(
        "compare.html",
        a=a,
        b=b,
        found=found,
        chosen=chosen,
        failure=failure,
        chart=_chart(found, (a.name, b.name)) if found is not None and drawn else None,
    )


def _chart(found: Comparison, names: tuple[str, str]) -> Markup:
    place = frame("pairs-chart", "Intervals of both runs", [], [])
    return place + data("pairs-chart-data", {"": figure(found, names)})


def trouble(sentence: str) -> str:
    """A page that says what is wrong."""
    return _fill("trouble.html", sentence=sentence)


def state(run: Run, report: Latest[Report], rates: Latest[Rates]) -> dict[str, Any]:
    """What a run's page asks for again and again."""
    shown = report.value
    return {
        "state": run.state,
        "words": _words(run),
        "figures": " · ".join(_figures(run, known(run, rates))),
        "report": None if shown is None else f"report/{shown.name}/report.html",
        "note": _note(run, report),
    }


def _words(run: Run) -> str:
    if run.state == "running":
        return f"running: {run.calls:,} calls, last entry {run.ago}"
    return run.words


def _figures(run: Run, rates: Rates | None) -> Iterator[str]:
    if not run.head:
        return
    if rates is not None:
        yield f"{rates.certified} of {run.targets} targets certified (not verified)"
    if run.state != "running":
        yield f"{run.calls:,} calls"
    yield f"cost {run.cost:.4g}"
    if run.waiting:
        yield f"{run.waiting} on their way"
    if run.state != "running":
        yield f"changed {run.ago}"


def _note(run: Run, report: Latest[Report]) -> str:
    """How the report below lags behind the journal, or why there is none."""
    if report.failure:
        return f"the report could not be built: {report.failure}"
    if report.value is None:
        return "the first report is being built" if report.busy else ""
    behind = run.calls - report.value.calls
    return f"report: after {report.value.calls:,} calls" if behind > 0 else ""


def percent(share: float) -> str:
    """0.123 as 12.3 %."""
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of rates in percentage points, with its sign."""
    return f"{100 * difference:+.1f} points".replace("-", "\N{MINUS SIGN}")


def _fill(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = templates_of(HERE)
    environment.filters.update(percent=percent, points=points, address=address)
    return environment
