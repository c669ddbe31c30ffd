"""A fleet as a table: before it is run (--dry-run), while it runs, and when it ends."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..audit.fleet.broker import Caps, Member
from ..config.building import build_space, model_of
from ..config.fleet import Fleet, FleetMember
from ..errors import InputError
from ..models import adapted_model
from ..types import JsonObject
from ..utils.figures import money, points
from ..utils.files import write_text
from .dry_run import ASSUMED, Plan, planned
from .printing import plain_console, table_of
from .progress import FIRST, LONGEST, clock

SCHEMA_VERSION = 1
WORDS = {
    "new": "starts",
    "ready": "ready",
    "asking": "asks",
    "waiting": "waits",
    "done": "ended",
    "short": "cap reached",
    "stopped": "stopped",
    "failed": "failed",
}
"""What a state is called in the table."""
_RUNS = ("asking", "waiting")


class FleetLive:
    """The table, redrawn on a terminal; elsewhere a line now and then, ever fewer."""

    def __init__(self, caps: Caps, *, quiet: bool) -> None:
        self.console = plain_console(stderr=True, quiet=quiet)
        self._caps, self._since, self._next = caps, time.monotonic(), FIRST
        self._redrawn = self.console.is_terminal and not self.console.is_dumb_terminal
        self._live = Live(console=self.console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        if self._redrawn:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._redrawn:
            self._live.stop()

    def show(self, members: list[Member]) -> None:
        passed = time.monotonic() - self._since
        line = f"{in_all(members, self._caps)}, {clock(passed)}"
        if self._redrawn:
            self._live.update(Group(table(members, self._caps), Text(line)), refresh=True)
        elif passed >= self._next:
            self._next += min(self._next, LONGEST)
            self.console.print(line, soft_wrap=True)


def table(members: Sequence[Member], caps: Caps) -> Table:
    """A row per member, within 80 columns."""
    columns = ("member", "certified", "widest", "calls", "cost", "lost", "state")
    return table_of(columns, [_cells(member, caps) for member in members], words=["state"])


def _cells(member: Member, caps: Caps) -> list[str]:
    told = member.figures
    widest = told.get("widest")
    lost = member.money - member.spent
    return [
        member.name,
        f"{told['certified']}/{told['targets']}" if "targets" in told else "-",
        points(widest) if widest else "-",
        f"{member.drawn or told.get('calls', 0):,}",
        caps.money(max(member.spent, told.get("spent", 0.0))),
        caps.money(lost) if member.state not in _RUNS and lost > 0 else "-",
        WORDS[member.state],
    ]


def in_all(members: Sequence[Member], caps: Caps) -> str:
    """What all took, of what they may, in words."""
    spent = sum(max(m.spent, m.figures.get("spent", 0.0)) for m in members)
    calls = sum(max(m.drawn, m.figures.get("calls", 0)) for m in members)
    parts = []
    if caps.max_cost is not None:
        parts.append(f"{caps.money(spent)} of {caps.money(caps.max_cost)} spent")
    elif spent:
        parts.append(f"{caps.money(spent)} spent")
    limit = "" if caps.max_calls is None else f" of {caps.max_calls:,}"
    parts.append(f"{calls:,}{limit} calls")
    return ", ".join(parts)


def record(members: Sequence[Member], caps: Caps, out: Path) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "max_cost": caps.max_cost,
        "max_calls": caps.max_calls,
        **caps.notes,
        "cost": sum(m.spent for m in members),
        "may_have_cost": sum(m.money for m in members),
        "calls": sum(m.drawn for m in members),
        "certified": sum(m.figures.get("certified", 0) for m in members),
        "targets": sum(m.figures.get("targets", 0) for m in members),
        "members": [_of_member(m, out) for m in members],
    }


def _of_member(member: Member, out: Path) -> JsonObject:
    return {
        "name": member.name,
        "folder": str(out / member.name),
        "state": member.state,
        "stop_reason": member.told,
        "certified": member.figures.get("certified", 0),
        "targets": member.figures.get("targets", 0),
        "calls": member.drawn,
        "cost": member.spent,
        "may_have_cost": member.money,
    }


def write_result(members: Sequence[Member], caps: Caps, out: Path) -> JsonObject:
    found = record(members, caps, out)
    write_text(out / "result.json", json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found


# -- --dry-run: what each member may take, and all of them -------------------------------------


def dry_run(fleet: Fleet, as_json: bool) -> None:
    """Prints the plan; imports no model's code."""
    plans = {member.name: _planned(member) for member in fleet.members}
    total = [sum(column) for column in zip(*(plan.calls for plan in plans.values()), strict=True)]
    if as_json:
        members = [_row(name, plan) for name, plan in plans.items()]
        typer.echo(json.dumps({"members": members, "calls": total}, indent=1))
        return
    console = plain_console()
    console.print(_table(plans, total, fleet.caps.currency))
    for line in _of_caps(fleet.caps, [*plans.values()], total):
        console.print(line)
    console.print("nothing was asked")


