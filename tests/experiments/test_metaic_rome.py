"""MetaIC and ROME: what they do to a picture, and which captions break their rules."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.experiments.reic.metaic_rome import (
    OVERLAPS,
    ROME,
    MetaIC,
    annotated,
    cut_outs,
    mean_area,
    sizes,
)
from adaptive_vtt.testing.contracts import RelationContract
from adaptive_vtt.types import Box, Image, Sample
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.annotated import coco
from tests.helpers.audits import counted
from tests.helpers.pasted import CAT, DOG, HEIGHT, METAIC, WIDTH, inside, noise, sample


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    left, top = draw(st.floats(0, WIDTH - 2)), draw(st.floats(0, HEIGHT - 2))
    right = draw(st.floats(left + 1, WIDTH + 5))
    bottom = draw(st.floats(top + 1, HEIGHT + 5))
    return Box(draw(st.sampled_from(["dog", "cat", "kite", ""])), left, top, right, bottom)


# -- MetaIC: insertion ---------------------------------------------------------------------


@given(there=st.lists(boxes(), max_size=4), severity=st.integers(1, 4), seed=st.integers(0, 9))
@settings(max_examples=15)
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
    result = cut_outs(Boxed(), per_kind=2)  # type: ignore[arg-type]
    assert [(c.label, int(c.image[0, 0, 0])) for c in result] == [
        ("dog", 0),
        ("cat", 0),
        ("dog", 1),
        ("cat", 1),
    ]
    dog, cat = result[:2]
    assert dog.alpha.tolist() == [[1.0] * 5 + [0.0] * 5] * 10
    assert cat.alpha.shape == (14, 15)  # whole pixels
    assert cat.alpha.all()


# -- ROME: removal -------------------------------------------------------------------------


@given(there=st.lists(boxes(), max_size=5), severity=st.integers(1, 3))
@settings(max_examples=20)
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
    assert counted(space, relation="metaic") == 2 * 4
    assert counted(space, relation="rome") == 2 * 3
