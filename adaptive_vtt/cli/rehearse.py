"""``avtt audit --rehearse``: the audit played through on coins; nothing is asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ..benchmark.rehearsal import Estimate, rehearse
from ..config import Spec
from ..config.audit import CertifySpec
from ..config.building import NotImported, build_parts
from ..journal.facts import goal_reached
from ..models import adapted_model
from .dry_run import ASSUMED, planned


def rehearsal(spec: Spec, base: Path, as_json: bool) -> None:
    """Plays the audit through, once for each loss rate that is assumed, and says what it took."""
    space, model, options = build_parts(spec, base, code=False)
    if isinstance(model, NotImported):
        options["max_cost"] = None  # its prices are not known before it is imported
    plan = planned(spec, base, space, adapted_model(model))
    most = spec.audit.budget or plan.total
    found: list[Estimate] = []
    with _bar(quiet=as_json) as bar:
        for loss in ASSUMED:
            likely = plan.together.likely[loss] if plan.together else plan.total
            task = bar.add_task(f"if {loss:.0%} fail", total=min(likely, most))
            found += rehearse(space, model, options, [loss], partial(_advance, bar, task))
            bar.update(task, total=found[-1].calls, completed=found[-1].calls)
    if as_json:
        typer.echo(json.dumps({"questions": space.size, "estimates": [asdict(e) for e in found]}))
        return
    for estimate in found:
        typer.echo(_sentence(estimate, spec.certify))
    typer.echo("nothing was asked; a model whose failures have a pattern takes fewer calls")


def _advance(bar: Progress, task: TaskID, calls: int) -> None:
    bar.update(task, completed=calls)


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Progress]:
    columns = (
        TextColumn("rehearsing {task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:,.0f} of about {task.total:,.0f} calls"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True) as bar:
        yield bar


def _sentence(estimate: Estimate, certify: CertifySpec) -> str:
    cost = "prices unknown"
    if estimate.cost is not None:
        cost = f"about {estimate.likely:.3g}, at most {estimate.cost:.3g}"
    done = goal_reached(certify.half_width, certify.at_most)
    end = f"all targets {done}" if estimate.certified else f"not all {done}: {estimate.reason}"
    if not certify.certifies:
        end = f"nothing to certify: {estimate.reason}"
    return f"if {estimate.loss:.0%} of questions fail: {estimate.calls:,} calls ({cost}), {end}"
