"""Recognise the content of a picture from its pixels alone.

``ColourSight`` recognises the objects of drawn scenes by their signature colours
(``scene_plan.KINDS``), and only where their outlines are sharp. A colour without an outline, as a
strong blur leaves it, is not recognised.

``RegisteredSight`` recognises objects in pictures that were made from one whose masks are known.
The picture is registered to its source: local features (SIFT; Lowe, IJCV 2004) decide which source
it is and, by RANSAC, which affine map leads there. So parts of sources may be shifted, turned and
stretched, but not mirrored. An object is recognised where the picture still looks like its source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Image, Mask, Sample, around

from .scene_drawing import sketch_of
from .scene_plan import KINDS, Floats, lab

# -- by colours ----------------------------------------------------------------------------

_NEAR = 15.0
"""Largest distance in CIE Lab between a pixel and the signature that it counts for. Instances and
shades stay within it, and the distance between two signatures is more than twice as large."""
_BITS = 5  # highest bits of red, green and blue that are used
_THIN = np.ones((3, 3), np.uint8)  # thinner areas are edges between two colours
_RING = np.ones((5, 5), np.uint8)


@dataclass(frozen=True)
class Sighting:
    """The recognised objects of one kind in a picture.

    Attributes:
        kind: The kind.
        share: Share of the picture's area that they take up, 0..1.
        box: Left, top, right, bottom in pixels, the last two exclusive, around all of them.
        count: Their number.
        colour: Their median colour, in CIE Lab.
    """

    kind: str
    share: float
    box: tuple[int, int, int, int]
    count: int
    colour: tuple[float, float, float]


class Sight(Protocol):
    """A way to recognise the content of a picture."""

    def see(self, image: Image) -> tuple[Sighting, ...]:
        """Return a sighting for each kind in an image, H x W x C uint8, the largest first."""


@dataclass(frozen=True)
class ColourSight:
    """Sight that recognises objects of drawn scenes by their colours.

    Scenes may be cropped, stretched, turned, or partly covered. In a grey picture (H x W x 1) it
    recognises nothing.

    Args:
        least: Least share of the picture's area of a recognised object.
        glimpse: Least share of an object that is in the picture, if the picture's edge cuts it.
        sharp: Least contrast of an outline, in grey levels within three pixels.
    """

    least: float = 0.002
    glimpse: float = 0.4
    sharp: float = 36.0

    def see(self, image: Image) -> tuple[Sighting, ...]:
        if image.shape[2] == 1:
            return ()
        image = np.ascontiguousarray(image)
        named = _named(image)
        counts = np.bincount(named.ravel(), minlength=len(KINDS) + 1)[1:]
        contrast = cv2.morphologyEx(image, cv2.MORPH_GRADIENT, _THIN).max(axis=2)
        sightings = []
        for place in np.flatnonzero(counts >= self.least * named.size).tolist():
            mask = cv2.morphologyEx((named == place + 1).astype(np.uint8), cv2.MORPH_OPEN, _THIN)
            sighting = self._sighting([*KINDS][place], mask, image, contrast)
            if sighting is not None:
                sightings.append(sighting)
        return tuple(sorted(sightings, key=lambda s: -s.share))

    def _sighting(self, kind: str, mask: Image, image: Image, contrast: Image) -> Sighting | None:
        """Return the sighting of a kind, given the pixels of its colour (H x W, 0 or 1)."""
        things = [t for t in clusters(mask) if self._recognised(kind, t, contrast)]
        if not things:
            return None
        return sighted(kind, things, image[np.logical_or.reduce(things)])

    def _recognised(self, kind: str, thing: Mask, contrast: Image) -> bool:
        if thing.mean() < self.least:
            return False
        if _part(kind, thing) < self.glimpse:
            return False
        bits = thing.astype(np.uint8)
        ring = (cv2.dilate(bits, _RING) > 0) & ~thing
        return not ring.any() or bool(np.median(contrast[ring]) >= self.sharp)


def sighted(kind: str, things: Sequence[Mask], colours: npt.NDArray[np.uint8]) -> Sighting:
    """Return the sighting of one or more objects, H x W each, with the ``colours`` of n pixels.

    Objects less than a quarter as large as the largest are not counted.
    """
    largest = max(int(t.sum()) for t in things)
    whole = np.logical_or.reduce(things)
    colour = lab(np.median(colours, axis=0)).tolist()
    return Sighting(
        kind,
        float(whole.mean()),
        around(whole),
        sum(bool(4 * t.sum() >= largest) for t in things),
        (colour[0], colour[1], colour[2]),
    )


def _named(image: Image) -> Image:
    """Return, for each pixel, 1 + the place of its kind in KINDS, 0 if it is of none: H x W."""
    red, green, blue = (image[:, :, c].astype(np.uint16) >> (8 - _BITS) for c in range(3))
    return _table()[(red << (2 * _BITS)) | (green << _BITS) | blue]


@cache
def _table() -> npt.NDArray[np.uint8]:
    """Return the kind of every colour, by its highest bits."""
    steps = (np.arange(2**_BITS) + 0.5) * 2 ** (8 - _BITS)
    colours = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    signatures = lab([kind.colour for kind in KINDS.values()])
    away = np.linalg.norm(lab(colours)[:, None] - signatures, axis=2)
    return np.where(away.min(axis=1) < _NEAR, away.argmin(axis=1) + 1, 0).astype(np.uint8)


def clusters(mask: Image) -> list[Mask]:
    """Return the parts of a mask (H x W, 0 or 1); parts that are close to one another are one."""
    reach = 2 * round(0.015 * min(mask.shape)) + 3
    near = cv2.dilate(mask, np.ones((reach, reach), np.uint8))
    count, labels = cv2.connectedComponents(near)
    return [(labels == part) & (mask > 0) for part in range(1, count)]


Cut = tuple[bool, bool]
"""Whether the start and the end of an axis are cut off."""


def _part(kind: str, thing: Mask) -> float:
    """Return the share of an object that is in the picture, 1 unless the picture's edge cuts it.

    Among all parts of the kind's shape that are left when it is cut on these sides, the share is
    that of the most similar one.
    """
    x, y, width, height = cv2.boundingRect(thing.astype(np.uint8))
    across = x <= 1, x + width >= thing.shape[1] - 1
    down = y <= 1, y + height >= thing.shape[0] - 1
    if not any(across + down):
        return 1.0
    looks, aspects, parts = _cuts(kind, across, down)
    unlike = np.abs(looks - _look(thing[y : y + height, x : x + width])).mean(axis=1)
    unlike += 0.5 * np.abs(np.log(aspects / (width / height)))
    return float(parts[unlike.argmin()])


@cache
def _cuts(kind: str, across: Cut, down: Cut) -> tuple[Floats, Floats, Floats]:
    """Return parts of a kind's shape: their looks n x P, their widths by heights, their shares."""
    looks, aspects, parts = [], [], []
    whole = np.linspace(0.1, 1, 10).tolist()
    for shape in _shapes()[kind]:
        for wide in whole if any(across) else [1.0]:
            for tall in whole if any(down) else [1.0]:
                rows, columns = (
                    _kept(shape.shape[0], tall, down),
                    _kept(shape.shape[1], wide, across),
                )
                piece = shape[rows, columns]
                x, y, width, height = cv2.boundingRect(piece.astype(np.uint8))
                if width:
                    looks.append(_look(piece[y : y + height, x : x + width]))
                    aspects.append(width / height)
                    parts.append(piece.sum() / shape.sum())
    return np.array(looks), np.array(aspects, np.float32), np.array(parts, np.float32)


