"""What the members of a fleet may spend, in one SQLite file that all of them write.

The promise: what all members spent, lost and have on their way never comes to more than the cap,
whichever of them is killed, and when. It follows from four rules.

1. A member's row says what it may have spent at most: its lease. It is on the disk before any call
   that it pays for is sent.
2. A lease is given, in one transaction, only where the rows of all members still add up to no more
   than the cap. It is what the member may have spent already, and its next calls at their worst
   price.
3. A row is lowered by nobody but the process that writes this member's journal, to what the journal
   says may have been spent: answers at what they cost, calls lost and on their way at their worst.
   So the row of a member that was killed stays at its worst until it is resumed.
4. What was settled as spent never falls: a journal that tells of less is refused. One that tells
   of more is believed: rows are raised to it before a fleet goes on (``recount``).

A server that counts more tokens than the bound it was given can break it, as it can the cap of a
single audit; what it counted is booked, and nothing more is leased.
"""

import json
import shlex
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from ...engine.budget import Account
from ...errors import InputError, JournalError, check_known, one_line
from ...journal import SQLiteJournal
from ...journal.files import FLEET, JOURNAL, connect_to_read, holder
from ...oracles.findings import taken
from ...stopping import CENTS
from ...types import JsonObject
from ...utils.figures import USD, money
from ...utils.options import Option

VERSION = 1
PATIENCE = 60.0
"""Seconds that a member waits for others to finish writing."""
TAKING = ("asking", "waiting")
"""States of members that have a lease, or want one."""
State = Literal["new", "ready", "asking", "waiting", "done", "short", "stopped", "failed"]
"""done: ended by its own rules; short: by the fleet's limits; stopped: interrupted."""
_SCHEMA = """
CREATE TABLE fleet (
    max_cost REAL, max_calls INTEGER, at_a_time INTEGER NOT NULL, notes TEXT NOT NULL);
CREATE TABLE members (
    name TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    money REAL NOT NULL DEFAULT 0,     -- it may have spent so much, or is about to
    calls INTEGER NOT NULL DEFAULT 0,  -- it may have drawn so many, or is about to
    spent REAL NOT NULL DEFAULT 0,     -- its answers cost so much, which never falls
    drawn INTEGER NOT NULL DEFAULT 0,  -- it drew so many, which never falls
    state TEXT NOT NULL DEFAULT 'new',
    gain REAL NOT NULL DEFAULT 0,      -- what its next money is worth: see allocation
    told TEXT NOT NULL DEFAULT '',     -- why it ended
    figures TEXT NOT NULL DEFAULT '{}');
"""
_ROW = "name, place, money, calls, spent, drawn, state, gain, told, figures"
_COLUMNS = _ROW.split(", ")


@dataclass(frozen=True)
class Member:
    """A member's row."""

    name: str
    place: int
    money: float
    calls: int
    spent: float
    drawn: int
    state: State
    gain: float
    told: str
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class Caps:
    """What all members share, as a FLEET.toml says it; None where nothing is limited.

    ``currency``: of ``max_cost`` and of all prices.
    """

    max_cost: Annotated[
        float | None,
        Option(
            "at most so much money, all members together, in the unit of their prices",
            gt=0,
        ),
    ] = None
    max_calls: Annotated[
        int | None, Option("at most so many calls, all members together", ge=1)
    ] = None
    at_a_time: Annotated[int, Option("members that may ask at a time", ge=1)] = 1
    guarantee: Annotated[
        Literal["each", "all"],
        Option("what holds with its probability: each member's certificate, or all at once"),
    ] = "each"
    confidence: Annotated[
        float | None,
        Option(
            "with guarantee all: the probability that all intervals of all members hold at all "
            "times (default: 0.95)",
            gt=0,
            le=1 - 1e-6,  # each member has a part of the rest
        ),
    ] = None
    currency: str = USD

    @property
    def notes(self) -> JsonObject:
        """What was settled when the fleet began, for its file."""
        found = {"guarantee": self.guarantee, "confidence": self.confidence}
        return found | ({} if self.currency == USD else {"currency": self.currency})

    def money(self, cost: float) -> str:
        """A cost in the fleet's currency, in words."""
        return money(cost, self.currency)


@dataclass(frozen=True)
class Terms:
    """What a member was answered: a lease up to ``money`` and ``calls`` in all; to wait for its
    turn; or, ``over``, why nothing more will be leased. ``short``: less than was asked for."""

    kind: Literal["leased", "wait", "over"]
    money: float = 0.0
    calls: int = 0
    over: str = ""
    short: bool = False


