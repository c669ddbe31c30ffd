"""What every oracle promises; `CASES` has data and answers for each registered kind."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import Dataset, from_table
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.models import Unanswered
from adaptive_vtt.oracles import (
    Consistency,
    ContainsTruth,
    Correctness,
    MaskBelow,
    MaskConsistency,
    MaskDrop,
    MultipleChoice,
    Oracle,
    Ordinal,
    ReducedCaptions,
    TopClass,
)
from adaptive_vtt.relations import Relation, reic
from adaptive_vtt.space import Question
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.testing.contracts import OracleContract
from adaptive_vtt.types import Sample, Value

from . import small_files as files
from .registered import assert_covered

QUESTION = Question(0, "s", "identity", 0, "c", 1)
Says = Callable[[Sample, str, np.random.Generator], Value]


def probability(sample: Sample, concept: str, rng: np.random.Generator) -> Value:
    return float(rng.choice([0.0, 0.3, 0.5, 1.0]))


def mask(sample: Sample, concept: str, rng: np.random.Generator) -> Value:
    assert sample.image is not None
    empty = np.zeros(sample.image.shape[:2], bool)
    return [empty, sample.masks.get(concept, empty), ~empty][int(rng.integers(3))]


def one_of(*replies: str) -> Says:
    return lambda sample, concept, rng: str(rng.choice(replies))


def caption(sample: Sample, concept: str, rng: np.random.Generator) -> Value:
    """Names some of what is there."""
    labels = sorted({box.label for box in sample.boxes})
    named = [label for label in labels if rng.random() < 0.6] or labels[:1]
    return "The picture shows " + " and ".join(f"a {label}" for label in named) + "."


def exclusive() -> Dataset:
    """Six images of three classes that exclude each other."""
    labels = pd.DataFrame(np.eye(3, dtype=int)[[0, 1, 2, 0, 1, 2]], columns=["low", "mid", "high"])
    images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    return from_table(images, labels)


def masked() -> Dataset:
    """Four images with a mask of their one concept."""
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
    masks = np.zeros((4, 16, 16), bool)
    masks[:, 4:12, 4:12] = True
    return from_table(images, pd.DataFrame({"polyp": [1, 1, 1, 1]}), masks={"polyp": [*masks]})


@cache
def drawn() -> Dataset:
    return scenes(3, seed=7)


@cache
def written(kind: str) -> Dataset:
    return {"endobench": files.endobench, "medvqa": files.medvqa}[kind](Path(mkdtemp()))()


@dataclass(frozen=True)
class Case:
    """An oracle, the samples it can judge, what a model may say, and what makes follow-ups."""

    make: Callable[[], Oracle]
    dataset: Callable[[], Dataset] = lambda: tiny_dataset(6, 3)
    says: Says = probability
    relations: Callable[[], list[str | Relation]] = lambda: ["identity", "brightness_up"]


LETTERS = one_of("A", "The answer is B.", "(C) three", "I cannot say.")
WORDS = one_of("Yes", "No", "Polyp and ulcer", "I cannot say.")
CASES = {
    "correctness": Case(Correctness),
    "correctness, strict": Case(lambda: Correctness(threshold=0.9)),
    "correctness, lenient": Case(lambda: Correctness(unanswered_loss=0.25)),
    "top-class": Case(TopClass, exclusive),
    "ordinal": Case(Ordinal, exclusive),
    "consistency": Case(Consistency),
    "mask-below": Case(MaskBelow, masked, mask),
    "mask-drop": Case(MaskDrop, masked, mask),
    "mask-consistency": Case(MaskConsistency, masked, mask),
    "multiple-choice": Case(MultipleChoice, lambda: written("endobench"), LETTERS),
    "contains-truth": Case(ContainsTruth, lambda: written("medvqa"), WORDS),
    "captions": Case(ReducedCaptions, drawn, caption, lambda: [*reic.relations(follow_ups=2)]),
    "captions, no boxes hidden": Case(
        lambda: ReducedCaptions(occlusion=False),
        drawn,
        caption,
        lambda: [*reic.relations(follow_ups=2)],
    ),
}


def test_every_registered_oracle_has_a_case() -> None:
    assert_covered("oracles", {**CASES})


class TestOracles(OracleContract):
    @pytest.fixture(autouse=True, params=CASES)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self._case = CASES[request.param]

    def make(self) -> Oracle:
        return self._case.make()

    def dataset(self) -> Dataset:
        return self._case.dataset()

    def relations(self) -> list[str | Relation]:
        return self._case.relations()

    def value(self, sample: Sample, concept: str, rng: np.random.Generator) -> Value:
        return self._case.says(sample, concept, rng)


@pytest.mark.parametrize("expected", [0, 1])
def test_a_surer_right_answer_is_never_worse(expected: int) -> None:
    answers = np.linspace(0, 1, 21) if expected else np.linspace(1, 0, 21)
    losses = [Correctness().judge(QUESTION, f, expected).loss for f in answers.tolist()]
    assert losses == sorted(losses, reverse=True)
    assert (losses[0], losses[-1]) == (1, 0)


# The paper's quarters of a = (f + truth) / 2: TN [0, .25), FP [.25, .5], FN [.5, .75), TP [.75, 1]
@pytest.mark.parametrize(
    ("answer", "expected", "loss", "coordinate"),
    [
        (0.0, 0, 0, 0.0),
        (0.49, 0, 0, 0.245),
        (0.5, 0, 1, 0.25),
        (1.0, 0, 1, 0.5),
        (0.0, 1, 1, 0.5),
        (0.49, 1, 1, 0.745),
        (0.5, 1, 0, 0.75),
        (1.0, 1, 0, 1.0),
    ],
)
def test_correctness_puts_each_outcome_into_its_quarter(
    answer: float, expected: int, loss: float, coordinate: float
) -> None:
    outcome = Correctness().judge(QUESTION, answer, expected)
    assert outcome.loss == loss
    assert outcome.coordinate == pytest.approx(coordinate)


def test_correctness_counts_an_unanswered_question_as_wrong() -> None:
    assert Correctness().judge(QUESTION, Unanswered("refused"), 1).loss == 1
    assert Correctness(unanswered_loss=0.25).judge(QUESTION, Unanswered("refused"), 1).loss == 0.25
