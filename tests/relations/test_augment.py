"""The relations as a training transform: one operation per image, repeatable, in any process."""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

from adaptive_vtt import relations
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.relations.augment import Augment
from adaptive_vtt.types import Mask, Sample
from tests.helpers.workers import received

NAMES = ["gaussian_noise", "rotation", "brightness_up"]
IMAGE = np.random.default_rng(0).integers(0, 256, (20, 14, 3), dtype=np.uint8)


WHOLE = "90b3570d35009951"
"""A hash of 40 images at whole levels, made before strengths between levels were known."""


class Marking(LabelPreserving):
    """Writes its severity into every pixel."""

    def __init__(self, name: str, severities: tuple[int, ...]) -> None:
        self.name, self.severities = name, severities

    def transform(self, image: Any, severity: int, rng: np.random.Generator) -> Any:
        return np.full_like(image, severity)


class Shifting(LabelPreserving):
    """Moves image and masks one row down, keeping off nothing; refuses to run without masks."""

    name, severities = "shifting", (1,)

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        assert sample.image is not None
        assert sample.masks["polyp"].dtype == np.bool_
        return FollowUp(np.roll(sample.image, 1, axis=0), {"rows": 1})

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        return np.roll(mask, follow_up.details["rows"], axis=0)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, {0: 2000, 1: 2000, 4: 1000, 5: 1000}),
        ({"identity": 1, "one": 0.0, "two": 4}, {0: 1200, 4: 2400, 5: 2400}),
    ],
    ids=["even", "weights"],
)
def test_relations_and_their_severities_come_in_their_shares(
    weights: Any, expected: dict[int, int]
) -> None:
    """Equally likely, as identity is, where nothing else is asked for."""
    augment = Augment([Marking("one", (1,)), Marking("two", (4, 5))], seed=3, weights=weights)
    blank = np.zeros((1, 1, 1), np.uint8)
    counts = Counter(int(augment(blank)[0, 0, 0]) for _ in range(6000))
    assert counts.keys() == expected.keys()
    for mark, times in expected.items():
        assert abs(counts[mark] - times) < 5 * times**0.5  # 5 standard deviations, and fixed


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"rotatoin": 1}, r"weights: unknown relation 'rotatoin'; did you mean 'rotation'"),
        ({"medtest": 1}, r"weights: unknown relation 'medtest'"),
        ({"rotation": -0.1}, r"weights: 'rotation': expected a number from 0 on, got -0\.1"),
        ({"rotation": float("nan")}, r"weights: 'rotation': expected a number from 0 on, got nan"),
        ({"rotation": float("inf")}, r"weights: 'rotation': expected a number from 0 on, got inf"),
        ({"rotation": 0, "identity": 0}, r"weights: expected one above zero, got none"),
        ({}, r"weights: expected one above zero, got none"),
    ],
)
def test_weights_that_are_none_are_named(weights: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Augment(["rotation"], weights=weights)


@pytest.mark.parametrize("shape", [(20, 14, 3), (20, 14, 1), (20, 14)])
def test_array_comes_back_as_it_went_in_and_is_left_alone(shape: tuple[int, ...]) -> None:
    image = IMAGE.ravel()[: np.prod(shape)].reshape(shape)
    before, augment = image.copy(), Augment(NAMES)
    for _ in range(12):
        changed = augment(image)
        assert changed.shape == shape
        assert changed.dtype == np.uint8
        assert not np.shares_memory(changed, image)
    assert np.array_equal(image, before)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_pil_image_comes_back_as_one(mode: str) -> None:
    pil = pytest.importorskip("PIL.Image")
    image = pil.fromarray(IMAGE).convert(mode)
    changed = Augment([Marking("one", (7,))], seed=1)
    modes = {(type(c), c.mode, c.size) for c in (changed(image) for _ in range(9))}
    assert modes == {(pil.Image, "L" if mode == "L" else "RGB", (14, 20))}


def test_pair_maps_the_masks_with_the_image() -> None:
    mask = np.zeros((20, 14), np.uint8)
    mask[4:8, 3:6] = 255
    augment = Augment([Shifting()], seed=0)
    seen = set()
    for _ in range(12):
        image, masks = augment.pair(IMAGE, {"polyp": mask})
        rows = int(not np.array_equal(image, IMAGE))
        seen.add(rows)
        assert np.array_equal(image, np.roll(IMAGE, rows, axis=0))
        assert np.array_equal(masks["polyp"], np.roll(mask > 127, rows, axis=0))
    assert seen == {0, 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((4, 4)), {}), r"augment: expected an image H x W x C of uint8"),
        ((IMAGE, {"polyp": np.zeros((4, 4))}), r"mask of 'polyp': expected a mask H x W of bool"),
    ],
)
def test_what_is_no_image_or_mask_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Augment(NAMES).pair(*arguments)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["rotatoin"], r"unknown relation 'rotatoin'.*did you mean 'rotation'"),
        (["rotation", "rotation"], r"'rotation' stands twice"),
        ("rotation", r"relations: expected a list of names, got 'rotation' alone"),
    ],
)
def test_relations_that_are_none_are_named(names: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Augment(names)


# -- strengths between the levels ---------------------------------------------------------------

SQUARE = np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def test_continuous_strengths_are_even_between_the_first_and_the_last_level() -> None:
    """A flat grey under "darker" says by its level which share was taken of it: .15 to .75."""
    augment = Augment(["brightness_down"], seed=2, continuous=True)
    flat = np.full((2, 2, 1), 255, np.uint8)
    shares = np.array([1 - augment(flat)[0, 0, 0] / 255 for _ in range(4000)])
    drawn = shares[shares > 0]
    assert abs(len(drawn) - 2000) < 5 * 2000**0.5 * 0.5**0.5
    assert drawn.min() == pytest.approx(0.15, abs=0.01)
    assert drawn.max() == pytest.approx(0.75, abs=0.01)
    counts = np.histogram(drawn, bins=6, range=(0.15, 0.75))[0]
    assert np.abs(counts - len(drawn) / 6).max() < 5 * (len(drawn) / 6) ** 0.5
    levels = {int(Augment(["brightness_down"], seed=s)(flat)[0, 0, 0]) for s in range(60)}
    assert len(levels) == 6  # whole levels are the default


def test_whole_levels_are_the_same_images_as_ever() -> None:
    assert Augment(NAMES, seed=1).continuous is False
    digest = hashlib.blake2b(digest_size=8)
    augment = Augment([*NAMES, "medmnistc/bloodmnist", "reduction"], seed=1)
    for _ in range(40):
        digest.update(augment(SQUARE).tobytes())
    assert digest.hexdigest() == WHOLE


@pytest.mark.slow
@pytest.mark.parametrize("family", [*relations.families(), "rotation"])
def test_continuous_follow_ups_are_images_and_repeat(family: str) -> None:
    """Of every relation, at strengths that no level has; masks of what moves move, too."""
    for relation in relations.resolve([family]):
        for seed in range(3):
            sample = Sample("s", SQUARE, {}, masks={"polyp": SQUARE[:, :, 0] > 127})
            if relation.in_words != "nothing":
                continue
            made, again = (relation.apply_between(sample, rng(seed)) for _ in range(2))
            image, same = made.require_image(), again.require_image()
            assert image.dtype == np.uint8
            assert np.array_equal(image, same)
            assert relation.apply_between(Sample("s", None, {}), rng(seed)).image is None


def test_masks_turn_by_the_continuous_angle() -> None:
    mask = np.zeros((32, 32), bool)
    mask[4:10, 4:10] = True
    sample = Sample("s", np.repeat(mask[:, :, None] * np.uint8(255), 3, 2), {}, masks={"m": mask})
    relation = relations.resolve(["rotation"])[0]
    angles = []
    for seed in range(30):
        made = relation.apply_between(sample, rng(seed))
        angles.append(abs(made.details["degrees"]))
        moved = relation.expect_mask(mask, made)
        assert np.mean((made.require_image()[:, :, 0] > 127) == moved) > 0.98
    assert 5 <= min(angles) < 10
    assert 40 < max(angles) <= 45
    assert not {5.0, 10.0, 20.0, 30.0, 45.0} & set(angles)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_pickled_copy_goes_on_where_it_was() -> None:
    augment = Augment([*NAMES, *relations.families()[:1]], seed=4)
    augment(IMAGE)
    copy = received(augment)
    assert [r.name for r in copy.relations] == [r.name for r in augment.relations]
    assert np.array_equal([copy(IMAGE) for _ in range(5)], [augment(IMAGE) for _ in range(5)])


class Images(Dataset[Any]):
    """The same image over and over, augmented: what differs is the randomness."""

    def __init__(self, augment: Augment) -> None:
        self.augment = augment

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.augment(IMAGE)


def epochs(*, persistent: bool, seed: int = 7) -> list[list[bytes]]:
    import torch

    loader = DataLoader(
        Images(Augment(["gaussian_noise"], seed=1)),
        batch_size=None,
        num_workers=2,
        generator=torch.Generator().manual_seed(seed),
        persistent_workers=persistent,
    )
    return [[image.numpy().tobytes() for image in loader] for _ in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_and_epochs_differ_and_repeat(persistent: bool) -> None:
    first = epochs(persistent=persistent)
    changed = [image for epoch in first for image in epoch if image != IMAGE.tobytes()]
    assert len(changed) > 2  # identity takes about half
    assert len(set(changed)) == len(changed)
    assert epochs(persistent=persistent) == first
    assert epochs(persistent=persistent, seed=8) != first
