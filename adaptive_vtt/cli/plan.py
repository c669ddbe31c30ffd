"""``avtt plan``: calls and money against half-width, to choose by before paying."""

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..certify.further import KNOWN
from ..config import Spec
from ..config.building import build_space, model_of
from ..errors import InputError, listed
from ..journal import read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..models import adapted_model
from ..results.report.content import Content
from ..stopping import check_half_width
from ..utils.figures import money, points
from .dry_run import ASSUMED, Plan, cap_named, census_is_cheaper, paid_for, planned, planning
from .options import Json, arg, names, opt
from .printing import plain_console, table_of
from .spec_changes import Set, read

WIDTHS = "0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4"
"""Half-widths that are told of, where none are named."""


@dataclass(frozen=True)
class Step:
    """What all targets together take to +-``half_width``: calls ``at_least`` and ``at_most``,
    ``likely`` by loss rate, ``by_pilot`` as an earlier audit's journal foretells (None without
    one), in four of five audits within ``range_by_pilot``, and what the likely calls ``cost``, by
    loss rate (None where prices are not known; ``cost_at_most`` where the provider counts much),
    and those by the pilot (None where that cost nothing)."""

    half_width: float
    at_least: int
    likely: dict[float, int]
    at_most: int
    by_pilot: int | None
    cost: dict[float, float] | None
    cost_by_pilot: float | None = None
    range_by_pilot: tuple[int, int] | None = None
    cost_at_most: dict[float, float] | None = None


def plan(
    spec: Annotated[Path, arg("What would be audited.", "SPEC.toml")],
    half_width: Annotated[
        str, opt("Half-widths to tell of, separated by commas.", "LIST")
    ] = WIDTHS,
    targets: Annotated[
        str | None, opt("What is certified; commas. Default: the spec's.", "LIST")
    ] = None,
    pilot: Annotated[
        Path | None, opt("Folder of an earlier audit of these targets to go by.", "DIR")
    ] = None,
    sets: Set = None,
    as_json: Json = False,
) -> None:
    """Say what each half-width would take, in calls and money; ask nothing.

    The bounds are those of 'avtt audit --dry-run'. With --pilot, draws are taken
    to vary and to win as those of that audit did, at its cost of a call.

    Example: avtt plan SPEC.toml --targets overall,relations
    """
    widths = _widths(half_width)
    told = None if pilot is None else _pilot(pilot)
    wanted = {"certify.targets": names(targets)}
    first, base = read(spec, False, {"certify.half_width": widths[0], **wanted}, sets)
    with planning():
        space = build_space(first, base)
        model = adapted_model(model_of(first, base, space, code=False))
    steps, whole = [], []
    for width in widths:
        chosen, _ = read(spec, False, {"certify.half_width": width, **wanted}, sets)
        found = planned(chosen, base, space, model)
        if told is not None:
            told.check(found)
        currency = found.currency
        steps.append(_step(width, found, told))
        whole += [width] if census_is_cheaper(chosen, model, found) else []
    if as_json:
        typer.echo(json.dumps([asdict(step) for step in steps], indent=1))
    else:
        _show(steps, currency, _reached(first, found, steps, told), found.at_full_length)
        if whole:
            typer.echo(
                f"down from {points(max(whole))}, asking all {found.total:,} calls is cheaper, and "
                "exact: 'avtt census' with the same spec"
            )


def _widths(text: str) -> list[float]:
    """Ascending. Raises InputError for what is no list of half-widths."""
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
    """An earlier audit: its ``folder``, what its journal says, what a call of it
    ``cost`` in which ``currency``, and the names of its targets."""

    folder: Path
    content: "Content"
    cost: float
    targets: frozenset[str]
    currency: str

    def check(self, found: "Plan") -> None:
        """Raises InputError where it certified other targets, or was paid in another currency."""
        if self.cost and self.currency != found.currency:
            raise InputError(
                f"--pilot {self.folder}: expected an audit that was paid in {found.currency}, as "
                f"this model is, got one in {self.currency}; give model.currency and prices in it"
            )
        wanted = {row.target for row in found.targets}
        if other := sorted(wanted ^ self.targets):
            raise InputError(
                f"--pilot {self.folder}: expected an audit of the same targets, got one that "
                f"differs in {listed(other)}; name its targets by --targets"
            )


