"""The runs of a folder: each audit's model, cost and state, read from its journal alone.

Nothing in a run folder is written or executed, and a lock is only held to see whether it is free.
A folder that cannot be read is listed as well, with a sentence that says why.
"""

import math
import shlex
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from ..certify.status import TargetStatus
from ..engine.audit_key import full_name
from ..errors import AvttError, JournalError, one_line
from ..journal import SQLiteJournal
from ..journal.facts import is_begun, read_facts
from ..journal.files import JOURNAL, holder, lock_taken
from ..types import Guarantee, JsonObject
from ..utils.figures import CHANGED_ORIGINAL, EXACT, USD, in_points, percent, span
from ..utils.files import check_folder
from .advice import beyond_limits, resuming
from .cautions import about_answers
from .difference import in_words, point_span, points, short_name
from .export.items import ITEMS, NEXT
from .outcomes import is_mute
from .run import Run

State = Literal["starting", "running", "ended", "stopped", "waiting", "unreadable"]


@dataclass(frozen=True)
class Listed:
    """An audit in a folder as it is now, from its journal's facts and counts.

    Attributes:
        name: Name of the folder.
        folder: The folder.
        state: Whether the audit is running, has ended, was stopped, waits for losses that people
            fill in, or cannot be read.
        note: Why it ended, how to resume it, or why it cannot be read, else "".
        targets: Number of targets, 0 in audits that only explore.
        calls: Calls drawn, answers about source images included.
        waiting: Drawn calls without an answer.
        written: When the journal changed last, in seconds since 1970.
        head: See ``Journal.head``.
        census: Whether everything is asked, so that rates are exact.
        paired: Whether two models are compared, and each call is one of either.
        further: How to resume an audit that ended at its limits with targets open, else "".
    """

    name: str
    folder: Path
    state: State
    note: str = ""
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
        """The model and its version, without a hash."""
        return full_name(self.model or "?", self.version)

    @property
    def took(self) -> str:
        """The number of calls in words. A comparison makes pairs of calls."""
        return f"{self.calls:,} {'pairs of calls' if self.paired else 'calls'}"

    @property
    def words(self) -> str:
        """The state as a sentence, and how to resume the audit where that helps."""
        match self.state:
            case "ended":
                return "; ".join(filter(None, [f"ended: {in_points(self.note)}", self.further]))
            case "stopped":
                return f"stopped before its end; {self.note}"
            case "starting":
                return "starting: " + ("it continues" if self.calls else "nothing was asked yet")
        return self.note or self.state

    @property
    def ago(self) -> str:
        """How long ago the journal changed last; "" without a journal."""
        return "" if self.written is None else ago(time.time() - self.written)

    def as_dict(self) -> JsonObject:
        """Return the fields for JSON."""
        return {**asdict(self), "folder": str(self.folder)}


