"""What goes on with an audit that has ended: the same in the terminal and in the report."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt
from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.cli.progress import still_open
from adaptive_vtt.cli.run_folder import named
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.advice import Names, next_steps, resuming
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.headline import shown_steps as shown
from adaptive_vtt.results.run import Run
from adaptive_vtt.results.runs import read_run
from adaptive_vtt.stopping import MaxQuestions
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Prompt
from tests.helpers.priced import billed


class Dear(ScriptedModel):
    """Each call may cost 1."""

    most_cost = 1.0


class Interrupted(Dear):
    """Is interrupted in its third batch."""

    batches = 0

    def ask(self, prompts: list[Prompt]) -> Any:  # type: ignore[override]
        self.batches += 1
        if self.batches == 3:
            raise KeyboardInterrupt
        return super().ask(prompts)


def test_terminal_and_report_advise_the_same_where_calls_never_came_back(tmp_path: Path) -> None:
    """Budgets, and what a call cost so far, count the calls that were drawn, answered or not."""
    spec = {"audit": {"budget": 59, "max_cost": 500.0}, "stop": {"questions": 40}}
    with billed(budget=59, stop=MaxQuestions(40), max_cost=500.0, notes={"spec": spec}) as audit:
        for number, call in enumerate(audit.ask(49)[:40]):
            audit.tell(call, Answer((float(number % 3 == 0),), cost=3.3))
        audit._loop.finish()
        result = audit.result()
        evidence = Evidence(audit.journal)
        steps = shown(evidence)
        text = still_open(result, audit.certify)
        command, _ = next_steps(evidence.run, Names.of(evidence.run, tmp_path))[0]
    assert result.waiting == 9
    assert command.partition(" --")[2] == steps[0].command.partition(" --")[2]
    assert text.rpartition("would take ")[2] == steps[0].why.rpartition("would take ")[2]


@pytest.mark.parametrize("cap", [9.0, 10.0])
def test_a_cap_that_lost_calls_hold_back_is_named_with_the_way_on(
    tmp_path: Path, cap: float
) -> None:
    """Six calls cost 1 each, three never came back, and the next may cost 1."""
    options: dict[str, Any] = {
        "space": QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"]),
        "half_width": 0.2,
        "targets": ["overall"],
        "surrogate": False,
        "batch": 3,
        "budget": 40,
        "max_cost": cap,
        "journal": tmp_path / "journal.db",
    }
    with pytest.raises(KeyboardInterrupt), Audit(model=Interrupted(), **options) as audit:
        audit.run()
    text = "with a --max-cost (max_cost= in Python) of 10 or more: calls that never came back"
    with closing(read_journal(tmp_path / "journal.db")) as journal:
        remedy = resuming(read_facts(journal.facts()), tmp_path, journal)
        step = shown(Evidence(journal))[0].why
    for words in (read_run(tmp_path).words, remedy, step):
        assert (text in words) == (cap < 10)
    model = Dear()
    with Audit(model=model, **options) as audit:
        audit.run()
    assert bool(model.asked) == (cap >= 10)


@pytest.mark.slow
def test_what_python_began_is_exported_if_its_data_can_be_read_again(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"sample": True, "surrogate": False, "self_taught": False}
    data, model = tiny_dataset(12, 2), ScriptedModel()
    ran = adaptive_vtt.audit(data, model, half_width=0.4, out=tmp_path, **plain)
    assert len(ran.failures())
    for call, first in (
        ({"data": "my-audit"}, "avtt export runs/ten --failures FOLDER"),
        (None, "result.failures()"),
    ):
        with Run.opened(tmp_path) as begun:
            begun.facts = begun.facts.model_copy(update={"call": call})
            steps = next_steps(begun, Names("runs/ten", head="abc"))
        commands = [step.command for step in steps]
        assert commands[-2:] == [first, "avtt verify runs/ten --head abc"]


def test_targets_that_were_named_stand_among_the_changes_of_the_spec() -> None:
    changed = ["--set", 'certify.targets=["overall"]', "--set", "audit.seed=1"]
    assert named(Path("a/SPEC.toml"), ["audit.seed=1"], ["overall"]) == ["SPEC.toml", *changed]
    assert named(None, None, None) == ["--demo"]
