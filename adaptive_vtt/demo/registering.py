"""Seeing what is in a picture that was made from one whose masks are known.

The picture is registered to its source: local features (SIFT; Lowe, IJCV 2004) say which
source it is and, by RANSAC, which affine map leads there, so that parts of sources may be
shifted, turned and stretched, not mirrored. What is at a mask is seen where the picture still
looks like its source.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ..datasets.base import Dataset
from ..errors import InputError
from ..types import Image, Mask, Sample
from .scenery.seeing import Sighting, clusters, sighted

Floats = npt.NDArray[np.float32]
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
    """Which pixels of ``source`` (H x W) are in ``picture`` and look the same there.

    Both have the same number of channels. Inpainting and blur are told from what they
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
