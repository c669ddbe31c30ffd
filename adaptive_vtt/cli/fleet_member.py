"""One member of a fleet, in a process of its own: ``avtt fleet`` starts it and tells it, by lines
of JSON on its standard input, what to do and when to begin.

Where that input ends, the fleet's process is gone, and the member stops as if it were interrupted.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..audit import Audit
from ..audit.fleet import FLEET, Broker, BrokerLease
from ..config import parse_spec
from ..config.building import build_audit
from ..config.going_on import resume
from ..config.journaled import notes_of
from ..errors import AvttError, JournalError, one_line
from ..journal import SQLiteJournal, begin_anew
from ..journal.facts import is_begun
from ..journal.files import JOURNAL
from .run_folder import run_and_report
from .signals import Interrupted, interruptible


def main() -> None:
    """Runs the member that the first line of the input names; exit codes are those of an audit."""
    order = json.loads(sys.stdin.readline())
    out, name = Path(order["out"]), order["name"]
    with closing(Broker(out / FLEET)) as broker, _telling(broker, name), interruptible(out / name):
        lease = BrokerLease(broker, name)
        audit = _begun(broker, lease, out / name, order)
        lease.follow(audit)
        broker.tell(name, state="ready", told="")
        if not sys.stdin.readline():
            raise KeyboardInterrupt
        threading.Thread(target=_stop_with_the_fleet, daemon=True).start()
        result = run_and_report(audit, out / name, as_json=False)
        broker.tell(name, told=result.reason or "")


@contextmanager
def _telling(broker: Broker, name: str) -> Iterator[None]:
    """What goes wrong inside is told in the fleet's file, a sentence; then the process ends."""
    try:
        yield
    except Interrupted as error:
        broker.tell(name, told="interrupted")
        sys.exit(error.exit_code)
    except AvttError as error:
        broker.tell(name, state="failed", told=one_line(error))
        sys.exit(error.exit_code)
    except Exception as error:
        traceback.print_exc()
        broker.tell(name, state="failed", told=f"{type(error).__name__}: {one_line(error)}")
        sys.exit(1)


def _begun(broker: Broker, lease: BrokerLease, folder: Path, order: dict[str, Any]) -> Audit:
    """The member's audit under the fleet's limits: begun, or gone on with where that is wanted."""
    path = folder / JOURNAL
    spec = parse_spec(order["spec"], f"member {order['name']!r}")
    if order["resume"] and _is_begun(path):
        limits = {"max_cost": spec.audit.max_cost, "budget": spec.audit.budget}
        return resume(folder, lease=lease, **limits)  # type: ignore[arg-type]  # as NewLimits has them
    member = broker.member(order["name"])
    if member.money > 0 or member.calls > 0:
        raise JournalError(
            f"{path}: member {member.name!r} leased money or calls already, and its journal is "
            "gone; restore it, or begin another fleet with another --out"
        )
    base = Path(order["base"])
    journal, notes = partial(begin_anew, path), notes_of(spec, os.path.abspath(base))
    return build_audit(spec, base, journal=journal, notes=notes, lease=lease)


def _is_begun(path: Path) -> bool:
    if not path.is_file():
        return False
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        return is_begun(journal.facts())


def _stop_with_the_fleet() -> None:
    while os.read(sys.stdin.fileno(), 1):  # unbuffered: a buffer's lock would outlive the program
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
