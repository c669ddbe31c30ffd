"""Drawn scenes: they depend on the seed alone, and what is said to be there is to be seen."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.experiments.reic.drawn_scenes import Scenes, scenes
from adaptive_vtt.types import Image


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


def test_the_same_seed_gives_the_same_scenes_in_any_order_and_number() -> None:
    first, second = scenes(4, seed=7, size=(96, 128)), scenes(40, seed=7, size=(96, 128))
    for index in (3, 0, 2):
        a, b = first.sample(index), second.sample(index)
        assert (a.id, a.truth, a.boxes) == (b.id, b.truth, b.boxes)
        assert np.array_equal(picture(first, index), picture(second, index))
    assert not np.array_equal(picture(first, 0), picture(first, 1))
    assert not np.array_equal(picture(first, 0), picture(scenes(1, seed=8, size=(96, 128)), 0))