def _row(name: str, plan: Plan) -> JsonObject:
    at_least, *likely, at_most = plan.calls
    return {
        "name": name,
        "questions": plan.questions,
        "at_least": at_least,
        "likely": dict(zip(ASSUMED, likely, strict=True)),
        "at_most": at_most,
        "usual": plan.usual,
        "worst": plan.worst,
    }


def _planned(member: FleetMember) -> Plan:
    try:
        space = build_space(member.spec, member.base)
        model = adapted_model(model_of(member.spec, member.base, space, code=False))
        return planned(member.spec, member.base, space, model)
    except InputError as error:
        raise InputError(f"member {member.name!r}: {error}") from None


def _table(plans: Mapping[str, Plan], total: list[int], currency: str) -> Table:
    likely = [f"{loss:.0%} fail" for loss in ASSUMED]
    cells = []
    for name, plan in plans.items():
        ends = (plan.usual, plan.worst) if plan.usual and plan.worst else ()
        price = " - ".join(money(end, currency) for end in ends) or "-"
        cells.append([name, *(f"{n:,}" for n in plan.calls), price])
    sums = [["all", *(f"{n:,}" for n in total), ""]]
    if all(plan.usual is not None for plan in plans.values()):
        costs = _costs([*plans.values()])
        sums.append(["cost", *(money(cost, currency) for cost in costs), ""])
    columns = ("member", "at least", *likely, "at most", "a call")
    return table_of(columns, cells, "calls until certified", sums=sums)


def _costs(rows: list[Plan]) -> list[float]:
    """What the calls cost: usual prices, and for the most the worst."""
    usual = [[n * (row.usual or 0.0) for n in row.calls[:-1]] for row in rows]
    sums = [sum(column) for column in zip(*usual, strict=True)]
    return [*sums, sum(row.calls[-1] * (row.worst or 0.0) for row in rows)]


def _of_caps(caps: Caps, rows: list[Plan], total: list[int]) -> list[str]:
    """Whether the caps are likely to be enough."""
    told = []
    if caps.max_calls is not None:
        told.append(_enough(f"the cap of {caps.max_calls:,} calls", caps.max_calls, total))
    if caps.max_cost is not None and all(row.usual is not None for row in rows):
        cap = f"the cap of {caps.money(caps.max_cost)} on cost"
        told.append(_enough(cap, caps.max_cost, _costs(rows)))
    return told


def _enough(cap: str, limit: float, needed: list[int] | list[float]) -> str:
    if limit < needed[0]:
        return f"{cap} ends it before all can be certified"
    if limit < needed[1]:
        return f"{cap} is likely to end it before all is certified; --resume can raise it"
    if limit < needed[-2]:
        return f"{cap} is enough where few fail, not where {ASSUMED[-1]:.0%} do"
    return f"{cap} is likely to be enough"
