"""The processes of a fleet's members: started together, watched, and stopped together.

``main`` runs one member, in a process of its own: ``Crew`` starts it and tells it, by lines of JSON
on its standard input, what to do and when to begin. Where that input ends, the fleet's process is
gone, and the member stops as if it were interrupted.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from ..audit import Audit
from ..audit.fleet import FLEET, Broker, BrokerLease
from ..audit.fleet.broker import Member
from ..config import parse_spec
from ..config.building import build_audit
from ..config.fleet import FleetMember
from ..config.going_on import resume
from ..config.journaled import notes_of
from ..errors import AvttError, InputError, JournalError, one_line
from ..journal import SQLiteJournal, begin_anew
from ..journal.facts import is_begun
from ..journal.files import JOURNAL
from ..types import JsonObject
from .run_folder import run_and_report
from .signals import Interrupted, interruptible

LOG = "fleet.log"
"""What a member prints goes to this file of its folder."""
LOOK = 0.2
"""Seconds between two looks at the members."""
PATIENCE = 120.0
"""Seconds that members are given to wait for the answers on their way, once they are to stop."""


class Crew:
    """The processes of ``members``, in ``out``; as a context: at its end none is left.

    ``goes_on``: whether their audits may have begun before.
    """

    def __init__(
        self, broker: Broker, out: Path, members: Sequence[FleetMember], *, goes_on: bool
    ) -> None:
        self._broker, self._out = broker, out
        self._members, self._goes_on = members, goes_on
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.died: dict[str, int] = {}

    def __enter__(self) -> "Crew":
        for member in self._members:
            self._broker.tell(member.name, state="new", told="")
        for member in self._members:
            self._start(member)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            _closed(process)  # which tells it to stop
        until = time.monotonic() + PATIENCE
        try:
            for process in self._running.values():
                process.wait(max(0.0, until - time.monotonic()))
        except BaseException:
            for process in self._running.values():
                process.kill()
            raise

    def run(self, shown: Callable[[list[Member]], object]) -> None:
        """Begins once every member is ready, and waits until all have ended; ``shown`` is called
        with their rows now and then.

        Raises InputError where one cannot begin; nothing was asked then.
        """
        names = {member.name for member in self._members}
        while any(m.state == "new" for m in self._broker.members() if m.name in names):
            self._look()
            self._refuse_failed(names)
            shown(self._broker.members())
            time.sleep(LOOK)
        self._refuse_failed(names)
        for process in self._running.values():
            _told(process, "go")
        while self._running:
            self._look()
            shown(self._broker.members())
            time.sleep(LOOK)

    def _start(self, member: FleetMember) -> None:
        folder = self._out / member.name
        folder.mkdir(parents=True, exist_ok=True)
        order: JsonObject = {
            "out": str(self._out),
            "name": member.name,
            "base": str(member.base),
            "spec": member.spec.model_dump(exclude_none=True),
            "resume": self._goes_on,
        }
        with (folder / LOG).open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "adaptive_vtt.cli.fleet_processes"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the fleet, which tells its members
            )
        self._running[member.name] = process
        _told(process, json.dumps(order))

    def _look(self) -> None:
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            del self._running[name]
            _closed(process)
            if code:
                self.died[name] = code

    def _refuse_failed(self, names: set[str]) -> None:
        """Raises InputError for the first member that failed before all were ready."""
        for member in self._broker.members():
            ended = member.name in self.died or member.state == "failed"  # it tells, and then ends
            if member.name in names and ended:
                told = member.told or died(self.died[member.name], self._out / member.name)
                raise InputError(f"member {member.name!r}: {told}; nothing was asked")


def _told(process: "subprocess.Popen[str]", line: str) -> None:
    """Writes a line to a member; one that is dead already is noticed by who looks."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(line + "\n")
            process.stdin.flush()


def _closed(process: "subprocess.Popen[str]") -> None:
    """Closes the way to a member; what a dead one did not take is still to be written, and lost."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def died(code: int, folder: Path) -> str:
    """How a process ended that told nothing of it."""
    if code < 0:
        return f"was killed by signal {-code}"
    return f"ended with exit code {code}; {folder / LOG} says more"


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


def _begun(broker: Broker, lease: BrokerLease, folder: Path, order: JsonObject) -> Audit:
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
