"""A model whose columns are in another order of the classes is met before the audit begins."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import OnnxModel
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.types import Image
from tests.helpers.onnx_graphs import channels

NUMBERS = [str(k) for k in range(12)]
TEXT = sorted(NUMBERS)
"""0, 1, 10, 11, 2: as a folder of classes is often listed."""


def space(names: Sequence[str], each: int = 6, **more: Any) -> QuestionSpace:
    """Images of one brightness per class: the place of its name, times 20."""
    rows = np.repeat(np.eye(len(names)), each, axis=0)
    images = [np.full((4, 4, 3), 20 * k, np.uint8) for k in rows.argmax(axis=1)]
    table = pd.DataFrame(rows, [f"p{k}" for k in range(len(rows))], [*names])
    return QuestionSpace(from_table(images, table), oracle=TopClass(), **more)


def knows(names: Sequence[str], order: Sequence[str], wrong: float = 0.0) -> Callable[..., Any]:
    """What reads the class of each image, and gives columns in ``order``."""
    rng = np.random.default_rng(0)

    def model(images: list[Image]) -> Any:
        true = [names[image[0, 0, 0] // 20] for image in images]
        answers = np.array([[float(name == column) for column in order] for name in true])
        noise = rng.random(len(images)) < wrong
        answers[noise] = np.eye(len(order))[rng.integers(len(order), size=noise.sum())]
        return answers

    return model


@pytest.mark.parametrize("wrong", [0.0, 0.2])
def test_columns_in_the_order_of_text_are_refused(wrong: float) -> None:
    audit = Audit(space(NUMBERS), PythonModel(knows(NUMBERS, TEXT, wrong)), budget=5)
    with pytest.raises(InputError, match=r"fits the order 0, 1, 10, 11 and 8 more better") as error:
        audit.run()
    places = [TEXT.index(name) for name in NUMBERS]
    assert f"in the order of the data: columns[:, {places}]" in str(error.value)
    assert "of 48 images right against " in str(error.value)
    assert audit.result().calls == 0


def test_columns_in_the_order_of_names_are_refused_whatever_the_data_s_own_order_is() -> None:
    names = ["polyp", "normal", "ulcer", "blood"]
    with pytest.raises(InputError, match=r"fits the order blood, normal, polyp, ulcer better"):
        Audit(space(names), knows(names, sorted(names)), budget=5).run()


CONSTANT = np.eye(12)[2]


@pytest.mark.parametrize(
    "model",
    [
        knows(NUMBERS, NUMBERS),
        knows(NUMBERS, NUMBERS, wrong=0.6),
        knows(NUMBERS, NUMBERS, wrong=1.0),
        lambda images: np.tile(CONSTANT, (len(images), 1)),
        lambda images: [TEXT[image[0, 0, 0] % 7] for image in images],
    ],
)
def test_other_models_are_audited(model: Any) -> None:
    assert Audit(space(NUMBERS), model, budget=5).run().calls == 5


def test_one_class_that_most_images_have_tells_no_order() -> None:
    rows = np.eye(2)[[0] * 40 + [1] * 3]
    images = [np.full((4, 4, 3), 9, np.uint8)] * len(rows)
    table = pd.DataFrame(rows, [f"p{k}" for k in range(43)], ["polyp", "normal"])
    unbalanced = QuestionSpace(from_table(images, table), oracle=TopClass())
    always = Audit(unbalanced, lambda given: np.tile([0.0, 1.0], (len(given), 1)), budget=5)
    assert always.run().calls == 5


def test_what_is_right_or_begun_is_asked_nothing_more() -> None:
    """Images are looked at where two orders differ, and before the first answer alone."""
    asked: list[int] = []

    def counted(names: Sequence[str]) -> PythonModel:
        known = knows(names, names)
        return PythonModel(lambda images: (asked.append(len(images)), known(images))[1])

    Audit(space(TEXT[:2], 20), counted(TEXT[:2]), budget=5).run()
    assert sum(asked) == 5
    with Audit(space(NUMBERS), counted(NUMBERS), budget=5) as audit:
        audit.run()
        audit.run()
        assert audit.journal.facts()["trial_calls"] == 48
    assert sum(asked) == 5 + 48 + 5


def test_the_columns_of_an_onnx_file_are_named_by_its_option(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    path = channels(tmp_path / "means.onnx")  # red, green, blue
    names = ["green", "blue", "red"]
    pixels = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
    images = [np.full((4, 4, 3), pixels[name], np.uint8) for name in names * 8]
    rows = pd.DataFrame(np.tile(np.eye(3), (8, 1)), [f"p{k}" for k in range(24)], names)
    called = {"red": "a", "green": "b", "blue": "c"}
    colours = QuestionSpace(from_table(images, rows.rename(columns=called)), oracle=TopClass())
    with pytest.raises(InputError, match=r'concepts = \["a", "b", "c"\] in \[model\]'):
        Audit(colours, OnnxModel(path), budget=5).run()
    named = OnnxModel(path, concepts=["a", "b", "c"])
    assert Audit(colours, named, budget=5).run().failures().empty
