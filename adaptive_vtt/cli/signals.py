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
"""Seconds within which further signals are the first one again: ``timeout`` and shells send one to
a process and to its group, and the second would cut short what ends because of the first."""

NOT_BEGUN = "interrupted before anything was asked; the same command begins again"


class Interrupted(AvttError):
    """The sentence, and the exit code: 128 and the signal's number."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number

    @classmethod
    def by(cls, interrupt: KeyboardInterrupt, message: str) -> "Interrupted":
        """Return the error for Ctrl-C, or for another signal treated as that."""
        came = _came[0] if _came else signal.SIGINT  # where a library dropped what was raised
        return cls(message, int(getattr(interrupt, "number", came)))


class _Signalled(KeyboardInterrupt):
    """Another signal, treated as Ctrl-C is: answers on their way are waited for and kept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


_came: list[int] = []
"""The signals that came since ``interrupted_as`` began."""


def heed() -> None:
    """Raise a signal again that somebody swallowed: Python does where it comes in a destructor or
    a callback, and models may."""
    if _came:
        raise _Signalled(_came[0])


@contextmanager
def interruptible(
    out: Path, advice: str | None = None, begun: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Turn an interruption of what is done inside, an audit in ``out``, into Interrupted.

    ``advice``: how it continues, where 'avtt resume' does not. ``begun``: whether the journal in
    ``out`` is that of this audit by now. A new audit may find one of an earlier command there, and
    to resume that would ask, and pay, under the earlier spec and cap.
    """
    with interrupted_as(lambda: _sentence(out, advice) if begun() else NOT_BEGUN):
        yield


@contextmanager
def interrupted_as(sentence: Callable[[], str]) -> Iterator[None]:
    """Turn an interruption of what is done inside into Interrupted, with this sentence. A signal
    that was to be ignored (as under nohup) stays ignored."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, *SIGNALS)}
    if threading.current_thread() is not threading.main_thread():
        before = {}  # only there may handlers be set
    usual = (signal.SIG_DFL, signal.default_int_handler)
    taken = {s: handler for s, handler in before.items() if handler in usual}
    _came.clear()
    first = math.inf

    def note(number: int, _: FrameType | None) -> None:
        nonlocal first
        _came.append(number)
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
        if not _came:
            raise
        raise Interrupted(sentence(), _came[0]) from None
    finally:
        _came.clear()
        for number, handler in taken.items():
            signal.signal(number, handler)


def _sentence(out: Path, advice: str | None) -> str:
    from ..journal import SQLiteJournal
    from ..journal.facts import is_begun
    from ..journal.files import JOURNAL

    try:
        with closing(SQLiteJournal(out / JOURNAL, read_only=True)) as journal:
            if not is_begun(journal.facts()):
                return NOT_BEGUN
            from ..engine.endpoint import under_way  # slow, unless an audit was begun here

            kept = len(journal.calls()) + len(journal.sources())
            sent = sum(len(batch.calls) for batch in under_way(journal))
    except JournalError:
        return NOT_BEGUN
    advice = advice or f"'avtt resume {shlex.quote(str(out))}' continues where this stopped"
    batches = f"; batches of {sent} calls continue at the provider" if sent else ""
    return f"interrupted; {kept} answers are kept{batches}; {advice}"
