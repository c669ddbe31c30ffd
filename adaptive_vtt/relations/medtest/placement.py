"""Placement of an added object: outside the protected mask, at a plausible place.

There are two placements, as in MedTest's section 3.4. An instrument stays near the place and
direction that it had in its source and enters from the edge of the view. Stool and blood lie
anywhere. If no place is free, an instrument is drawn back, then the object gets smaller, down to
SHRINK. If even that does not fit, it goes to the place that it would cover the least, and the part
on the protected mask is omitted. So the protected mask is never covered.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Bools
from ..base import Rng
from .cutouts import Cutout
from .scene import Floats, Scene, cheapest

SHRINK = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Sizes tried, as shares of the wanted one (lengths)."""

TRIES = 6
"""Poses tried for each size of an instrument."""

RETREAT = (0.0, 0.2, 0.4)
"""Distances that an entering instrument is drawn back to make room, as shares of its length."""

SHIFT = 0.08
"""Largest shift of an instrument from its source's place, as a share of the view."""

TURN = 15.0
"""Largest turn from its source's direction, in degrees."""

CLEARANCE = 0.02
"""Distance kept from the protected mask, as a share of the shorter side."""

SUNK = 0.4
"""Least distance of the middle of stool or blood from the edge of the view, if there is room, as a
share of its reach. So most of it is visible."""

