"""Crop, stretch and rotate: what is kept, what can still be seen, where it then is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.relations.reduction import (
    Crop,
    Rotate,
    Stretch,
    crops,
    largest_rectangle,
    relations,
    rotations,
    stretches,
    visible_shares,
)
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.random_streams import generator

RELATIONS = {relation.name: relation for relation in relations()}
SIDES = st.integers(1, 60)


@st.composite
def reductions(draw: st.DrawFn, height: int, width: int) -> Crop | Stretch | Rotate:
    """Any reduction of an image of this size."""
    kind = draw(st.sampled_from(["crop", "stretch", "rotate"]))
    if kind == "crop":
        left, top = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
        right, bottom = draw(st.integers(left + 1, width)), draw(st.integers(top + 1, height))
        return Crop(left, top, right, bottom)
    if kind == "stretch":
        axis = draw(st.sampled_from([0, 1]))
        length = (height, width)[axis]
        kept = draw(st.integers(int(np.ceil(0.6 * length)), length))
        start = draw(st.integers(0, length - kept))
        return Stretch(axis, start, start + kept)
    return Rotate(draw(st.floats(-30, 30)))


def noise(height: int, width: int, channels: int = 3, seed: int = 0) -> Image:
    shape = (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def blob(height: int, width: int, seed: int = 0) -> Mask:
    """An ellipse somewhere in the frame, never empty."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    cy, cx = rng.integers(height), rng.integers(width)
    reach_y, reach_x = rng.uniform(0.1, 0.4, 2) * (height, width) + 1
    return ((y - cy) / reach_y) ** 2 + ((x - cx) / reach_x) ** 2 <= 1


@settings(max_examples=30)
@given(data=st.data(), height=SIDES, width=SIDES, seed=st.integers(0, 99))
def test_visible_shares_are_those_of_counting_pixels(
    data: st.DataObject, height: int, width: int, seed: int
) -> None:
    masks = [blob(height, width, seed + i) for i in range(3)]
    some = data.draw(st.lists(reductions(height, width), min_size=1, max_size=5))
    shares = visible_shares(masks, some)
    assert shares.shape == (3, len(some))
    for row, mask in zip(shares, masks, strict=True):
        for share, each in zip(row, some, strict=True):
            seen = each.visible(height, width)
            assert seen.shape == (height, width)
            assert share == pytest.approx((mask & seen).sum() / mask.sum())


@given(height=SIDES, width=SIDES, degrees=st.floats(-30, 30))
def test_rotation_shows_no_border_and_all_it_shows_is_called_visible(
    height: int, width: int, degrees: float
) -> None:
    turn = Rotate(degrees)
    white = np.full((height, width, 1), 255, np.uint8)
    after = turn.image(white)
    assert after.shape[:2] == turn.size(height, width)
    assert (after == 255).all()
    # Follow the corners back by plain geometry: they come from between pixel centres.
    kept_height, kept_width = turn.size(height, width)
    x, y = (kept_width - 1) / 2, (kept_height - 1) / 2
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    for sign in (-1, 1):
        assert abs(cos * x - sign * sin * y) <= (width - 1) / 2 + 1e-6
        assert abs(sin * x + sign * cos * y) <= (height - 1) / 2 + 1e-6
    assert turn.visible(height, width).any()


@given(st.floats(1, 100), st.floats(1, 100), st.floats(0.5, 30), st.floats(0.01, 1), st.booleans())
def test_no_upright_rectangle_within_a_turned_one_is_larger(
    width: float, height: float, degrees: float, share: float, tall: bool
) -> None:
    best_width, best_height = largest_rectangle(width, height, degrees)
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))

    def fits(w: float, h: float, slack: float) -> bool:
        return w * cos + h * sin <= width + slack and w * sin + h * cos <= height + slack

    assert fits(best_width, best_height, 1e-6)
    w = share * width  # of this width (or height), the highest (or widest) that fits:
    h = min((width - w * cos) / sin, (height - w * sin) / cos)
    if h > 0 and fits(w, h, 1e-9):
        assert w * h <= best_width * best_height * (1 + 1e-9)


