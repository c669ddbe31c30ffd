"""What goes on with an audit that has ended: the same in the terminal and in the report."""

from pathlib import Path

from adaptive_vtt.cli.progress import _still_open
from adaptive_vtt.cli.run_folder import next_steps as printed
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.headline import next_steps as shown
from adaptive_vtt.stopping import MaxQuestions
from adaptive_vtt.types import Answer
from tests.helpers.priced import billed


def test_terminal_and_report_advise_the_same_where_calls_never_came_back(tmp_path: Path) -> None:
    """Budgets, and what a call cost so far, count the calls that were drawn, answered or not."""
    spec = {"audit": {"budget": 59, "max_cost": 500.0}, "stop": {"questions": 40}}
    with billed(budget=59, stop=MaxQuestions(40), max_cost=500.0, notes={"spec": spec}) as audit:
        for number, call in enumerate(audit.ask(49)[:40]):
            audit.tell(call, Answer((float(number % 3 == 0),), cost=3.3))
        audit._loop.finish()
        result = audit.result()
        steps = shown(Evidence.of(audit.journal))
        told = _still_open(result, audit.certify)
        command, _ = printed(tmp_path, audit.journal, result)[0]
    assert result.waiting == 9
    assert command.partition(" --")[2] == steps[0].command.partition(" --")[2]
    assert told.rpartition("would take ")[2] == steps[0].text.rpartition("would take ")[2][:-1]
