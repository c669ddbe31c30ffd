"""Cut-outs of objects from image files, with their position and direction, and field masks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import InputError, one_line, unexpected
from ...types import Image, Mask, Sample
from ...utils.files import hash_files, text_in
from ...utils.image_files import read_image
from ..base import Rng
from .scene import Floats, Scene, visible_field

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

BOXES = "bboxes.json"
"""File with the boxes of the objects in the images of a folder."""

EDGE = 3
"""Maximum distance, in pixels, of an object that is cut off by the edge of its source's field."""


@dataclass(frozen=True)
class Cutout:
    """Object of h x w pixels with transparency.

    Attributes:
        name: Name of the object.
        colour: Colours (h, w, 3), RGB of uint8.
        alpha: Opacity (h, w), float32 in 0..1.
        anchor: Reference point (x, y) for the placement: the middle of the tail, or of the object
            if there is no tail.
        tail: Pixels (n, 2), x and y, where the edge of the source's field cuts the object. The
            object is placed so that the edge of the field cuts it there.
        position: Position of the anchor in the source's field, in shares of its width and height.
        turn: Clockwise angle in degrees from the patch to the object's direction in the source.
        brightness: Mean brightness of the source's field, 0..1.
        casts: Opacity of the shadow, 0..1.
        film: Share of the image below that is visible through thin parts, 0..1.
        reflects: Share of the colour that follows the image's light, 0..1; 0 for photographs.
        draws: Random numbers that determine the object.
    """

    name: str
    colour: Image
    alpha: Floats
    anchor: tuple[float, float]
    tail: Floats
    position: tuple[float, float] = (0.5, 0.5)
    turn: float = 0.0
    brightness: float = 0.5
    casts: float = 0.0
    film: float = 0.0
    reflects: float = 0.0
    draws: Mapping[str, Any] = field(default_factory=dict)

    @property
    def area(self) -> float:
        """Sum of the opacity over all pixels."""
        return float(self.alpha.sum())


class Source(Protocol):
    """Source of cut-outs: a drawing function or a folder."""

    def cutout(self, rng: Rng) -> Cutout:
        """Return a random cut-out."""


