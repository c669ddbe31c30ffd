"""The endoscopy phantom: synthetic frames with known truth, for audits and for tests.

Every frame is drawn from a seed, and none shows a patient. As in medical imaging, a phantom takes
the place of a body, and its content is known exactly.
"""

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd

from adaptive_vtt.errors import InputError, check_known
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.options import Option

from ..drawn import DrawnDataset
from .phantom_scene import Prevalence, Scene, plan

if TYPE_CHECKING:
    from .phantom_drawing import Drawing

CONCEPTS = ("polyp", "instrument", "stool", "blood", "text", "poor preparation")
"""Concepts of the phantom; all but the last have masks. Poor preparation is level 0 or 1."""

SIZES = range(64, 1025)
"""Sides of frames in pixels that are allowed."""

_VERSION = 2  # part of the fingerprint; it rises if the same seed gives other frames


class Phantom(DrawnDataset[Scene, "Drawing"]):
    """Planned frames that ``frames`` makes, each drawn when it is needed."""

    def __init__(
        self, count: int, size: int, seed: int, prevalence: Prevalence, concepts: Sequence[str]
    ) -> None:
        self.size, self.seed, self.prevalence = size, seed, prevalence
        planned = [plan(seed, index, prevalence) for index in range(count)]
        super().__init__(
            planned,
            (_VERSION, count, size, seed, astuple(prevalence), tuple(concepts)),
            np.array([_truth(scene, concepts) for scene in planned], np.int8),
            [f"phantom-{seed}-{index:05d}" for index in range(count)],
            concepts,
            metadata=pd.DataFrame([_metadata(scene) for scene in planned]),
            name="endoscopy-phantom (synthetic)",
        )

    def sample(self, index: int) -> Sample:
        bare, drawing = super().sample(index), self.drawing(index)
        masks = {c: mask for c, mask in drawing.masks.items() if c in self.concepts}
        boxes = tuple(box for box in drawing.labelled if box.label in self.concepts)
        return Sample(bare.id, drawing.image.copy(), bare.truth, bare.metadata, masks, boxes=boxes)

    def draw(self, index: int) -> "Drawing":
        from .phantom_drawing import draw

        return draw(self.scene(index), self.size)


def frames(
    count: Annotated[int, Option("number of images", ge=1)],
    *,
    size: Annotated[int, Option("side in pixels")] = 256,
    seed: Annotated[int, Option("same seed, same images")] = 0,
    polyps: Annotated[
        float | Literal["always"], Option("share of frames with polyps", type=float, ge=0, le=1)
    ] = 0.5,
    instrument: float = 0.25,
    blood: float = 0.15,
    text: float = 0.3,
    preparation: Sequence[float] = (0.1, 0.2, 0.3, 0.4),
    concepts: Annotated[
        Sequence[str], Option("concepts to ask about (default: all six)")
    ] = CONCEPTS,
) -> Phantom:
    """Return synthetic endoscopy frames with their full truth.

    The scenes depend on the seed, and not on ``count`` or ``size``. Shares are in 0..1.

    Args:
        count: Number of frames.
        size: Side of a frame in pixels.
        seed: Seed of the scenes.
        polyps: Share of frames with polyps; "always" (or 1) suits segmentation.
        instrument: Share of frames with an instrument. The true share is slightly lower, as an
            instrument that would hide a polyp is left out.
        blood: Share of frames with blood.
        text: Share of frames with printed text.
        preparation: Shares of the levels 0 (unprepared) to 3 (clean), which decide how much stool
            there is.
        concepts: Concepts of CONCEPTS to ask about, whose masks samples have.

    Raises:
        InputError: ``count`` is below 1, ``size`` is outside 64..1024, a share is not in 0..1, or
            concepts are unknown, repeated or missing.
    """
    if count < 1:
        raise InputError(f"phantom: expected a count of at least 1, got {count}")
    if size not in SIZES:
        raise InputError(
            f"phantom: expected a size of {SIZES[0]} to {SIZES[-1]} pixels, got {size}"
        )
    shares: dict[str, Any] = {
        "polyps": 1.0 if polyps == "always" else polyps,
        "instrument": instrument,
        "blood": blood,
        "text": text,
    }
    for name, share in shares.items():
        if not isinstance(share, float | int) or not 0 <= share <= 1:
            raise InputError(f"phantom: expected {name} as a share in 0..1, got {share!r}")
    levels = tuple(map(float, preparation))
    if len(levels) != 4 or min(levels) < 0 or abs(sum(levels) - 1) > 1e-6:
        raise InputError(
            f"phantom: expected preparation as four shares that sum to 1, got {levels}"
        )
    for concept in concepts:
        check_known("concept", concept, CONCEPTS, "phantom")
    if not 0 < len(concepts) == len(set(concepts)):
        raise InputError(f"phantom: expected one or more concepts, each once, got {[*concepts]}")
    prevalence = Prevalence(shares["polyps"], instrument, blood, text, levels)
    return Phantom(count, size, seed, prevalence, concepts)


def _truth(scene: Scene, concepts: Sequence[str]) -> list[bool]:
    present = (
        scene.polyps,
        scene.instrument,
        scene.stool,
        scene.blood,
        scene.text,
        scene.preparation < 2,
    )
    truths = dict(zip(CONCEPTS, map(bool, present), strict=True))
    return [truths[concept] for concept in concepts]


def _metadata(scene: Scene) -> dict[str, Any]:
    """Return a value per column. Values of a polyp are those of the largest, "none" without one."""
    largest = max(scene.polyps, key=lambda polyp: polyp.radius, default=None)
    return {
        "synthetic": True,
        "preparation": scene.preparation,
        "polyps": len(scene.polyps),
        "polyp_size": largest.size if largest else "none",
        "polyp_type": largest.paris if largest else "none",
        "polyp_colour": largest.colour if largest else "none",
        "polyp_position": largest.position if largest else "none",
        "instrument": scene.instrument.kind if scene.instrument else "none",
        "frame": scene.frame,
    }