def _kept(length: int, share: float, cut: Cut) -> slice:
    kept = max(1, round(share * length))
    start = (length - kept) // (2 if cut[1] else 1) if cut[0] else 0
    return slice(start, start + kept)


def _look(piece: Mask) -> Floats:
    return cv2.resize(piece.astype(np.float32), (16, 16), interpolation=cv2.INTER_AREA).ravel()


@cache
def _shapes() -> dict[str, tuple[Mask, Mask]]:
    """Return each kind's shape, the pixels of its signature colour, and the mirrored shape."""
    shapes = {}
    for place, kind in enumerate(KINDS.values(), start=1):
        layer = sketch_of(kind, 96)
        own = (_named(layer.colour.astype(np.uint8)) == place) & (layer.cover > 0.5)
        left, top, right, bottom = around(own)
        shape = own[top:bottom, left:right]
        shapes[kind.name] = (shape, shape[:, ::-1])
    return shapes


# -- by registering ------------------------------------------------------------------------

Map = npt.NDArray[np.float64]
"""Affine map, 2 x 3, from a picture's pixel centres (x, y, 1) to its source's (x, y)."""

_FEATURES = 500  # most features of a picture, the strongest
_CONTRAST = 0.01  # least contrast of features; SIFT's default of .04 leaves few in soft pictures
_WITHIN = 2.0  # largest error in pixels of a feature's mapped position
_AGREEING = 6  # least number of positions with features that agree on a map
_STEPS = (10, 1e-3)  # most steps of a correlation, and the least growth for another step
_SOFT = 1.2  # blur in pixels, which removes differences that come from resampling
_LEVELS = 4  # largest difference of the blurred pixels, in grey levels of 256


