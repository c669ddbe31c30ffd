"""``avtt fleet``: several audits under one cap."""

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ..audit.fleet import FLEET, recount, wait_for_members
from ..audit.fleet.broker import Broker, Caps, Member
from ..config.fleet import Fleet, FleetSpec, read_fleet
from ..config.section import described
from ..errors import InputError, listed
from ..journal import holds_answers
from ..journal.files import JOURNAL, Lock
from ..results.way_on import rounded_up
from ..utils.files import Table
from .fleet_processes import Crew, died
from .fleet_table import FleetLive, dry_run, in_all, table, write_result
from .options import Json, arg, opt
from .printing import plain_console
from .run_folder import tell
from .signals import interrupted_as


def _cap(name: str, metavar: str) -> Any:
    """The option that sets a field of [fleet], described as the field is."""
    return opt(f"{described(FleetSpec, name)} Default: the file's.", metavar)


def fleet(
    file: Annotated[
        Path, arg("The members, each a SPEC.toml, and the cap that they share.", "FLEET.toml")
    ],
    out: Annotated[Path, opt("Folder to write a run folder per member into.")] = Path("runs/fleet"),
    max_cost: Annotated[
        float | None,
        _cap("max_cost", "MONEY"),
    ] = None,
    max_calls: Annotated[
        int | None,
        _cap("max_calls", "CALLS"),
    ] = None,
    resume: Annotated[
        bool, opt("Go on with the fleet that stands in --out.", flags="--resume")
    ] = False,
    require_certified: Annotated[
        bool,
        opt(
            "Exit with 3 where a target of any member is open in the end, for scripts.",
            flags="--require-certified",
        ),
    ] = False,
    plan: Annotated[
        bool, opt("Say at once what it may take and cost; ask nothing.", flags="--dry-run")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run several audits under one cap on money or calls.

    Each member is an audit of its own, in a folder of its own. The one whose
    open targets gain most per unit of money asks next; what one does not need
    is left to the others. It ends when all have ended, or the cap is reached.

    Any process of it may be killed at any time: the sum of what all members
    spent, and may yet be charged for, never exceeds the cap. --resume goes on.

    A SPEC.toml is a program, as a Makefile is: the models it names are run.

    Example: avtt fleet FLEET.toml --max-cost 5 --out runs/fleet
    """
    found = read_fleet(file, max_cost=max_cost, max_calls=max_calls)
    if plan:
        return dry_run(found, as_json)
    way = _way(file, out)
    with interrupted_as(lambda: f"interrupted; what was answered is kept; '{way}' goes on"):
        failed, record = _run(found, file, out, resume, as_json)
    if as_json:
        typer.echo(json.dumps(record, indent=1, allow_nan=False))
    if failed:
        typer.echo(f"avtt: {failed}; '{way}' goes on once that is mended", err=True)
        raise typer.Exit(2)
    if require_certified and record["certified"] < record["targets"]:
        open_ = record["targets"] - record["certified"]
        typer.echo(f"avtt: {open_} of {record['targets']} targets are not certified", err=True)
        raise typer.Exit(3)


def _way(file: Path, out: Path) -> str:
    return f"avtt fleet {shlex.quote(str(file))} --out {shlex.quote(str(out))} --resume"


def _run(found: "Fleet", file: Path, out: Path, resume: bool, quiet: bool) -> "tuple[str, Table]":
    """Runs the fleet; gives what went wrong, "" for nothing, and its result."""
    with _opened(found, out, resume) as (broker, again):
        caps = broker.caps()
        ended = {m.name for m in broker.members() if m.state == "done"} if not again else set()
        left = [member for member in found.members if member.name not in ended]
        with Crew(broker, out, left, goes_on=resume) as crew, FleetLive(caps, quiet=quiet) as live:
            crew.run(live.show)
        members = broker.members()
        for member in members:
            if member.name in crew.died and member.state not in ("failed", "stopped"):
                told = died(crew.died[member.name], out / member.name)
                broker.tell(member.name, state="stopped", told=told)
        members = broker.members()
        record = write_result(members, caps, out)
    if not quiet:
        _tell(members, caps, file, out)
    wrong = [f"member {m.name!r} {m.state}" for m in members if m.state in ("failed", "stopped")]
    return ", ".join(wrong), record


@contextmanager
def _opened(found: "Fleet", out: Path, resume: bool) -> "Iterator[tuple[Broker, bool]]":
    """The broker, held by this process alone; and whether members that ended may go on, as its
    caps are others now."""
    path, names = out / FLEET, [member.name for member in found.members]
    if resume and not path.is_file():
        raise InputError(f"{out}: expected a fleet to go on with, found none; leave --resume out")
    out.mkdir(parents=True, exist_ok=True)
    with Lock(path):
        if not resume:
            _refuse_audits(found, out)
            Broker.create(path, found.caps, names).close()
        with closing(Broker(path)) as broker:
            before = broker.caps()
            _check_same(broker, names, before, found.caps)
            wait_for_members(broker)
            if resume:
                recount(broker)
            broker.change_caps(found.caps)
            yield broker, before != found.caps


def _refuse_audits(found: "Fleet", out: Path) -> None:
    for member in found.members:
        if not (out / FLEET).exists() and holds_answers(out / member.name / JOURNAL):
            raise InputError(
                f"{out / member.name}: holds an audit already, which is none of this fleet; "
                "another --out begins a new one"
            )


def _check_same(broker: "Broker", names: Sequence[str], before: "Caps", caps: "Caps") -> None:
    """Raises InputError where the fleet's file names other members than it began with."""
    begun = [member.name for member in broker.members()]
    if sorted(begun) != sorted(names):
        raise InputError(
            f"member: expected the members that the fleet began with, {listed(begun)}, got "
            f"{listed(names)}; another --out begins a new fleet"
        )
    was = before.currency
    if was != caps.currency:
        raise InputError(
            f"model.currency: expected {was}, as the fleet began, got {caps.currency}; give prices "
            f"and caps in {was}, or begin a new fleet with another --out"
        )
    if before.notes != caps.notes:
        raise InputError(
            f"fleet.guarantee: expected {before.notes} as the fleet began, got {caps.notes}; "
            "what may go wrong was shared out then"
        )


def _tell(members: "list[Member]", caps: "Caps", file: Path, out: Path) -> None:
    console = plain_console()
    console.print(table(members, caps))
    console.print(in_all(members, caps))
    lost = sum(m.money - m.spent for m in members)
    if lost > 1e-9:
        console.print(f"{caps.money(lost)} more may be charged for calls that were lost")
    for member in members:
        if member.told:
            console.print(f"{member.name}: {member.told}")
    console.print(_promise(caps))
    tell(_next(members, caps, file, out))


def _promise(caps: "Caps") -> str:
    if caps.confidence is not None:
        sure = f"{caps.confidence:g}"
        return f"with probability {sure} all intervals of all members hold at every moment"
    return (
        "each member's certificate holds as its own report says, whatever the others found; of "
        "several members, some may fail"
    )


def _next(members: "list[Member]", caps: "Caps", file: Path, out: Path) -> list[tuple[str, str]]:
    folder, steps = shlex.quote(str(out)), []
    short = [m for m in members if m.state == "short"]
    if short:
        more = {
            "--max-cost": (caps.max_cost, sum(m.money for m in members), "more_cost_most"),
            "--max-calls": (caps.max_calls, sum(m.drawn for m in members), "more_calls_most"),
        }
        limits = [
            f"{option} {rounded_up(took + sum(m.figures.get(field, 0) for m in short)):.10g}"
            for option, (cap, took, field) in more.items()
            if cap is not None
        ]
        steps.append((f"{_way(file, out)} {' '.join(limits)}", "to certify the rest"))
    elif any(m.state in ("failed", "stopped") for m in members):
        steps.append((_way(file, out), "goes on"))
    first = shlex.quote(str(out / members[0].name))
    steps.append((f"avtt runs {folder}", "all members"))
    steps.append((f"avtt view {folder}", "their reports, in the browser"))
    return [*steps, (f"avtt verify {first}", "checks every figure of one")]
