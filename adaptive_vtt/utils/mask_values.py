"""Meaning of the pixels of a mask: two values far apart, or values that somebody names.

Masks come as 0 and 255, as 0 and 1, with the noise of a JPEG or soft edges, as numbers of classes
or instances, with palettes, and in colours. Only the first four can be read without an option.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, some
from ..types import Mask
from .image_files import as_picture, decoded

DARK, LIGHT = 64, 192
"""Values below and from here on are near black and near white."""
SOFT = 0.1
"""Most of a mask, as a share of its pixels, that may lie between them, as soft edges do."""
SPECK = 4
"""Most pixels of a piece of noise, where it has few values and is on one side alone."""
FEW = 6
NONZERO = "nonzero"
"""Names all values but 0, such as the numbers of instances."""

Values = npt.NDArray[Any]
"""H x W whole numbers, or H x W x 3 colours."""
Named = int | str
"""A value: a number, NONZERO, or a colour as "#ff0000"; [255, 0, 0] is one, too."""


def read_values(path: Path, where: str) -> Values:
    """Return what a mask's file holds: of a palette its numbers, unless it is one of greys."""
    image = decoded(path, where)
    palette = image.getpalette() if image.mode == "P" else None
    if palette is not None:
        numbers = np.asarray(image)
        met, places = np.unique(numbers, return_inverse=True)
        colours = np.array(palette).reshape(-1, 3)[met]
        return colours[:, 0][places].reshape(numbers.shape) if _grey(colours) else numbers
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.int64)
    return values_of(as_picture(image, path, where))


def values_of(image: Values) -> Values:
    """Return H x W of an image whose channels are alike, else its colours."""
    if image.ndim == 3 and (image.shape[2] == 1 or _grey(image)):
        return image[:, :, 0]
    return image


def _grey(colours: Values) -> bool:
    return bool((np.ptp(colours.astype(int), axis=-1) <= 24).all())  # JPEG has greys not quite so


def two_sides(values: Values) -> Mask | None:
    """Return where a mask of two values far apart is the lighter one, None for any other mask.

    Values near the two may be the noise of a JPEG: they are scattered, and not flat areas.
    """
    if values.ndim == 3:
        lit: Mask = np.any(values, axis=2)
        return lit if len(_unique(values[lit])) <= 1 and not lit.all() else None
    met = np.unique(values)
    if len(met) <= 2 and (met[-1] <= 1 or ((met[0] < DARK or len(met) == 1) and met[-1] > 127)):
        return np.asarray(values > met[-1] // 2)
    if not LIGHT <= met[-1] <= 255:
        return None
    import cv2

    grey = values.astype(np.uint8)
    flat = cv2.erode(grey, np.ones((3, 3))) == cv2.dilate(grey, np.ones((3, 3)))
    between = (grey >= DARK) & (grey < LIGHT)
    noise = np.zeros(grey.shape, np.uint8)
    noisy = 0
    for side in (grey < DARK, grey >= LIGHT):
        counts = np.bincount(grey[side], minlength=1)
        odd = side & (grey != counts.argmax())
        if odd.any() and flat[odd].mean() > 0.5:
            return None
        noise |= odd
        noisy += bool(odd.any())
    pieces = cv2.connectedComponentsWithStats(noise, connectivity=8)[2]
    noisy += bool(pieces[1:, cv2.CC_STAT_AREA].max(initial=0) <= SPECK)
    soft = between.mean() <= SOFT and (flat & between).mean() <= 0.001
    return np.asarray(grey > 127) if soft and (noisy >= 2 or len(met) >= FEW) else None


def _unique(colours: Values) -> Values:
    return np.unique(colours.reshape(-1, colours.shape[-1]), axis=0)


def met_values(values: Values) -> set[str]:
    """Return the values of a mask, as text that an option takes."""
    if values.ndim == 2:
        return {str(value) for value in np.unique(values).tolist()}
    return {"#{:02x}{:02x}{:02x}".format(*colour) for colour in _unique(values).tolist()}


@dataclass(frozen=True)
class MaskReading:
    """Which values of masks are inside, and which are not to be judged; () for those that two
    values far apart show."""

    inside: tuple[Named, ...] = ()
    ignore: tuple[Named, ...] = ()

    def mask(self, values: Values, where: str) -> Mask:
        """Return H x W, True inside. Raise InputError where nobody says what is inside."""
        if self.inside:
            return matching(values, self.inside) & ~self.ignored(values)
        judged = values.copy()
        judged[self.ignored(values)] = 0
        mask = two_sides(judged)
        if mask is None:
            raise unreadable_values(met_values(judged), where)
        return mask

    def ignored(self, values: Values, where: str = "") -> Mask:
        """Return H x W, True where nobody is to judge."""
        return matching(values, self.ignore)


def matching(values: Values, wanted: Sequence[Named]) -> Mask:
    """Return where a mask has any of the values; colours may be a JPEG's, not quite the same."""
    mask = np.zeros(values.shape[:2], bool)
    if (
        values.ndim == 3
        and len(wanted) == 3
        and all(isinstance(value, int) and 0 <= value < 256 for value in wanted)
    ):
        wanted = ["#" + bytes(map(int, wanted)).hex()]  # three numbers are a colour there
    sides = two_sides(values) if values.ndim == 2 and {*wanted} <= {0, 255} else None
    for value in wanted:
        colour = _colour(value)
        if value == NONZERO:
            mask |= values.any(axis=2) if values.ndim == 3 else values != 0
        elif sides is not None and values.max() > 1:
            mask |= sides if value else ~sides
        elif values.ndim == 2:
            grey = colour[0] if colour and len({*colour}) == 1 else value
            mask |= values == grey if isinstance(grey, int) else False
        elif colour:
            mask |= np.abs(values.astype(int) - colour).max(axis=2) <= 32
    return mask


def listed_values(value: Named | Sequence[Named]) -> tuple[Named, ...]:
    """Return one value, or several, as several."""
    return (value,) if isinstance(value, int | str) else tuple(value)


def _colour(value: Named) -> tuple[int, ...] | None:
    if isinstance(value, str) and len(value) == 7 and value[0] == "#":
        return tuple(bytes.fromhex(value[1:]))
    return None


def unreadable_values(met: set[str], where: str) -> InputError:
    """Return the error of masks whose values nobody explained."""
    known = sorted(met, key=lambda text: (text[0] == "#", text.zfill(9)))
    shown = [value if value[0] != "#" else f'"{value}"' for value in known if value != "#000000"]
    first = next((value for value in shown if value not in ("0", "255")), shown[-1])
    return InputError(
        f"{where}: expected two values far apart (0 and 255, 0 and 1), got {some(known, 8)}; say "
        f"what they mean in [dataset]: inside = [{first}], ignore = [255], or classes = "
        f'{{ name = {first}, ... }} (numbers or colours; "{NONZERO}" is all but 0)'
    )


def as_mask(source: Any, where: str) -> Mask:
    """Return ``source`` as H x W bool: itself, or where an image of two values is the lighter."""
    mask: npt.NDArray[Any] = np.asarray(source)
    if mask.dtype == np.uint8 and mask.ndim in (2, 3):
        return MaskReading().mask(values_of(mask), where)
    if mask.dtype != np.bool_ or mask.ndim != 2:
        raise InputError(
            f"{where}: expected a mask H x W of bool or uint8, got shape {mask.shape} "
            f"of {mask.dtype}"
        )
    return mask


def read_mask(path: Path, where: str) -> Mask:
    """Return the mask file at ``path``, H x W: True where one of two values is the lighter."""
    return MaskReading().mask(read_values(path, where), where)
