"""ImageNet-C's corruptions, where they are defined otherwise than MedMNIST-C's.

Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019): the fifteen standard ones, and of the four extra ones speckle
noise, normal blur and saturation; spatter, whose values are not at hand, is left out. Names
are "imagenet-c/<corruption>"; the ladders are those for 224 x 224 images. Of the published
files' preparation (resize to 256, crop to 224, JPEG at quality 85) nothing is done here.

Other than in the original: frost is drawn, not photographed; the pixels of glass blur are
shuffled in rounds; chance comes from the caller's generator. Not in order are ``saturate``
(severities 1 and 2 take colour away, 3 to 5 add it), ``elastic_transform`` (1 and 2 shift and
shear, 3 to 5 ripple), ``frost`` (3 and 4 differ only in how much of the image is left) and
``fog`` (3 and 4 differ only in smoothness).
"""

from collections.abc import Callable

from ..types import Image
from .corruptions import Corruption, blur, colour, digital, noise, warp, weather

Ladder = tuple[tuple[float, ...], ...]


def relations() -> list[Corruption]:
    """The eighteen corruptions."""
    return [*_NOISE, *_BLUR, *_WEATHER, *_DIGITAL]


def _one(
    name: str,
    change: Callable[..., Image],
    about: str,
    ladder: Ladder,
    stacks: bool = False,
    in_order: bool = True,
) -> Corruption:
    return Corruption(f"imagenet-c/{name}", ladder, change, about, stacks, in_order)


def _each(*values: float) -> Ladder:
    return tuple((value,) for value in values)


_NOISE = (
    _one(
        "gaussian_noise", noise.gaussian_noise, "normal noise; strength: deviation on 0..1",
        _each(0.08, 0.12, 0.18, 0.26, 0.38), stacks=True,
    ),
    _one(
        "shot_noise", noise.shot_noise, "Poisson noise; strength: photons at white",
        _each(60, 25, 12, 5, 3), stacks=True,
    ),
    _one(
        "impulse_noise", noise.impulse_noise, "black and white dots; strength: share of values",
        _each(0.03, 0.06, 0.09, 0.17, 0.27), stacks=True,
    ),
    _one(
        "speckle_noise", noise.speckle_noise, "noise in proportion; strength: deviation",
        _each(0.15, 0.2, 0.35, 0.45, 0.6), stacks=True,
    ),
)  # fmt: skip

_BLUR = (
    _one(
        "defocus_blur", blur.defocus_blur, "disc blur; strength: radius and edge smoothing, px",
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    ),
    _one(
        "glass_blur", blur.glass_blur,
        "shuffled pixels, in rounds; strength: deviation and reach in px, rounds",
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    ),
    _one(
        "motion_blur", blur.motion_blur, "one-sided smear; strength: radius and deviation, px",
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    ),
    _one(
        "zoom_blur", blur.zoom_blur, "mean of enlargements; strength: last factor and step",
        ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    ),
    _one(
        "gaussian_blur", blur.gaussian_blur_sigma, "normal blur; strength: deviation in px",
        _each(1, 2, 3, 4, 6),
    ),
)  # fmt: skip

_WEATHER = (
    _one(
        "snow", weather.snow, "falling flakes, colours turned pale",
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8), (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7), (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    ),
    _one(
        "frost", weather.frost, "a frosted pane, drawn, not photographed; strength: its weight",
        ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)), in_order=False,
    ),
    _one(
        "fog", weather.fog, "a cloud; strength: its weight and smoothness",
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)), in_order=False,
    ),
    _one(
        "brightness", colour.value_up, "brighter; strength: added to the value of HSV, 0..1",
        _each(0.1, 0.2, 0.3, 0.4, 0.5),
    ),
)  # fmt: skip

_DIGITAL = (
    _one(
        "contrast", colour.contrast_by_channel, "less contrast; strength: share kept per channel",
        _each(0.4, 0.3, 0.2, 0.1, 0.05),
    ),
    warp.Elastic(
        "imagenet-c/elastic_transform",
        (
            (2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02),
            (0.12, 0.01, 0.02),
        ),
        warp.elastic_transform, "bent; strength: reach, smoothness, shift", in_order=False,
    ),
    _one(
        "pixelate", digital.pixelate, "coarse pixels; strength: share of the resolution kept",
        _each(0.6, 0.5, 0.4, 0.3, 0.25),
    ),
    _one(
        "jpeg_compression", digital.jpeg_compression, "JPEG; strength: quality",
        _each(25, 18, 15, 10, 7),
    ),
    _one(
        "saturate", colour.saturate_linear, "colour taken or added; strength: S becomes a S + b",
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)), in_order=False,
    ),
)  # fmt: skip
