"""Drawn everyday scenes whose objects are known, for audits of captioners and for tests.

Every picture is drawn from a seed. Each kind of object has one colour (see ``scene_plan``), so a
captioner can recognise every object, and all its faults are known (``template_captioner``).
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
"""Sides of pictures in pixels that are allowed."""

_VERSION = 1  # part of the fingerprint; it rises if the same seed gives other pictures


class Scenes(DrawnDataset[Scene, "Drawing"]):
    """Planned scenes that ``scenes`` makes, each drawn when it is needed."""

    def __init__(
        self, count: int, seed: int, size: tuple[int, int], objects: tuple[int, int]
    ) -> None:
        self.seed, self.size, self.objects = seed, size, objects
        aspect = size[1] / size[0]
        planned = [plan(seed, index, aspect, objects) for index in range(count)]
        present = [{thing.kind.name for thing in scene.things} for scene in planned]
        super().__init__(
            planned,
            (_VERSION, count, seed, size, objects),
            np.array([[kind in kinds for kind in KINDS] for kinds in present], np.int8),
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
    """Return pictures of rooms, streets, parks and beaches.

    The concepts are the kinds of ``scene_plan.KINDS``. A sample has the visible mask of each kind
    that occurs, and a box around the visible part of each object. The scenes depend on the seed and
    the proportions of the pictures, and not on ``count`` or their size in pixels.

    Args:
        count: Number of pictures.
        seed: Seed of the scenes.
        size: Height and width in pixels.
        objects: Least and largest number of objects; there are fewer if some would hide others.

    Raises:
        InputError: ``count`` is below 1, a side is outside 96..1024 pixels, or numbers of objects
            are not 1 <= least <= most <= 8.
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
