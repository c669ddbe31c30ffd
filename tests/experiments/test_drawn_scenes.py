"""Drawn scenes: they depend on the seed alone, and what is said to be there is to be seen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.drawn_scenes import Scenes, scenes
from adaptive_vtt.experiments.reic.scene_drawing import background, draw, sketch_of
from adaptive_vtt.experiments.reic.scene_plan import KINDS, PLACES, TINT, Scene, lab, shaded
from adaptive_vtt.types import Image
from tests.helpers.workers import received

SIGNATURES = lab([kind.colour for kind in KINDS.values()])
every_kind = pytest.mark.parametrize("name", KINDS)


def picture(data: Scenes, index: int) -> Image:
    image = data.sample(index).image
    assert image is not None
    return image


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    height=st.integers(96, 200),
    width=st.integers(96, 260),
    most=st.integers(1, 8),
)
def test_truth_masks_and_boxes_say_the_same(seed: int, height: int, width: int, most: int) -> None:
    sample = scenes(1, seed=seed, size=(height, width), objects=(1, most)).sample(0)
    assert sample.image is not None
    assert (sample.image.shape, sample.image.dtype) == ((height, width, 3), np.uint8)
    there = {kind for kind, truth in sample.truth.items() if truth}
    assert there == set(sample.masks) == {box.label for box in sample.boxes}
    assert 1 <= len(sample.boxes) == sample.metadata["objects"] <= most
    boxed = {kind: np.zeros((height, width), bool) for kind in there}
    for box in sample.boxes:
        x1, y1, x2, y2 = (int(side) for side in (box.left, box.top, box.right, box.bottom))
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
        mask = sample.masks[box.label]
        for edge in (mask[y1, x1:x2], mask[y2 - 1, x1:x2], mask[y1:y2, x1], mask[y1:y2, x2 - 1]):
            assert edge.any()
        boxed[box.label][y1:y2, x1:x2] = True
    for kind, mask in sample.masks.items():
        assert mask.any()
        assert not (mask & ~boxed[kind]).any()


@pytest.mark.slow
def test_more_than_half_of_every_thing_is_in_view() -> None:
    data = scenes(15, seed=8, objects=(4, 8))
    for index in range(len(data)):
        scene = data.scene(index)
        drawn = draw(scene, *data.size)
        for thing, seen in zip(scene.things, drawn.things, strict=True):
            alone = Scene(scene.seed, scene.index, scene.place, scene.aspect, (thing,))
            assert seen.sum() > 0.5 * draw(alone, *data.size).things[0].sum(), thing.kind.name


def test_signatures_are_far_from_one_another_and_from_grey() -> None:
    apart = np.linalg.norm(SIGNATURES[:, None] - SIGNATURES, axis=2) + 999 * np.eye(len(KINDS))
    assert len(KINDS) == 25
    assert apart.min() > 38
    assert np.hypot(SIGNATURES[:, 1], SIGNATURES[:, 2]).min() > 34


@every_kind
def test_at_least_half_of_a_thing_has_its_signature_colour(name: str) -> None:
    place = [*KINDS].index(name)
    for tint in (-TINT, TINT):
        layer = sketch_of(KINDS[name], 72, (tint, tint, -tint))
        pixels = lab(layer.colour[layer.cover >= 0.5])
        away = np.linalg.norm(pixels[:, None] - SIGNATURES, axis=2)
        own = (away.argmin(axis=1) == place) & (away.min(axis=1) < 15)
        assert own.mean() >= 0.5


@pytest.mark.parametrize("place", PLACES)
def test_no_background_comes_near_a_signature(place: str) -> None:
    for seed in range(5):
        pixels = lab(background(place, 96, 128, np.random.default_rng(seed)))
        away = np.linalg.norm(pixels.reshape(-1, 1, 3) - SIGNATURES, axis=2)
        assert away.min() > 24


def test_a_shade_is_moved_as_far_as_colours_go() -> None:
    grey = lab((128, 128, 128))
    assert np.abs(lab(shaded((128, 128, 128), (5, 4, -4))) - grey - [5, 4, -4]).max() < 0.6
    assert shaded((255, 255, 255), (50, 0, 0)) == (255, 255, 255)


def test_the_same_seed_gives_the_same_scenes_in_any_order_and_number() -> None:
    first, second = scenes(4, seed=7, size=(96, 128)), scenes(40, seed=7, size=(96, 128))
    for index in (3, 0, 2):
        a, b = first.sample(index), second.sample(index)
        assert (a.id, a.truth, a.boxes) == (b.id, b.truth, b.boxes)
        assert np.array_equal(picture(first, index), picture(second, index))
    assert not np.array_equal(picture(first, 0), picture(first, 1))
    assert not np.array_equal(picture(first, 0), picture(scenes(1, seed=8, size=(96, 128)), 0))


def test_a_scene_looks_the_same_at_every_size() -> None:
    small, large = (scenes(5, seed=3, size=(128 * k, 160 * k)) for k in (1, 2))
    for index in range(5):
        images = [picture(data, index).astype(float) for data in (small, large)]
        halved = images[1].reshape(128, 2, 160, 2, 3).mean(axis=(1, 3))
        assert np.abs(images[0] - halved).mean() < 7


def test_a_changed_sample_does_not_change_the_dataset() -> None:
    data = scenes(1, size=(96, 96))
    before = picture(data, 0)
    kept = before.copy()
    before[:] = 0
    assert np.array_equal(picture(data, 0), kept)
    again = received(data)
    assert np.array_equal(picture(again, 0), kept)


def test_every_kind_is_there_where_it_goes() -> None:
    data = scenes()
    assert data.counts[:, 1].min() >= 10
    assert set(data.metadata_values("place")) == set(PLACES)
    numbers = data.metadata_values("objects").astype(int)
    assert (numbers.min(), numbers.max()) == (2, 5)
    for index in range(len(data)):
        scene = data.scene(index)
        assert all(scene.place in thing.kind.grounds for thing in scene.things)


def test_the_fingerprint_tells_every_parameter_apart() -> None:
    changes: list[dict[str, Any]] = [{}, {"seed": 1}, {"size": (96, 128)}, {"objects": (1, 3)}]
    prints = [scenes(3, **change).fingerprint for change in changes]
    assert len({*prints, scenes(4).fingerprint}) == len(changes) + 1
    assert scenes(3).fingerprint == prints[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, r"scenes: expected a count of at least 1, got 0"),
        (
            {"size": (64, 128)},
            r"expected size as \(height, width\) of 96 to 1024 pixels, got \(64,",
        ),
        ({"objects": (3, 2)}, r"expected objects as \(least, most\) within 1..8, got \(3, 2\)"),
        ({"objects": (0, 2)}, r"expected objects as \(least, most\) within 1..8, got \(0, 2\)"),
    ],
)
def test_impossible_parameters_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenes(**{"count": 3, **options})