@dataclass(frozen=True)
class Registration:
    """The source that a picture was made from, and the map to it.

    Attributes:
        index: Index of the source.
        to_source: Map from the picture to the source.
        agreeing: Number of positions in the picture with features that agree on the map.
    """

    index: int
    to_source: Map
    agreeing: int


class Register:
    """Register of a dataset's images, which finds the source of a picture made from one.

    The features take up to 256 kB per image and are computed at once.

    Raises:
        InputError: The dataset has no images.
    """

    def __init__(self, dataset: Dataset) -> None:
        if not dataset.has_images:
            raise InputError(f"register: expected a dataset with images, {dataset.name} has none")
        features = [_features(_image(dataset.sample(index))) for index in range(len(dataset))]
        self._points = np.concatenate([points for points, _ in features])
        self._looks = np.concatenate([looks for _, looks in features])
        self._owners = np.repeat(np.arange(len(features)), [len(points) for points, _ in features])

    def find(self, picture: Image) -> Registration | None:
        """Return the source of a picture, H x W x 1 or 3 uint8; None if too few features agree."""
        points, looks = _features(picture)
        if not len(points) or not len(self._points):
            return None
        nearest = (looks @ self._looks.T).argmax(axis=1)
        owners = self._owners[nearest]
        source = int(np.bincount(owners).argmax())
        own = owners == source
        return _agreed(source, points[own], self._points[nearest[own]])


class RegisteredSight:
    """Sight that recognises masked objects in pictures made from the samples of a dataset.

    An object is recognised if enough of its mask is in the picture and looks as in the source: not
    cut off, blurred or covered. Its colour is that in the source. Nothing is recognised in a
    picture without a known source, or with another number of channels than its source.

    Args:
        dataset: The dataset, with images and masks.
        glimpse: Least share of a mask that must look as in the source.

    Raises:
        InputError: ``glimpse`` is outside 0..1, or the dataset has no images.
    """

    def __init__(self, dataset: Dataset, *, glimpse: float = 0.4) -> None:
        if not 0 < glimpse <= 1:
            raise InputError(f"RegisteredSight: expected glimpse in 0..1 above 0, got {glimpse}")
        self.glimpse = glimpse
        self._dataset = dataset
        self._register = Register(dataset)

    def see(self, image: Image) -> tuple[Sighting, ...]:
        registered = self._register.find(image)
        if registered is None:
            return ()
        sample = self._dataset.sample(registered.index)
        if _image(sample).shape[2] != image.shape[2]:
            return ()
        to_source = refined(registered.to_source, _image(sample), image)
        return tuple(sorted(self._sightings(sample, image, to_source), key=lambda s: -s.share))

    def _sightings(self, sample: Sample, image: Image, to_source: Map) -> Iterator[Sighting]:
        source = _image(sample)
        same = unchanged(source, image, to_source)
        height, width = image.shape[:2]
        for kind, mask in sample.masks.items():
            visible = mask & same
            if not mask.any() or visible.sum() < self.glimpse * mask.sum():
                continue
            in_picture = cv2.warpAffine(
                visible.astype(np.uint8),
                to_source,
                (width, height),
                flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP,
            )
            if in_picture.any():
                colours = np.broadcast_to(source[mask], (int(mask.sum()), 3))
                yield sighted(kind, clusters(np.asarray(in_picture, np.uint8)), colours)


