"""Oracles: answer and expectation in, outcome out."""

from ..types import Case, Heard, Outcome, Version
from ..utils.registry import Registry
from .base import Oracle, OracleDefaults, adapted
from .caption_classes import CaptionClasses
from .captions import ReducedCaptions
from .choice import MultipleChoice
from .classes import Ordinal, TopClass
from .consistency import Consistency
from .correctness import Correctness
from .masks import MaskConsistency, MaskDrop, overlap
from .words import ContainsTruth

REGISTRY = Registry(
    "oracle",
    "oracles",
    ("needs_source", "judge"),
    {
        "correctness": f"{__name__}.correctness:Correctness",
        "top-class": f"{__name__}.classes:TopClass",
        "ordinal": f"{__name__}.classes:Ordinal",
        "consistency": f"{__name__}.consistency:Consistency",
        "mask-drop": f"{__name__}.masks:MaskDrop",
        "mask-consistency": f"{__name__}.masks:MaskConsistency",
        "multiple-choice": f"{__name__}.choice:MultipleChoice",
        "contains-truth": f"{__name__}.words:ContainsTruth",
        "captions": f"{__name__}.captions:ReducedCaptions",
        "caption-classes": f"{__name__}.caption_classes:CaptionClasses",
    },
)
"""Every kind of oracle that a SPEC.toml may name."""

__all__ = [
    "REGISTRY",
    "CaptionClasses",
    "Case",
    "Consistency",
    "ContainsTruth",
    "Correctness",
    "Heard",
    "MaskConsistency",
    "MaskDrop",
    "MultipleChoice",
    "Oracle",
    "OracleDefaults",
    "Ordinal",
    "Outcome",
    "ReducedCaptions",
    "TopClass",
    "Version",
    "adapted",
    "overlap",
]
