"""The endoscopy phantom: its frames depend on the seed alone and its truth holds in each."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.medtest.phantoms import Phantom
from adaptive_vtt.types import Image


def picture(data: Phantom, index: int) -> Image:
    image = data.sample(index).image
    assert image is not None
    return image


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_boxes_and_positions_agree_with_the_masks(seed: int) -> None:
    data = phantoms.frames(1, size=96, seed=seed, polyps="always")
    drawing = data.drawing(0)
    for polyp, mask, box in zip(data.scene(0).polyps, drawing.polyps, drawing.boxes, strict=True):
        x1, y1, x2, y2 = box
        inside = np.zeros_like(mask)
        inside[y1:y2, x1:x2] = True
        assert not (mask & ~inside).any()
        for edge in (mask[y1, :], mask[y2 - 1, :], mask[:, x1], mask[:, x2 - 1]):
            assert edge.any()
        assert mask[int(polyp.y * 96), int(polyp.x * 96)]


def test_same_seed_same_frames_in_any_order_and_number() -> None:
    first, second = phantoms.frames(4, size=64, seed=7), phantoms.frames(50, size=64, seed=7)
    for index in (3, 0, 2):
        a, b = first.sample(index), second.sample(index)
        assert a.id == b.id
        assert a.truth == b.truth
        assert np.array_equal(picture(first, index), picture(second, index))
        assert all(np.array_equal(a.masks[c], b.masks[c]) for c in a.masks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, r"phantom: expected a count of at least 1, got 0"),
        ({"size": 32}, r"phantom: expected a size of 64 to 1024 pixels, got 32"),
        ({"blood": 1.5}, r"phantom: expected blood as a share in 0..1, got 1.5"),
        ({"polyps": "often"}, r"phantom: expected polyps as a share in 0..1, got 'often'"),
        ({"preparation": (1, 1, 0, 0)}, r"preparation as four shares that sum to 1"),
    ],
)
def test_impossible_parameters_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        phantoms.frames(**{"count": 3, **options})
