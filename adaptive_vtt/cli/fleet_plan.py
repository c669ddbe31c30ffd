"""``avtt fleet --dry-run``: what each member may take, and all of them; nothing is asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..config.building import build_space, model_of
from ..config.fleet import Fleet, FleetMember
from ..errors import InputError
from ..models import adapted_model
from .dry_run import ASSUMED, Plan, planned


@dataclass(frozen=True)
class Row:
    """A member's plan in short: calls until it is certified, at least, likely (by loss rate) and at
    most; ``worst`` and ``usual`` are the prices of a call, None where they are not known."""

    name: str
    questions: int
    at_least: int
    likely: dict[float, int]
    at_most: int
    usual: float | None
    worst: float | None

    @classmethod
    def of(cls, name: str, plan: Plan) -> "Row":
        """Of a member that certifies nothing all calls are likely."""
        row = plan.together
        if row is None:
            likely = dict.fromkeys(ASSUMED, plan.total)
            return cls(name, plan.questions, 0, likely, plan.total, plan.usual, plan.worst)
        return cls(
            name, plan.questions, row.at_least, row.likely, row.at_most, plan.usual, plan.worst
        )

    @property
    def calls(self) -> list[int]:
        return [self.at_least, *(self.likely[loss] for loss in ASSUMED), self.at_most]


def dry_run(fleet: Fleet, as_json: bool) -> None:
    """Prints the plan; imports no model's code."""
    rows = [Row.of(member.name, _planned(member)) for member in fleet.members]
    total = [sum(column) for column in zip(*(row.calls for row in rows), strict=True)]
    if as_json:
        typer.echo(json.dumps({"members": [vars(row) for row in rows], "calls": total}, indent=1))
        return
    console = Console(highlight=False)
    console.print(_table(rows, total))
    for line in _of_caps(fleet, rows, total):
        console.print(line, markup=False)
    console.print("nothing was asked")


def _planned(member: FleetMember) -> Plan:
    with _naming(member.name):
        space = build_space(member.spec, member.base)
        model = adapted_model(model_of(member.spec, member.base, space, code=False))
        return planned(member.spec, member.base, space, model)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"member {name!r}: {error}") from None


def _table(rows: list[Row], total: list[int]) -> Table:
    table = Table(title="calls until certified", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", overflow="fold")
    likely = [f"{loss:.0%} fail" for loss in ASSUMED]
    for column in ("at least", *likely, "at most", "a call"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        price = "-" if not row.usual or not row.worst else f"{row.usual:.3g} - {row.worst:.3g}"
        table.add_row(Text(row.name), *(f"{n:,}" for n in row.calls), price)
    table.add_section()
    table.add_row("all", *(f"{n:,}" for n in total), "")
    if all(row.usual is not None for row in rows):
        table.add_row("cost", *(f"{m:.3g}" for m in _money(rows)), "")
    return table


def _money(rows: list[Row]) -> list[float]:
    """What the calls cost: usual prices, and for the most the worst."""
    usual = [[n * (row.usual or 0.0) for n in row.calls[:-1]] for row in rows]
    sums = [sum(column) for column in zip(*usual, strict=True)]
    return [*sums, sum(row.at_most * (row.worst or 0.0) for row in rows)]


def _of_caps(fleet: Fleet, rows: list[Row], total: list[int]) -> list[str]:
    """Whether the caps are likely to be enough."""
    told = []
    if fleet.max_calls is not None:
        told.append(_enough(f"the cap of {fleet.max_calls:,} calls", fleet.max_calls, total))
    if fleet.max_cost is not None and all(row.usual is not None for row in rows):
        told.append(_enough(f"the cap of {fleet.max_cost:g} on cost", fleet.max_cost, _money(rows)))
    return told


def _enough(cap: str, limit: float, needed: list[int] | list[float]) -> str:
    if limit < needed[0]:
        return f"{cap} ends it before all can be certified"
    if limit < needed[1]:
        return f"{cap} is likely to end it before all is certified; --resume can raise it"
    if limit < needed[-2]:
        return f"{cap} is enough where few fail, not where {ASSUMED[-1]:.0%} do"
    return f"{cap} is likely to be enough"
