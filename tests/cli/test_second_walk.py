"""What newcomers met on a second walk: a stub, a folder for a spec, a table left alone."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.config import read_spec
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError, unknown
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.rows import AnswerRow
from adaptive_vtt.models import ModelDefaults
from adaptive_vtt.oracles import Consistency, ContainsTruth, Premise
from adaptive_vtt.relations import get
from adaptive_vtt.results.advice import way
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.evidence import question_in_words
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Answer, Ask, FollowUp, Prompt, Question, Sample, Unanswered
from adaptive_vtt.utils import importing as extras
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run
from tests.helpers.report_kinds import words
from tests.helpers.report_pages import Tags, audit, block

RELATIONS = ["identity", "gaussian_noise", "rotation"]
QUICK: dict[str, Any] = {"surrogate": False, "seed": 0, "strategy": "random"}


# -- a model that answers the same about everything ---------------------------------------


class Says(ModelDefaults):
    """Answers by the sample alone, as ``answers`` has it."""

    answers = "all"

    def __init__(self, answer: Any) -> None:
        self.name, self._answer = "says", answer

    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        return [Answer(tuple(map(float, self._answer(p)))) for p in prompts]


def shown(truth: list[int]) -> Any:
    """Images of which a single concept has these truths."""
    images = [np.full((8, 8, 3), 10 * k, np.uint8) for k in range(len(truth))]
    return from_table(images, pd.DataFrame({"a": truth, "b": truth}))


def told(data: Any, answer: Any, oracle: Any = None, budget: int = 30) -> list[str]:
    journal: Journal = MemoryJournal()
    space = avtt.QuestionSpace(data, RELATIONS, oracle=oracle)
    avtt.Audit(space, Says(answer), journal=journal, budget=budget, **QUICK).run()
    warnings = [w for w in summarise(journal).warnings if "same answer" in w]
    assert all(w in render(journal) for w in warnings)
    return warnings


MIXED, PRESENT = [0, 1] * 6, [1] * 12


@pytest.mark.slow
def test_answers_that_are_all_the_same_are_told_of_in_result_and_report() -> None:
    assert "(0.5)" in told(shown(MIXED), lambda p: (0.5, 0.5))[0]
    assert "all 30 calls" in told(shown(MIXED), lambda p: (1, 1))[0]
    assert "(0.2, 0.7)" in told(shown(MIXED), lambda p: (0.2, 0.7))[0]
    assert told(shown(PRESENT), lambda p: (1, 1), Consistency())  # what is right is not known


def test_answers_that_differ_or_are_right_or_few_are_not() -> None:
    assert not told(shown(MIXED), lambda p: (0.5, 0.1 * len(p.sample_id)))
    assert not told(shown(MIXED), lambda p: (0.5, p.relation == "rotation"))
    assert not told(shown(PRESENT), lambda p: (1, 1))
    assert not told(shown(MIXED), lambda p: (0.5, 0.5), budget=4)


# -- how an audit goes on -----------------------------------------------------------------


def test_a_forecast_is_never_more_than_the_calls_that_are_left() -> None:
    space = avtt.QuestionSpace(tiny_dataset(6, 2), ["identity", "rotation"])
    targets = named_targets(space, ["overall", "relations"])
    certifier = Certifier(space, targets, answers="all", half_width=0.001)
    calls = np.arange(space.images)
    for place in range(5):
        unit = np.repeat(np.arange(len(calls)), 2)
        questions = (2 * calls[:, None] + np.arange(2)).ravel()
        inside = certifier.members(questions)
        proposal = np.full(len(calls), 1 / len(calls))
        move = certifier.foresee(inside, unit, None, proposal, 0)
        certifier.learn(move, inside[:, :2], np.full(2, place % 2), np.full(2, place % 2))
        calls = calls[1:]
        forecasts = [row.more_calls for row in certifier.table()]
        assert all(more is None or 0 <= more.most <= len(calls) for more in forecasts)


def test_how_an_audit_goes_on_follows_from_what_began_it() -> None:
    journal = audit(shown(MIXED), Says(lambda p: (0.1, 0.9)), RELATIONS, budget=2, **QUICK)
    facts = read_facts(journal.facts())
    assert "Python" in way(facts, "run")
    spec = facts.model_copy(update={"spec": {"audit": {}}})
    assert way(spec, "a b") == "'avtt resume 'a b''"
    assert way(facts.model_copy(update={"begun_by": "avtt versus a b"}), "r") == "'avtt versus a b'"


# -- init, and what is in a folder --------------------------------------------------------


def classes(folder: Path) -> Path:
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 200, (12, 12, 3), dtype=np.uint8)
        write_bytes(folder / ("cat", "dog")[number % 2] / f"{number}.png", png(pixels))
    rows = [f"{('cat', 'dog')[n % 2]}/{n}.png,{n % 2}" for n in range(12)]
    write_text(folder / "labels.csv", "\n".join(["id,bright", *rows]) + "\n")
    return folder


def test_a_table_beside_class_folders_is_named_with_how_to_choose_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = classes(tmp_path / "data")
    assert run("init", str(tmp_path / "spec"), "--data", str(data)) == 0
    said = capsys.readouterr().out
    assert "2 class folders (cat, dog); 'labels.csv' there was left alone; to go by it" in said
    with pytest.warns(UserWarning, match=rf"give {re.escape(str(data / 'labels.csv'))} in place"):
        avtt.QuestionSpace(data)
    chosen = ("init", str(tmp_path / "other"), "--data", str(data / "labels.csv"))
    assert run(*chosen) == 0
    assert "with a table of labels (bright)" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["README.md", "labels.csv", "there.txt"])
def test_init_makes_no_folder_with_the_name_of_a_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(tmp_path / "there.txt", "mine")
    assert run("init", str(tmp_path / name)) == 2
    assert "expected a folder to write into, got the name of a file" in capsys.readouterr().err
    assert not (tmp_path / name).is_dir()


def test_a_folder_for_a_spec_is_told_what_to_do_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    named = re.escape(f"'{folder}'")  # as a shell takes it
    with pytest.raises(InputError, match=f"got a folder; 'avtt init DIR --data {named}' writes a"):
        read_spec(folder)
    assert run("runs", str(folder)) == 0
    begin = f"'avtt audit SPEC.toml --out '{folder / 'first'}'' begins one"
    assert begin in capsys.readouterr().out
    write_text(folder / "journal.db", "")
    told = f"got a folder; it holds an audit: 'avtt resume {named}' goes on, 'avtt report {named}'"
    with pytest.raises(InputError, match=told):
        read_spec(folder)


# -- sentences ----------------------------------------------------------------------------


def test_the_nearest_name_comes_before_a_short_list() -> None:
    names = [f"name{k:02}" for k in range(28)]
    error = str(unknown("relation", "nam05", names, every="avtt list relations"))
    assert error.startswith("unknown relation 'nam05'; did you mean 'name05'? Expected one of ")
    assert error.endswith("name05 and 22 more ('avtt list relations' shows all)")
    far = str(unknown("relation", "xyz", names))
    assert far.endswith("name11 and 16 more")
    assert str(unknown("side", "up", ["a", "b"])) == "unknown side 'up': expected one of a, b"


def test_a_missing_part_is_installed_by_the_packages_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = ["numpy>=2", "openai>=1.60; extra == 'openai'", 'httpx>=1; extra == "http"']
    monkeypatch.setattr(extras, "requires", lambda _: needed)
    assert extras.pip_install("openai") == "pip install 'openai>=1.60'"
    monkeypatch.setattr(extras, "requires", lambda _: None)
    assert extras.pip_install("openai") == "pip install 'adaptive-vtt[openai]'"


# -- reports ------------------------------------------------------------------------------


def test_a_report_of_words_shows_question_options_and_what_is_right(tmp_path: Path) -> None:
    page = render(words(tmp_path))
    lines = [line for item in block(page, "failures-data") for line in item["lines"]]
    assert len(lines) > 3
    for line in lines:
        assert line["asked"]["question"].startswith("What is this (")
        assert [letter for letter, _, _ in line["asked"]["options"]] == ["A", "B", "C", "D"]
        assert sum(right for *_, right in line["asked"]["options"]) == 1
    assert "“What is this (" in Tags(page).text  # in the list of draws, too


def test_a_free_answer_is_shown_with_what_is_accepted() -> None:
    asks, answers = {"colour": Ask("Which?")}, {"colour": ("red",)}
    sample = Sample("s", None, {"colour": 1}, asks=asks, answers=answers)
    question = Question(0, "s", "identity", 0, "colour", 1)
    oracle = ContainsTruth()
    expected = oracle.expect(Premise(get("identity"), FollowUp(None), sample, question, None))
    details = oracle.judge(question, "blue", expected).details
    row = AnswerRow(0, 0, 1, 0.0, None, 1.0, 0.5, "blue", details)
    assert question_in_words(row) == {"question": "Which?", "options": [], "right": "red"}
    assert question_in_words(AnswerRow(0, 0, 1, 0.0, None, 1.0, 0.5)) is None
    long = {"asked": {"question": "x" * 1000, "options": [], "right": []}}
    told = question_in_words(AnswerRow(0, 0, 1, 0.0, None, 1.0, 0.5, "", long))
    assert told is not None
    assert len(told["question"]) < 410


class Mute(Says):
    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        return [Unanswered("I cannot help with that") for _ in prompts]


def test_an_audit_in_which_nothing_was_answered_says_so() -> None:
    options = {"half_width": 0.3, "budget": 10, "fail_on_error": 1.0, **QUICK}
    journal = audit(shown(MIXED), Mute(None), RELATIONS, **options)
    (told,) = summarise(journal).warnings
    assert told.startswith(
        "20 of 20 questions (100.0 %) went unanswered, most often (20 times) with 'I"
    )
    assert told in Tags(render(journal)).text
