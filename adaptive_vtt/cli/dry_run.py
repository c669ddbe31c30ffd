"""``avtt audit --dry-run``: what would be asked and what it may cost; nothing is asked."""

import json
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console

from ..benchmark.rehearsal import Estimate, rehearse
from ..journal.facts import goal_reached
from ..models import adapted_model
from ..spec import Spec
from ..spec.audit import CertifySpec
from ..spec.building import NotImported, build_parts
from ..stopping import SURELY_HARD
from ..surrogates import lowest_with_hard_answers


def dry_run(spec: Spec, base: Path, as_json: bool) -> None:
    """Prints the plan, and how many calls it takes where failures are coin tosses."""
    space, model, options = build_parts(spec, base, code=False)
    if isinstance(model, NotImported):
        options["max_cost"] = None  # its prices are not known before it is imported
    console = Console(stderr=True, quiet=as_json, highlight=False)
    console.print(repr(space), markup=False)
    with console.status("rehearsing") as status:
        found = rehearse(
            space,
            model,
            options,
            progress=lambda calls: status.update(f"rehearsing: {calls} calls"),
        )
    told = _of_uncertainty(spec, adapted_model(model).hard_answers)
    if as_json:
        plan = {"questions": space.size, "estimates": [asdict(e) for e in found], "notes": told}
        typer.echo(json.dumps(plan, indent=1))
        return
    for estimate in found:
        typer.echo(_sentence(estimate, spec.certify))
    for sentence in told:
        typer.echo(sentence)
    if isinstance(model, NotImported):
        what = "every concept of an image" if model.answers == "all" else "one question"
        typer.echo(
            f"no model was imported: a call is taken to answer {what} (model.per_call), and "
            "proxies that are code to say nothing"
        )
    typer.echo("nothing was asked; a model whose failures have a pattern takes fewer calls")


def _of_uncertainty(spec: Spec, hard: bool) -> list[str]:
    """Whether the uncertainties that are asked for can be reached; ``hard``: answers are 0 or 1."""
    lowest = lowest_with_hard_answers(spec.audit.form)
    asked = [tau for tau in (spec.stop.uncertainty, spec.stop.max_uncertainty) if tau is not None]
    if not asked:
        return []
    told = ["until when uncertainty falls as far as [stop] asks was not rehearsed"]
    if min(asked) >= lowest:
        return told
    if hard:
        end = f"this model gives such answers, so the audit will stop after {SURELY_HARD} of them"
    else:
        end = f"if the first {SURELY_HARD} are all such, the audit stops and says so"
    return [
        *told,
        f"with answers of 0 and 1 alone uncertainty cannot fall below {lowest:.3f} of its prior, "
        f"and {min(asked):g} is asked for: {end}",
    ]


def _sentence(estimate: Estimate, certify: CertifySpec) -> str:
    cost = "prices unknown"
    if estimate.cost is not None:
        cost = f"about {estimate.likely:.3g}, at most {estimate.cost:.3g}"
    done = goal_reached(certify.half_width, certify.at_most)
    end = f"all targets {done}" if estimate.certified else f"not all {done}: {estimate.reason}"
    if not certify.certifies:
        end = f"nothing to certify: {estimate.reason}"
    return f"if {estimate.loss:.0%} of questions fail: {estimate.calls:,} calls ({cost}), {end}"
