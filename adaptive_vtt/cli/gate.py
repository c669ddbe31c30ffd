"""``avtt gate``: may the model pass? Decided from the journal, nothing is asked."""

import json
import math
import shlex
from dataclasses import asdict
from pathlib import Path

import typer

from ..journal.facts import Facts
from ..results.advice import may_cost, past_gate, raised, rounded_down, spec_named, way
from ..results.gate import VERSUS, Gate
from ..results.gate import gate as decide
from ..results.result import Result, summarise
from ..results.run import Run
from ..utils.files import write_text
from .printing import folded

MIN_NARROWER, MAX_NARROWER = 1.25, 4
"""An interval is proposed to become so many times narrower: calls go with the square."""


def gate(
    directory: Path,
    *,
    rule: list[str] | None = None,
    junit: Path | None = None,
    summary: Path | None = None,
    list_: bool = False,
    head: str | None = None,
    json_: bool = False,
) -> None:
    """Decide rules about certified rates: 0 pass, 1 fail, 4 open.

    Rules are about targets that were registered when the audit began.
    'versus:TARGET' is how much more often the new model errs than the old one
    in a comparison ('avtt versus').

    The journal is verified first, whether its audit ended or not. One that was
    damaged or edited is refused with 2, as is one with another head than --head.

    Example: avtt gate runs/first --rule 'overall <= 0.1' --junit gate.xml

    Args:
        rule: TARGET <= NUMBER; again for more. Targets: 'avtt gate DIR --list'.
        junit: Write JUnit XML here, for a CI.
        summary: Write a Markdown summary here, for a pull request.
        list_: Print the targets that rules can name.
    """
    with Run.opened(directory) as run:
        if list_:
            certificate = run.certificate
            names = [] if certificate is None else [t.handle for t in certificate.ids]
            compared = certificate is not None and certificate.versus is not None
            typer.echo("\n".join(f"{VERSUS * compared}{name}" for name in names))
            return
        found = decide(run, rule or [], str(directory), head=head)
        result = summarise(run) if found.state == "open" else None
    if junit is not None:
        write_text(junit, found.junit())
    if summary is not None:
        write_text(summary, found.markdown())
    if json_:
        told = {
            "state": found.state,
            "rulings": [asdict(r) for r in found.rulings],
            "warnings": list(found.warnings),
        }
        typer.echo(json.dumps(told, indent=1, allow_nan=False))
    else:
        typer.echo(folded(f"gate: {found.verdict}; {found.promise}"))
        for ruling in found.rulings:
            typer.echo(folded(str(ruling)))
        for warning in found.warnings:
            typer.echo(folded(f"warning: {warning}"))
        if result is not None:
            typer.echo(folded(_onward(found, run.facts, result, directory)))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _onward(found: "Gate", facts: "Facts", result: Result, directory: Path) -> str:
    """What may decide an open gate. An audit whose open targets are as certain as was asked goes on
    only if more is asked: intervals as narrow as their distance from the limit, which takes calls
    with the square of that. Limits that would end it before are raised."""
    by_gate = facts.ended is not None and facts.ended.by == "gate"
    by_command = facts.spec is not None and facts.begun_by is None and facts.rejudged is None
    past = past_gate(facts)
    if by_gate and (past is None or not by_command):
        return (
            "its audit ended with the gate that it was given and goes no further: begin another, "
            "with this rule for its gate or without any"
        )
    open_ = [ruling for ruling in found.rulings if ruling.state == "open"]
    wanted = None if facts.certificate is None else facts.certificate.half_width
    widest = max(((r.upper - r.lower) / 2 for r in open_), default=0.0)
    if not by_command:
        begun = way(facts, directory)
        if facts.rejudged is not None:
            return f"go on with {begun}"
        return f"go on with {begun}, under a higher limit if it met one, and try again"
    resume = f"'avtt resume {shlex.quote(str(directory))}"
    if wanted is None or widest > wanted:
        width = "" if past is None else f" --half-width {past:g}"
        onward = f"go on with {resume}{width}{_raised(facts, result, 2)}', and try again"
        return onward + _census(facts, result, 2, directory)
    apart = min(abs(ruling.estimate - ruling.rule.limit) for ruling in open_)
    narrower = rounded_down(min(max(apart, widest / MAX_NARROWER), widest / MIN_NARROWER))
    times = (wanted / narrower) ** 2
    return (
        f"its targets are as certain as was asked; go on with {resume} --half-width {narrower:g}"
        f"{_raised(facts, result, times)}', and try again"
        f"{_census(facts, result, times, directory)}"
    )


def _census(facts: Facts, result: Result, times: float, directory: Path) -> str:
    """The census of a free model, where so many ``times`` the calls made are all there are."""
    if may_cost(facts) or times * result.calls < facts.all_calls:
        return ""
    out = shlex.quote(f"{directory}-whole")
    command = f"avtt census {spec_named(facts, anywhere=True)} --out {out}"
    whole = command.replace(" ", "\xa0")  # to be copied, so ``folded`` is not to break it
    return f"; or ask all {facts.all_calls:,} calls, without choosing, which is exact: {whole}"


def _raised(facts: Facts, result: Result, times: float) -> str:
    """Options that allow so many ``times`` the calls made, " " before them; "" for none needed."""
    made = result.calls
    more = max(0, min(math.ceil((times - 1) * made), facts.all_calls - made))
    options = raised(facts, made, result.questions, result.cost, more)
    return f" {options}" if options else ""
