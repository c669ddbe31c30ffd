"""MedMNIST-C: every profile, and agreement with the published package (tests/golden)."""

from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest

from adaptive_vtt import relations
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import medmnistc
from adaptive_vtt.relations.corruptions import Corruption, motion_blur_at
from adaptive_vtt.relations.medmnistc import _marks
from adaptive_vtt.types import Image

GOLDEN = dict(np.load(Path(__file__).parents[1] / "golden" / "medmnistc.npz"))
PICTURE: Image = GOLDEN["image"]
SEVERITIES = (1, 2, 3, 4, 5)
SLOW = {"stain_deposit", "characters"}  # 120 draws of each; bubbles stand for them
PAIRS = {
    "pathmnist": 11,
    "bloodmnist": 11,
    "dermamnist": 15,
    "retinamnist": 8,
    "tissuemnist": 8,
    "octmnist": 6,
    "breastmnist": 7,
    "chestmnist": 13,
    "pneumoniamnist": 13,
    "organamnist": 13,
    "organcmnist": 13,
    "organsmnist": 13,
}


@cache
def profile(flag: str) -> dict[str, Corruption]:
    return {r.name.split("/")[-1]: r for r in medmnistc.relations(flag)}


def golden(kind: str) -> list[tuple[str, str, str]]:
    """(flag, corruption, variant) of the golden entries of a kind."""
    parts = [key.split("/") for key in GOLDEN if key.startswith(f"{kind}/")]
    return [(p[1], p[2], p[3] if len(p) > 3 else "") for p in parts]


def windows(image: Image) -> Image:
    return np.stack([image[y : y + 24, x : x + 24] for y, x in ((0, 0), (98, 152))])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def changed(relation: Corruption, image: Image, severity: int, seed: int = 0) -> Image:
    return relation.transform(image, severity, rng(seed))


def test_every_profile_is_there() -> None:
    assert {flag: len(profile(flag)) for flag in medmnistc.flags()} == PAIRS
    assert sum(PAIRS.values()) == 131
    assert {f"medmnistc/{flag}" for flag in PAIRS} <= set(relations.families())
    names = {name for flag in PAIRS for name in profile(flag)}
    assert len(names) == 21


@pytest.mark.parametrize(("flag", "name", "variant"), golden("exact"))
def test_without_chance_it_is_what_the_package_makes(flag: str, name: str, variant: str) -> None:
    expected = GOLDEN["/".join(filter(None, ("exact", flag, name, variant)))]
    relation = profile(flag)[name]
    for severity, wanted in zip(SEVERITIES, expected, strict=True):
        if name == "motion_blur":
            radius, sigma = relation.ladder[severity - 1]
            made = motion_blur_at(PICTURE, radius, sigma, float(variant))
        else:
            made = changed(relation, PICTURE[..., 1:2] if variant else PICTURE, severity)
        apart = np.abs(windows(made).astype(int) - wanted)
        assert apart.max() <= 1
        assert apart.mean() <= 0.1


@pytest.mark.parametrize(
    ("flag", "name", "variant"),
    [
        pytest.param(*entry, marks=pytest.mark.slow if entry[1] in SLOW else [])
        for entry in golden("drawn")
    ],
)
def test_with_chance_its_moments_are_those_of_the_package(
    flag: str, name: str, variant: str
) -> None:
    relation, noise = profile(flag)[name], name.endswith("noise")
    source = PICTURE[..., 1:2] if variant else PICTURE
    expected = GOLDEN["/".join(filter(None, ("drawn", flag, name, variant)))]
    for severity in (1, 3, 5):
        (mean, deviation, share), rows = expected[severity - 1], []
        for seed in range(4 if noise else 120):
            change = changed(relation, source, severity, seed).astype(np.int16) - source
            rows.append((change.mean(), change.std(), (change != 0).any(axis=2).mean()))
        got = np.mean(rows, axis=0)
        if noise:  # 4 draws on both sides: means within four standard errors
            assert abs(got[0] - mean) < 4 * deviation * np.sqrt(2 / (4 * source.size))
            assert got[1:] == pytest.approx([deviation, share], rel=0.02)
        else:  # 120 draws of a few objects
            assert got[1:] == pytest.approx([deviation, share], rel=0.15)


@pytest.mark.parametrize("bank", [0, 1])
def test_ink_marks_look_like_the_packages(bank: int) -> None:
    side, coverage, whole = GOLDEN["marks"][bank]
    marks = _marks(int(side), 0.61 if bank else 0.78)
    assert len(marks) == 10
    assert np.mean([mark.mean() for mark in marks]) == pytest.approx(coverage, abs=0.06)
    for mark in marks:
        assert mark.shape == (side, side)
        assert cv2.connectedComponents(mark.astype(np.uint8))[0] - 1 == 1
    assert whole > 0.95  # so that one piece is a fair likeness


def test_impulses_are_black_or_white_on_colour_and_mixed_on_grey() -> None:
    flat = np.full((64, 64, 3), 100, np.uint8)
    relation = profile("dermamnist")["impulse_noise"]
    assert set(np.unique(changed(relation, flat, 5))) == {0, 100, 255}
    assert len(np.unique(changed(relation, flat[..., :1], 5))) > 8


def test_marks_and_bubbles_cover_the_same_share_at_other_sizes() -> None:
    for name in ("stain_deposit", "bubble"):
        relation, shares = profile("pathmnist")[name], []
        for side in (112, 224):
            flat = np.full((side, side, 3), 100, np.uint8)
            covered = [(changed(relation, flat, 3, seed) != 100).mean() for seed in range(60)]
            shares.append(np.mean(covered))
        assert shares == pytest.approx([shares[1]] * 2, rel=0.2)


def test_unknown_flag_names_the_nearest() -> None:
    unknown = r"unknown MedMNIST-C data set 'pathmnits'; did you mean 'pathmnist'\?"
    with pytest.raises(InputError, match=unknown):
        medmnistc.relations("pathmnits")
    unknown = r"unknown relation 'medmnistc/foo'.*xpected one of"
    with pytest.raises(InputError, match=unknown):
        relations.resolve(["medmnistc/foo"])
    with pytest.raises(InputError, match=r"did you mean 'medmnistc/octmnist/pixelate'\?"):
        relations.get("medmnistc/octmnist/pixelat")
