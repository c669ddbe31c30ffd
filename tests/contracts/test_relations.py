"""What every registered relation promises: the suite, and what takes more images than one."""

import json
import os
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adaptive_vtt import relations
from adaptive_vtt.datasets.formats.fashion_mnist import load_arrays
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import FollowUp, Relation
from adaptive_vtt.testing.contracts import RelationContract
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.twins import slowly

from .registered import assert_covered

REDUCING = ("reic/crop", "reic/stretch", "reic/rotate")
"""For captions alone: another size, and no order of severities; see test_reic.py."""
ALL = [name for name in relations.names() if name not in REDUCING]


def change_of(name: str) -> Any:
    """The function that a relation changes images with, where it has one, or its name."""
    return getattr(relations.get(name), "change", name)


# Profiles of one family share their functions: the first relation of each is tested.
NAMES = [*{change_of(name): name for name in reversed(ALL)}.values()][::-1]
DRAWN = {"medtest/instrument", "medtest/blood", "medtest/feces"}  # things that take long to draw
LEFT_ALONE = {"identity", "prompt/coordinates"}  # the latter tells where in words


class TestRelations(RelationContract):
    shapes = ((1, 1, 1), (17, 23, 3))

    @pytest.fixture(autouse=True, params=[*NAMES, *REDUCING])
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self._name = request.param
        self.keeps_shape = self._name not in REDUCING

    def make(self) -> Relation:
        return relations.get(self._name)


def test_every_relation_has_a_case() -> None:
    assert_covered("relations", dict.fromkeys([*ALL, *REDUCING]))
    tried = {change_of(name) for name in NAMES}
    assert all(change_of(name) in tried for name in ALL)


def noise(shape: tuple[int, ...], seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def middle(image: Image) -> Mask:
    """A mask of a fifth of each side, for relations that mark or spare something."""
    height, width = image.shape[:2]
    mask = np.zeros((height, width), bool)
    mask[2 * height // 5 : 3 * height // 5, 2 * width // 5 : 3 * width // 5] = True
    return mask


def follow_up(relation: Relation, image: Image | None, severity: int, seed: int = 0) -> FollowUp:
    masks = {} if image is None else {"thing": middle(image)}
    return relation.apply(Sample("s", image, {}, masks=masks), severity, generator(seed, "test"))


def changed(relation: Relation, image: Image, severity: int, seed: int = 0) -> Image:
    image_after = follow_up(relation, image, severity, seed).image
    assert image_after is not None
    return image_after


class Used(Exception):
    """A relation asked for randomness."""


class Refusing:
    """Stands in for a random generator and cannot be used."""

    def __getattr__(self, name: str) -> Any:
        raise Used(name)


def is_random(relation: Relation) -> bool:
    sample = Sample("s", noise((28, 28, 3)), {})
    try:
        relation.apply(sample, relation.severities[-1], Refusing())  # type: ignore[arg-type]
    except Used:
        return True
    return False


def pictures_of(names: list[str]) -> dict[str, str]:
    """Return a hash of one follow-up of each relation."""
    image = noise((40, 32, 3))
    made = {
        name: changed(relations.get(name), image, relations.get(name).severities[-1])
        for name in names
    }
    return {name: sha256(picture.tobytes()).hexdigest() for name, picture in made.items()}


@pytest.mark.slow
def test_pictures_are_equal_in_another_process() -> None:
    """A process that hashes texts otherwise: what an audit resumes to was drawn by another one."""
    script = f"import json\nfrom {__name__} import *\nprint(json.dumps(pictures_of({NAMES})))"
    other = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
    )
    assert json.loads(other.stdout) == pictures_of(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=10)
def test_any_image_is_changed_repeatably_and_left_alone(name: str, data: st.DataObject) -> None:
    relation = relations.get(name)
    height, width = data.draw(st.integers(1, 24)), data.draw(st.integers(1, 24))
    shape = (height, width, data.draw(st.sampled_from([1, 3])))
    image = data.draw(arrays(np.uint8, shape))
    severity = data.draw(st.sampled_from(relation.severities))
    before = image.copy()
    first = changed(relation, image, severity)
    assert np.array_equal(image, before)
    assert not np.shares_memory(first, image)
    assert first.shape == shape
    assert first.dtype == np.uint8
    assert np.array_equal(first, changed(relation, image, severity))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if is_random(relations.get(n))])
def test_other_seeds_give_other_images_where_chance_is_used(name: str) -> None:
    relation, image = relations.get(name), noise((20, 20, 3))
    images = [changed(relation, image, relation.severities[-1], seed) for seed in range(12)]
    # 12 seeds: even a relation that only tosses a coin shows both sides, but for one in 2,048
    assert any(not np.array_equal(images[0], other) for other in images[1:])


def test_the_random_relations_are_those_known() -> None:
    # so that the test above cannot be passed by testing nothing
    assert {"gaussian_noise", "rotation"} <= {n for n in NAMES if is_random(relations.get(n))}
    assert not is_random(relations.get("identity"))


@cache
def pictures() -> tuple[Image, ...]:
    """Four garments in grey, 112 x 112, and each as a coloured 140 x 112 picture.

    Some noise stands for texture: a flat picture loses nothing to JPEG.
    """
    texture = np.random.default_rng(0).normal(0, 8, (112, 112))
    large = [cv2.resize(image, (112, 112)) for image in load_arrays()[0][:4]]
    grey = [np.clip(image + texture, 0, 255).astype(np.uint8)[:, :, None] for image in large]
    tint = np.array([1.0, 0.7, 0.4])
    colour = [np.pad((g * tint).astype(np.uint8), ((14, 14), (0, 0), (0, 0))) for g in grey]
    return (*grey, *colour)


@pytest.mark.parametrize("name", [*(n for n in NAMES if n not in DRAWN), *slowly(*sorted(DRAWN))])
def test_higher_severities_move_images_further_from_the_source(name: str) -> None:
    relation = relations.get(name)

    def distance(severity: int) -> float:
        pairs = [(p, changed(relation, p, severity, seed)) for seed, p in enumerate(pictures())]
        return float(np.mean([np.abs(a.astype(float) - b).mean() for a, b in pairs]))

    distances = [distance(severity) for severity in relation.severities]
    if relation.in_order:
        assert all(np.diff(distances) > 0), distances
    assert (distances[0] > 0) == (name not in LEFT_ALONE)


def test_relations_are_found_under_their_own_names() -> None:
    assert [relations.get(name).name for name in ALL] == ALL


def test_relation_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"relations: 'rotation' stands twice"):
        relations.resolve(["rotation", "identity", "rotation"])
