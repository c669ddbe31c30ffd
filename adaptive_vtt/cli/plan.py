"""``avtt plan``: calls and money against half-width, to choose by before paying."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, names

if TYPE_CHECKING:
    from .dry_run import Plan

WIDTHS = "0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2"
"""Half-widths that are told of, where none are named."""


@dataclass(frozen=True)
class Step:
    """What all targets together take to +-``half_width``: calls ``at_least`` and ``at_most``,
    ``likely`` by loss rate, ``by_pilot`` as an earlier audit's intervals foretell (None without
    one), and what the likely calls ``cost``, by loss rate (None where prices are not known)."""

    half_width: float
    at_least: int
    likely: dict[float, int]
    at_most: int
    by_pilot: int | None
    cost: dict[float, float] | None


def plan(
    spec: Annotated[Path, typer.Argument(help="What would be audited.", metavar="SPEC.toml")],
    half_width: Annotated[
        str, typer.Option(help="Half-widths to tell of, separated by commas.", metavar="LIST")
    ] = WIDTHS,
    targets: Annotated[
        str | None,
        typer.Option(help="What is certified; commas. Default: the spec's.", metavar="LIST"),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(help="Folder of an earlier audit of these targets to go by.", metavar="DIR"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what each half-width would take, in calls and money; ask nothing.

    The bounds are those of 'avtt audit --dry-run'. With --pilot, intervals are
    taken to narrow on as those of that audit did.

    Example: avtt plan SPEC.toml --targets overall,relations
    """
    from ..models import adapted_model
    from ..spec.space_and_model import build_space, model_of
    from .dry_run import planned
    from .spec_changes import read

    widths = _widths(half_width)
    told = None if pilot is None else _pilot(pilot)
    first, base = read(spec, False, {"half_width": widths[0], "targets": names(targets)})
    space = build_space(first, base)
    model = adapted_model(model_of(first, base, space, code=False))
    steps = []
    for width in widths:
        changes = {"half_width": width, "targets": names(targets)}
        chosen, _ = read(spec, False, changes)
        found = planned(chosen, base, space, model)
        if told is not None:
            told.check(found)
        steps += _steps(width, found, told)
    if as_json:
        typer.echo(json.dumps([asdict(step) for step in steps], indent=1))
    else:
        _show(steps)


def _widths(text: str) -> list[float]:
    """Ascending. Raises InputError for what is no list of half-widths."""
    from ..errors import InputError
    from ..stopping import check_half_width

    try:
        found = sorted({float(width) for width in names(text) or ()})
    except ValueError:
        found = []
    if not found:
        raise InputError(f"--half-width: expected numbers such as 0.05,0.1, got {text!r}")
    for width in found:
        check_half_width(width)
    return found


@dataclass(frozen=True)
class Pilot:
    """An earlier audit: its ``folder``, ``calls``, the half-width of its widest interval, and the
    names of its targets."""

    folder: Path
    calls: int
    widest: float
    targets: frozenset[str]

    def calls_to(self, width: float) -> int:
        """How many calls narrow the widest interval so far: half-widths fall with their root."""
        return math.ceil(self.calls * (self.widest / width) ** 2)

    def check(self, found: "Plan") -> None:
        """Raises InputError where it certified other targets."""
        from ..errors import InputError, listed

        wanted = {row.target for row in found.targets}
        if other := sorted(wanted ^ self.targets):
            raise InputError(
                f"--pilot {self.folder}: expected an audit of the same targets, got one that "
                f"differs in {listed(other)}; name its targets by --targets"
            )


def _pilot(folder: Path) -> Pilot:
    """The audit in a folder. Raises InputError for one that certified nothing."""
    from ..audit import read_result
    from ..errors import InputError

    result = read_result(folder)
    if result.versus:
        raise InputError(
            f"--pilot {folder}: expected an audit of one model, got a comparison of two, whose "
            "intervals are of their difference"
        )
    if result.guarantee is None or not result.calls:
        raise InputError(
            f"--pilot {folder}: expected an audit that certifies and asked something, got one that "
            "explores or is empty"
        )
    widest = float(result.targets["half_width"].max())
    return Pilot(folder, result.calls, widest, frozenset(result.targets["target"]))


def _steps(width: float, found: "Plan", pilot: Pilot | None) -> list[Step]:
    together = found.together
    if together is None:
        return []
    by_pilot = None if pilot is None else min(pilot.calls_to(width), together.at_most)
    price = found.usual
    cost = {p: n * price for p, n in together.likely.items()} if price else None
    return [Step(width, together.at_least, together.likely, together.at_most, by_pilot, cost)]


def _show(steps: list[Step]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title="calls until all targets are certified", box=SIMPLE_HEAD, pad_edge=False)
    losses = list(steps[0].likely) if steps else []
    columns = ["half-width", "at least", *(f"{p:.0%} fail" for p in losses), "at most"]
    columns += ["by pilot"] * any(s.by_pilot is not None for s in steps)
    columns += ["cost"] * any(s.cost is not None for s in steps)
    for column in columns:
        table.add_column(column, justify="right")
    for step in steps:
        cells = [f"±{step.half_width:g}"]
        calls = (step.at_least, *step.likely.values(), step.at_most, step.by_pilot)
        cells += [f"{n:,}" for n in calls if n is not None]
        if step.cost is not None:
            cells.append(" to ".join(f"{c:.3g}" for c in step.cost.values()))
        table.add_row(*cells)
    console = Console(highlight=False)
    console.print(table)
    console.print("nothing was asked; failures with a pattern take fewer calls")