def _pilot(folder: Path) -> Pilot:
    """The audit in a folder. Raises InputError for one that certified nothing, compared two models,
    or tells too little."""
    with closing(read_journal(folder / JOURNAL)) as journal:
        facts = read_facts(journal.facts())
        certificate = facts.certificate
        if certificate is not None and certificate.versus is not None:
            raise InputError(
                f"--pilot {folder}: expected an audit of one model, got a comparison of two, whose "
                "intervals are of their difference"
            )
        if certificate is None or not journal.calls():
            raise InputError(
                f"--pilot {folder}: expected an audit that certifies and asked something, got one "
                "that explores or is empty"
            )
        content = Content.of(journal)
    widths = content.widest
    if content.calls_to(float(widths[-1]) / 2) is None:
        raise InputError(
            f"--pilot {folder}: expected an audit with more than {KNOWN} draws about every target, "
            f"and that left something to ask, got {points(widths[-1])} after "
            f"{len(widths) - 1} calls"
        )
    cost = content.cost / max(len(widths) - 1, 1)
    return Pilot(folder, content, cost, frozenset(certificate.targets), facts.currency)


def _step(width: float, found: Plan, pilot: Pilot | None) -> Step:
    together = found.together
    assert together is not None  # there is a half-width, so it certifies
    cost, dear = (
        {p: n * price for p, n in together.likely.items()} if price else None
        for price in (found.likely_price, found.dear_price)
    )
    bounds = (together.at_least, together.likely, together.at_most)
    told = None if pilot is None else pilot.content.calls_to(width)
    if pilot is None or told is None:
        return Step(width, *bounds, None, cost, cost_at_most=dear)
    calls = (told.likely, told.least, told.most)
    likely, *ends = (min(n, together.at_most) for n in calls)
    by_cost = likely * pilot.cost or None
    return Step(width, *bounds, likely, cost, by_cost, (ends[0], ends[1]), dear)


def _reached(spec: Spec, found: Plan, steps: list[Step], pilot: Pilot | None) -> list[str]:
    """How far each limit of the spec reaches: calls, and the narrowest half-width of the table."""
    budget, cap, price = spec.audit.budget, spec.audit.max_cost, found.dear_price
    price = price if pilot is None else pilot.cost or price
    limits = [] if budget is None else [(budget, f"the budget of {budget:,} calls")]
    if cap is not None and price:
        prices = price, found.worst or price
        calls, least = (min(paid_for(cap, each), found.total) for each in prices)
        pays = f"pays for about {calls:,} calls ({least:,} at the worst price)"
        limits.append((calls, f"{cap_named(cap, found)} {pays}"))
    needed = {f"where {p:.0%} fail": [step.likely[p] for step in steps] for p in ASSUMED}
    if pilot is not None:
        needed = {"by the pilot": [step.by_pilot or step.at_most for step in steps]}
    told = []
    for calls, limit in limits:
        ends = [f"{_narrowest(steps, row, calls)} {case}" for case, row in needed.items()]
        told.append(f"{limit}: enough for {', '.join(ends)}")
    return told


def _narrowest(steps: list[Step], needed: list[int], calls: int) -> str:
    """The narrowest half-width that so many calls are enough for, by what each step needs."""
    paid = [s.half_width for s, n in zip(steps, needed, strict=True) if n <= calls]
    return points(min(paid)) if paid else "none of these"


def _show(steps: list[Step], currency: str, limits: list[str], at_full_length: bool) -> None:
    losses = list(steps[0].likely)
    columns = ["half-width", "at least", *(f"{p:.0%} fail" for p in losses), "at most"]
    columns += ["by pilot"] * any(s.by_pilot is not None for s in steps)
    columns += ["cost"] * any(s.cost is not None or s.cost_by_pilot is not None for s in steps)
    rows = []
    for step in steps:
        cells = [points(step.half_width)]
        cells += [f"{n:,}" for n in (step.at_least, *step.likely.values(), step.at_most)]
        if "by pilot" in columns:
            ends = step.range_by_pilot
            cells.append(
                "–" if ends is None else " to ".join(f"{n:,}" for n in dict.fromkeys(ends))
            )
        if step.cost_by_pilot is not None:
            cells.append(money(step.cost_by_pilot, currency))
        elif step.cost is not None and step.cost_at_most is not None:
            costs = min(step.cost.values()), max(step.cost_at_most.values())
            cells.append(" to ".join(money(cost, currency) for cost in costs))
        rows.append(cells)
    console = plain_console()
    console.print(table_of(columns, rows, "calls until all targets are certified"))
    for line in limits:
        console.print(line)
    if at_full_length:
        console.print("costs are of replies at full length: many calls cost a third of that")
    console.print("nothing was asked; failures with a pattern take fewer calls")
