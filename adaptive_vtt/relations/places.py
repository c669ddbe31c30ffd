"""Which questions name places, and which relations move them."""

import re

import numpy as np

from ..types import Ask, FollowUp, Sample
from .base import RelationDefaults

_BOX = re.compile(r"\[\s*\d+(?:\.\d+)?(?:\s*,\s*\d+(?:\.\d+)?){3}\s*\]")


def coordinates(ask: Ask) -> bool:
    """Whether a box [x1, y1, x2, y2] is named in the question or in an option."""
    return any(_BOX.search(text) for text in (ask.text, *ask.options))


def moves(relation: RelationDefaults, follow_up: FollowUp, sample: Sample) -> bool:
    """Whether what is somewhere in the sample's image is elsewhere in the follow-up.

    Seen by what the relation does to a mask that is different at every place.
    """
    if sample.image is None or follow_up.image is None:
        return False
    if follow_up.image.shape != sample.image.shape:
        return True
    if relation.masks_lost:
        return True
    probe = np.random.default_rng(0).random(sample.image.shape[:2]) < 0.5
    return not np.array_equal(relation.expect_mask(probe, follow_up), probe)
