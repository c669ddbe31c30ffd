"""What a folder of runs holds: each audit's model, cost and state, read from its journal alone.

Nothing is written, no lock is taken for longer than a look at it, and nothing that stands in a
run folder is executed. A folder that cannot be read is a run, too, with a sentence that says why.
"""

import math
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ..certify.status import TargetStatus
from ..engine.audit_key import full_name
from ..errors import AvttError, InputError, JournalError, one_line
from ..journal import SQLiteJournal
from ..journal.facts import is_begun, read_facts
from ..journal.files import JOURNAL, holder, lock_taken
from ..types import Guarantee, JsonObject
from ..utils.figures import USD, in_points, outward
from .advice import beyond_limits, way
from .cautions import about_answers
from .difference import in_words, point_span, short_name
from .run import Run

State = Literal["starting", "running", "ended", "stopped", "unreadable"]


@dataclass(frozen=True)
class Listed:
    """An audit in a folder as it is now, told without reading its rows.

    ``told``: why it ended, how it goes on, or why it cannot be read, else "". ``calls`` are those
    drawn, answers about source images included, ``waiting`` those of them without an answer.
    ``targets``: how many are certified at the end or aimed at, 0 in audits that only explore.
    ``written``: when the journal changed last, in seconds since 1970. ``head``: see
    ``Journal.head``. ``paired``: two models are compared, and each call is one of either.
    ``census``: everything is asked, and rates are exact. ``further``: how an audit goes on that
    ended at its limits with targets open, else "".
    """

    name: str
    folder: Path
    state: State
    told: str = ""
    model: str = ""
    version: str | None = None
    dataset: str = ""
    strategy: str = ""
    targets: int = 0
    calls: int = 0
    waiting: int = 0
    cost: float = 0.0
    written: float | None = None
    head: str = ""
    census: bool = False
    currency: str = USD
    paired: bool = False
    further: str = ""

    @property
    def named(self) -> str:
        """The model and its version, but for a hash, which tells a reader nothing."""
        return full_name(self.model or "?", self.version)

    @property
    def took(self) -> str:
        """The calls in words; of a comparison they are pairs."""
        return f"{self.calls:,} {'pairs of calls' if self.paired else 'calls'}"

    @property
    def words(self) -> str:
        """The state as a sentence, with the way on where there is one."""
        if self.state == "ended":
            return "; ".join(filter(None, [f"ended: {in_points(self.told)}", self.further]))
        if self.state == "unreadable":
            return self.told
        if self.state == "stopped":
            return f"stopped: no process holds the lock; {self.told}"
        if self.state == "running":
            return "running"
        return "starting: " + ("it goes on" if self.calls else "nothing was asked yet")

    @property
    def ago(self) -> str:
        """How long ago the journal changed last; "" where there is none."""
        return "" if self.written is None else ago(time.time() - self.written)

    def as_dict(self) -> JsonObject:
        """For JSON."""
        return {**asdict(self), "folder": str(self.folder)}


@dataclass(frozen=True)
class Rates:
    """What a run's journal says of its targets, as of ``head``, and what makes it comparable.

    ``space`` is the fingerprint of its questions; ``oracle`` and ``unanswered`` say what a loss
    is; ``sure`` is the probability with which its intervals hold, in the way of ``guarantee``.
    ``compared``: what a comparison of two models says of its first target, in words; its rates may
    be those of pairs, 1/2 where both err alike, and no error rates. "": an audit of one model.
    ``warnings``: what the answers alone warn of (``cautions.about_answers``).
    """

    head: str
    space: str
    oracle: str
    unanswered: str
    sure: float
    guarantee: Guarantee
    rows: tuple[TargetStatus, ...]
    compared: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def certified(self) -> int:
        """How many targets are."""
        return sum(row.certified for row in self.rows)

    @property
    def worst(self) -> TargetStatus | None:
        """The target that is surely the worst: the highest lower bound, not the highest estimate,
        which is often that of the fewest questions. None where it is not surely worse than any
        other, or two models are compared."""
        valid = [row for row in self.rows if not row.invalidated]
        if self.compared or not valid:
            return None
        worst = max(valid, key=lambda row: row.lower)
        others = [row.upper for row in valid if row is not worst]
        return worst if worst.lower > min(others, default=1.0) else None