@dataclass(frozen=True)
class Rates:
    """The targets of a run at one moment, and what makes them comparable with others.

    Attributes:
        head: The journal's head at that moment.
        space: Fingerprint of its questions.
        oracle: Name of the oracle, which defines a loss.
        unanswered: How unanswered questions count.
        sure: Probability with which its intervals hold, in the sense of ``guarantee``.
        rows: Every target.
        compared: In a comparison of two models the first difference in words, else "". The rates
            may be those of pairs, which are 1/2 if both models are equally often wrong.
        warnings: Cautions that follow from answers alone (``cautions.about_answers``).
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
        """Number of certified targets."""
        return sum(row.certified for row in self.rows)

    @property
    def worst(self) -> TargetStatus | None:
        """The target with the highest lower bound, if it is certainly worse than some other one.

        The highest estimate would often be that of the fewest questions. None in comparisons.
        """
        valid = [row for row in self.rows if not row.invalidated]
        if self.compared or not valid:
            return None
        worst = max(valid, key=lambda row: row.lower)
        others = [row.upper for row in valid if row is not worst]
        return worst if worst.lower > min(others, default=1.0) else None


def span_of(status: TargetStatus) -> str:
    """Return the interval in percent, rounded outwards, or the exact rate."""
    if status.id.signed:
        known = status.lower == status.upper
        ends = points(status.lower) if known else point_span(status.lower, status.upper)
        return f"{ends} points, {CHANGED_ORIGINAL}{', exact' if known else ''}"
    if status.lower == status.upper:
        return f"{percent(status.lower)}, {EXACT}"
    return span(status.lower, status.upper)


def ago(seconds: float) -> str:
    """Return a time that has passed, in the unit that a person would use."""
    for unit, most, size in (("s", 60, 1), ("min", 3600, 60), ("h", 48 * 3600, 3600)):
        if seconds < most:
            return f"{max(0, int(seconds / size))} {unit} ago"
    return f"{int(seconds / 86400)} days ago"


def find(folder: Path) -> dict[str, Path]:
    """Return the run folders in ``folder`` by name, or that folder itself if it is one.

    Links that lead out of it are ignored. Raise InputError if there is no such folder.
    """
    check_folder(folder, "a run folder or a folder of runs")
    if (folder / JOURNAL).exists():
        return {folder.resolve().name or "run": folder}
    root, runs = folder.resolve(), {}
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            with suppress(OSError):
                if (path / JOURNAL).resolve(strict=True).is_relative_to(root):
                    runs[path.name] = path
    return runs


def read_run(folder: Path, name: str | None = None) -> Listed:
    """Return the audit in ``folder``, whatever its state; raises nothing."""
    name, path = name or folder.name, folder / JOURNAL
    try:
        with closing(SQLiteJournal(path, read_only=True)) as journal:
            return _read(name, folder, journal)
    except AvttError as error:
        return Listed(name, folder, "unreadable", one_line(error))
    except Exception as error:  # a damaged or hostile journal must not end the list of all others
        note = f"{path}: cannot be read: {type(error).__name__}: {one_line(error)[:200]}"
        return Listed(name, folder, "unreadable", note)


def _read(name: str, folder: Path, journal: SQLiteJournal) -> Listed:
    path, times = folder / JOURNAL, []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            if (status := file.stat()).st_size:  # whoever opens the journal leaves an empty WAL
                times.append(status.st_mtime)
    written, held, raw = max(times, default=None), holder(path) is not None, journal.facts()
    if not is_begun(raw):
        begin = f"'avtt audit SPEC.toml --out {folder}' begins one"
        note = "" if held else f"{folder}: no audit was begun here; {begin}"
        state: State = "starting" if held else "unreadable"
        return Listed(name, folder, state, note, written=written)
    facts, tally = read_facts(raw), journal.tally()
    certificate = facts.certificate
    if not math.isfinite(tally.cost):
        raise JournalError(f"{folder}: expected costs that add up, got {tally.cost}")
    state = "running" if held else "stopped"
    note = "" if held else f"continue with {resuming(facts, folder, journal)}"
    if raw.get(ITEMS) and tally.draws > tally.calls and not held:
        state, losses = "waiting", shlex.quote(str(folder / NEXT))
        note = f"waiting for people: fill in {losses}; '{facts.begun_by} --take {losses}' takes it"
    if facts.ended:
        # one that ended holds the lock, too, while it writes its report; a process that resumes it
        # took it after the journal's last row
        state = "starting" if held and lock_taken(path) > (written or 0.0) else "ended"
        note = facts.ended.reason or "the end was asked for"
    return Listed(
        name=name,
        folder=folder,
        state=state,
        note=note,
        model=short_name(facts.settings.model),
        version=facts.model_version,
        dataset=facts.space.dataset,
        strategy=facts.settings.strategy,
        targets=len(certificate.ids) if certificate else 0,
        calls=tally.draws + tally.sources,
        waiting=tally.draws - tally.calls,
        cost=tally.cost,
        written=written,
        head=journal.head,
        census=certificate is not None and certificate.counted,
        currency=facts.currency,
        paired=certificate is not None and certificate.paired,
        further=beyond_limits(facts, folder),
    )


def read_rates(folder: Path) -> Rates:
    """Return every target's interval.

    An audit that ended has journaled them. Otherwise they are recomputed from the draws, which
    takes about a second per thousand. Raise JournalError if the journal cannot be read.
    """
    with Run.opened(folder) as run:
        certificate, oracle, mute = run.certificate, run.facts.settings.oracle, is_mute(run.calls)
        # of a census, too, which counts missing answers as wrong ones
        rows = [replace(row, certified=row.certified and not mute) for row in run.intervals]
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
