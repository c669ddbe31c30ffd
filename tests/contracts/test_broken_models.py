"""How a model that breaks its promise is caught."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from adaptive_vtt.errors import ModelError
from adaptive_vtt.models import Answer, Prompt, PythonModel, Unanswered
from adaptive_vtt.models.checking import checked
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
        ([Answer((0.1, "yes"))], r"between 0 and 1, got yes for .* concept 'cyst'"),  # type: ignore[arg-type]
        ([Answer((None, 0.1))], r"between 0 and 1, got None .* concept 'drusen'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_answer_raises_model_error(answers: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        checked(Saying(answers), [PROMPT])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((1, 3)), r"'told': expected an array of shape \(1, 2\) .* got shape \(1, 3\)"),
        (np.zeros((2, 2)), r"expected an array of shape \(1, 2\) .* got shape \(2, 2\)"),
        (np.zeros(2), r"expected an array of shape \(1, 2\) .* got shape \(2,\)"),
        (0.5, r"expected an array of shape \(1, 2\) .* got shape \(\)"),
        ([["yes", "no"]], r"'told': expected an array of numbers, got list"),
        (np.array([[0.1, np.nan]]), r"between 0 and 1, got nan .* concept 'cyst'"),
        (np.array([[2.0, 0.1]]), r"between 0 and 1, got 2.0 .* concept 'drusen'"),
    ],
)
def test_a_callable_with_a_wrong_array_raises_model_error(table: Any, message: str) -> None:
    prompt = Prompt(np.zeros((4, 4, 1), np.uint8), *list(vars(PROMPT).values())[1:])
    with pytest.raises(ModelError, match=message):
        checked(PythonModel(lambda images: table, name="told"), [prompt])


def test_a_concept_left_unanswered_is_an_answer() -> None:
    answer = Answer((0.5, Unanswered("refused")))
    assert checked(Saying([answer]), [PROMPT]) == [answer]
    assert checked(Saying([Unanswered("timeout")]), [PROMPT]) == [Unanswered("timeout")]


def test_cause_of_a_model_error_is_kept() -> None:
    with pytest.raises(ModelError) as caught:
        checked(Saying(ZeroDivisionError("by zero")), [PROMPT])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


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
