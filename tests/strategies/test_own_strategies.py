"""Strategies of a user's own: where their files are looked for, what they may return, and what is
said where they fail."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from adaptive_vtt import QuestionSpace, strategies
from adaptive_vtt.cli import main
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.other_code import file_of

CODE = '''"""Mine."""


class {name}:
    def weights(self, candidates, belief):
        return candidates.nothing
'''


class Returns:
    """A strategy that gives whatever it was made with."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def weights(self, candidates: Any, belief: Any) -> Any:
        return self.said


def test_a_file_is_looked_for_beside_the_spec_and_then_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = tmp_path / "beside", tmp_path / "here"
    for folder, name in ((beside, "Beside"), (here, "Here")):
        folder.mkdir()
        (folder / "mine.py").write_text(CODE.format(name=name))
    monkeypatch.chdir(here)
    assert strategies.named("mine.py:Beside", base=beside).name == "mine.py:Beside"
    assert file_of("mine.py:Beside", beside) == beside / "mine.py"  # what a journal has the hash of
    (beside / "mine.py").unlink()
    strategies.named("mine.py:Here", base=beside)
    assert file_of("mine.py:Here", beside) == Path("mine.py")
    (here / "mine.py").unlink()
    with pytest.raises(InputError, match=f"file '{beside / 'mine.py'}' does not exist"):
        strategies.named("mine.py:Here", base=beside)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_lists_arrays_and_tensors_are_weights(space: QuestionSpace, kind: Any) -> None:
    weights = kind([0] * (space.size - 1) + [1])
    draw = Selector(space, Returns(weights)).draw()
    assert draw is not None
    assert draw.question == space.size - 1


@pytest.mark.parametrize(
    ("said", "got"),
    [
        (None, "got NoneType"),
        (np.ones(3), r"got ndarray of shape \(3,\) and type float64"),
        (np.ones((72, 1)), r"got ndarray of shape \(72, 1\) and type float64"),
        (["a"] * 72, r"got list of shape \(72,\) and type <U1"),
        ([1.0] * 71 + [-2.0], r"got -2\.0 for candidate 71"),
        (torch.tensor([1.0, float("nan")] * 36), r"got nan for candidate 1"),
        ([1.0] * 71 + [np.inf], "got inf for candidate 71"),
    ],
)
def test_what_are_no_weights_is_said_in_one_sentence_with_the_line(
    space: QuestionSpace, said: Any, got: str
) -> None:
    line = Returns.weights.__code__.co_firstlineno
    where = rf"\(.*{Path(__file__).name}, line {line}\)"
    expected = "expected 72 finite weights of at least 0, one per candidate, "
    remedy = "" if "candidate" in got else "; return a vector as long as candidates"
    with pytest.raises(InputError, match=f"^strategy 'Returns' {where}: {expected}{got}{remedy}$"):
        Selector(space, Returns(said)).draw()


@pytest.mark.parametrize(
    ("given", "rest"),
    [
        (lambda candidates, belief: np.ones(len(candidates)), "function without 'weights'; put it"),
        (Returns, r"the class itself; make an object of it, Returns\(\.\.\.\)"),
        (object(), "object without 'weights'; put it into a class"),
    ],
)
def test_what_is_no_strategy_is_refused_with_what_would_be_one(given: Any, rest: str) -> None:
    with pytest.raises(
        InputError, match=rf"expected an object with weights\(candidates, belief\), got {rest}"
    ):
        strategies.named(given)


def test_code_of_ones_own_that_fails_is_one_sentence_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(CODE.format(name="Mine"))
    monkeypatch.chdir(tmp_path)
    mine = strategies.get("mine.py:Mine")

    app = typer.Typer()
    app.command()(lambda: None)
    command = typer.main.get_command(app)
    monkeypatch.setattr("typer.main.get_command", lambda _: command)
    command.callback = partial(mine.weights, object(), None)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    said = "'object' object has no attribute 'nothing' at mine.py, line 6, in weights"
    assert capsys.readouterr().err == f"avtt: your code raised AttributeError: {said}\n"
    command.callback = partial(int, [])  # none of their lines: all is shown
    with pytest.raises(TypeError, match=r"^int\(\) argument must be"):
        main([])


def test_a_method_with_other_arguments_is_named_before_any_call(tmp_path: Path) -> None:
    source = CODE.format(name="Mine").replace("candidates, belief", "candidates")
    (tmp_path / "mine.py").write_text(source)
    expected = r"strategy .*: expected weights\(candidates, belief\), got weights\(candidates"
    with pytest.raises(InputError, match=expected):
        strategies.named("mine.py:Mine", base=tmp_path)
