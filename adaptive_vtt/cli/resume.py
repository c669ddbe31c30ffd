"""``avtt resume``: continue an audit, under the same limits or others."""

import shlex
from pathlib import Path
from typing import Any

import typer

from ..config.resuming import new_limits, stays_ended
from ..config.resuming import resume as resumed
from .run_folder import report_again, run_and_report
from .signals import interruptible
from .spec_changes import settings


def resume(
    directory: Path,
    *,
    budget: int | None = None,
    max_cost: float | None = None,
    model: str | None = None,
    half_width: float | None = None,
    posthoc: list[str] | None = None,
    set_: list[str] | None = None,
    give_up_batch: list[str] | None = None,
    open_: bool = False,
    json_: bool = False,
) -> None:
    """Resume an audit.

    No answer that came back is paid for twice. Limits given here replace the
    earlier ones for good: raise them, or lower them to what was spent. A
    half-width may become narrower or wider. Intervals hold at every moment, so
    they hold whatever ends the audit. An audit that has ended, with no new
    option, is reported again; its model is not called.

    A run folder is a program, as a Makefile is. The model that its journal names
    is run, after a check that space and settings are those of the audit. The
    commands report, verify, export and label run no code of it. For a run that
    avtt.audit began in Python, --model names the model.

    Example: avtt resume runs/first --budget 500

    Args:
        budget (CALLS): Most calls of the model, including those made.
        max_cost (MONEY): Most money, including what was spent.
        model (FILE:NAME): Model of a run that avtt.audit began in Python: 'file.py:name' or
            'package.module:name'.
        half_width (SHARE): Certify every target to plus or minus this share; 0.05 is 5 percentage
            points. An audit that its gate ended continues past it.
        posthoc (TARGET): Certify this target, too, with further draws; named as in a gate's rules.
        set_ (FIELD=VALUE): Another limit: stop.questions=N, stop.seconds=N or
            certify.discover=N (slices, searched for at once); repeatable.
        give_up_batch (ID): Stop waiting for this batch, which the provider has lost. It counts at
            its worst price, and its calls are sent again.
    """
    flags = {"budget": budget, "max_cost": max_cost, "half_width": half_width}
    again = f"avtt resume {shlex.quote(str(directory))} --model {shlex.quote(model or '')}"
    with interruptible(directory, model and f"'{again}' continues where this stopped"):
        limits: Any = {**flags, **new_limits(settings(set_))}
        changed = {name: limit for name, limit in limits.items() if limit is not None}
        new = changed or posthoc or give_up_batch or model  # a model is checked, if it is named
        if not new and stays_ended(directory):
            return report_again(directory, json_, open_it=open_)
        given: Any = {"posthoc": posthoc or (), "give_up": give_up_batch or (), "model": model}
        typer.echo("preparing: reading your data and the answers so far ...", err=True)
        audit = resumed(directory, **given, **limits)
        if not json_ and changed:
            values = [f"{name.replace('_', '-')} {limit:g}" for name, limit in changed.items()]
            typer.echo(f"continues with {', '.join(values)}", err=True)
            if audit.targets:
                typer.echo("the guarantee stays: intervals hold at every moment", err=True)
        run_and_report(audit, directory, json_, open_it=open_)
