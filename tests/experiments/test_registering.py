"""Registered sight: pictures made from known ones are recognised, and what is left is seen."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.recognition import Register, RegisteredSight
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.experiments.reic.vocabulary import ENDOSCOPY, EVERYDAY, Vocabulary
from adaptive_vtt.relations.reduction import Crop, Rotate, Stretch
from adaptive_vtt.types import Image, Sample
from tests.helpers.twins import slowly

DATA = phantoms.frames(8, seed=3, instrument=0.5, blood=0.4)


@cache
def register() -> Register:
    return Register(DATA)


@cache
def sight() -> RegisteredSight:
    return RegisteredSight(DATA)


@cache
def sample(index: int) -> Sample:
    return DATA.sample(index)


def image(index: int) -> Image:
    picture = sample(index).image
    assert picture is not None
    return picture


# -- recognising ---------------------------------------------------------------------------


def turned(degrees: float, shown: tuple[int, int]) -> np.ndarray:
    """From a picture turned counter-clockwise, of this height and width, to its source."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    back = np.array([[c, -s], [s, c]])
    middle = np.array([shown[1] - 1, shown[0] - 1]) / 2
    return np.column_stack([back, np.array([127.5, 127.5]) - back @ middle])


@pytest.mark.parametrize("index", [3, *slowly(0, 6)])
@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        (Crop(40, 60, 200, 190), np.array([[1, 0, 40], [0, 1, 60]])),
        (Stretch(0, 50, 210), np.array([[1, 0, 0], [0, 0.625, 49.8125]])),
        (Stretch(1, 0, 160), np.array([[0.625, 0, -0.1875], [0, 1, 0]])),
        (Rotate(17), None),
        (Rotate(-30), None),
    ],
    ids=str,
)
def test_source_and_map_are_found_to_a_pixel(index: int, reduction: Any, expected: Any) -> None:
    picture = reduction.image(image(index))
    match = register().find(picture)
    assert match is not None
    assert match.index == index
    if expected is None:
        expected = turned(reduction.degrees, picture.shape[:2])
    height, width = picture.shape[:2]
    corners = np.array([[0, width, 0, width], [0, 0, height, height], [1, 1, 1, 1]])
    assert np.abs((match.to_source - expected) @ corners).max() < 1.5


def test_other_pictures_are_not_recognised() -> None:
    rng = np.random.default_rng(0)
    strange = phantoms.frames(3, seed=77, text=0)
    others = [strange.sample(k).image for k in range(3)]
    others += [rng.integers(0, 256, (80, 90, 3), dtype=np.uint8), np.zeros((64, 64, 3), np.uint8)]
    others += [np.full(shape, 90, np.uint8) for shape in ((1, 1, 3), (1, 40, 3), (1, 1, 1))]
    for other in others:
        assert other is not None
        assert sight().see(other) == ()


# -- words ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"taken_for": {"dog": "cta"}}, r"vocabulary: unknown name 'cta'.*did you mean 'cat'"),
        ({"taken_for": {"dgo": "cat"}}, r"vocabulary: unknown name 'dgo'.*did you mean 'dog'"),
        ({"goes_with": {"cat": ("dog",)}}, r"goes_with: unknown kind '.*': expected one of cat"),
    ],
)
def test_a_vocabulary_with_gaps_is_refused(change: dict[str, Any], message: str) -> None:
    parts = {name: getattr(EVERYDAY, name) for name in ("words", "taken_for", "goes_with")}
    with pytest.raises(InputError, match=message):
        Vocabulary(**{**parts, "settings": EVERYDAY.settings, **change})


# -- captions ------------------------------------------------------------------------------


def test_a_captioner_without_faults_names_what_is_there() -> None:
    none = dict.fromkeys(("omission", "misclassification", "fabrication", "setting"), 0)
    captioner = TemplateCaptioner(sight(), vocabulary=ENDOSCOPY, **none)
    for index in range(8):
        explained = captioner.explain(image(index))
        there = {kind for kind, mask in sample(index).masks.items() if mask.any()}
        assert {kind for _, kind in explained.named} == there
