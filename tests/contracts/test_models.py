"""What every model under test promises, and how one that breaks its promise is caught."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from adaptive_vtt.datasets import TableDataset, from_table
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import (
    Answer,
    ModelUnderTest,
    Prompt,
    PythonModel,
    Recorded,
    Simulated,
    TorchModel,
    Unanswered,
)
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.demo.fashion_cnn import predict
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Ask
from adaptive_vtt.utils.random_streams import generator

CONCEPTS = tuple(f"c{i}" for i in range(14))


def make_dataset() -> TableDataset:
    """8 grey 28 x 28 images, 14 concepts."""
    rng = generator(0, "models")
    labels = pd.DataFrame(rng.integers(0, 2, (8, 14)), columns=list(CONCEPTS)).add_prefix("")
    labels.index = pd.Index([f"s{i}" for i in range(8)])
    return from_table(rng.integers(0, 256, (8, 28, 28), dtype=np.uint8), labels)


def make_prompts(answers: str) -> list[Prompt]:
    dataset = make_dataset()
    images = [(f"s{i}", dataset.sample(i).image, severity) for severity in (0, 2) for i in range(8)]
    relation = {0: "identity", 2: "rotation"}
    if answers == "all":
        return [Prompt(image, CONCEPTS, s, relation[v], v) for s, image, v in images]
    return [Prompt(image, (c,), s, relation[v], v) for s, image, v in images for c in CONCEPTS[:3]]


def brightness(images: list[Any]) -> np.ndarray:
    means = np.array([image.mean() / 255 for image in images])
    return means[:, None] ** np.arange(1, 15)


class Linear(nn.Module):
    """Logits from the mean of each image; dropout, to see that eval mode is on."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.linspace(-3, 3, 14))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.dropout(images.mean(dim=(1, 2, 3))[:, None] * self.slopes)


def recorded(per_call: Literal["one", "all"]) -> Recorded:
    """Half of the images recorded, one value missing."""
    values = generator(0, "recorded").random((8, 14))
    values[1, 1] = np.nan
    table = pd.DataFrame(values, columns=list(CONCEPTS), index=[f"s{i}" for i in range(8)])
    return Recorded(table, per_call=per_call)


def simulated(answers: Literal["one", "all"]) -> Simulated:
    return Simulated.paper("biased", make_dataset(), answers=answers)


CASES: dict[str, Callable[[], ModelUnderTest]] = {
    "python callable": lambda: PythonModel(brightness),
    "torch module": lambda: TorchModel(Linear(), device="cpu", batch_size=3),
    "recorded, all": lambda: recorded("all"),
    "recorded, one": lambda: recorded("one"),
    "simulated, all": lambda: simulated("all"),
    "simulated, one": lambda: simulated("one"),
    "scripted, all": lambda: ScriptedModel(answers="all"),
    "scripted, one": lambda: ScriptedModel(answers="one", refuse=0.3),
    "bundled CNN": lambda: PythonModel(predict),
}
every_model = pytest.mark.parametrize("make", CASES.values(), ids=CASES)
# In batches of another size, float32 sums may be taken in another order.
ROUNDING = 1e-6


def table(answers: Sequence[Answer | Unanswered]) -> list[list[float | str]]:
    """Answers as plain values, Unanswered as its reason."""
    return [
        [a.reason]
        if isinstance(a, Unanswered)
        else [v.reason if isinstance(v, Unanswered) else v for v in a.values]
        for a in answers
    ]


def assert_same(one: Sequence[Answer | Unanswered], other: Sequence[Answer | Unanswered]) -> None:
    for mine, theirs in zip(table(one), table(other), strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == (b if isinstance(b, str) else pytest.approx(b, abs=ROUNDING))


@every_model
def test_every_prompt_gets_one_probability_per_concept(
    make: Callable[[], ModelUnderTest],
) -> None:
    model = make()
    prompts = make_prompts(model.answers)
    answers = checked(model, prompts)
    assert len(answers) == len(prompts)
    values = [v for row in table(answers) for v in row if not isinstance(v, str)]
    assert values
    assert all(0 <= value <= 1 for value in values)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert isinstance(answer, Unanswered) or len(answer.values) == len(prompt.concepts)
        assert np.isfinite(answer.cost)
        assert answer.cost >= 0


@every_model
def test_asked_twice_it_says_the_same(make: Callable[[], ModelUnderTest]) -> None:
    model = make()
    prompts = make_prompts(model.answers)
    assert checked(model, prompts) == checked(model, prompts)
    assert checked(make(), prompts) == checked(model, prompts)


@every_model
def test_order_and_company_of_prompts_are_irrelevant(make: Callable[[], ModelUnderTest]) -> None:
    model = make()
    prompts = make_prompts(model.answers)
    answers = checked(model, prompts)
    assert_same(checked(model, prompts[::-1])[::-1], answers)
    assert_same([checked(model, [prompt])[0] for prompt in prompts], answers)


@every_model
def test_images_sent_are_not_modified(make: Callable[[], ModelUnderTest]) -> None:
    model = make()
    prompts = make_prompts(model.answers)
    before = [prompt.image.copy() for prompt in prompts if prompt.image is not None]
    checked(model, prompts)
    for prompt, image in zip(prompts, before, strict=True):
        assert np.array_equal(prompt.image, image)


# -- models that break their promise -------------------------------------------------------


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
        "image", "concepts", "sample_id", "relation", "severity", "asks",
    }  # fmt: skip


