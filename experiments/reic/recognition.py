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
"""Largest distance in CIE Lab of a pixel from the signature that it counts for. Instances and
shades stay within it, and signatures are more than twice as far from one another."""
_BITS = 5  # of each of red, green and blue that are looked at
_THIN = np.ones((3, 3), np.uint8)  # what is thinner is an edge between two colours
_RING = np.ones((5, 5), np.uint8)


@dataclass(frozen=True)
class Sighting:
    """All that is seen of one kind in a picture.

    ``share``: of the picture's area, 0..1. ``box``: left, top, right, bottom in pixels, the
    last two exclusive, around ``count`` things. ``colour``: their median, in CIE Lab.
    """

    kind: str
    share: float
    box: tuple[int, int, int, int]
    count: int
    colour: tuple[float, float, float]


class Sight(Protocol):
    """A way to recognise the content of a picture."""

    def see(self, image: Image) -> tuple[Sighting, ...]:
        """One sighting for each kind in H x W x C uint8, the largest first."""


@dataclass(frozen=True)
class ColourSight:
    """Sees drawn scenes, also when cropped, stretched, turned, or partly covered.

    ``least``: the share of the picture's area that is noticed at all. ``glimpse``: the share
    of a thing below which it is not recognised where the picture's edge cuts it. ``sharp``:
    how many grey levels an outline stands out by, within three pixels. A grey picture
    (H x W x 1) shows nothing.
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
        found = []
        for place in np.flatnonzero(counts >= self.least * named.size).tolist():
            mask = cv2.morphologyEx((named == place + 1).astype(np.uint8), cv2.MORPH_OPEN, _THIN)
            sighting = self._sighting([*KINDS][place], mask, image, contrast)
            if sighting is not None:
                found.append(sighting)
        return tuple(sorted(found, key=lambda s: -s.share))

    def _sighting(self, kind: str, mask: Image, image: Image, contrast: Image) -> Sighting | None:
        """What is seen of a kind, given the pixels of its colour (H x W, 0 or 1)."""
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
    """A sighting of at least one thing (H x W each), whose pixels are n x 3 ``colours``.

    Things less than a quarter as large as the largest are not counted.
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
    count, found = cv2.connectedComponents(near)
    return [(found == part) & (mask > 0) for part in range(1, count)]


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
    """For each kind what has its signature colour, cut out, and its mirror image."""
    found = {}
    for place, kind in enumerate(KINDS.values(), start=1):
        layer = sketch_of(kind, 96)
        own = (_named(layer.colour.astype(np.uint8)) == place) & (layer.cover > 0.5)
        left, top, right, bottom = around(own)
        shape = own[top:bottom, left:right]
        found[kind.name] = (shape, shape[:, ::-1])
    return found


# -- by registering ------------------------------------------------------------------------

Map = npt.NDArray[np.float64]
"""2 x 3, from a picture's pixel centres (x, y, 1) to its source's (x, y)."""

_FEATURES = 500  # of a picture at most, the strongest
_CONTRAST = 0.01  # how faint features may be; SIFT's own .04 leaves few in soft pictures
_WITHIN = 2.0  # pixels of the source between where a feature is and should be
_AGREEING = 6  # places with features that agree on a map before it is believed
_STEPS = (10, 1e-3)  # of a correlation at most, and its growth by which one is the last
_SOFT = 1.2  # blur in pixels that evens out what drawing a picture anew does to its pixels
_LEVELS = 4  # by how many grey levels of 256 they may differ even so


@dataclass(frozen=True)
class Registration:
    """Which source a picture was made from, and how.

    ``index``: of the source. ``agreeing``: the number of places in the picture that say so.
    """

    index: int
    to_source: Map
    agreeing: int


class Register:
    """Recognises pictures made from the n images of a dataset.

    Their features are found now, 256 kB for each image at most. Raises InputError for a
    dataset without images.
    """

    def __init__(self, dataset: Dataset) -> None:
        if not dataset.has_images:
            raise InputError(f"register: expected a dataset with images, {dataset.name} has none")
        found = [_features(_image(dataset.sample(index))) for index in range(len(dataset))]
        self._points = np.concatenate([points for points, _ in found])
        self._looks = np.concatenate([looks for _, looks in found])
        self._owners = np.repeat(np.arange(len(found)), [len(points) for points, _ in found])

    def find(self, picture: Image) -> Registration | None:
        """Where H x W x 1 or 3 uint8 comes from; None where too little says so."""
        points, looks = _features(picture)
        if not len(points) or not len(self._points):
            return None
        nearest = (looks @ self._looks.T).argmax(axis=1)
        owners = self._owners[nearest]
        source = int(np.bincount(owners).argmax())
        mine = owners == source
        return _agreed(source, points[mine], self._points[nearest[mine]])


class RegisteredSight:
    """Sees things that have masks in pictures made from the samples of a dataset.

    A thing is seen where a share of at least ``glimpse`` of its mask is in the picture and
    looks as it does in the source: not where it is cut off, blurred or covered. Its colour is
    that in the source. A picture that is not recognised, or has another number of channels
    than its source, shows nothing. Raises InputError for a glimpse outside 0..1 and a dataset
    without images.
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
        found = self._sightings(sample, image, refined(registered.to_source, _image(sample), image))
        return tuple(sorted(found, key=lambda s: -s.share))

    def _sightings(self, sample: Sample, image: Image, to_source: Map) -> Iterator[Sighting]:
        source = _image(sample)
        same = unchanged(source, image, to_source)
        height, width = image.shape[:2]
        for kind, mask in sample.masks.items():
            left = mask & same
            if not mask.any() or left.sum() < self.glimpse * mask.sum():
                continue
            there = cv2.warpAffine(
                left.astype(np.uint8),
                to_source,
                (width, height),
                flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP,
            )
            if there.any():
                colours = np.broadcast_to(source[mask], (int(mask.sum()), 3))
                yield sighted(kind, clusters(np.asarray(there, np.uint8)), colours)


def unchanged(source: Image, picture: Image, to_source: Map) -> Mask:
    """Return which pixels of ``source`` (H x W) are in ``picture`` and look the same there.

    Both have the same number of channels. Inpainting and blur look different from what they
    replace, unless that looked the same.
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
    """``to_source``, or the map nearby by which more of ``source`` looks the same.

    Features place what is stretched to about a pixel; correlation (ECC; Evangelidis and
    Psarakis, PAMI 2008) does better, but for pictures in which something was covered.
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
    """Places n x 2 (x, y in pixels) and looks n x 128, whose products say how alike they are.

    Looks are the roots of SIFT's (Arandjelovic and Zisserman, CVPR 2012).
    """
    sift = cv2.SIFT.create(nfeatures=_FEATURES, contrastThreshold=_CONTRAST)
    points, looks = sift.detectAndCompute(_grey(picture), None)
    if looks is None or not len(points):
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    shares = looks / np.maximum(looks.sum(axis=1, keepdims=True), 1)
    return np.asarray(cv2.KeyPoint.convert(points), np.float32), np.sqrt(shares, dtype=np.float32)


def _agreed(index: int, points: Floats, places: Floats) -> Registration | None:
    """The map of most of n ``points`` to ``places`` (n x 2 each), if enough agree on one."""
    if len(points) < _AGREEING:
        return None
    to_source, agreeing = cv2.estimateAffine2D(points, places, ransacReprojThreshold=_WITHIN)
    if to_source is None:
        return None
    # a place with several features counts once
    number = len(np.unique(np.rint(points[agreeing.ravel() > 0]), axis=0))
    return Registration(index, to_source, number) if number >= _AGREEING else None