def unchanged(source: Image, picture: Image, to_source: Map) -> Mask:
    """Return the pixels of ``source`` (H x W) that are in ``picture`` and look the same there.

    Both images have the same number of channels. Inpainted and blurred pixels count as changed if
    they look different from the source.
    """
    height, width = source.shape[:2]
    back = cv2.warpAffine(
        np.ascontiguousarray(picture), to_source, (width, height), borderMode=cv2.BORDER_REPLICATE
    )
    inside = cv2.warpAffine(
        np.ones(picture.shape[:2], np.uint8), to_source, (width, height), flags=cv2.INTER_NEAREST
    )
    soft = [cv2.GaussianBlur(each, (0, 0), _SOFT) for each in (source, back.reshape(source.shape))]
    apart = cv2.absdiff(*soft).reshape(source.shape).max(axis=2)
    return np.asarray((inside > 0) & (apart <= _LEVELS))


def refined(to_source: Map, source: Image, picture: Image) -> Map:
    """Return the map near ``to_source`` by which more of ``source`` looks the same, or itself.

    In stretched pictures, features are accurate to about a pixel. Correlation (ECC; Evangelidis and
    Psarakis, PAMI 2008) is more accurate, except for pictures with covered parts.
    """
    criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, *_STEPS)
    start = to_source.astype(np.float32)
    try:
        _, nearby = cv2.findTransformECC(
            _grey(picture), _grey(source), start, cv2.MOTION_AFFINE, criteria
        )
    except cv2.error:  # it did not converge
        return to_source
    maps = to_source, np.asarray(nearby, np.float64)
    return max(maps, key=lambda each: int(unchanged(source, picture, each).sum()))


def _grey(picture: Image) -> Image:
    one = picture[:, :, 0] if picture.shape[2] == 1 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return np.ascontiguousarray(one)


def _image(sample: Sample) -> Image:
    if sample.image is None:
        raise InputError(f"register: expected sample {sample.id!r} to have an image, got none")
    return sample.image


def _features(picture: Image) -> tuple[Floats, Floats]:
    """Return positions n x 2 (x, y in pixels) and descriptors n x 128 of a picture's features.

    Descriptors are roots of SIFT's (Arandjelovic and Zisserman, CVPR 2012), so their products are
    similarities.
    """
    sift = cv2.SIFT.create(nfeatures=_FEATURES, contrastThreshold=_CONTRAST)
    points, looks = sift.detectAndCompute(_grey(picture), None)
    if looks is None or not len(points):
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    shares = looks / np.maximum(looks.sum(axis=1, keepdims=True), 1)
    return np.asarray(cv2.KeyPoint.convert(points), np.float32), np.sqrt(shares, dtype=np.float32)


def _agreed(index: int, points: Floats, places: Floats) -> Registration | None:
    """Return the map of most of n ``points`` to ``places`` (n x 2 each), None if few agree."""
    if len(points) < _AGREEING:
        return None
    to_source, agreeing = cv2.estimateAffine2D(points, places, ransacReprojThreshold=_WITHIN)
    if to_source is None:
        return None
    # a position with several features counts once
    number = len(np.unique(np.rint(points[agreeing.ravel() > 0]), axis=0))
    return Registration(index, to_source, number) if number >= _AGREEING else None
