"""``avtt resume``: going on with an audit, under other limits if that is wanted."""

from typing import Annotated, Any

import typer

from .options import Json, RunDir
from .signals import interruptible


def resume(
    directory: RunDir,
    budget: Annotated[
        int | None, typer.Option(help="At most so many calls, those made included.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="At most so much money, with what was spent.")
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Stop when every target is known to this, either way.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option(help="At most so many answered questions, in all.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="At most so many seconds of audit, in all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Go on with an audit that was interrupted, or reached a limit.

    No answer that came back is paid for twice. Limits given here take the
    place of those before, and stay: raise them, or lower them to what was
    spent. A half-width may become narrower or wider. Intervals hold at every
    moment, so they hold whatever ends the audit.

    A run folder is a program, as a Makefile is: the model its journal names is
    run, once space and settings were found to be those of the audit. report,
    verify, export and label run nothing of it.

    Example: avtt resume runs/first --budget 500
    """
    limits: dict[str, Any] = {
        "budget": budget,
        "max_cost": max_cost,
        "half_width": half_width,
        "questions": questions,
        "seconds": seconds,
    }
    with interruptible(directory):
        from ..spec.going_on import resume as go_on
        from .run_folder import run_and_report

        audit = go_on(directory, **limits)
        if not as_json and any(limit is not None for limit in limits.values()):
            typer.echo(_said(limits, bool(audit.targets)), err=True)
        run_and_report(audit, directory, as_json)


def _said(limits: dict[str, Any], certifies: bool) -> str:
    told = ", ".join(f"{n.replace('_', '-')} {v:g}" for n, v in limits.items() if v is not None)
    holds = "\nthe guarantee stays as it was: intervals hold at every moment" if certifies else ""
    return f"goes on with {told}{holds}"
