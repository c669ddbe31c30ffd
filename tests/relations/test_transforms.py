"""Relations of other libraries' transforms and of functions: a question has one picture."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.config import Spec, read_spec
from adaptive_vtt.config.building import build_relations
from adaptive_vtt.config.journaled import code_parts
from adaptive_vtt.datasets import Dataset, from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.oracles import Consistency, MaskDrop
from adaptive_vtt.relations import Transformed, transformed
from adaptive_vtt.relations.base import moves
from adaptive_vtt.results.export.failures import export_failures
from adaptive_vtt.testing.contracts import RelationContract
from adaptive_vtt.types import Image, Sample
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.audits import counted

SPECS = Path(__file__).parents[2] / "experiments" / "specs"
RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (20, 16, 3), dtype=np.uint8)
MASK = np.zeros((20, 16), np.bool_)
MASK[3:9, 2:6] = True
SAMPLE = Sample("a", IMAGE, {}, masks={"thing": MASK})
CODE = """
import random
import numpy as np
import torch


def noisy(image, amount=10):
    drawn = np.random.rand(*image.shape) + random.random() + float(torch.rand(()))
    return np.clip(image + amount * drawn, 0, 255).astype(np.uint8)


def halves(image):
    return image / 2


def fails(image):
    raise ValueError("no such thing")


number = 3
"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "parts.py").write_text(CODE)
    return tmp_path


def follow_up(relation: Any, question: int, severity: int = 1) -> Any:
    return relation.apply(SAMPLE, severity, generator(0, "follow-up", question))


def drawn(relation: Any, question: int, severity: int = 1) -> Image:
    return follow_up(relation, question, severity).require_image()


# -- functions ----------------------------------------------------------------------------


def test_severities_have_arguments_of_their_own_and_others_in_common(parts: Path) -> None:
    relation = transformed(
        "parts.py:noisy", name="mine", severities=[{"amount": 0}, {"amount": 100}], base=parts
    )
    assert relation.name == "mine"
    assert relation.severities == (1, 2)
    assert np.array_equal(drawn(relation, 0, 1), IMAGE)
    assert not np.array_equal(drawn(relation, 0, 2), IMAGE)
    plain = transformed("parts.py:noisy", name="mine", base=parts)
    assert relation.fingerprint != plain.fingerprint
    common = transformed("parts.py:noisy", options={"amount": 100}, base=parts)
    assert np.array_equal(drawn(common, 0), drawn(relation, 0, 2))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("noisy", {"amuont": 3}, "transform 'parts.py:noisy': takes no 'amuont', but amount"),
        ("number", {}, "expected a transform or a function image -> image, got int"),
    ],
)
def test_what_is_not_taken_is_refused_when_it_is_made(
    name: str, options: dict[str, Any], message: str, parts: Path
) -> None:
    with pytest.raises(InputError, match=message):
        transformed(f"parts.py:{name}", options=options, base=parts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("halves", "expected an image H x W x 3 of uint8, got 20 x 16 x 3 of float64"),
        (
            "fails",
            r"relation 'fails' raised ValueError: no such thing at .*parts.py, line \d+, in fails",
        ),
    ],
)
def test_what_gives_no_image_is_named(name: str, message: str, parts: Path) -> None:
    with pytest.raises(InputError, match=message):
        drawn(transformed(f"parts.py:{name}", base=parts), 0)


def masked() -> Dataset:
    """One image with a mask."""
    return from_table([IMAGE], pd.DataFrame({"thing": [1]}), masks={"thing": [MASK]})


def noisy(image: Image) -> Image:
    """Asks every global generator there is: a question has one picture all the same."""
    drawn = np.random.rand(*image.shape) + random.random() + float(torch.rand(()))  # noqa: NPY002
    return np.clip(image + 90 * drawn, 0, 255).astype(np.uint8)


def own(image: Image, rng: np.random.Generator) -> Image:
    return np.clip(image + 90 * rng.random(image.shape), 0, 255).astype(np.uint8)


class TestFunction(RelationContract):
    @pytest.fixture(autouse=True, params=["noisy", "own"])
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.named = f"{__name__}:{request.param}"

    def make(self) -> Any:
        return transformed(self.named, severities=[{}, {}], moves=False)


# -- what stays ---------------------------------------------------------------------------


def test_concepts_that_may_change_are_not_asked_about() -> None:
    relation = Transformed("half", (np.invert,), concepts=("polyp",))
    dataset = from_table([IMAGE], pd.DataFrame({"polyp": [1], "text": [1]}))
    space = QuestionSpace(dataset, ["identity", relation])
    assert space.size == 3
    assert counted(space, concept="text") == 1