# -- recorded and simulated ----------------------------------------------------------------


def test_recorded_answers_are_replayed_and_gaps_are_unanswered() -> None:
    model = Recorded(pd.DataFrame({"drusen": [0.2, np.nan], "cyst": [0.4, 1.0]}, index=["a", "b"]))
    ask = [Prompt(None, ("cyst", "drusen"), s, "identity", 0) for s in ("a", "b", "z")]
    gap = Unanswered("not recorded")
    assert checked(model, ask) == [Answer((0.4, 0.2)), Answer((1.0, gap)), gap]


def test_recorded_answers_of_follow_ups_stand_under_relation_and_severity() -> None:
    rows = {"sample": ["a", "a"], "relation": ["identity", "rotation"], "severity": [0, 3]}
    model = Recorded(pd.DataFrame({**rows, "drusen": [0.2, 0.9]}))
    ask = [Prompt(None, ("drusen",), "a", *of) for of in (("rotation", 3), ("rotation", 2))]
    assert checked(model, ask) == [Answer((0.9,)), Unanswered("not recorded")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sample": ["a"], "drusen": [1.2]}, r"between 0 and 1, got 1.2 in row 0, column 'drusen'"),
        ({"sample": ["a", "a"], "drusen": [0, 1]}, r"\('a', 'identity', 0\) stands twice.* row 1"),
        ({"sample": ["a"], "drusen": ["yes"]}, r"recorded answers: expected numbers"),
    ],
)
def test_recorded_answers_that_cannot_be_are_refused(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recorded(pd.DataFrame(table))


def test_recorded_answers_without_the_concept_are_refused() -> None:
    model = Recorded(pd.DataFrame({"sample": ["a"], "drusen": [0.5]}))
    with pytest.raises(InputError, match=r"no column for concept 'cyst'; there are drusen"):
        checked(model, [Prompt(None, ("cyst",), "a", "identity", 0)])


@pytest.mark.parametrize(
    ("kind", "common", "others"),
    [("unbiased", 0.7, 0.7), ("biased", 0.9, 0.5), ("negatively-biased", 0.5, 0.9)],
)
def test_simulated_models_are_right_as_often_as_the_paper_says(
    kind: str, common: float, others: float
) -> None:
    # 3,000 answers per concept: a share strays more than 4 standard deviations (< 0.037) once
    # in 16,000 seeds; 3 kinds x 2 concepts make that once in 2,600.
    labels = pd.DataFrame(generator(0, "labels").random((3000, 2)) < (0.6, 0.3)).astype(int)
    dataset = from_table(None, labels.set_axis(["often", "rare"], axis=1))
    model = Simulated.paper(kind, dataset, seed=3, answers="all")
    prompts = [Prompt(None, dataset.concepts, str(i), "identity", 0) for i in range(3000)]
    answers = np.array([a.values for a in checked(model, prompts) if isinstance(a, Answer)])
    right = ((answers >= 0.5) == (labels.to_numpy() == 1)).mean(axis=0)
    assert right == pytest.approx([common, others], abs=0.037)


def test_unknown_simulated_kind_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown simulated model 'biassed'.*did you mean 'bias"):
        Simulated.paper("biassed", make_dataset())


def test_words_answer_questions_in_words_alone() -> None:
    asked = Prompt(
        None, ("organ",), "s", "identity", 0, (Ask("Which organ?", ("colon", "stomach")),)
    )
    assert checked(Saying([Answer(("A",))]), [asked]) == [Answer(("A",))]
