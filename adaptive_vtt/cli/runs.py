"""``avtt runs``: a table of the runs in a folder."""

import shlex
from pathlib import Path

import typer

from ..engine.audit_key import full_name
from ..errors import AvttError
from ..families import distinct_name
from ..results.runs import Listed, Rates, find, read_rates, read_run, span_of
from ..utils.figures import money, shorten
from .printing import plain_console, print_json, table_of

REST = 40
"""Columns of all but the names of model and target, which share what is left."""


def runs(directory: Path, *, json_: bool = False) -> None:
    """List the runs of a folder: targets, calls, cost and state.

    Journals are read, not verified: 'avtt verify DIR' does that.

    Example: avtt runs runs

    Args:
        directory (DIR): Folder of run folders.
    """
    listed = [read_run(folder, name) for name, folder in find(directory).items()]
    rows = [(run, _rates(run)) for run in sorted(listed, key=lambda run: -(run.written or 0.0))]
    if json_:
        print_json([_record(*row) for row in rows])
    elif rows:
        _show(rows)
    else:
        first = shlex.quote(str(directory / "first"))
        typer.echo(f"{directory}: no runs yet; 'avtt audit SPEC.toml --out {first}' begins one")


def _rates(run: Listed) -> Rates | None:
    try:
        return read_rates(run.folder) if run.targets else None
    except AvttError:  # its journal went, or was replaced, a moment ago
        return None


def _record(run: Listed, rates: Rates | None) -> dict[str, object]:
    """Return a run in the form of ``--json``."""
    worst = rates.worst if rates else None
    figures = ("estimate", "lower", "upper")
    return run.as_dict() | {
        "certified": rates.certified if rates else 0,
        "worst": worst and {"target": worst.id.name} | {n: getattr(worst, n) for n in figures},
        "verified": False,
        "warnings": list(rates.warnings) if rates else [],
    }


def _show(rows: list[tuple[Listed, Rates | None]]) -> None:
    console = plain_console()
    columns, words = ["run\nits model", "targets", "calls", "cost"], ["state", "surely worst"]
    room = max(12, (console.width - REST) // 2)
    cells = [_cells(run, rates, room) for run, rates in rows]
    console.print(table_of([*columns, *words], cells, words=words))
    for run, rates in rows:
        if run.state in ("stopped", "waiting", "unreadable") or run.further:
            console.print(f"{run.name}: {run.words}")
        for warning in rates.warnings if rates else ():
            console.print(f"{run.name}: warning: {warning}")
    if any(run.waiting for run, _ in rows):
        console.print("open: calls, or items of a pool, that were asked for and have no answer yet")
    if any(run.paired for run, _ in rows):
        console.print("pairs: two models are compared, and each pair is a call of either")
    if any(rates for _, rates in rows):
        console.print("not verified: rates are as journals state them; see 'avtt verify DIR'")


def _cells(run: Listed, rates: Rates | None, room: int) -> list[str]:
    if not run.model:
        return [run.name, "-", "-", "-", f"{run.state}\n{run.ago}".strip(), "-"]
    certified = f"{rates.certified if rates else '?'}/{run.targets}" if run.targets else "-"
    # a census may have been ended by a limit
    if run.census and rates is not None and rates.certified == run.targets:
        certified = f"{run.targets} exact"
    waiting = f"\n+ {run.waiting:,} open" if run.waiting else ""
    highest, worst = "-", rates.worst if rates else None
    if rates is not None and worst is not None:
        shown = [row.id.columns() for row in rates.rows]
        variants = {(row["relation"], row["severity"]) for row in shown if row["relation"]}
        highest = f"{shorten(distinct_name(worst.id, list(variants)), room)}\n{span_of(worst)}"
    return [
        f"{run.name}\n{shorten(full_name(run.model, run.version), room)}",
        certified,
        f"{run.calls - run.waiting:,}{' pairs' * run.paired}{waiting}",
        money(run.cost, run.currency),
        f"{run.state}\n{run.ago}",
        highest,
    ]
