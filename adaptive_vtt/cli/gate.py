"""``avtt gate``: may the model pass? Decided from the journal, nothing is asked."""

from dataclasses import asdict
from pathlib import Path

import typer

from ..results.advice import Names, steps_of_gate
from ..results.gate import VERSUS
from ..results.gate import gate as decide
from ..results.run import Run
from ..utils.files import write_text
from .printing import folded, print_json
from .run_folder import print_steps


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

    Rules are about targets that were registered when the audit began. In a
    comparison ('avtt versus'), 'versus:TARGET' is how much more often the new
    model is wrong than the old one.

    The journal is verified first; its audit may still be running. Exit code 2: it
    was damaged or edited, or its head is not --head.

    Example: avtt gate runs/first --rule 'overall <= 0.1' --junit gate.xml

    Args:
        rule (RULE): TARGET <= NUMBER; repeatable. 'avtt gate DIR --list' prints the targets.
        junit: File to write JUnit XML into, for a CI.
        summary: File to write a Markdown summary into, for a pull request.
        list_: Print the targets that rules can name.
    """
    with Run.opened(directory) as run:
        if list_:
            certificate = run.certificate
            handles = [] if certificate is None else [t.handle for t in certificate.ids]
            compared = certificate is not None and certificate.versus is not None
            typer.echo("\n".join(f"{VERSUS * compared}{name}" for name in handles))
            return
        decision = decide(run, rule or [], head=head)
        names = Names.of(run, directory)
        steps = steps_of_gate(run, decision.rulings, names) if decision.state == "open" else []
    if junit is not None:
        write_text(junit, decision.junit())
    if summary is not None:
        write_text(summary, decision.markdown())
    if json_:
        rulings, warnings = [asdict(r) for r in decision.rulings], list(decision.warnings)
        print_json({"state": decision.state, "rulings": rulings, "warnings": warnings})
    else:
        lines = [f"gate: {decision.verdict}; {decision.promise}", *map(str, decision.rulings)]
        for line in (*lines, *(f"warning: {warning}" for warning in decision.warnings)):
            typer.echo(folded(line))
        print_steps(steps)
    if decision.exit_code:
        raise typer.Exit(decision.exit_code)