@settings(max_examples=30)
@given(data=st.data(), height=st.integers(8, 60), width=st.integers(8, 60))
def test_masks_and_boxes_go_where_the_image_goes(
    data: st.DataObject, height: int, width: int
) -> None:
    each = data.draw(reductions(height, width))
    mask = blob(height, width, data.draw(st.integers(0, 99)))
    shown = each.image(np.where(mask, 255, 0).astype(np.uint8)[:, :, None])[:, :, 0]
    moved = each.mask(mask)
    assert moved.shape == shown.shape
    # Where bilinear interpolation left no doubt, the mask agrees with it.
    assert moved[shown == 255].all()
    assert not moved[shown == 0].any()
    rows, columns = np.nonzero(mask)
    box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    x1, y1, x2, y2 = each.boxes([box], height, width)[0]
    assert 0 <= x1 <= x2 <= shown.shape[1]
    assert 0 <= y1 <= y2 <= shown.shape[0]
    rows, columns = np.nonzero(moved)
    if len(rows):
        assert x1 <= columns.min() + 0.51
        assert columns.max() + 0.49 <= x2
        assert y1 <= rows.min() + 0.51
        assert rows.max() + 0.49 <= y2


def test_positive_degrees_turn_counter_clockwise() -> None:
    mask = np.zeros((101, 101), bool)
    mask[48:53, 80:85] = True  # right of the centre
    rows, _ = np.nonzero(Rotate(20).mask(mask))
    assert rows.mean() < Rotate(20).size(101, 101)[0] / 2


@pytest.mark.slow
@given(height=st.integers(2, 90), width=st.integers(2, 90), seed=st.integers(0, 99))
def test_candidates_are_feasible_distinct_and_never_the_whole_image(
    height: int, width: int, seed: int
) -> None:
    rng = generator(seed, "test")
    result: list[Any] = [*crops(height, width, rng, larger_than=0.1 * height * width)]
    result += [*stretches(height, width, rng), *rotations()]
    assert len(set(result)) == len(result) <= 4500
    for each in result:
        if isinstance(each, Rotate):
            assert each.degrees != 0
            continue
        x1, y1, x2, y2 = each.rectangle(height, width)
        assert (x2 - x1) * (y2 - y1) < height * width
        if isinstance(each, Crop):
            assert (x2 - x1) * (y2 - y1) > 0.1 * height * width


@pytest.mark.parametrize(
    ("reduction", "message"),
    [
        (Crop(0, 0, 31, 10), r"crop: expected a box within 30 x 20 pixels, got \(0, 0, 31, 10\)"),
        (Crop(5, 5, 5, 10), r"crop: expected a box within"),
        (Stretch(1, 0, 17), r"stretch: .* within 0..30 that keeps at least 0.6 of it, got 0..17"),
    ],
)
def test_impossible_reductions_are_named(reduction: Crop | Stretch, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reduction.visible(20, 30)


@pytest.mark.parametrize("name", RELATIONS)
@pytest.mark.parametrize("severity", [1, 5])
def test_relations_expect_masks_where_they_put_the_image(name: str, severity: int) -> None:
    mask = blob(60, 80, 3)
    image = np.where(mask, 255, 0).astype(np.uint8)[:, :, None]
    relation = RELATIONS[name]
    made = relation.apply(Sample("s", image, {}, masks={"a": mask}), severity, generator(0, "t"))
    assert made.image is not None
    expected = relation.expect_mask(mask, made)
    assert expected.shape == mask.shape
    assert (expected != (made.image[:, :, 0] > 127)).mean() < 0.02
    assert np.array_equal(made.details["visible"], made.details["reduction"].visible(60, 80))


@pytest.mark.parametrize(
    ("name", "kept"), [("reduction/crop", (0.9, 0.5)), ("reduction/stretch", (0.92, 0.6))]
)
def test_severities_keep_the_share_they_say(name: str, kept: tuple[float, float]) -> None:
    sample = Sample("s", noise(100, 150), {})
    for severity, share in zip((1, 5), kept, strict=True):
        made = RELATIONS[name].apply(sample, severity, generator(1, "t"))
        assert made.details["visible"].mean() == pytest.approx(share, abs=0.01)


def test_relations_keep_what_is_masked_in_view_if_they_can() -> None:
    mask = np.zeros((64, 64), bool)
    mask[2:12, 2:12] = True  # most crops to half the area would miss a part of it
    shares = []
    for seed in range(20):
        sample = Sample("s", noise(64, 64), {}, masks={"a": mask})
        made = RELATIONS["reduction/crop"].apply(sample, 5, generator(seed, "t"))
        shares.append((mask & made.details["visible"]).sum() / mask.sum())
    assert np.mean(shares) > 0.7
