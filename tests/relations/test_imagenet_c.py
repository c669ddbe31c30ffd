"""ImageNet-C's corruptions: what their definitions promise."""

import numpy as np
import pytest

from adaptive_vtt import relations
from adaptive_vtt.relations import imagenet_c
from adaptive_vtt.relations.corruptions import Corruption
from adaptive_vtt.types import Image, Sample

STANDARD = {
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
}


def one(name: str) -> Corruption:
    (result,) = (r for r in imagenet_c.relations() if r.name == f"imagenet-c/{name}")
    return result


def changed(name: str, image: Image, severity: int, seed: int = 0) -> Image:
    return one(name).transform(image, severity, np.random.default_rng(seed))


def flat(colour: tuple[int, int, int], side: int = 64) -> Image:
    return np.full((side, side, 3), colour, np.uint8)


def test_fifteen_standard_and_three_extra() -> None:
    names = {r.name.removeprefix("imagenet-c/") for r in relations.resolve(["imagenet-c"])}
    assert names == STANDARD | {"speckle_noise", "gaussian_blur", "saturate"}


@pytest.mark.parametrize("side", [1, 2, 16, 64])
def test_cloud_fills_the_unit_interval(side: int) -> None:
    cloud = imagenet_c.plasma(side, 1.7, np.random.default_rng(0))
    assert cloud.shape == (side, side)
    assert cloud.min() == 0
    assert cloud.max() == pytest.approx(1 if side > 1 else 0)


def test_fog_pulls_towards_a_cloud_and_keeps_the_brightest_level() -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    after = changed("fog", image, 3)
    assert after.std() < image.std()
    assert after.max() <= image.max()


def test_snow_only_brightens() -> None:
    image = np.random.default_rng(0).integers(0, 200, (64, 64, 3), dtype=np.uint8)
    after = changed("snow", image, 2)
    assert (after >= image - 1.0).all()
    assert after.mean() > image.mean() + 20


def test_frost_is_bluish_patterned_and_from_five_panes() -> None:
    panes = [imagenet_c.pane(number) for number in range(5)]
    for pane in panes:
        assert 0.3 < pane.mean() < 0.75
        assert pane.std() > 0.1
    assert not np.array_equal(panes[0], panes[1])
    after = changed("frost", flat((0, 0, 0), 224), 5).astype(float)
    assert after[..., 2].mean() > after[..., 0].mean() > 40


def test_glass_blur_only_moves_what_is_near() -> None:
    image = flat((0, 0, 0))
    image[:, 32:] = 255
    after = changed("glass_blur", image, 5)
    assert np.all(after[:, :10] == 0)  # 8 px of shuffling and twice 6 px of blur reach no further
    assert np.all(after[:, -10:] == 255)
    assert 0 < after[:, 24:40].mean() < 255


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_elastic_masks_move_with_the_image(severity: int) -> None:
    image = np.zeros((96, 96, 1), np.uint8)
    image[30:60, 40:70] = 255
    relation = one("elastic_transform")
    sample = Sample("s", image, {})
    made = relation.apply(sample, severity, np.random.default_rng(2))
    assert made.image is not None
    mask = relation.expect_mask(image[..., 0] > 0, made)
    seen = made.image[..., 0] > 127
    assert mask.dtype == np.bool_
    assert not np.array_equal(mask, image[..., 0] > 0)
    assert (mask & seen).sum() / (mask | seen).sum() > 0.9
    again = relation.transform(image, severity, np.random.default_rng(2))
    assert np.array_equal(again, made.image)