class Folder:
    """Cut-outs from a folder of images and a folder of masks with the same file names.

    Masks have a threshold of 127. With boxes, the object is the part of the mask in the largest
    box, otherwise the whole mask. A file is read when it is drawn.

    Args:
        path: Folder with images, masks, and bboxes.json if there is one (the layout of
            Kvasir-Instrument); or the folder of images itself.
        masks: Folder of masks, if ``path`` is the folder of images.

    Raises:
        InputError: A folder has no images or masks, or an image has no mask; on reading: a mask is
            empty or has another size than its image.
    """

    def __init__(self, path: Path | str, masks: Path | str | None = None) -> None:
        root = Path(path)
        images = root if masks is not None else root / "images"
        masks = Path(masks) if masks is not None else root / "masks"
        self._boxes_file = root / BOXES
        self._boxes = _read_boxes(self._boxes_file) if images != root else {}
        mask_files = _files(masks, "masks")
        self._pairs: list[tuple[Path, Path]] = []
        for stem, image in sorted(_files(images, "images").items()):
            if stem not in mask_files:
                raise InputError(f"cut-outs {str(masks)!r}: no mask for {image.name!r}")
            self._pairs.append((image, mask_files[stem]))

    def __len__(self) -> int:
        return len(self._pairs)

    def cutout(self, rng: Rng) -> Cutout:
        """Return a uniformly drawn cut-out."""
        return self.number(int(rng.integers(len(self._pairs))))

    def number(self, place: int) -> Cutout:
        """Return cut-out ``place`` (0..len - 1) in the order of file names."""
        image, mask = self._pairs[place]
        return _read(image, mask, self._boxes.get(image.stem))

    def pictures(self) -> list[Path]:
        """Return the image files in the order of file names."""
        return [image for image, _ in self._pairs]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all files and boxes, on which follow-ups depend."""
        files = [file for pair in self._pairs for file in pair]
        return f"cut-outs {hash_files([*files, *[self._boxes_file] * bool(self._boxes)])}"


@lru_cache(maxsize=64)  # a few tens of megabytes; all 590 of Kvasir-Instrument would be too many
def _read(image_path: Path, mask_path: Path, box: tuple[int, int, int, int] | None) -> Cutout:
    where = f"cut-out {image_path.name!r}"
    image = read_image(image_path, where)
    mask = read_image(mask_path, where).max(axis=2) > 127
    if mask.shape != image.shape[:2]:
        sizes = ["{1} x {0}".format(*array.shape) for array in (image, mask)]
        raise InputError(
            f"{where}: image is {sizes[0]} pixels and mask {mask_path.name!r} {sizes[1]}"
        )
    if box is not None:
        left, top, right, bottom = box
        boxed = np.zeros_like(mask)
        boxed[top : bottom + 1, left : right + 1] = mask[top : bottom + 1, left : right + 1]
        mask = boxed
    if not mask.any():
        raise InputError(f"{where}: mask {mask_path.name!r} is empty")
    if image.shape[2] == 1:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    return cut(image, mask, image_path.stem)


def cut(image: Image, mask: Mask, name: str) -> Cutout:
    """Return the part of an image (H, W, 3) in a mask (H, W), which is not empty, as a cut-out."""
    view = visible_field(image)
    left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
    window = (slice(top, top + height), slice(left, left + width))
    tail = np.argwhere(mask[window] & _rim(view)[window])[:, ::-1].astype(np.float32)
    points = tail if len(tail) else np.argwhere(mask[window])[:, ::-1]
    anchor = points.mean(axis=0)
    view_left, view_top, view_width, view_height = cv2.boundingRect(view.view(np.uint8))
    x = (left + anchor[0] - view_left) / view_width
    y = (top + anchor[1] - view_top) / view_height
    value = np.ascontiguousarray(image.max(axis=2))
    patch = np.ascontiguousarray(image[window]), mask[window].astype(np.float32)
    position = (float(np.clip(x, 0, 1)), float(np.clip(y, 0, 1)))
    brightness = cv2.mean(value, view.view(np.uint8))[0] / 255
    place, draws = (float(anchor[0]), float(anchor[1])), {"file": name}
    return Cutout(name, *patch, place, tail, position, brightness=brightness, draws=draws)


def _rim(view: Mask) -> Mask:
    """Return the outermost EDGE pixels of a visible field, also at the image's border."""
    padded = np.pad(view, 1).view(np.uint8)
    inner = cv2.erode(padded, np.ones((3, 3), np.uint8), iterations=EDGE)[1:-1, 1:-1]
    return view & ~inner.view(np.bool_)


def _files(folder: Path, kind: str) -> dict[str, Path]:
    """Return stem -> image file; raise InputError if there is none."""
    if not folder.is_dir():
        where = f"cut-outs {str(folder.parent)!r}"
        raise InputError(f"{where}: expected a folder {folder.name!r} in it")
    files = {p.stem: p for p in folder.iterdir() if p.suffix.lower() in ENDINGS}
    if not files:
        raise unexpected(f"cut-outs {str(folder)!r}", kind, "no picture file")
    return files