@pytest.mark.parametrize(
    ("moving", "message"),
    [
        (None, "it is unknown whether it moves things; moves = false says that it does not"),
        (True, "it moves things to unknown places"),
    ],
)
def test_masks_are_not_judged_where_nobody_knows_where_they_go(
    moving: bool | None, message: str, tmp_path: Path
) -> None:
    relation = Transformed("turned", (lambda image: image[::-1],), moves=moving)
    dataset = masked()
    with pytest.raises(InputError, match=f"MaskDrop compares masks, which .*: {message}"):
        QuestionSpace(dataset, ["identity", relation], oracle=MaskDrop())
    assert moves(relation, follow_up(relation, 0), SAMPLE)
    audit = Audit(
        QuestionSpace(dataset, [relation], oracle=Consistency()),
        PythonModel(lambda images: [[float(i[0, 0, 0] == IMAGE[0, 0, 0])] for i in images]),
    )
    audit.run()
    assert export_failures(audit.journal, audit.space, tmp_path / "out").masks == {}


# -- in a SPEC.toml -----------------------------------------------------------------------


def test_a_spec_names_them_and_they_count_as_code(parts: Path) -> None:
    spec = Spec.model_validate(
        {
            "dataset": {"labels": "labels.csv"},
            "model": {"target": "model.py:predict"},
            "space": {
                "transforms": [
                    {
                        "transform": "parts.py:noisy",
                        "name": "mine",
                        "severities": [{"amount": 1}, {"amount": 2}],
                        "concepts": ["bright"],
                    }
                ]
            },
        }
    )
    dataset = from_table([IMAGE], pd.DataFrame({"bright": [1]}))
    identity, mine = build_relations(spec.space, lambda: dataset, parts)
    assert (identity.name, mine.name, mine.severities) == ("identity", "mine", (1, 2))
    assert code_parts(spec)["space.transforms: parts.py:noisy"][1] == "parts.py:noisy"


# -- libraries ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "name", "options", "moving"),
    [
        ("albumentations", "GaussNoise", {"std_range": [0.2, 0.3]}, False),
        (
            "albumentations",
            "Affine",
            {"rotate": [15, 40], "translate_percent": [0.05, 0.2]},
            True,
        ),
        ("monai.transforms", "RandRotate", {"range_x": 0.6}, True),
        (
            "monai.transforms",
            "RandAffine",
            {"translate_range": [3, 3], "padding_mode": "zeros"},
            True,
        ),
        ("torchio", "RandomNoise", {"std": [0.1, 0.2]}, False),
        (
            "torchio",
            "RandomAffine",
            {"scales": 0, "translation": 0, "degrees": [0, 0, 0, 0, -60, 60]},
            True,
        ),
    ],
)
def test_each_question_has_a_picture_of_its_own_and_masks_go_with_it(
    library: str, name: str, options: dict[str, Any], moving: bool
) -> None:
    pytest.importorskip(library)
    relation, again = (transformed(f"{library}:{name}", options=options) for _ in range(2))
    first = [drawn(relation, k) for k in range(2)]
    assert not np.array_equal(first[0], first[1])
    for k in (1, 0, 1):
        assert np.array_equal(drawn(again, k), first[k])
    white = Sample("w", np.repeat(MASK[..., None], 3, axis=2).astype(np.uint8) * 255, {})
    made = relation.apply(white, 1, generator(0, "follow-up", 5))
    moved = relation.expect_mask(MASK, made)
    assert moved.shape == MASK.shape
    assert moved.dtype == np.bool_
    assert np.array_equal(moved, MASK) is not moving
    if moving:  # the mask lies where the white patch went
        seen = made.require_image()[..., 0] > 127
        assert np.mean(seen == moved) > 0.9
        assert moved.any()


def test_the_spec_to_start_from_makes_follow_ups() -> None:
    pytest.importorskip("albumentations")
    section = read_spec(SPECS / "transforms.toml").space
    _, noise, turned = build_relations(section, masked, SPECS)
    assert (noise.name, turned.name) == ("GaussNoise", "turned")
    for relation in (noise, turned):
        for severity in relation.severities:
            assert not np.array_equal(drawn(relation, 0, severity), IMAGE)
    assert QuestionSpace(masked(), ["identity", noise, turned], oracle=MaskDrop()).size
