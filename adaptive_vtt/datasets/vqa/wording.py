"""The words of questions that are made from labels, masks and boxes; ours, in plain English."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "presence": (
            "Can any {subject} be seen in this image?",
            "Does the image show any {subject}?",
        ),
        "type": ("What does this image show?", "Which of these is to be seen in the image?"),
        "severity": (
            "How severe is the {subject} in this image, as {column}?",
            "Which grade ({column}) has the {subject} in this image?",
        ),
        "counting": (
            "How many separate regions of {subject} are in this image?",
            "Count the regions of {subject}: how many does the image show?",
        ),
        "counting boxes": (
            "How many objects of the kind {subject} are in this image?",
            "Count the objects of the kind {subject}: how many does the image show?",
        ),
        "position": (
            "In which part of the image is the {subject}?",
            "The image is cut into three by three parts. Which of them holds the {subject}?",
        ),
        "grounding": (
            "Which box [x1, y1, x2, y2], in pixels, holds the {subject}?",
            "Where is the {subject}? Choose its box, [x1, y1, x2, y2] in pixels.",
        ),
        "selection": (
            "Which of the boxes is around the {subject}?",
            "What colour has the box that holds the {subject}?",
        ),
        "box": ("What is inside the {colour} box?", "What does the {colour} box mark?"),
        "contour": ("What is inside the {colour} outline?", "What does the {colour} outline mark?"),
        "multi": (
            "Several regions are marked. What does the {colour} {mark} mark?",
            "Of the regions that are marked, what is in the {colour} {mark}?",
        ),
        "coordinate": (
            "What is in the box {box}, in pixels [x1, y1, x2, y2]?",
            "The box {box} ([x1, y1, x2, y2] in pixels) holds something. What is it?",
        ),
    }
)
"""Wordings of each kind; one is drawn per question."""


def worded(kind: str, rng: np.random.Generator, **told: Any) -> str:
    """A question of this kind, by one of its wordings."""
    return WORDS[kind][int(rng.integers(len(WORDS[kind])))].format(**told)
