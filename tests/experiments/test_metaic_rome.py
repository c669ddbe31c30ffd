"""MetaIC and ROME: what they do to a picture, and which captions break their rules."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.metaic_rome import (
    OVERLAPS,
    ROME,
    CutOut,
    MetaIC,
    annotated,
    cut_outs,
    mean_area,
    overlaps,
    paste,
    sizes,
)
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.testing.contracts import RelationContract
from adaptive_vtt.types import Box, Image, Sample
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.annotated import coco
from tests.helpers.pasted import CAT, DOG, HEIGHT, KITE, METAIC, WIDTH, inside, noise, sample


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    left, top = draw(st.floats(0, WIDTH - 2)), draw(st.floats(0, HEIGHT - 2))
    right = draw(st.floats(left + 1, WIDTH + 5))
    bottom = draw(st.floats(top + 1, HEIGHT + 5))
    return Box(draw(st.sampled_from(["dog", "cat", "kite", ""])), left, top, right, bottom)


# -- MetaIC: insertion ---------------------------------------------------------------------


def test_mean_area_weighs_large_objects_more() -> None:
    # shares .2 and .6: (.2 e^.2 + .6 e^.6) / (e^.2 + e^.6) = 1.337552 / 3.043522 = .439475
    two = [Box("", 0, 0, 10, 20), Box("", 0, 0, 20, 30)]
    assert mean_area(two, 1000) / 1000 == pytest.approx(0.439475, abs=1e-6)
    assert sizes(two, 1000) == pytest.approx((43.9475, 162.6057), abs=1e-3)  # .1 and .37 of it
    assert sizes(two[:1], 1000) == pytest.approx((160, 260))  # .8 and 1.3 of 200: uncrowded


def test_overlap_is_the_largest_share_of_a_box_that_is_covered() -> None:
    # 10 x 10 at (20, 40) covers 5 x 10 of the dog's 20 x 20; at (60, 40) 9.5 x 10 of 24 x 31.8
    found = overlaps([DOG, CAT], np.array([20, 60]), np.array([40]), 10, 10)
    assert found == pytest.approx(np.array([[50 / 400, 95 / 763.2]]))


@given(there=st.lists(boxes(), max_size=4), severity=st.integers(1, 4), seed=st.integers(0, 9))
@settings(max_examples=150)
def test_insertions_keep_to_their_band_and_size_or_say_why_not(
    there: list[Box], severity: int, seed: int
) -> None:
    source = sample(*there)
    assert source.image is not None
    before = source.image.copy()
    made = METAIC.apply(source, severity, generator(seed, "test"))
    assert np.array_equal(source.image, before)
    assert made.image is not None
    assert not np.shares_memory(made.image, before)
    known = annotated(source)
    if "not eligible" in made.details:
        assert set(made.details) == {"not eligible"}
        assert np.array_equal(made.image, before)
        return
    box: Box = made.details["box"]
    assert mean_area(known, HEIGHT * WIDTH) <= 0.7 * HEIGHT * WIDTH
    least, most = sizes(known, HEIGHT * WIDTH)
    assert least <= box.area <= most
    assert 0 <= box.left < box.right <= WIDTH
    assert 0 <= box.top < box.bottom <= HEIGHT
    new = inside(box)
    covered = [new[inside(b)].sum() / b.area for b in known]
    assert max(covered) == pytest.approx(made.details["overlap"])
    above, most_overlap = OVERLAPS[severity - 1]
    assert above < max(covered) <= most_overlap
    assert box.label == made.details["inserted"] not in {b.label for b in known}
    assert np.array_equal(made.image[~new], before[~new])
    again = METAIC.apply(source, severity, generator(seed, "test"))
    assert np.array_equal(again.image, made.image)


@pytest.mark.parametrize("severity", METAIC.severities)
def test_two_objects_leave_room_at_every_overlap(severity: int) -> None:
    seen = [METAIC.apply(sample(DOG, CAT), severity, generator(n, "test")) for n in range(10)]
    assert {"kite", "sports ball"} == {made.details.get("inserted") for made in seen}


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ((), "no annotated object"),
        ((Box("dog", 0, 0, WIDTH, 43),), "objects take up 72% of the picture"),
        ((Box("kite", 0, 0, 9, 9), replace(DOG, label="sports ball")), "every kind of cut-out"),
        ((replace(DOG, left=0, right=WIDTH, top=19, bottom=41),), "no place found at overlap 1"),
    ],
)
def test_a_picture_that_cannot_take_an_object_says_why(there: tuple[Box, ...], reason: str) -> None:
    made = METAIC.apply(sample(*there), 1, generator(0, "test"))
    assert reason in made.details["not eligible"]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_cut_out_is_pasted_in_its_colours_and_fades_at_its_edge(channels: int) -> None:
    image = np.full((HEIGHT, WIDTH, channels), 50, np.uint8)
    after = paste(image, KITE, Box("kite", 10, 20, 40, 50))
    assert after.shape == image.shape
    assert (after[35, 25] == 250).all()  # the middle
    assert (after[20, 10] == 50).all()  # a corner, where the disc is transparent
    edge = after[35, 10:13, 0]
    assert 50 < edge[0] < edge[1] < 250


def test_metaic_needs_cut_outs_and_a_severity_that_exists() -> None:
    with pytest.raises(InputError, match=r"metaic: expected at least one cut-out, got none"):
        MetaIC(())
    with pytest.raises(InputError, match=r"metaic: expected a severity in \[1, 2, 3, 4\], got 5"):
        METAIC.apply(sample(DOG), 5, generator(0, "test"))
    assert METAIC.apply(Sample("s", None, {}), 1, generator(0, "test")).image is None
    assert METAIC.applies("caption")
    assert not METAIC.applies("dog")


# -- cut-outs of a dataset -----------------------------------------------------------------


class Boxed:
    """Three pictures of 30 x 30, each with a masked dog, an unmasked cat, and what is no use:
    a tiny bird, a horse that is cut off, a cow and a sheep that overlap."""

    name = "boxed"

    def __len__(self) -> int:
        return 3

    def sample(self, index: int) -> Sample:
        mask = np.zeros((30, 30), bool)
        mask[2:12, 3:8] = True
        things = (
            Box("dog", 3, 2, 13, 12),
            Box("cat", 14, 14.5, 29, 28),
            Box("bird", 15, 1, 18, 4),
            Box("horse", 20, 2, 40, 12),
            Box("cow", 1, 14, 10, 24),
            Box("sheep", 3, 16, 13, 27),
        )
        image = np.full((30, 30, 1), index, np.uint8)
        return Sample(str(index), image, {}, masks={"dog": mask}, boxes=things)


def test_cut_outs_are_taken_in_order_so_many_of_a_kind_as_masked() -> None:
    found = cut_outs(Boxed(), per_kind=2)  # type: ignore[arg-type]
    assert [(c.label, int(c.image[0, 0, 0])) for c in found] == [
        ("dog", 0),
        ("cat", 0),
        ("dog", 1),
        ("cat", 1),
    ]
    dog, cat = found[:2]
    assert dog.alpha.tolist() == [[1.0] * 5 + [0.0] * 5] * 10
    assert cat.alpha.shape == (14, 15)  # whole pixels
    assert cat.alpha.all()


def test_masks_stand_in_for_boxes_where_there_are_none() -> None:
    source = replace(Boxed().sample(0), boxes=())
    assert annotated(source) == (Box("dog", 3, 2, 8, 12),)


def test_datasets_without_objects_and_cut_outs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match=r"alone, 8 x 8 pixels at least, found none in 2 samples"):
        cut_outs(tiny_dataset(2, 1))
    with pytest.raises(InputError, match=r"cut-out 'dog': expected an image H x W x 3 and its"):
        CutOut("dog", np.zeros((4, 4, 3), np.uint8), np.ones((4, 5), np.float32))


# -- ROME: removal -------------------------------------------------------------------------


@given(there=st.lists(boxes(), max_size=5), severity=st.integers(1, 3))
@settings(max_examples=40)
def test_removals_touch_one_object_that_is_not_the_largest(there: list[Box], severity: int) -> None:
    source = sample(*there)
    assert source.image is not None
    before, known = source.image.copy(), annotated(source)
    made = ROME().apply(source, severity, generator(0, "test"))
    assert np.array_equal(source.image, before)
    assert made.image is not None
    assert not np.shares_memory(made.image, before)
    assert ("not eligible" in made.details) or severity < len(known)
    if "not eligible" in made.details:
        assert np.array_equal(made.image, before)
        return
    (box,) = made.details["boxes"]
    assert made.details["removed"] == (box.label,)
    assert box in known
    assert sum(other.area >= box.area for other in known) > 1  # itself, and a larger one
    around = replace(box, left=max(0, box.left - 1), top=max(0, box.top - 1))
    near = inside(replace(around, right=box.right + 1, bottom=box.bottom + 1))
    assert np.array_equal(made.image[~near], before[~near])


def test_severities_remove_different_objects_in_an_order_that_hangs_on_the_seed() -> None:
    things = [Box(name, 20 * k, 10, 20 * k + 10, 20) for k, name in enumerate("abc")]
    source = sample(*things, Box("largest", 0, 30, 70, 60))

    def order(seed: int) -> tuple[str, ...]:
        rng = generator(0, "test")
        made = [ROME(seed=seed).apply(source, k, rng).details["removed"] for k in (1, 2, 3)]
        return tuple(name for (name,) in made)

    orders = {order(seed) for seed in range(20)}
    assert {tuple(sorted(each)) for each in orders} == {("a", "b", "c")}
    assert len(orders) > 3  # 20 draws of 6 orders: three or fewer once in 10,000 seeds


def test_objects_are_melted_one_out_of_the_picture_that_the_last_melting_left() -> None:
    things = [Box(name, 20 * k, 10, 20 * k + 10, 20) for k, name in enumerate("abc")]
    source, seen = sample(*things, Box("largest", 0, 30, 70, 60)), list[Image]()

    def fill(image: Image, box: Box) -> Image:
        seen.append(image)
        return np.zeros_like(image)

    plain, deep = ROME(fill), ROME(fill, depth=3)
    assert (plain.severities, deep.severities) == ((1, 2, 3), (1, 2, 3, 4, 5, 6, 7))
    rng, removed = generator(0, "test"), dict[int, tuple[str, ...]]()
    for severity in deep.severities:
        made = deep.apply(source, severity, rng)
        removed[severity] = made.details["removed"]
        assert made.image is not None
        gone = np.logical_or.reduce([inside(box) for box in made.details["boxes"]])
        assert not made.image[gone].any()
        assert np.array_equal(made.image[~gone], noise()[~gone])
    one, two, three = (removed[k][0] for k in (1, 2, 3))
    assert [removed[k] for k in (4, 5, 6)] == [(one, two), (one, three), (two, three)]
    assert removed[7] == (one, two, three)
    for severity in plain.severities:
        first, again = (each.apply(source, severity, rng) for each in (plain, deep))
        assert first.details == again.details
    del seen[:]
    deep.apply(source, 7, rng)
    assert [int((image == 0).all(axis=2).sum()) // 100 for image in seen] == [0, 1, 2]


@pytest.mark.parametrize("channels", [1, 3])
def test_an_object_on_a_plain_ground_is_gone_without_a_trace(channels: int) -> None:
    image = np.full((HEIGHT, WIDTH, channels), 90, np.uint8)
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[32:48, 8:20] = True
    image[mask] = 220
    image[20:52, 46:69] = 30
    made = ROME().apply(sample(DOG, CAT, image=image, dog=mask), 1, generator(0, "test"))
    assert made.details["removed"] == ("dog",)
    assert made.image is not None
    assert np.abs(made.image[:, :40].astype(int) - 90).max() <= 3  # Telea's own ripple: 2
    assert np.array_equal(made.image[:, 40:], image[:, 40:])


def test_a_filler_is_given_the_box_and_changes_nothing_else() -> None:
    asked: list[Box] = []

    def fill(image: Image, box: Box) -> Image:
        asked.append(box)
        return np.zeros_like(image)

    made = ROME(fill).apply(sample(DOG, CAT), 1, generator(0, "test"))
    (box,) = asked
    assert (box.left, box.top, box.right, box.bottom) == (5, 30, 25, 50)  # a margin of 1 pixel: 0
    assert made.image is not None
    assert not made.image[inside(box)].any()
    assert np.array_equal(made.image[~inside(box)], noise()[~inside(box)])


def test_rome_without_an_object_to_spare_says_so() -> None:
    made = ROME().apply(sample(DOG), 1, generator(0, "test"))
    assert made.details == {"not eligible": "only 0 annotated objects besides the largest"}
    all_over = Box("sky", 0, 0, WIDTH, HEIGHT)
    made = ROME().apply(sample(all_over, all_over), 1, generator(0, "test"))
    assert made.details == {"not eligible": "the object fills the picture"}
    with pytest.raises(InputError, match=r"rome: choices: expected .* at least 1, got 0"):
        ROME(choices=0)
    with pytest.raises(InputError, match=r"rome: expected a depth of 1 to 3 \(choices\), got 4"):
        ROME(depth=4)
    made = ROME(depth=2).apply(sample(DOG, CAT), 4, generator(0, "test"))
    assert made.details == {"not eligible": "only 1 annotated objects besides the largest"}
    assert "depth" not in ROME().fingerprint
    assert ROME(depth=2).fingerprint == f"{ROME().fingerprint}, depth 2"
    with pytest.raises(InputError, match=r"rome: expected a severity in \[1, 2\], got 3"):
        ROME(choices=2).apply(sample(DOG), 3, generator(0, "test"))
    assert ROME().apply(Sample("s", None, {}), 1, generator(0, "test")).image is None


@pytest.mark.parametrize("method", ["metaic", "rome"])
class TestContract(RelationContract):
    shapes = ((28, 28, 1), (64, 48, 3))

    @pytest.fixture(autouse=True)
    def chosen(self, method: str) -> None:
        self.method = method

    def make(self) -> MetaIC | ROME:
        return METAIC if self.method == "metaic" else ROME(choices=1)


def test_a_spec_names_both_as_plug_ins(tmp_path: Path) -> None:
    coco(tmp_path)
    room = "adaptive_vtt.experiments.reic"
    dataset = {"kind": "coco", "labels": "instances.json", "images": "images"}
    (tmp_path / "objects.toml").write_text(
        "[dataset]\n" + "".join(f'{name} = "{value}"\n' for name, value in dataset.items())
    )
    table = {
        "dataset": dataset,
        "space": {
            "relations": [f"{room}.metaic_rome:metaic", f"{room}.metaic_rome:ROME"],
            "options": {
                f"{room}.metaic_rome:metaic": {"dataset": "objects.toml"},
                f"{room}.metaic_rome:ROME": {"choices": 2, "depth": 2},
            },
        },
        "oracle": {"kind": f"{room}.caption_classes:other_words"},
        "model": {"kind": "python", "target": "model.py:Captioner"},
    }
    space = build_space(parse_spec(table, "SPEC.toml"), tmp_path)
    assert space.concepts == ("caption",)
    assert space.count(relation="metaic") == 2 * 4
    assert space.count(relation="rome") == 2 * 3
