"""Oracles: answer and expectation in, outcome out."""

from ..types import Case, Heard, Outcome, Version
from .base import Oracle, OracleDefaults, adapted
from .caption_classes import CaptionClasses
from .captions import ReducedCaptions
from .choice import MultipleChoice
from .classes import Ordinal, TopClass
from .consistency import Consistency
from .correctness import Correctness
from .masks import MaskConsistency, MaskDrop, overlap
from .words import ContainsTruth

__all__ = [
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