_COARSE = 96
"""Longest side, in pixels, of the small picture on which places are compared."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pose:
    """The place of a cut-out in an image.

    Attributes:
        matrix: Similarity (2, 3) from the cut-out's pixels to the image's.
        scale: Its factor of lengths.
        turn: Its angle in degrees clockwise.
        at: Pixel (x, y) of the image that the anchor lies on.
        shrunk: The entry of SHRINK.
        free: Whether the object does not touch the protected mask and its clearance.
    """

    matrix: Matrix
    scale: float
    turn: float
    at: tuple[float, float]
    shrunk: float
    free: bool

    def warp(
        self, patch: npt.NDArray[Any], shape: tuple[int, ...], corner: tuple[int, int], border: int
    ) -> npt.NDArray[Any]:
        """Return a patch in a window of the image.

        Args:
            patch: Array (h, w) or (h, w, 3) in the cut-out's pixels.
            shape: Rows and columns of the window.
            corner: Its x and y in the image.
            border: OpenCV's border mode outside the patch.
        """
        matrix = self.matrix.copy()
        matrix[:, 2] -= corner
        if self.scale < 0.7:  # averaged first, as sampling alone would leave jagged edges
            height, width = patch.shape[:2]
            size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
            patch = cv2.resize(patch, size, interpolation=cv2.INTER_AREA)
            columns, rows = width / size[0], height / size[1]
            # pixel centres of the smaller patch to those of the patch
            shift = columns / 2 - 0.5, rows / 2 - 0.5
            matrix = matrix @ np.array([[columns, 0, shift[0]], [0, rows, shift[1]], [0, 0, 1]])
        return cv2.warpAffine(patch, matrix, shape[::-1], borderMode=border)


def near_its_place(cutout: Cutout, scene: Scene, share: float, rng: Rng) -> Pose:
    """Return a pose close to the one in the source.

    An object that entered its source's view from the edge does so here.

    Args:
        cutout: The object.
        scene: The scene.
        share: Wanted size, as a share of the visible field.
        rng: Generator.
    """
    coarse = _Coarse(scene)
    size = np.sqrt(share * scene.area / max(cutout.area, 1.0))
    jitter = rng.uniform(-1, 1, (TRIES, 3))
    retreats = RETREAT if len(cutout.tail) else (0.0,)

    def tries() -> Iterator[tuple[float, Pose]]:
        for shrunk, retreat, (x, y, turn) in product(SHRINK, retreats, jitter):
            position = (cutout.position[0] + SHIFT * x, cutout.position[1] + SHIFT * y)
            angle = cutout.turn + TURN * turn
            pose = _pose(cutout, scene, size * shrunk, angle, position, retreat)
            covered = coarse.covered(cutout, pose)
            yield covered, replace(pose, shrunk=shrunk, free=covered == 0)

    return cheapest(tries())


def anywhere(cutout: Cutout, scene: Scene, share: float, rng: Rng) -> Pose:
    """Return a pose anywhere in the view at a random angle; all free places are equally likely."""
    turn, at = float(rng.uniform(0, 360)), float(rng.random())
    height, width = cutout.alpha.shape
    cutout = replace(cutout, anchor=(width / 2, height / 2))
    size = np.sqrt(share * scene.area / max(cutout.area, 1.0))
    coarse = _Coarse(scene)
    distance, inside = coarse.distance_to_protected(), coarse.distance_to_edge()
    rows, columns = np.nonzero(cutout.alpha > 0.05)
    x, y = cutout.anchor
    largest = float(np.sqrt(((columns - x) ** 2 + (rows - y) ** 2).max(initial=0)))
    for shrunk in SHRINK:
        reach = largest * size * shrunk
        free = (distance >= reach) & coarse.field
        room = free & (inside >= SUNK * reach)
        if free.any():
            place = coarse.choose(room if room.any() else free, at)
            return _at(cutout, place, size * shrunk, turn, shrunk, free=True)
    row, column = divmod(int(np.argmax(np.where(coarse.field, distance, -1))), coarse.size[0])
    return _at(cutout, coarse.pixel(column, row), size * SHRINK[-1], turn, SHRINK[-1], free=False)


class _Coarse:
    """A scene at a small size, to compare many places quickly."""

    def __init__(self, scene: Scene) -> None:
        height, width = scene.field.shape
        self.scale = min(1.0, _COARSE / max(height, width))
        self.size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
        self.scene = scene
        self.field = self._shrink(scene.field) > 0.5
        kept_off = self._shrink(scene.protected) > 0
        around = 2 * round(CLEARANCE * scene.side * self.scale) + 1
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (around, around))
        self.kept_off = cv2.dilate(kept_off.view(np.uint8), kernel).view(np.bool_)

    def covered(self, cutout: Cutout, pose: Pose) -> float:
        """Return the area of the object on the protected mask, in coarse pixels."""
        if not self.kept_off.any():
            return 0.0
        alpha = cv2.warpAffine(cutout.alpha, pose.matrix * self.scale, self.size)
        return float(alpha[self.kept_off].sum())

    def distance_to_protected(self) -> Floats:
        """Return the distance to the protected mask in pixels of the image, per coarse pixel."""
        if not self.kept_off.any():
            return np.full(self.field.shape, np.inf, np.float32)
        free = (~self.kept_off).view(np.uint8)
        return cv2.distanceTransform(free, cv2.DIST_L2, 3) / np.float32(self.scale)

    def distance_to_edge(self) -> Floats:
        """Return the distance to the edge of the view in pixels of the image, per coarse pixel."""
        padded = np.pad(self.field, 1).view(np.uint8)
        return cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1] / np.float32(self.scale)

    def choose(self, room: Bools, uniform: float) -> Matrix:
        """Return a place of ``room`` in pixels of the image, chosen by ``uniform`` in [0, 1)."""
        rows, columns = np.nonzero(room)
        chosen = int(uniform * len(rows))
        return self.pixel(columns[chosen], rows[chosen])

    def pixel(self, x: float, y: float) -> Matrix:
        return (np.array([x, y]) + 0.5) / self.scale

    def _shrink(self, mask: Bools) -> Floats:
        share = cv2.resize(mask.astype(np.float32), self.size, interpolation=cv2.INTER_AREA)
        return share.reshape(self.size[::-1])


def _pose(
    cutout: Cutout,
    scene: Scene,
    size: float,
    turn: float,
    position: tuple[float, float],
    retreat: float,
) -> Pose:
    """Return the pose at a position that is given in shares of the view.

    Entering objects are moved along their direction until no pixel of their tail is visible, and
    then by ``retreat`` of their length.
    """
    left, top, width, height = scene.box
    at = np.array([left + position[0] * width, top + position[1] * height])
    pose = _at(cutout, at, size, turn)
    if not len(cutout.tail):
        return pose
    inwards = _inwards(cutout, pose, scene)
    length = max(float(np.hypot(*inwards)), 1e-6)
    tail = cutout.tail[:: max(1, len(cutout.tail) // 12)]
    ends = tail @ pose.matrix[:, :2].T + pose.matrix[:, 2]
    steps = np.arange(0, 1.5, 0.01)[:, None] * scene.side * -inwards / length
    shown = _inside(ends[None] + steps[:, None], scene).any(axis=1)
    out = steps[int(np.argmin(shown))]
    return _at(cutout, at + out - 2 * retreat * inwards, size, turn)


def _inwards(cutout: Cutout, pose: Pose, scene: Scene) -> Matrix:
    """Return the vector from the object's tail to its middle, in pixels of the image."""
    height, width = cutout.alpha.shape
    middle = np.array([width, height]) / 2 - np.array(cutout.anchor)
    inwards = pose.matrix[:, :2] @ middle
    if np.hypot(*inwards) > 1e-6:
        return inwards
    left, top, w, h = scene.box  # the tail is on all sides
    return np.array([left + w / 2 - pose.at[0], top + h / 2 - pose.at[1]])


def _inside(points: Matrix, scene: Scene) -> Bools:
    height, width = scene.field.shape
    columns, rows = np.moveaxis(np.floor(points).astype(int), -1, 0)
    within = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    return within & scene.field[np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)]


def _at(
    cutout: Cutout, at: Matrix, scale: float, turn: float, shrunk: float = 1.0, free: bool = True
) -> Pose:
    angle = np.deg2rad(turn)
    linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = np.column_stack([linear, at - linear @ np.array(cutout.anchor)])
    return Pose(matrix, float(scale), turn, (float(at[0]), float(at[1])), shrunk, free)
