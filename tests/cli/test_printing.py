"""Sentences fold at the width of the terminal, and what is to be copied stays whole."""

import pytest

from adaptive_vtt.benchmark.runs import BASELINES
from adaptive_vtt.cli.printing import folded, plain_console
from tests.helpers.command_line import shown

PATH = "/a/very/long-path/" + "x" * 70 + "/report.html"
COMMAND = "'avtt resume runs/first --half-width 0.019 --budget 1200'"


@pytest.mark.parametrize("columns", [None, "70", "120"])
def test_sentences_fold_and_paths_and_commands_stay_whole(
    columns: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    words = f"{'a few-words ' * 20}{PATH} {'and more ' * 20}go on with {COMMAND}, and try again"
    lines = folded(words, "avtt: ").splitlines()
    assert all(len(line) <= int(columns or 80) for line in lines if PATH not in line)
    assert all(line.startswith("avtt: " if line is lines[0] else " " * 6) for line in lines)
    assert " ".join(" ".join(lines).split()) == f"avtt: {words}"
    assert any(PATH in line for line in lines)
    assert any(COMMAND in line for line in lines)


@pytest.mark.parametrize("number", ["12.4 %", "+-8 points", "1,170 calls"])
def test_no_line_ends_between_a_number_and_its_unit(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for length in range(60, 78):
        plain_console().print(f"first\n  {'x' * length} {number} of them")
        printed = capsys.readouterr().out
        assert number in printed
        assert max(map(len, printed.splitlines())) <= 80
        assert printed.startswith("first\n  xx")


def test_words_of_compare_are_listed_with_the_strategies() -> None:
    output = " ".join(shown("list", "strategies").split())
    by_chance = "draws by chance with predictions"
    assert "random Uniform weights; an audit still predicts losses, and draws open" in output
    assert f"prediction-powered For 'avtt compare' alone: {by_chance}; in an audit" in output
    assert f"uniform For 'avtt compare' alone: {by_chance.replace('with', 'without')}; in" in output
    for name in ("uniform", "prediction-powered", "argmax"):
        assert f" {name} For 'avtt compare' alone: " in output
        assert name in BASELINES
