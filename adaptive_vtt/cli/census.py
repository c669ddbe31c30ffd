"""``avtt census``: an audit that asks every question, for exact rates."""

from pathlib import Path
from typing import Annotated

from ..config import Spec, parse_spec
from ..errors import InputError
from ..results.report.plotly_library import check_way
from ..strategies import EVERYTHING
from .options import Json, Open, Out, Plotly, arg, opt
from .run_folder import begin, named, run_and_report
from .signals import interruptible
from .spec_changes import Set, field, read

WITHOUT = {
    "audit": {"strategy_options": None, "exploration": None, "repeat_probes": 0},
    "certify": {"half_width": None, "at_most": None, "discover": 0, "set_aside": None}
    | {"proxies": None, "prior_journal": None, "cohort": None, "features": "default"},
    "stop": {"uncertainty": None, "max_uncertainty": None, "gate": None, "questions": None},
}
"""What a census has no use for: goals, and how questions are chosen."""


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


def everything(spec: Spec, budget: int | None = None) -> Spec:
    """Return the spec of the census that asks all that ``spec`` is about, whatever budget of calls
    that has: it is one for an audit that chooses. Its cap on cost counts."""
    table = spec.model_dump()
    for section, fields in WITHOUT.items():
        table[section] |= fields
    table["audit"] |= {"strategy": EVERYTHING, "budget": budget}
    return parse_spec(table, "census")
