"""An audit that reached a limit goes on under another one, and its guarantee stays."""

import re
import shutil
from contextlib import closing
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import MemoryJournal, read_journal
from adaptive_vtt.results.advice import rounded
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.audits import content
from tests.helpers.command_line import plain_start, run

pytestmark = pytest.mark.usefixtures("undrawn")

CERTIFIES: dict[str, Any] = {"targets": ["overall", "relations"], "surrogate": False, "seed": 1}


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(60, 2), ["identity", "rotation", "gaussian_noise"])


# -- another half-width: valid, and verified ------------------------------------------------


@pytest.mark.slow
def test_a_narrower_and_then_a_wider_half_width_are_verified_and_end_the_audit_there() -> None:
    journal = MemoryJournal()
    calls, aims = [], []
    for width in (0.25, 0.15, 0.3):
        audit = Audit(space(), ScriptedModel(), half_width=width, journal=journal, **CERTIFIES)
        result = audit.run()
        assert result.reason == f"all 4 targets are certified to +-{width:g}"
        assert result.targets["half_width"].max() <= width
        verify(journal)
        calls.append(result.calls)
        aims.append(journal.facts()["certificate"].get("aims"))
    first, second, third = calls
    assert first < second == third
    assert aims == [None, [[0, 0.25], [first, 0.15]], [[0, 0.25], [first, 0.15], [second, 0.3]]]


@pytest.mark.slow
def test_interrupted_after_another_half_width_it_ends_as_if_undisturbed() -> None:
    ended = []
    for heard in (0, 5):
        journal, model = MemoryJournal(), ScriptedModel()
        Audit(space(), model, half_width=0.25, journal=journal, **CERTIFIES).run()
        if heard:
            other = Audit(space(), model, half_width=0.22, journal=journal, **CERTIFIES)
            for _ in range(heard):
                (call,) = other.ask(1)
                other.tell(call, model.ask([call.prompt])[0])
        Audit(space(), model, half_width=0.22, journal=journal, **CERTIFIES).run()
        assert len(model.asked) == len(set(model.asked)) > 20
        ended.append((content(journal), journal.facts()["intervals"]))
    assert ended[0] == ended[1]


def test_what_was_bet_before_another_half_width_stays_as_it_was() -> None:
    """Else bets would be chosen after their outcomes were seen."""
    journal = MemoryJournal()
    begun = Audit(space(), ScriptedModel(), half_width=0.25, journal=journal, **CERTIFIES)
    waiting = [begun.ask(1)[0] for _ in range(1)]
    begun.tell(waiting[0], [1.0, 1.0])
    for call in begun.ask(20):
        begun.tell(call, [0.0, 1.0])
    begun.ask(3)  # on their way
    before = begun.statuses()
    other = Audit(space(), ScriptedModel(), half_width=0.05, journal=journal, **CERTIFIES)
    kept = attrgetter("name", "lower", "upper", "estimate")
    assert [*map(kept, other.statuses())] == [*map(kept, before)]
    assert journal.facts()["certificate"]["aims"] == [[0, 0.25], [24, 0.05]]


@cache
def narrowed() -> MemoryJournal:
    """The journal of an audit that went on with a narrower half-width."""
    journal = MemoryJournal()
    for width in (0.25, 0.15):
        Audit(space(), ScriptedModel(), half_width=width, journal=journal, **CERTIFIES).run()
    return journal


@pytest.mark.slow
@pytest.mark.parametrize(
    "aims",
    [
        pytest.param([[0, 0.25], [1, 0.15]], id="earlier"),
        pytest.param([[3, 0.25], [9, 0.15]], id="from nowhere"),
        pytest.param([[0, 0.25], [9, 0.2]], id="another width"),
    ],
)
def test_verify_finds_another_history_of_half_widths(aims: list[list[float]]) -> None:
    journal = narrowed()
    stated = journal.facts()["certificate"]
    journal.set_facts(certificate={**stated, "aims": aims})
    with pytest.raises(JournalError, match=r"half-widths aimed at|the rows come to"):
        verify(journal)
    journal.set_facts(certificate=stated)
    verify(journal)


def test_a_half_width_is_changed_only_where_there_was_one() -> None:
    journal = MemoryJournal()
    Audit(space(), ScriptedModel(), at_most=0.5, journal=journal, budget=5, **CERTIFIES).run()
    with pytest.raises(JournalError, match=r"begun with certificate half_width None, not 0\.1"):
        Audit(space(), ScriptedModel(), at_most=0.5, half_width=0.1, journal=journal, **CERTIFIES)


