"""``avtt census``: an audit that asks every question, for exact rates."""

from pathlib import Path
from typing import Annotated

from ..errors import InputError
from ..results.report.plotly_library import check_way
from .options import Json, Open, Out, Plotly, arg, opt
from .run_folder import begin, everything, named, run_and_report
from .signals import interruptible
from .spec_changes import Set, field, read


def census(
    spec: Annotated[
        Path | None, arg("What to ask about. 'avtt init DIR' writes one.", "SPEC.toml")
    ] = None,
    demo: Annotated[bool, opt("Ask the bundled model about bundled images instead.")] = False,
    budget: Annotated[int | None, field("audit.budget", "CALLS")] = None,
    max_cost: Annotated[float | None, field("audit.max_cost", "MONEY")] = None,
    processes: Annotated[int | None, field("audit.processes", "NUMBER")] = None,
    sets: Set = None,
    out: Out = Path("runs/census"),
    plotly: Plotly = "inline",
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Evaluate every question: exact rates, for models that are cheap to call.

    A census is an audit that chooses nothing: the same journal, result and
    report, so 'avtt resume', 'verify', 'gate', 'view' and 'export' take its
    folder. Goals, strategy and budget of the SPEC.toml are left out; its cap on
    cost counts.
    tables/ has the rates, and figures per perturbation and class, as CSV.

    Example: avtt census SPEC.toml --out runs/whole
    """
    flags = {
        "audit.budget": budget,
        "audit.max_cost": max_cost,
        "audit.processes": processes,
    }
    begun = False
    with interruptible(out, begun=lambda: begun):
        chosen, base = read(spec, demo, flags, sets)
        check_way(plotly)
        audit = begin(everything(chosen, budget), base, out, named(spec, sets, None))
        begun = True
        limits = audit.limits.budget, audit.limits.max_cost
        if audit.model.costs_money and limits == (None, None):
            audit.model.close()
            audit.close()
            raise InputError(
                "census: expected a limit for a model of which every call may cost money, got "
                "none; give --max-cost or --budget"
            )
        run_and_report(audit, out, as_json, open_it=open_it, plotly=plotly)
