"""The processes of a fleet's members: started together, watched, and stopped together."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..audit.fleet import Broker
from ..audit.fleet.broker import Member
from ..config.fleet import FleetMember
from ..errors import InputError

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
        order: dict[str, Any] = {
            "out": str(self._out),
            "name": member.name,
            "base": str(member.base),
            "spec": member.spec.model_dump(exclude_none=True),
            "resume": self._goes_on,
        }
        with (folder / LOG).open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "adaptive_vtt.cli.fleet_member"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the fleet, which tells its members
            )
        self._running[member.name] = process
        _told(process, json.dumps(order))

    def _look(self) -> None:
        """Takes note of the members whose processes have ended."""
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
