"""Read masks: two values far apart are recognised, and options give the meaning of other values.

Masks have the values 0 and 255, or 0 and 1, perhaps with the noise of a JPEG or soft edges; or
numbers of classes or instances, palettes, or colours. Only the former need no option.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, some, unexpected
from ..types import Mask
from .image_files import as_picture, decoded

DARK, LIGHT = 64, 192
"""Values below DARK are nearly black, and those from LIGHT on nearly white."""
SOFT = 0.1
"""Maximum share of pixels between DARK and LIGHT, which are soft edges."""
SPECK = 4
"""Maximum number of pixels of a connected piece of noise, if only one side has noise."""
FEW = 6
"""Minimum number of values of a mask whose other values are noise."""
NONZERO = "nonzero"
"""Stands for all values except 0, such as numbers of instances."""

Values = npt.NDArray[Any]
"""Values of a mask's pixels, H x W of whole numbers, or H x W x 3 of colours."""
Named = int | str
"""A value in an option: a number, NONZERO, or a colour such as "#ff0000" or [255, 0, 0]."""


def read_values(path: Path, where: str) -> Values:
    """Return the values in a mask's file; those of a palette of colours are its numbers."""
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
    """Return the values of an image: H x W if it is grey, else its colours."""
    if image.ndim == 3 and (image.shape[2] == 1 or _grey(image)):
        return image[:, :, 0]
    return image


def _grey(colours: Values) -> bool:
    return bool((np.ptp(colours.astype(int), axis=-1) <= 24).all())  # JPEG changes greys a little


def two_sides(values: Values) -> Mask | None:
    """Return the pixels of the lighter value of a mask with two values far apart, else None.

    Values near these two may be the noise of a JPEG, which is scattered and forms no flat areas.
    """
    if values.ndim == 3:
        coloured: Mask = np.any(values, axis=2)
        return coloured if len(_unique(values[coloured])) <= 1 and not coloured.all() else None
    present = np.unique(values)
    least, most = present[0], present[-1]
    if len(present) <= 2 and (most <= 1 or ((least < DARK or len(present) == 1) and most > 127)):
        return np.asarray(values > most // 2)
    if not LIGHT <= most <= 255:
        return None
    import cv2

    grey = values.astype(np.uint8)
    flat = cv2.erode(grey, np.ones((3, 3))) == cv2.dilate(grey, np.ones((3, 3)))
    between = (grey >= DARK) & (grey < LIGHT)
    noise = np.zeros(grey.shape, np.uint8)
    signs = 0  # that other values are noise: on the dark side, on the light side, in small pieces
    for side in (grey < DARK, grey >= LIGHT):
        main_value = np.bincount(grey[side], minlength=1).argmax()
        odd = side & (grey != main_value)
        if odd.any() and flat[odd].mean() > 0.5:
            return None
        noise |= odd
        signs += bool(odd.any())
    pieces = cv2.connectedComponentsWithStats(noise, connectivity=8)[2]
    signs += bool(pieces[1:, cv2.CC_STAT_AREA].max(initial=0) <= SPECK)
    soft = between.mean() <= SOFT and (flat & between).mean() <= 0.001
    return np.asarray(grey > 127) if soft and (signs >= 2 or len(present) >= FEW) else None


def _unique(colours: Values) -> Values:
    return np.unique(colours.reshape(-1, colours.shape[-1]), axis=0)


def met_values(values: Values) -> set[str]:
    """Return the values of a mask as texts that options accept."""
    if values.ndim == 2:
        return {str(value) for value in np.unique(values).tolist()}
    return {"#{:02x}{:02x}{:02x}".format(*colour) for colour in _unique(values).tolist()}


@dataclass(frozen=True)
class MaskReading:
    """The meaning of the values of masks.

    Attributes:
        inside: Values of pixels with the concept; (): the lighter of two values far apart.
        ignore: Values of pixels that scores ignore.
    """

    inside: tuple[Named, ...] = ()
    ignore: tuple[Named, ...] = ()

    def mask(self, values: Values, where: str) -> Mask:
        """Return the mask, H x W; raise InputError if no option explains its values."""
        if self.inside:
            return matching(values, self.inside) & ~self.ignored(values)
        judged = values.copy()
        judged[self.ignored(values)] = 0
        mask = two_sides(judged)
        if mask is None:
            raise unreadable_values(met_values(judged), where)
        return mask

    def ignored(self, values: Values, where: str = "") -> Mask:
        """Return the pixels that scores ignore, H x W; takes the arguments of ``mask``."""
        return matching(values, self.ignore)


def matching(values: Values, wanted: Sequence[Named]) -> Mask:
    """Return the pixels that have any of the values; colours match up to the noise of a JPEG."""
    mask = np.zeros(values.shape[:2], bool)
    if (
        values.ndim == 3
        and len(wanted) == 3
        and all(isinstance(value, int) and 0 <= value < 256 for value in wanted)
    ):
        wanted = ["#" + bytes(map(int, wanted)).hex()]  # for a coloured mask, three numbers are one
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
    """Return one or several values as a tuple."""
    return (value,) if isinstance(value, int | str) else tuple(value)


def _colour(value: Named) -> tuple[int, ...] | None:
    if isinstance(value, str) and len(value) == 7 and value[0] == "#":
        return tuple(bytes.fromhex(value[1:]))
    return None


def unreadable_values(met: set[str], where: str) -> InputError:
    """Return the error of masks whose values no option explains."""
    known = sorted(met, key=lambda text: (text[0] == "#", text.zfill(9)))
    shown = [value if value[0] != "#" else f'"{value}"' for value in known if value != "#000000"]
    first = next((value for value in shown if value not in ("0", "255")), shown[-1])
    return InputError(
        f"{where}: expected two values far apart (0 and 255, 0 and 1), got {some(known, 8)}; say "
        f"what they mean in [dataset]: inside = [{first}], ignore = [255], or classes = "
        f'{{ name = {first}, ... }} (numbers or colours; "{NONZERO}" is all but 0)'
    )


def as_mask(source: Any, where: str) -> Mask:
    """Return a mask of bool, H x W, unchanged; of an image of uint8, the pixels of the lighter of
    two values."""
    mask: npt.NDArray[Any] = np.asarray(source)
    if mask.dtype == np.uint8 and mask.ndim in (2, 3):
        return MaskReading().mask(values_of(mask), where)
    if mask.dtype != np.bool_ or mask.ndim != 2:
        got = f"shape {mask.shape} of {mask.dtype}"
        raise unexpected(where, "a mask H x W of bool or uint8", got)
    return mask


def read_mask(path: Path, where: str) -> Mask:
    """Return the pixels of the lighter of two values in a mask's file, H x W."""
    return MaskReading().mask(read_values(path, where), where)
