"""Visual prompts: drawn around what the masks mark, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.relations import FollowUp, Relation
from adaptive_vtt.relations.visual_prompts import COLOURS, draw_box, regions, relations
from adaptive_vtt.types import Image, Mask, Sample
from adaptive_vtt.utils.random_streams import generator

RELATIONS = {relation.name: relation for relation in relations()}
DRAWN = [name for name in RELATIONS if name != "prompt/coordinates"]


def grey(height: int = 120, width: int = 160, channels: int = 3) -> Image:
    return np.full((height, width, channels), 90, np.uint8)


def marked(*boxes: tuple[int, int, int, int], shape: tuple[int, int] = (120, 160)) -> Mask:
    mask = np.zeros(shape, bool)
    for x1, y1, x2, y2 in boxes:
        mask[y1:y2, x1:x2] = True
    return mask


def apply(relation: Relation, image: Image, masks: dict[str, Mask]) -> FollowUp:
    return relation.apply(Sample("s", image, {}, masks=masks), 1, generator(0, "test"))


def changed(before: Image, made: FollowUp) -> Mask:
    assert made.image is not None
    return (made.image != before).any(axis=2)


@given(
    st.integers(0, 100),
    st.integers(0, 80),
    st.integers(2, 60),
    st.integers(2, 40),
    st.sampled_from(list(COLOURS)),
    st.sampled_from([1, 3]),
)
def test_a_box_is_a_closed_frame_close_around_what_it_marks(
    x: int, y: int, width: int, height: int, colour: str, channels: int
) -> None:
    image = grey(channels=channels)
    draw_box(image, (x, y, x + width, y + height), colour)
    drawn = (image != 90).any(axis=2)
    inner = marked((x + 1, y + 1, x + width - 1, y + height - 1))
    assert drawn.any()
    assert not (drawn & inner).any()
    assert not (
        drawn & ~marked((max(x - 1, 0), max(y - 1, 0), x + width + 1, y + height + 1))
    ).any()
    rows, columns = np.nonzero(drawn)
    ring = drawn[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    assert ring[0].all()
    assert ring[-1].all()
    assert ring[:, 0].all()
    assert ring[:, -1].all()


def test_regions_are_connected_pieces_largest_first_with_letters_and_colours() -> None:
    masks = {
        "polyp": marked((5, 5, 25, 25), (60, 60, 100, 100)),
        "blood": marked((110, 5, 140, 35)),
    }
    result = regions(masks)
    assert [(r.concept, r.box, r.letter) for r in result] == [
        ("polyp", (60, 60, 100, 100), "A"),
        ("blood", (110, 5, 140, 35), "B"),
        ("polyp", (5, 5, 25, 25), "C"),
    ]
    assert len({r.colour for r in result}) == 3
    assert np.array_equal(result[0].mask | result[2].mask, masks["polyp"])


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_marked_stays_as_it_was(name: str, channels: int) -> None:
    masks = {"polyp": marked((30, 40, 70, 90)), "blood": marked((110, 60, 140, 90))}
    before = grey(channels=channels)
    made = apply(RELATIONS[name], before, masks)
    drawn = changed(before, made)
    assert drawn.any()
    assert not (drawn & (masks["polyp"] | masks["blood"])).any()
    assert drawn.mean() < 0.1


@pytest.mark.parametrize("kind", ["box", "contour"])
def test_several_marks_all_regions_and_one_only_the_largest(kind: str) -> None:
    masks = {"polyp": marked((20, 40, 60, 90), (110, 60, 140, 90))}
    one = apply(RELATIONS[f"prompt/{kind}"], grey(), masks)
    many = apply(RELATIONS[f"prompt/multi-{kind}"], grey(), masks)
    assert not changed(grey(), one)[:, 90:].any()
    assert changed(grey(), many)[:, 90:].any()
    assert [r.letter for r in one.details["regions"]] == ["A"]
    assert [r.letter for r in many.details["regions"]] == ["A", "B"]
    assert changed(grey(), many).sum() > changed(grey(), one).sum() + 50  # letters


def test_coordinates_are_told_and_not_drawn() -> None:
    made = apply(RELATIONS["prompt/coordinates"], grey(), {"polyp": marked((30, 40, 70, 90))})
    assert made.details["coordinates"] == "[30, 40, 70, 90]"
    assert not changed(grey(), made).any()
