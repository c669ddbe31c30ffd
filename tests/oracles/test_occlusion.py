"""Occlusion: what is covered is gone, and nothing else changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.localising import (
    MARGIN,
    VERSIONS,
    by_occlusion,
    grown,
    innermost,
    inpainted,
    occluded,
    pixels,
)
from adaptive_vtt.oracles.captions.sameness import Literal
from adaptive_vtt.types import Box, Image

IMAGES = arrays(
    np.uint8, st.tuples(st.integers(1, 14), st.integers(1, 14), st.sampled_from([1, 3]))
)
SIDES = st.floats(-6, 20, width=32)
BOXES = st.builds(
    lambda x, y, w, h: Box("", x, y, x + w, y + h),
    SIDES,
    SIDES,
    st.floats(0.5, 16),
    st.floats(0.5, 16),
)
every_version = pytest.mark.parametrize("version", VERSIONS)


@every_version
@given(image=IMAGES, box=BOXES)
@settings(max_examples=25)
def test_only_what_is_in_the_box_changes(version: str, image: Image, box: Box) -> None:
    before = image.copy()
    covered = occluded(image, box, version)
    assert np.array_equal(image, before)
    assert not np.shares_memory(covered, image)
    assert (covered.shape, covered.dtype) == (image.shape, np.uint8)
    reached = grown(box, MARGIN) if version == "inpaint" else box
    left, top, right, bottom = pixels(reached, *image.shape[:2])
    outside = np.ones(image.shape[:2], bool)
    outside[top:bottom, left:right] = False
    assert np.array_equal(covered[outside], image[outside])
    if version == "black":
        assert not covered[~outside].any()


@every_version
def test_a_thing_cannot_be_made_out(version: str) -> None:
    """Stripes of full contrast, eight to the side, on grey."""
    image = np.full((80, 100, 3), 128, np.uint8)
    image[20:60, 20:60] = np.where(np.arange(40) // 5 % 2, 255, 0)[:, None]
    covered = occluded(image, Box("", 20, 20, 60, 60), version)[20:60, 20:60]
    down = covered[:, 20, 0].astype(float)
    eighth = np.abs(np.fft.rfft(down - down.mean()))[4] / 20
    assert eighth < 0.01 * 162  # the stripes' own amplitude


def test_inpainting_goes_on_with_what_is_outside() -> None:
    across = np.linspace(20, 220, 90).astype(np.uint8)
    image = np.repeat(across[None, :, None], 60, axis=0)
    broken = image.copy()
    broken[20:40, 40:55] = 255
    filled = inpainted(broken, Box("", 40, 20, 55, 40))
    assert np.abs(filled.astype(int) - image).max() < 25


def test_versions_and_blurs_that_are_none_are_refused() -> None:
    image, box = np.zeros((4, 6, 3), np.uint8), Box("", 0, 0, 2, 2)
    with pytest.raises(InputError, match=r"occlusion: unknown version 'blurr'.*mean 'blur'"):
        occluded(image, box, "blurr")
    with pytest.raises(InputError, match="expected a blur above 0, got 0"):
        occluded(image, box, "blur", blur=0)


# -- Algorithm 1 ---------------------------------------------------------------------------


def test_a_box_is_the_objects_only_if_all_three_captions_leave_it_out() -> None:
    table = np.array(np.unravel_index(np.arange(8), (2, 2, 2))).T  # box x version: left out?
    boxes = [Box("", 20 * k, 0, 20 * k + 9, 9) for k in range(8)]
    hidden = {k: () if absent else ("dog",) for k, absent in enumerate(table.ravel())}
    assert by_occlusion("dog", boxes, hidden, Literal()).boxes == (boxes[7],)
    del hidden[23]  # one caption is not there
    assert by_occlusion("dog", boxes, hidden, Literal()).boxes == ()


def within(inner: Box, outer: Box) -> bool:
    return (
        outer.left <= inner.left <= inner.right <= outer.right
        and outer.top <= inner.top <= inner.bottom <= outer.bottom
    )


@settings(max_examples=40)
@given(corners=st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=7))
def test_innermost_boxes_hold_no_other_and_every_box_holds_one(corners: Any) -> None:
    boxes = [Box(str(k), x, y, x + w + 1, y + h + 1) for k, (x, y, w, h) in enumerate(corners)]
    kept = innermost(boxes)
    assert [box for box in boxes if box in kept] == list(kept)
    for box in kept:
        assert not any(within(other, box) for other in kept if other is not box)
    for box in boxes:
        assert any(within(inner, box) for inner in kept)
