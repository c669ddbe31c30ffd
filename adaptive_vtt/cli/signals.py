"""Ctrl-C, SIGTERM and SIGHUP end an audit with a sentence that names the next command."""

import math
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from ..errors import AvttError, JournalError

SIGNALS = [s for name in ("SIGTERM", "SIGHUP") if (s := getattr(signal, name, None)) is not None]

TOGETHER = 1.0
"""Seconds within which further signals are ignored: ``timeout`` and shells send one to a process
and another to its group, and the second would interrupt the work that ends the audit."""

NOT_BEGUN = "interrupted before any call was sent; the same command begins again"


class Interrupted(AvttError):
    """The error of an interrupted command; its exit code is 128 plus the signal's number."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number

    @classmethod
    def by(cls, interrupt: KeyboardInterrupt, message: str) -> "Interrupted":
        """Return the error for Ctrl-C, or for another signal treated as that."""
        # the interrupt may be an error of a library
        number = _received[0] if _received else signal.SIGINT
        return cls(message, int(getattr(interrupt, "number", number)))


class _Signalled(KeyboardInterrupt):
    """Another signal, treated like Ctrl-C: answers on their way are waited for and kept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


_received: list[int] = []
"""The signals received since ``interrupted_as`` began."""


def raise_missed() -> None:
    """Raise a received signal again, if its exception was lost.

    Python drops one that is raised in a destructor or a callback; models may drop it, too.
    """
    if _received:
        raise _Signalled(_received[0])


@contextmanager
def interruptible(
    out: Path, advice: str | None = None, begun: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Turn an interruption of an audit in ``out`` into ``Interrupted``.

    Args:
        out: Folder of the run.
        advice: Sentence on how the audit is continued, if not by 'avtt resume'.
        begun: Function that returns whether the journal in ``out`` is this audit's. If it is an
            earlier command's, resuming it would ask, and pay, under that command's spec and cap.
    """
    with interrupted_as(lambda: _sentence(out, advice) if begun() else NOT_BEGUN):
        yield


@contextmanager
def interrupted_as(sentence: Callable[[], str]) -> Iterator[None]:
    """Turn an interruption into ``Interrupted`` with this sentence.

    A signal that is ignored already, as under nohup, stays ignored.
    """
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, *SIGNALS)}
    if threading.current_thread() is not threading.main_thread():
        before = {}  # handlers can be set in the main thread alone
    usual = (signal.SIG_DFL, signal.default_int_handler)
    taken = {s: handler for s, handler in before.items() if handler in usual}
    _received.clear()
    first = math.inf

    def note(number: int, _: FrameType | None) -> None:
        nonlocal first
        _received.append(number)
        now = time.monotonic()
        if not first <= now < first + TOGETHER:
            first = min(first, now)
            raise _Signalled(number)

    for number in taken:
        signal.signal(number, note)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Interrupted.by(interrupt, sentence()) from None
    except Exception:
        # a library that was being imported may have swallowed the signal, and failed afterwards
        if not _received:
            raise
        raise Interrupted(sentence(), _received[0]) from None
    finally:
        _received.clear()
        for number, handler in taken.items():
            signal.signal(number, handler)


def _sentence(out: Path, advice: str | None) -> str:
    from ..journal import SQLiteJournal
    from ..journal.facts import is_begun
    from ..journal.files import JOURNAL

    try:
        with closing(SQLiteJournal(out / JOURNAL, read_only=True)) as journal:
            if not is_begun(journal.facts()) or not (journal.draws() or journal.sources()):
                return NOT_BEGUN
            from ..engine.journaled_endpoint import under_way  # slow, if no audit was begun here

            kept = len(journal.calls()) + len(journal.sources())
            sent = sum(len(batch.calls) for batch in under_way(journal))
    except JournalError:
        return NOT_BEGUN
    folder, answers = shlex.quote(str(out)), "1 answer is" if kept == 1 else f"{kept} answers are"
    advice = advice or f"'avtt resume {folder}' continues where this stopped"
    batches = f"; batches of {sent} calls continue at the provider" if sent else ""
    report = f"'avtt report {folder}' writes the report so far"
    return f"interrupted; {answers} kept{batches}; {advice}; {report}"
