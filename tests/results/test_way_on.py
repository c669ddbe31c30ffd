"""What goes on with an audit that has ended: the same in the terminal and in the report."""

from contextlib import closing
from pathlib import Path

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.cli.progress import _still_open
from adaptive_vtt.cli.run_folder import next_steps as printed
from adaptive_vtt.cli.verify import _with_remedy
from adaptive_vtt.journal import read_journal
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.headline import next_steps as shown
from adaptive_vtt.results.runs import read_run
from adaptive_vtt.stopping import MaxQuestions
from adaptive_vtt.types import Answer
from tests.audit.test_fleet_leases import plain
from tests.audit.test_fleet_resumed import Dear, Interrupted
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


@pytest.mark.parametrize("cap", [9.0, 10.0])
def test_a_cap_that_lost_calls_hold_back_is_named_with_the_way_on(
    tmp_path: Path, cap: float
) -> None:
    """Six calls cost 1 each, three never came back, and the next may cost 1."""
    options = {**plain(), "budget": 40, "journal": tmp_path / "journal.db"}
    with (
        pytest.raises(KeyboardInterrupt),
        Audit(**{**options, "model": Interrupted(), "max_cost": cap}) as audit,
    ):
        audit.run()
    told = "with a --max-cost (max_cost= in Python) of 10 or more: calls that never came back"
    with closing(read_journal(tmp_path / "journal.db")) as journal:
        remedy = _with_remedy(["result.json is older"], journal, tmp_path)[-1]
        step = shown(Evidence.of(journal))[0].text
    for way in (read_run(tmp_path).words, remedy, step):
        assert (told in way) == (cap < 10)
    model = Dear()
    with Audit(**{**options, "model": model, "max_cost": cap}) as audit:
        audit.run()
    assert bool(model.asked) == (cap >= 10)