@pytest.mark.slow
def test_intervals_hold_where_the_half_width_follows_what_was_seen() -> None:
    """The user stops as soon as the estimate looks bad, and asks on while it looks good."""
    held, audits = 0, 60
    everything, options = space(), {**CERTIFIES, "targets": ["overall"]}
    census = Audit(everything, ScriptedModel(), half_width=1e-9, **options).run()
    true = float(census.targets["estimate"].iloc[0])
    for seed in range(audits):
        model, journal = ScriptedModel(), MemoryJournal()
        options |= {"confidence": 0.9, "seed": seed}
        missed = False
        width = 0.3
        for _ in range(4):
            audit = Audit(everything, model, half_width=width, journal=journal, **options)
            row = audit.run().targets.iloc[0]
            missed |= not row["lower"] <= true <= row["upper"]
            width *= 0.6 if row["estimate"] < true else 0.9
        held += not missed
    # at 90 % at least 47 of 60 but with probability .005 (binomial)
    assert held >= 47


# -- the command line -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an audit that met its budget."""
    out = tmp_path_factory.mktemp("ended")
    options = ["--seed", "0", "--budget", "20", "--half-width", "0.4"]
    spec = str(plain_start(out / "start"))
    assert run("audit", spec, *options, "--out", str(out / "run")) == 0
    return out / "run"


@pytest.fixture
def folder(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "run"))


def test_resuming_says_that_the_guarantee_holds_and_what_comes_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    assert run("resume", "run", "--budget", "21") == 0
    output = capsys.readouterr()
    with closing(read_journal(folder / "journal.db")) as journal:  # that of all sessions
        elapsed = round(journal.facts()["ended"]["elapsed"])
    took = rf"^21 calls, .*, {elapsed // 60}:{elapsed % 60:02}$"
    assert re.search(took, output.out, re.M)
    assert run("resume", "run") == 0  # nothing is asked, and the same is told
    assert re.search(took, capsys.readouterr().out, re.M)
    assert "continues with budget 21\nthe guarantee stays: intervals" in output.err
    assert "\nnext:\n  avtt resume run --budget" in output.out
    while "resume" in output.out:  # every ending names the way on, until all is certified
        assert all(len(line) <= 80 for line in output.out.split("next:")[1].splitlines())
        (budget,) = re.findall(r"--budget (\d+)", output.out)
        assert run("resume", "run", "--budget", budget) == 0
        output = capsys.readouterr()
    assert "are certified to +-40 points" in output.out
    assert "  avtt verify run" in output.out
    assert run("verify", "run") == 0


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--budget", "19"], "budget: expected at least the 20 calls made already, got 19"),
        (["--set", "stop.questions=39"], "questions: expected at least the 40 questions"),
        (["--set", "stop.seconds=0.0001"], r"seconds: expected at least the \d+ seconds"),
        (["--set", "stop.secnds=3"], "unknown limit 'stop.secnds'; did you mean 'stop.seconds'"),
        (["--half-width", "2"], "half_width: .* below 0.5, such as 0.02 for"),
        (["--set", "stop.seconds=soon"], "stop.seconds: expected a valid number, got 'soon'"),
        (["--max-cost", "1"], "max_cost: expected the prices of model 'model.py:predict'"),
    ],
)
def test_a_limit_below_the_spent_is_refused(folder: Path, option: Any, sentence: str, capsys: Any):
    with closing(read_journal(folder / "journal.db")) as journal:
        head = journal.head
    assert run("resume", str(folder), *option) == 2
    assert re.search(sentence, capsys.readouterr().err)
    with closing(read_journal(folder / "journal.db")) as journal:
        assert journal.head == head


def test_an_exploring_audit_has_no_half_width_to_change(tmp_path: Path) -> None:
    options = ["--explore", "--budget", "3", "--out", str(tmp_path / "run")]
    assert run("audit", str(plain_start(tmp_path)), *options) == 0
    with pytest.raises(InputError, match="begun with one, got one that explores; begin a new"):
        avtt.resume(tmp_path / "run", half_width=0.1)


@pytest.mark.parametrize(
    ("value", "up"), [(281.0, 290), (300.0, 300), (1, 1), (0.0123, 0.013), (12_345, 13_000)]
)
def test_suggestions_are_round_and_never_less(value: float, up: float) -> None:
    assert rounded(value) == up
