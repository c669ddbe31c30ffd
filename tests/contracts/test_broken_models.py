"""How a model that breaks its promise is caught."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from adaptive_vtt.errors import ModelError
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.models.checking import checked, to_answers
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.testing.contracts.checks import assert_line
from adaptive_vtt.types import Ask


class Saying:
    """Answers whatever it was told to, whatever it is asked."""

    answers: Literal["one", "all"] = "all"
    name = "broken"

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> Any:
        if isinstance(self._answers, Exception):
            raise self._answers
        return self._answers


PROMPT = Prompt(None, ("drusen", "cyst"), "eye-7", "rotation", 3)
WHERE = r"sample 'eye-7', rotation severity 3"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            RuntimeError("out\nof  memory"),
            rf"'broken' raised RuntimeError: out of memory .*{WHERE}",
        ),
        (KeyError(), r"'broken' raised KeyError: KeyError "),
        ([], r"expected 1 answers \(one per prompt\), got 0"),
        ([Answer((0.1, 0.2))] * 2, r"expected 1 answers \(one per prompt\), got 2"),
        (None, r"expected 1 answers \(one per prompt\), got NoneType"),
        ([0.5], rf"expected Answer or Unanswered, got float for {WHERE}"),
        ([Answer((0.1,))], rf"expected 2 values \(one per concept\), got 1 for {WHERE}"),
        ([Answer((0.1, 0.2, 0.3))], rf"expected 2 values \(one per concept\), got 3 for {WHERE}"),
        ([Answer((0.1, float("nan")))], rf"between 0 and 1, got nan for {WHERE}, concept 'cyst'"),
        ([Answer((1.5, 0.2))], rf"between 0 and 1, got 1.5 for {WHERE}, concept 'drusen'"),
        ([Answer((0.1, -0.01))], r"between 0 and 1, got -0.01 .* concept 'cyst'"),
        ([Answer((0.1, float("inf")))], r"between 0 and 1, got inf .* concept 'cyst'"),
        ([Answer((0.1, "yes"))], r"between 0 and 1, got 'yes' for .* concept 'cyst'"),  # type: ignore[arg-type]
        ([Answer((None, 0.1))], r"between 0 and 1, got None .* concept 'drusen'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_answer_raises_model_error(answers: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        checked(Saying(answers), [PROMPT])


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda images: [image.convert("L") for image in images], "has no attribute 'convert' at "),
        (lambda image: image.mean() / 255, "'list' object has no attribute 'mean' at "),
        (lambda image: image / 255, "'list' and 'int' at "),
        (lambda images: images[0].shape["x"], "tuple indices must be"),
    ],
)
def test_a_function_of_one_image_or_of_pil_is_named_what_it_gets(function: Any, error: str) -> None:
    remedy = "; it is given a list of numpy arrays .*PIL.Image.fromarray"
    prompt = replace(PROMPT, image=np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(ModelError) as raised:
        checked(PythonModel(function), [prompt])
    assert bool(re.search(f"{error}.*{remedy}", str(raised.value))) is ("indices" not in error)


def test_a_concept_left_unanswered_is_an_answer() -> None:
    answer = Answer((0.5, Unanswered("refused")))
    assert checked(Saying([answer]), [PROMPT]) == [answer]
    assert checked(Saying([Unanswered("timeout")]), [PROMPT]) == [Unanswered("timeout")]


def test_prompts_hold_no_truth() -> None:
    assert set(vars(PROMPT)) == {
        "image",
        "concepts",
        "sample_id",
        "relation",
        "severity",
        "asks",
        "words",
    }


def test_words_answer_questions_in_words_alone() -> None:
    asked = Prompt(
        None, ("organ",), "s", "identity", 0, (Ask("Which organ?", ("colon", "stomach")),)
    )
    assert checked(Saying([Answer(("A",))]), [asked]) == [Answer(("A",))]


def test_numbers_where_words_are_asked_for_are_told_so() -> None:
    """A captioner that gives P(yes) is not told to return other columns."""
    prompt = Prompt(np.zeros((4, 4, 3), np.uint8), ("caption",), "a", "identity", 0, (Ask("?"),))
    expected = r"expected a list of texts, one per image \(1\), got an array of shape \(1, 3\); re"
    with pytest.raises(ModelError, match=expected):
        to_answers(np.zeros((1, 3)), [prompt], "model 'm'")


@pytest.mark.parametrize("text", ["", " ", "one\n", "\none", "one\ntwo"])
def test_a_text_that_is_not_one_line_breaks_a_contract(text: str) -> None:
    assert_line("one")
    with pytest.raises(AssertionError, match=r"expected (a text|one line)"):
        assert_line(text)
