"""The endoscopy phantom: its frames depend on the seed alone and its truth holds in each."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.medtest.phantom_drawing import draw
from adaptive_vtt.experiments.medtest.phantom_scene import COLOURS, FRAMES, PARIS, Polyp
from adaptive_vtt.experiments.medtest.phantoms import CONCEPTS, Phantom
from adaptive_vtt.types import Image
from tests.helpers.workers import received


def picture(data: Phantom, index: int) -> Image:
    image = data.sample(index).image
    assert image is not None
    return image


CROWDED: dict[str, Any] = {
    "polyps": "always",
    "instrument": 1.0,
    "blood": 1.0,
    "text": 1.0,
    "preparation": (0.4, 0.3, 0.3, 0.0),
}


@pytest.mark.slow
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), size=st.integers(64, 160), crowded=st.booleans())
def test_what_is_said_to_be_there_is_seen(seed: int, size: int, crowded: bool) -> None:
    data = phantoms.frames(2, size=size, seed=seed, **(CROWDED if crowded else {}))
    sample, scene = data.sample(1), data.scene(1)
    assert sample.image is not None
    assert sample.image.shape == (size, size, 3)
    assert sample.image.dtype == np.uint8
    assert sample.image.flags.c_contiguous
    for concept, mask in sample.masks.items():
        assert mask.shape == (size, size)
        assert mask.dtype == np.bool_
        assert mask.any() == sample.truth[concept], concept
    masks = data.polyp_masks(1)
    assert len(masks) == len(data.boxes(1)) == len(scene.polyps) == sample.metadata["polyps"]
    assert all(mask.any() for mask in masks)
    union = np.logical_or.reduce([np.zeros((size, size), bool), *masks])
    assert np.array_equal(union, sample.masks["polyp"])


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_boxes_and_positions_agree_with_the_masks(seed: int) -> None:
    data = phantoms.frames(1, size=96, seed=seed, polyps="always")
    for polyp, mask, box in zip(
        data.scene(0).polyps, data.polyp_masks(0), data.boxes(0), strict=True
    ):
        x1, y1, x2, y2 = box
        inside = np.zeros_like(mask)
        inside[y1:y2, x1:x2] = True
        assert not (mask & ~inside).any()
        for edge in (mask[y1, :], mask[y2 - 1, :], mask[:, x1], mask[:, x2 - 1]):
            assert edge.any()
        assert mask[int(polyp.y * 96), int(polyp.x * 96)]


def test_nothing_lies_in_the_black_frame() -> None:
    data = phantoms.frames(12, size=96, seed=4, **CROWDED)
    for index in range(12):
        sample = data.sample(index)
        assert sample.image is not None
        bare = draw(replace(data.scene(index), text=()), 96)
        black = (bare.image == 0).all(axis=2)
        assert black.mean() > 0.02
        for concept in ("polyp", "instrument", "stool", "blood"):
            assert not (sample.masks[concept] & black).any(), concept


def test_same_seed_same_frames_in_any_order_and_number() -> None:
    first, second = phantoms.frames(4, size=64, seed=7), phantoms.frames(50, size=64, seed=7)
    for index in (3, 0, 2):
        a, b = first.sample(index), second.sample(index)
        assert a.id == b.id
        assert a.truth == b.truth
        assert np.array_equal(picture(first, index), picture(second, index))
        assert all(np.array_equal(a.masks[c], b.masks[c]) for c in a.masks)


def test_other_seeds_and_other_indices_give_other_frames() -> None:
    images = [picture(phantoms.frames(2, size=64, seed=seed), i) for seed in (1, 2) for i in (0, 1)]
    assert len({image.tobytes() for image in images}) == 4


def test_a_changed_sample_does_not_change_the_dataset() -> None:
    data = phantoms.frames(1, size=64)
    before = picture(data, 0)
    kept = before.copy()
    before[:] = 0
    assert np.array_equal(picture(data, 0), kept)


def test_frames_not_kept_are_drawn_again_the_same() -> None:
    data = phantoms.frames(40, size=64)
    first = picture(data, 0)
    for index in range(1, 40):
        data.sample(index)
    assert np.array_equal(picture(data, 0), first)


def test_truth_counts_and_metadata_need_no_drawing() -> None:
    data = phantoms.frames(400, seed=2)
    assert data.concepts == CONCEPTS
    assert data.counts.sum() == 400 * len(CONCEPTS)
    assert {bool(v) for v in data.metadata_values("synthetic")} == {True}
    assert set(data.metadata_values("preparation")) == {0, 1, 2, 3}
    assert set(data.metadata_values("frame")) == set(FRAMES)
    assert set(data.metadata_values("polyps")) >= {0, 1, 2, 3}
    assert set(data.metadata_values("polyp_type")) == {"none", *PARIS}
    assert set(data.metadata_values("polyp_colour")) == {"none", *COLOURS}
    poor = data.truth(np.arange(400), np.full(400, CONCEPTS.index("poor preparation")))
    assert np.array_equal(poor == 1, data.metadata_values("preparation").astype(int) < 2)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "expected"), [("always", 1.0), (0.0, 0.0), (0.8, 0.8)])
def test_prevalence_of_polyps_is_as_asked(share: Any, expected: float) -> None:
    data = phantoms.frames(500, polyps=share)
    assert data.counts[0, 1] / 500 == pytest.approx(expected, abs=0.06)


def test_the_fingerprint_tells_every_parameter_apart() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"size": 128},
        {"seed": 1},
        {"polyps": 0.6},
        {"instrument": 0.3},
        {"blood": 0.2},
        {"text": 0.4},
        {"preparation": (0.2, 0.2, 0.2, 0.4)},
    ]
    prints = [phantoms.frames(3, **change).fingerprint for change in changes]
    assert len({*prints, phantoms.frames(4).fingerprint}) == len(changes) + 1
    assert phantoms.frames(3).fingerprint == prints[0]


def test_only_the_concepts_that_are_named_are_asked_about() -> None:
    every = phantoms.frames(3, size=64, **CROWDED)
    chosen = phantoms.frames(3, size=64, concepts=["text", "polyp"], **CROWDED)
    assert chosen.concepts == ("text", "polyp")
    for index in range(3):
        whole, part = every.sample(index), chosen.sample(index)
        assert np.array_equal(picture(every, index), picture(chosen, index))
        assert part.truth == {c: whole.truth[c] for c in ("text", "polyp")}
        assert part.masks.keys() == {"text", "polyp"}
    other = phantoms.frames(3, size=64, concepts=["polyp", "text"], **CROWDED)
    assert len({every.fingerprint, chosen.fingerprint, other.fingerprint}) == 3


@pytest.mark.parametrize(
    ("concepts", "message"),
    [
        (["polyps"], r"phantom: unknown concept 'polyps'.*did you mean 'polyp'"),
        (["polyp", "polyp"], r"phantom: expected one or more concepts, each once, got \['polyp', "),
        ([], r"phantom: expected one or more concepts, each once, got \[\]"),
    ],
)
def test_concepts_that_are_none_are_named(concepts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        phantoms.frames(1, concepts=concepts)


def test_polyps_stand_out_more_when_they_contrast_more() -> None:
    data = phantoms.frames(20, size=96, seed=9, polyps="always", instrument=0, blood=0)

    def seen(contrast: float) -> float:
        differences = []
        for index in range(20):
            scene = replace(data.scene(index), stool=())
            polyps = tuple(replace(p, contrast=contrast) for p in scene.polyps)
            frame = draw(replace(scene, polyps=polyps), 96)
            bare = draw(replace(scene, polyps=()), 96)
            mask = frame.masks["polyp"]
            differences.append(np.abs(frame.image[mask].astype(float) - bare.image[mask]).mean())
        return float(np.mean(differences))

    assert seen(1.0) > 1.3 * seen(0.3)


def test_a_scene_looks_the_same_at_every_size() -> None:
    small, large = (phantoms.frames(6, size=size, seed=3, polyps="always") for size in (128, 256))
    for index in range(6):
        images = [picture(data, index).astype(float) for data in (small, large)]
        halved = images[1].reshape(128, 2, 128, 2, 3).mean(axis=(1, 3))
        assert np.abs(images[0] - halved).mean() < 6
        covers = [data.sample(index).masks["polyp"].mean() for data in (small, large)]
        assert covers[0] == pytest.approx(covers[1], abs=0.004)


@pytest.mark.parametrize(
    ("place", "words"),
    [((0.1, 0.2), "upper-left"), ((0.5, 0.5), "center"), ((0.9, 0.5), "center-right")],
)
def test_positions_are_named_by_ninths(place: tuple[float, float], words: str) -> None:
    assert Polyp(*place, 0.1, 1, 0, "is", "red", 6.0, 1).position == words


@pytest.mark.parametrize(
    ("millimetres", "words"), [(4.9, "< 5mm"), (5, "5-10mm"), (11, "11-20mm"), (25, ">20mm")]
)
def test_sizes_are_named_as_in_medvqa(millimetres: float, words: str) -> None:
    assert Polyp(0.5, 0.5, 0.1, 1, 0, "is", "red", millimetres, 1).size == words


def test_the_phantom_can_be_sent_to_worker_processes() -> None:
    data = phantoms.frames(2, size=64)
    again = received(data)
    assert np.array_equal(picture(again, 1), picture(data, 1))


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
