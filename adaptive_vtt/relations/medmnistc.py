"""MedMNIST-C: 21 corruptions in 12 profiles, one per data set (Di Salvo et al., 2024).

arXiv 2406.17536; values of the registry of medmnistc 0.1.0, 131 pairs of data set and
corruption, five severities each. The names are "medmnistc/<flag>/<corruption>".

The published behaviour is kept, oddities included (``faithful``):

- results are cut down to whole grey levels, not rounded;
- grey images are repeated to three channels first, so that noise is drawn three times and
  mixed: its deviation shrinks to 0.67, and impulses take eight levels of grey;
- black_corner of dermamnist is stronger at severity 4 (0.9) than at 5 (0.95);
- stain_deposit of bloodmnist has the same number of marks at severities 3 to 5, and only
  severity 5 has larger marks; retinamnist darkens and fades but never brightens;
- gamma_corr_up darkens and gamma_corr_down brightens.

With ``faithful=False`` the ladders that fall back are put in order, bloodmnist has up to
1, 2, 3, 4, 5 marks, and noise on a grey image is drawn once, at its full strength; the rest
stays. Chance comes from the caller's generator, not from one stream through the whole set.

Written for 224 x 224. On other sizes lengths of blurs stay in pixels; marks, bubbles and
characters scale with the shorter side; all else is relative to the image anyway.
"""

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import unknown
from ..types import Image
from .corruptions import Corruption, blur, colour, digital, noise, objects

Ladder = tuple[tuple[float, ...], ...]

KINDS: dict[str, tuple[Callable[..., Image], str]] = {
    "pixelate": (digital.pixelate, "coarse pixels; strength: share of the resolution kept"),
    "jpeg_compression": (digital.jpeg_compression, "JPEG; strength: quality"),
    "gaussian_noise": (noise.gaussian_noise, "normal noise; strength: deviation on 0..1"),
    "speckle_noise": (noise.speckle_noise, "noise in proportion; strength: deviation"),
    "impulse_noise": (noise.impulse_noise, "black and white dots; strength: share of values"),
    "shot_noise": (noise.shot_noise, "Poisson noise; strength: photons at white"),
    "defocus_blur": (blur.defocus_blur, "disc blur; strength: radius and edge smoothing, px"),
    "motion_blur": (blur.motion_blur, "one-sided smear; strength: radius and deviation, px"),
    "zoom_blur": (blur.zoom_blur, "mean of enlargements; strength: last factor and step"),
    "gaussian_blur": (blur.gaussian_blur, "normal blur; strength: kernel size, px"),
    "brightness_up": (colour.brightness, "brighter; strength: factor"),
    "brightness_down": (colour.brightness, "darker; strength: factor"),
    "contrast_up": (colour.contrast, "more contrast; strength: factor about the mean grey"),
    "contrast_down": (colour.contrast, "less contrast; strength: factor about the mean grey"),
    "saturate": (colour.saturate, "more colour; strength: added to saturation, 0..1"),
    "gamma_corr_up": (colour.gamma_correction, "darker mid-tones; strength: gamma"),
    "gamma_corr_down": (colour.gamma_correction, "brighter mid-tones; strength: gamma"),
    "stain_deposit": (objects.stain_deposit, "ink marks; strength: most marks, their side in px"),
    "bubble": (objects.bubble, "whitish discs; strength: largest radius in px, most discs"),
    "black_corner": (objects.black_corner, "black outside a disc; strength: share of half a side"),
    "characters": (objects.characters, "words; strength: most words, most letters, font scale"),
}
"""Corruption -> its function, and what it does."""

CATEGORIES = {
    "digital": ("pixelate", "jpeg_compression"),
    "noise": ("gaussian_noise", "speckle_noise", "impulse_noise", "shot_noise"),
    "blur": ("defocus_blur", "motion_blur", "gaussian_blur", "zoom_blur"),
    "color": (
        *("brightness_up", "brightness_down", "contrast_up", "contrast_down", "saturate"),
        *("gamma_corr_up", "gamma_corr_down"),
    ),
    "task-specific": ("stain_deposit", "bubble", "black_corner", "characters"),
}
"""The paper's Table 1; the published registry has gamma among the task-specific ones."""

STACKING = (
    noise.gaussian_noise,
    noise.speckle_noise,
    noise.impulse_noise,
    noise.shot_noise,
    colour.brightness,
    colour.gamma_correction,
)
NOISE = STACKING[:4]


def flags() -> list[str]:
    """The twelve data sets with a profile."""
    return [*_profiles()]


def relations(flag: str, faithful: bool = True) -> list[Corruption]:
    """The corruptions of data set ``flag`` ("pathmnist", ...), in the registry's order.

    ``faithful`` keeps the published oddities (see the top of the module). Raises InputError
    for an unknown flag.
    """
    if flag not in _profiles():
        raise unknown("MedMNIST-C data set", flag, _profiles())
    return [_relation(flag, name, ladder, faithful) for name, ladder in _profiles()[flag].items()]


def _relation(flag: str, name: str, ladder: Ladder, faithful: bool) -> Corruption:
    change, about = KINDS[name]
    if not faithful:
        ladder = _repaired(name, ladder)
    return Corruption(
        f"medmnistc/{flag}/{name}",
        ladder,
        change,
        about,
        stacks=change in STACKING,
        in_order=ladder == _repaired(name, ladder),
        plain_grey=change in NOISE and not faithful,
    )


def _repaired(name: str, ladder: Ladder) -> Ladder:
    """The ladder with what falls back or stands still put right."""
    if name == "black_corner":
        return tuple(sorted(ladder, reverse=True))
    if name == "stain_deposit":
        return tuple((most, side) for most, (_, side) in enumerate(ladder, 1))
    return ladder


@cache
def _profiles() -> dict[str, dict[str, Ladder]]:
    """Flag -> corruption -> parameters per severity."""
    text = (files(__package__) / "data" / "medmnistc.json").read_text(encoding="utf-8")
    listed: dict[str, Any] = json.loads(text)
    return {
        flag: {name: tuple(map(tuple, ladder)) for name, ladder in profile["corruptions"].items()}
        for flag, profile in listed.items()
    }
