"""``avtt census``: run an audit that asks every question, for exact rates."""

from pathlib import Path

from ..errors import unexpected
from ..results.report.frame import check_way
from .run_folder import begin, everything, named, run_and_report
from .signals import interruptible
from .spec_changes import read


def census(
    spec: Path | None = None,
    *,
    demo: bool = False,
    budget: int | None = None,
    max_cost: float | None = None,
    processes: int | None = None,
    set_: list[str] | None = None,
    out: Path = Path("runs/census"),
    plotly: str = "inline",
    open_: bool = False,
    json_: bool = False,
) -> None:
    """Evaluate every question: exact rates, for cheap models.

    A census is an audit that asks everything, with the same journal, result and
    report: 'avtt resume', 'verify', 'gate', 'view' and 'export' take its folder.
    Goals, strategy and budget of the SPEC.toml do not apply; its cap on cost
    does. The folder tables has rates per perturbation and class, as CSV.

    Example: avtt census SPEC.toml --out runs/whole

    Args:
        spec (SPEC.toml): What to ask about. 'avtt init DIR' writes one.
        demo: Evaluate the bundled model on bundled images instead.
        budget (CALLS): {audit.budget}
        max_cost (MONEY): {audit.max_cost}
        processes (NUMBER): {audit.processes}
    """
    flags = {"audit.budget": budget, "audit.max_cost": max_cost, "audit.processes": processes}
    begun = False
    with interruptible(out, begun=lambda: begun):
        chosen, base = read(spec, demo, flags, set_)
        check_way(plotly)
        audit = begin(everything(chosen, budget), base, out, named(spec, set_, None))
        begun = True
        if audit.model.costs_money and budget is None and audit.limits.max_cost is None:
            audit.model.close()
            audit.close()
            expected = "a limit for a model whose calls may cost money"
            raise unexpected("census", expected, "none", "give --max-cost or --budget")
        run_and_report(audit, out, json_, open_it=open_, plotly=plotly)
