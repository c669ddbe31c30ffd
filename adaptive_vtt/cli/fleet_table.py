"""A fleet as a table: while it runs, and when it ends."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..audit.fleet.broker import Caps, Member
from ..utils.files import write_text
from .progress import FIRST, LONGEST
from .progress_line import clock

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


class FleetLive:
    """The table, redrawn on a terminal; elsewhere a line now and then, ever fewer."""

    def __init__(self, caps: Caps, *, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._caps, self._since, self._next = caps, time.monotonic(), FIRST
        self._redrawn = self.console.is_terminal and not self.console.is_dumb_terminal
        self._live = Live(console=self.console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        if self._redrawn:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._redrawn:
            self._live.stop()

    def show(self, members: list[Member]) -> None:
        passed = time.monotonic() - self._since
        line = f"{in_all(members, self._caps)}, {clock(passed)}"
        if self._redrawn:
            self._live.update(Group(table(members), Text(line)), refresh=True)
        elif passed >= self._next:
            self._next += min(self._next, LONGEST)
            self.console.print(line, markup=False, soft_wrap=True)


def table(members: Sequence[Member]) -> Table:
    """A row per member, within 80 columns."""
    found = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    found.add_column("member", overflow="fold", max_width=24)
    for name in ("certified", "widest", "calls", "cost", "lost"):
        found.add_column(name, justify="right", no_wrap=True)
    found.add_column("state", no_wrap=True)
    for member in members:
        found.add_row(*map(Text, _cells(member)))
    return found


def _cells(member: Member) -> list[str]:
    told = member.figures
    widest = told.get("widest")
    lost = member.money - member.spent
    return [
        member.name,
        f"{told['certified']}/{told['targets']}" if "targets" in told else "-",
        f"+-{widest:.3f}" if widest else "-",
        f"{member.drawn or told.get('calls', 0):,}",
        f"{max(member.spent, told.get('spent', 0.0)):.4g}",
        f"{lost:.3g}" if member.state not in _RUNS and lost > 0 else "-",
        WORDS[member.state],
    ]


_RUNS = ("asking", "waiting")


def in_all(members: Sequence[Member], caps: Caps) -> str:
    """What all took, of what they may, in words."""
    spent = sum(max(m.spent, m.figures.get("spent", 0.0)) for m in members)
    calls = sum(max(m.drawn, m.figures.get("calls", 0)) for m in members)
    parts = []
    if caps.max_cost is not None:
        parts.append(f"{spent:.4g} of {caps.max_cost:g} spent")
    elif spent:
        parts.append(f"{spent:.4g} spent")
    limit = "" if caps.max_calls is None else f" of {caps.max_calls:,}"
    parts.append(f"{calls:,}{limit} calls")
    return ", ".join(parts)


def record(members: Sequence[Member], caps: Caps, out: Path) -> dict[str, Any]:
    """The fleet's result, as JSON holds it."""
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


def _of_member(member: Member, out: Path) -> dict[str, Any]:
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


def write_result(members: Sequence[Member], caps: Caps, out: Path) -> dict[str, Any]:
    """Writes result.json of the fleet, and gives what it holds."""
    found = record(members, caps, out)
    write_text(out / "result.json", json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found
