"""What the journals of a fleet's members say was spent, told to the broker before any lease."""

import shlex
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ...journal import Journal, SQLiteJournal
from ...journal.facts import read_lost
from ...journal.files import JOURNAL
from ...journal.locking import holder
from ...oracles.judge_findings import cost_of
from .broker import FLEET, Broker, read_fleet_db

PATIENCE = 60.0
"""Seconds that the members of a fleet that was killed are given to stop."""


@dataclass(frozen=True)
class Taken:
    """Money that the answers of a journal cost, ``spent``; that, and what calls without an answer
    may have cost at most, ``money``; and its ``calls``."""

    spent: float
    money: float
    calls: int


def wait_for_members(broker: Broker, *, patience: float = PATIENCE) -> None:
    """Members of a fleet that was killed a moment ago may still be writing their last answers.

    Raises InputError where one still writes after ``patience`` seconds.
    """
    until = time.monotonic() + patience
    for name, path in _journals(broker):
        while (process := holder(path)) is not None:
            if time.monotonic() >= until:
                raise InputError(
                    f"member {name!r}: expected {path} at rest, found that process {process} "
                    "writes it; wait for it, or stop it"
                )
            time.sleep(0.1)


def recount(broker: Broker) -> None:
    """Raises every member's row to what its journal tells; lowers none.

    A fleet's file may be an older copy, or edited, and a member may have gone on without it.
    """
    for name, path in _journals(broker):
        with closing(SQLiteJournal(path, read_only=True)) as journal:
            found = taken(journal)
        broker.raise_to(name, found.money, found.spent, found.calls)


def _journals(broker: Broker) -> list[tuple[str, Path]]:
    found = [(m.name, broker.path.parent / m.name / JOURNAL) for m in broker.members()]
    return [(name, path) for name, path in found if path.is_file()]


def check_alone(folder: Path, *, leaves: bool) -> None:
    """An audit that is going on alone, under its own limits: no member of a fleet, or one that
    ``leaves`` it. Raises InputError where that is not so."""
    real = folder.resolve()
    path = real.parent / FLEET
    member = path.is_file() and real.name in {m.name for m in read_fleet_db(path)[1]}
    if member and not leaves:
        way = f"avtt fleet FLEET.toml --out {shlex.quote(str(folder.parent))} --resume"
        raise InputError(
            f"{folder}: is a member of the fleet in {folder.parent}, whose cap it shares; '{way}' "
            "goes on with all members, --leave-fleet with this one alone, under its own limits"
        )
    if leaves and not member:
        raise InputError(f"{folder}: is no member of a fleet; leave --leave-fleet out")


def taken(journal: Journal) -> Taken:
    """What a journal at rest tells: answers at what they cost, lost calls at their worst price.

    A call that waits may have been sent, and counts as lost, as it does where the audit goes on.
    """
    lost, calls, sources = read_lost(journal.facts()), journal.calls(), journal.sources()
    draws, judging = journal.draws(proposals=False), journal.judging()
    answered = {row.call for row in calls}
    open_ = [row for row in judging if row.call not in answered]
    spent = cost_of(calls, sources, judging)
    received = {row.call for row in open_ if row.received}
    waiting = {row.call for row in draws} - answered - received - set(lost.counted)
    to_judge = sum(len(row.said) for row in open_ if row.received)
    money = spent + lost.cost + len(waiting) * lost.worst + to_judge * lost.judge_worst
    return Taken(spent, money, len(draws) + len(sources))
