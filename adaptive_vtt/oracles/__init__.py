"""Oracles: answer and expectation in, outcome out."""

from .base import Case, Oracle, OracleDefaults, Outcome, adapted
from .choice import MultipleChoice
from .classes import Ordinal, TopClass
from .consistency import Consistency
from .correctness import Correctness
from .masks import MaskConsistency, MaskDrop, overlap
from .words import ContainsTruth

__all__ = [
    "Case",
    "Consistency",
    "ContainsTruth",
    "Correctness",
    "MaskConsistency",
    "MaskDrop",
    "MultipleChoice",
    "Oracle",
    "OracleDefaults",
    "Ordinal",
    "Outcome",
    "TopClass",
    "adapted",
    "overlap",
]
