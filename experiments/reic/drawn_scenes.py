"""Drawn everyday scenes whose objects are known, for audits of captioners and for tests.

Every picture is drawn from a seed. Each kind of object has a colour of its own (see
``scene_plan``), so that a captioner can be made that sees all there is, and whose faults are
then known exactly (``template_captioner``).
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.options import Option

from ..drawn import DrawnDataset
from .scene_plan import KINDS, Scene, plan

if TYPE_CHECKING:
    from .scene_drawing import Drawing

SIDES = range(96, 1025)

_VERSION = 1  # part of the fingerprint: goes up when the same seed gives other pictures


class Scenes(DrawnDataset[Scene, "Drawing"]):
    """Planned scenes, each drawn when asked for; made by ``scenes``."""

    def __init__(
        self, count: int, seed: int, size: tuple[int, int], objects: tuple[int, int]
    ) -> None:
        self.seed, self.size, self.objects = seed, size, objects
        aspect = size[1] / size[0]
        planned = [plan(seed, index, aspect, objects) for index in range(count)]
        there = [{thing.kind.name for thing in scene.things} for scene in planned]
        super().__init__(
            planned,
            (_VERSION, count, seed, size, objects),
            np.array([[kind in kinds for kind in KINDS] for kinds in there], np.int8),
            [f"scene-{seed}-{index:05d}" for index in range(count)],
            tuple(KINDS),
            metadata=pd.DataFrame(
                [{"place": scene.place, "objects": len(scene.things)} for scene in planned]
            ),
            name="everyday scenes (drawn)",
        )
        self.most_boxes = objects[1]

    def sample(self, index: int) -> Sample:
        bare, drawing = super().sample(index), self.drawing(index)
        image, masks = drawing.image.copy(), dict(drawing.masks)
        return Sample(bare.id, image, bare.truth, bare.metadata, masks, boxes=drawing.boxes)

    def draw(self, index: int) -> "Drawing":
        from .scene_drawing import draw

        return draw(self.scene(index), *self.size)


def scenes(
    count: Annotated[int, Option("number of images", ge=1)] = 300,
    *,
    seed: Annotated[int, Option("same seed, same images")] = 0,
    size: tuple[int, int] = (256, 336),
    objects: tuple[int, int] = (2, 5),
) -> Scenes:
    """``count`` pictures of rooms, streets, parks and beaches, ``size`` (height, width) x 3.

    The concepts are the kinds of ``scene_plan.KINDS``. Samples carry the visible mask of
    each kind that is there, and in ``boxes`` one box for each object, around what can be
    seen of it. ``objects``: the least and the most in a picture; where they find no room
    without hiding one another there are fewer. The same seed gives the same scenes whatever
    the count, and pictures of the same proportions the same whatever their size. Raises
    InputError for a count below 1, sides outside 96..1024 pixels, and numbers of objects
    that are not 1 <= least <= most <= 8.
    """
    if count < 1:
        raise InputError(f"scenes: expected a count of at least 1, got {count}")
    if len(size) != 2 or any(side not in SIDES for side in size):
        raise InputError(
            f"scenes: expected size as (height, width) of {SIDES[0]} to {SIDES[-1]} pixels, "
            f"got {tuple(size)}"
        )
    if len(objects) != 2 or not 1 <= objects[0] <= objects[1] <= 8:
        raise InputError(
            f"scenes: expected objects as (least, most) within 1..8, got {tuple(objects)}"
        )
    return Scenes(count, seed, (int(size[0]), int(size[1])), (int(objects[0]), int(objects[1])))
