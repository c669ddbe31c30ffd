"""Placement of added objects at plausible positions outside the protected mask.

There are two placements, as in MedTest's section 3.4. An instrument has about the position and
direction of its source image, and enters from the edge of the visible field. Stool and blood lie
anywhere. If there is no room, an instrument is pulled back, and then the object is reduced as far
as SHRINK allows. If it still does not fit, it takes the position with the least overlap, and its
part on the protected mask is omitted. So the protected mask is never covered.
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
"""Sizes to try, as shares of the requested length."""

TRIES = 6
"""Number of poses to try for each size of an instrument."""

RETREAT = (0.0, 0.2, 0.4)
"""Distances by which an entering instrument is pulled back, as shares of its length."""

SHIFT = 0.08
"""Maximum shift of an instrument from its position in its source, as a share of the field."""

TURN = 15.0
"""Maximum rotation of an instrument from its direction in its source, in degrees."""

CLEARANCE = 0.02
"""Distance kept from the protected mask, as a share of the shorter side."""

SUNK = 0.4
"""Minimum distance of the centre of stool or blood from the edge of the field, if there is room, as
a share of its radius. So most of it is visible."""

_COARSE = 96
"""Longer side, in pixels, of the reduced image on which positions are compared."""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pose:
    """Position, size and direction of a cut-out in an image.

    Attributes:
        matrix: Similarity (2, 3) from pixels of the cut-out to pixels of the image.
        scale: Scale factor of the similarity.
        turn: Angle of the similarity in degrees, clockwise.
        at: Position (x, y) of the cut-out's anchor in the image.
        shrunk: Entry of SHRINK.
        free: Whether the object keeps CLEARANCE from the protected mask.
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
            patch: Array (h, w) or (h, w, 3) in pixels of the cut-out.
            shape: Rows and columns of the window.
            corner: Position (x, y) of the window in the image.
            border: OpenCV's border mode outside the patch.
        """
        matrix = self.matrix.copy()
        matrix[:, 2] -= corner
        if self.scale < 0.7:  # averages first, as sampling alone would give jagged edges
            height, width = patch.shape[:2]
            size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
            patch = cv2.resize(patch, size, interpolation=cv2.INTER_AREA)
            columns, rows = width / size[0], height / size[1]
            # from pixel centres of the smaller patch to those of the patch
            shift = columns / 2 - 0.5, rows / 2 - 0.5
            matrix = matrix @ np.array([[columns, 0, shift[0]], [0, rows, shift[1]], [0, 0, 1]])
        return cv2.warpAffine(patch, matrix, shape[::-1], borderMode=border)


def near_its_place(cutout: Cutout, scene: Scene, share: float, rng: Rng) -> Pose:
    """Return a pose similar to the one in the cut-out's source.

    An object that touches the edge of the field in its source does so here, too.

    Args:
        cutout: Object to place.
        scene: Scene to change.
        share: Requested size, as a share of the visible field.
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
    """Return a pose at a random angle and a uniform free position of the visible field."""
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
    """Scene at a reduced size, to compare many positions quickly."""

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
        """Return the distances of coarse pixels to the protected mask, in pixels of the image."""
        if not self.kept_off.any():
            return np.full(self.field.shape, np.inf, np.float32)
        free = (~self.kept_off).view(np.uint8)
        return cv2.distanceTransform(free, cv2.DIST_L2, 3) / np.float32(self.scale)

    def distance_to_edge(self) -> Floats:
        """Return the distances of coarse pixels to the field's edge, in pixels of the image."""
        padded = np.pad(self.field, 1).view(np.uint8)
        return cv2.distanceTransform(padded, cv2.DIST_L2, 3)[1:-1, 1:-1] / np.float32(self.scale)

    def choose(self, room: Bools, uniform: float) -> Matrix:
        """Return the position (x, y) of a pixel of ``room``, chosen by ``uniform`` in [0, 1)."""
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
    """Return the pose at a position in shares of the field.

    Entering objects are pulled back until no pixel of their tail is visible, and then further by
    ``retreat`` times their length.
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