def _read_boxes(path: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return stem -> left, top, right, bottom of the largest box, or {} without the file."""
    if not path.is_file():
        return {}
    largest = {}
    try:
        for stem, entry in json.loads(text_in(path)).items():
            sides = [(b["xmin"], b["ymin"], b["xmax"], b["ymax"]) for b in entry["bbox"]]
            if sides:
                left, top, right, bottom = max(sides, key=lambda b: (b[2] - b[0]) * (b[3] - b[1]))
                largest[stem] = (max(0, int(left)), max(0, int(top)), int(right), int(bottom))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        expected = "{id: {'bbox': [{xmin, ymin, xmax, ymax}]}}"
        why = f"{type(error).__name__}: {one_line(error)}"
        raise InputError(f"{path}: expected {expected}: {why}") from None
    return largest


Look = npt.NDArray[np.float64]
"""(4,): mean and standard deviation of L, mean of a and of b in CIE Lab, on a scale 0..255."""


class Similar:
    """Source of the cut-outs whose source images are most similar to the image to change.

    The thesis (RQ4) compares contrast, brightness and colour, and states no limit. Here they are
    the four numbers of ``Look`` over the visible field, in units of their standard deviations in
    the folder. All images of the folder are read once.

    Args:
        folder: Cut-outs to choose from.
        share: Share of the cut-outs to draw from, in (0, 1].

    Raises:
        InputError: The share is out of range.
    """

    def __init__(self, folder: Folder, share: float = 0.25) -> None:
        if not 0 < share <= 1:
            raise unexpected("similar", "a share above 0 and up to 1", f"{share:g}")
        self._folder, self._share = folder, share

    @property
    def fingerprint(self) -> str:
        return f"{self._folder.fingerprint}, the nearest {self._share:g}"

    def cutout(self, rng: Rng) -> Cutout:
        """Return any cut-out of the folder."""
        return self._folder.cutout(rng)

    def cutout_for(self, scene: Scene, rng: Rng) -> Cutout:
        """Return a uniformly drawn cut-out of the most similar ones."""
        away = (self._looks - look(scene.image, scene.field)) / self._spread
        count = max(1, round(self._share * len(self._folder)))
        nearest = np.argsort((away**2).sum(axis=1), kind="stable")[:count]
        return self._folder.number(int(rng.choice(nearest)))

    @cached_property
    def _looks(self) -> Look:
        """Looks (n, 4) of all images."""
        return np.stack([_look_of(read_image(p, str(p))) for p in self._folder.pictures()])

    @cached_property
    def _spread(self) -> Look:
        """Standard deviations (4,) of the looks, at least 1, since images may be alike."""
        return np.maximum(self._looks.std(axis=0), 1.0)


def look(image: Image, field: Mask) -> Look:
    """Return the look of an RGB image (H, W, 3) over the visible field (H, W)."""
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    mean, deviation = cv2.meanStdDev(lab, mask=field.view(np.uint8))
    return np.array([mean[0, 0], deviation[0, 0], mean[1, 0], mean[2, 0]])


def _look_of(image: Image) -> Look:
    if image.shape[2] == 1:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    return look(image, visible_field(image))


class FieldFiles:
    """Masks of the visible field from files, above 127 in the field.

    Args:
        path: One mask for all images, as a device has one frame; or a folder with one mask per
            sample, whose file name without suffix is the sample's id, with or without its suffix.

    Raises:
        InputError: There is no mask; in a call: a sample has no mask.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        listed = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        self._files = {p.stem: p for p in listed if p.suffix.lower() in ENDINGS and p.is_file()}
        if not self._files:
            where, expected = f"visible field {str(path)!r}", "a mask or a folder of masks"
            raise unexpected(where, expected, "no picture file")

    def __call__(self, sample: Sample) -> Mask:
        """Return the field (H, W) of a sample, False on the black frame."""
        if not self._path.is_dir():
            return self._shared
        file = self._files.get(sample.id) or self._files.get(Path(sample.id).stem)
        if file is None:
            raise InputError(f"visible field {str(self._path)!r}: no mask for {sample.id!r}")
        return _read_field(file)

    @cached_property
    def _shared(self) -> Mask:
        """Field of all images, read-only."""
        mask = _read_field(self._path)
        mask.flags.writeable = False
        return mask

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all files, on which follow-ups depend."""
        return f"field {hash_files(self._files.values())}"


def _read_field(file: Path) -> Mask:
    mask: Mask = read_image(file, f"visible field {file.name!r}").max(axis=2) > 127
    return mask