def span_of(status: TargetStatus) -> str:
    """The interval in percent, rounded outwards, as a rounded one would promise too much; a rate
    that is known as it is."""
    if status.id.signed:
        return f"{point_span(status.lower, status.upper)} points"
    if status.lower == status.upper:
        return f"{100 * status.lower:.2f} %, exact"
    low, high = outward(status.lower, status.upper)
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def ago(seconds: float) -> str:
    """A time that has passed, in the unit that a person would use."""
    for unit, size in (("s", 60), ("min", 60), ("h", 48)):
        if seconds < size:
            return f"{max(0, int(seconds))} {unit} ago"
        seconds /= size if unit != "h" else 24
    return f"{int(seconds)} days ago"


def find(folder: Path) -> dict[str, Path]:
    """The run folders in ``folder`` by name, or that folder itself where it is one.

    Links that lead out of it are left out. Raises InputError where there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a run folder or a folder of runs, found none")
    if (folder / JOURNAL).exists():
        return {folder.resolve().name or "run": folder}
    root, found = folder.resolve(), {}
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            with suppress(OSError):
                if (path / JOURNAL).resolve(strict=True).is_relative_to(root):
                    found[path.name] = path
    return found


def read_run(folder: Path, name: str | None = None) -> Listed:
    """The audit in ``folder``, whatever its state; raises nothing."""
    name, path = name or folder.name, folder / JOURNAL
    try:
        written = _written(path)
        with closing(SQLiteJournal(path, read_only=True)) as journal:
            return _read(name, folder, journal, written)
    except AvttError as error:
        return Listed(name, folder, "unreadable", one_line(error))
    except Exception as error:  # a damaged or hostile journal must not end the list of all others
        told = f"{path}: cannot be read: {type(error).__name__}: {one_line(error)[:200]}"
        return Listed(name, folder, "unreadable", told)


def _written(path: Path) -> float | None:
    """When the journal, or the WAL beside it, changed last."""
    times = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            if (found := file.stat()).st_size:  # whoever opens the journal leaves an empty WAL
                times.append(found.st_mtime)
    return max(times, default=None)


def _read(name: str, folder: Path, journal: SQLiteJournal, written: float | None) -> Listed:
    held, raw = holder(folder / JOURNAL) is not None, journal.facts()
    if not is_begun(raw):
        if held:
            return Listed(name, folder, "starting", written=written)
        told = (
            f"{folder}: no audit was begun here; 'avtt audit SPEC.toml --out {folder}' begins one"
        )
        return Listed(name, folder, "unreadable", told, written=written)
    facts, tally = read_facts(raw), journal.tally()
    told = "" if held else f"go on with {way(facts, folder, journal)}"
    # one that ended holds the lock, too, while it writes its report; a process that goes on took it
    # after the journal's last row
    resumed = facts.ended and held and lock_taken(folder / JOURNAL) > (written or 0.0)
    if facts.ended:
        told = facts.ended.reason or "the end was asked for"
    if not math.isfinite(tally.cost):
        raise JournalError(f"{folder}: expected costs that add up, got {tally.cost}")
    return Listed(
        name,
        folder,
        "starting" if resumed else "ended" if facts.ended else "running" if held else "stopped",
        told,
        short_name(facts.settings.model),
        facts.model_version,
        facts.space.dataset,
        facts.settings.strategy,
        len(facts.certificate.ids) if facts.certificate else 0,
        tally.draws + tally.sources,
        tally.draws - tally.calls,
        tally.cost,
        written,
        journal.head,
        census=facts.certificate is not None and facts.certificate.counted,
        currency=facts.currency,
        paired=facts.certificate is not None and facts.certificate.paired,
        further=beyond_limits(facts, folder),
    )


def read_rates(folder: Path) -> Rates:
    """Return every target's interval: as the end journaled it, without reading draws, or recomputed
    from the rows of an audit that has not ended, which takes about a second per thousand draws.

    Raises JournalError where the journal cannot be read.
    """
    with Run.opened(folder) as run:
        certificate, oracle, rows = run.certificate, run.facts.settings.oracle, run.intervals
        delta = rows[0].difference if rows else None
        return Rates(
            head=run.head,
            space=run.facts.space.fingerprint,
            oracle=" ".join(filter(None, [oracle.name, oracle.regime])),
            unanswered=certificate.unanswered if certificate else "",
            sure=certificate.confidence if certificate else 0.0,
            guarantee=certificate.guarantee if certificate else "all",
            rows=tuple(rows),
            compared=f"{rows[0].name}: {in_words(run.facts, delta)}" if delta else "",
            warnings=tuple(about_answers(run.facts, run.calls)),
        )