WAIT = Terms("wait")


class Broker:
    """The fleet's file at ``path``; every process has a connection of its own.

    Raises JournalError where it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise JournalError(f"{path}: no fleet was begun here; 'avtt fleet FLEET.toml' does")
        with self._errors():
            self._db = _connected(path)
            self._check()

    @classmethod
    def create(cls, path: Path, caps: Caps, names: Sequence[str]) -> "Broker":
        """A new fleet of these members, in the place of one that leased nothing.

        Raises InputError where a fleet stands there that did.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(_connected(path)) as db, _transaction(db):
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _drop(db, path)
            for statement in _SCHEMA.split(";")[:-1]:
                db.execute(statement)
            db.execute(f"PRAGMA user_version={VERSION}")
            db.execute("INSERT INTO fleet VALUES (?, ?, ?, ?)", _values(caps))
            rows = [(name, place) for place, name in enumerate(names)]
            db.executemany("INSERT INTO members (name, place) VALUES (?, ?)", rows)
        return cls(path)

    def close(self) -> None:
        self._db.close()

    # -- reading -----------------------------------------------------------------------

    def caps(self) -> Caps:
        with self._errors():
            (row,) = self._db.execute("SELECT * FROM fleet").fetchall()
        return Caps(*row[:3], **json.loads(row[3]))

    def members(self) -> list[Member]:
        """All of them, in the order of the fleet's file."""
        with self._errors():
            rows = self._db.execute(f"SELECT {_ROW} FROM members ORDER BY place").fetchall()
        named = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        return [Member(**{**row, "figures": json.loads(row["figures"])}) for row in named]

    def member(self, name: str) -> Member:
        """Raises InputError where there is none of this name."""
        found = {member.name: member for member in self.members()}
        check_known("member", name, found, str(self.path))
        return found[name]

    # -- writing -----------------------------------------------------------------------

    def lease(
        self, name: str, account: Account, wanted: int, gain: float, *, extend: bool = False
    ) -> Terms:
        """The member's next ``wanted`` calls, or as many as are left, where it is its turn.

        ``gain``: what its next money is worth (``leasing.Outlook``).

        A member that has to wait gives back what it does not need. ``extend``: it has a lease that
        is not used up, and keeps it where it cannot have more.
        """
        with self._change():
            own = self.member(name)
            _check(own, account, self.path)
            others = [
                m for m in self.members() if m.name != name and m.state in TAKING and self._lives(m)
            ]
            asking = sum(m.state == "asking" for m in others)
            turn = asking + sum(_before(m, own, gain) for m in others) < self.caps().at_a_time
            terms = self._affordable(own, account, wanted) if turn else WAIT
            if terms.kind == "over" and asking:
                terms = WAIT  # a lease may be used for less than its worst
            if terms.kind == "leased":
                self._book(own, account, terms, "asking", gain)
            elif not extend:
                self._book(own, account, None, "waiting", gain)
            return terms

    def settle(self, name: str, account: Account, state: State) -> None:
        """Lowers the member's row to what it may have spent, and says how it stands."""
        with self._change():
            own = self.member(name)
            _check(own, account, self.path)
            self._book(own, account, None, state, own.gain)

    def raise_to(self, name: str, money: float, spent: float, calls: int) -> None:
        """The member's row, where it tells of less: its journal says what was taken."""
        with self._change():
            self._db.execute(
                "UPDATE members SET money = max(money, ?), spent = max(spent, ?), "
                "calls = max(calls, ?), drawn = max(drawn, ?) WHERE name = ?",
                (money, spent, calls, calls, name),
            )

    def tell(self, name: str, **fields: Any) -> None:
        """Notes ``state``, ``told`` or ``figures`` of a member; nothing of money."""
        given = {n: json.dumps(v) if n == "figures" else v for n, v in fields.items()}
        names = ", ".join(f"{field} = ?" for field in given)
        with self._change():
            self._db.execute(f"UPDATE members SET {names} WHERE name = ?", (*given.values(), name))

    def change_caps(self, caps: Caps) -> None:
        """Other caps. Raises InputError for one below what may have been spent."""
        with self._change():
            members = self.members()
            spent = {
                "max_cost": sum(m.money for m in members),
                "max_calls": sum(m.drawn for m in members),
            }
            for field, least in spent.items():
                given = getattr(caps, field)
                if given is not None and given + CENTS < least:
                    raise InputError(
                        f"{field}: expected at least {least:.10g}, which the members may have "
                        f"taken already; got {given:.10g}"
                    )
            self._db.execute("DELETE FROM fleet")
            self._db.execute("INSERT INTO fleet VALUES (?, ?, ?, ?)", _values(caps))

    # -- inside a transaction ----------------------------------------------------------

    def _affordable(self, own: Member, account: Account, wanted: int) -> Terms:
        """What the caps allow beside all other members, those that do not run included."""
        caps, others = self.caps(), [m for m in self.members() if m.name != own.name]
        paid, drawn = account.waiting + wanted, wanted
        if caps.max_cost is not None and account.worst > 0:
            left = caps.max_cost + CENTS - sum(m.money for m in others) - account.committed
            paid = min(paid, max(0, int(left / account.worst)))
        if caps.max_calls is not None:
            drawn = min(
                drawn, max(0, caps.max_calls - sum(m.calls for m in others) - account.calls)
            )
        if paid < (1 if account.waiting else account.question):
            return Terms("over", over=_money_gone(caps, account, sum(m.money for m in others)))
        if drawn < account.question and not account.waiting:
            return Terms("over", over=f"the fleet's {caps.max_calls} calls are used up")
        money, short = account.committed + paid * account.worst, drawn < wanted
        short |= paid < account.waiting + wanted
        return Terms("leased", money, account.calls + drawn, short=short)

    def _book(
        self, own: Member, account: Account, terms: Terms | None, state: State, gain: float
    ) -> None:
        """Writes what is not there already; ``terms``: of a lease, None where it ends."""
        row = (
            account.committed if terms is None else terms.money,
            account.calls if terms is None else terms.calls,
            max(own.spent, account.spent),
            max(own.drawn, account.written),
            state,
            gain,
        )
        if row != (own.money, own.calls, own.spent, own.drawn, own.state, own.gain):
            self._db.execute(
                "UPDATE members SET money = ?, calls = ?, spent = ?, drawn = ?, state = ?, "
                "gain = ? WHERE name = ?",
                (*row, own.name),
            )

    def _lives(self, member: Member) -> bool:
        """Whether a process writes its journal now."""
        return holder(self.path.parent / member.name / JOURNAL) is not None

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._errors(), _transaction(self._db):
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise JournalError(f"{self.path}: {one_line(error)}") from None

    def _check(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise JournalError(
                f"{self.path}: expected a fleet's file of version {VERSION}, got {version}"
            )


def read_fleet_db(path: Path) -> tuple[Caps, list[Member]]:
    """What the file says now; nothing is written."""
    broker = Broker.__new__(Broker)
    broker.path = path
    with closing(connect_to_read(path)) as broker._db:
        return broker.caps(), broker.members()


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    return db


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One writer at a time, from its first look on."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _drop(db: sqlite3.Connection, path: Path) -> None:
    """Takes a fleet away that leased nothing."""
    if db.execute("SELECT count(*) FROM members WHERE money + calls + drawn > 0").fetchone()[0]:
        raise InputError(
            f"{path.parent}: holds a fleet already; --resume goes on with it, another --out begins "
            "a new one"
        )
    db.execute("DROP TABLE fleet")
    db.execute("DROP TABLE members")


def _values(caps: Caps) -> tuple[float | None, int | None, int, str]:
    return caps.max_cost, caps.max_calls, caps.at_a_time, json.dumps(caps.notes)


def _before(other: Member, own: Member, gain: float) -> bool:
    """Whether another waits whose next money is worth more; of equals, the first of the file."""
    return other.state == "waiting" and (-other.gain, other.place) < (-gain, own.place)


def _check(own: Member, account: Account, path: Path) -> None:
    """Raises JournalError where the member's journal is not the one that leased before."""
    if account.spent < own.spent - CENTS or account.written < own.drawn:
        raise JournalError(
            f"{path}: member {own.name!r} spent {own.spent:.10g} in {own.drawn} calls, and its "
            f"journal tells of {account.spent:.10g} in {account.written}; restore the journal, or "
            "begin another fleet with another --out"
        )


def _money_gone(caps: Caps, account: Account, others: float) -> str:
    left = (caps.max_cost or 0.0) - others - account.committed
    need = account.worst * (1 if account.waiting else account.question)
    return (
        f"the fleet's money is used up: {caps.money(max(0.0, left))} of "
        f"{caps.money(caps.max_cost or 0.0)} is left, and the next question may cost "
        f"{caps.money(need)}"
    )


WAIT_FOR_MEMBERS = 60.0
"""Seconds that the members of a fleet that was killed are given to stop."""


def wait_for_members(broker: Broker, *, patience: float = WAIT_FOR_MEMBERS) -> None:
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
