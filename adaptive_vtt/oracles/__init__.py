"""Oracles: answer and expectation in, outcome out."""

from .base import Case, Oracle, OracleDefaults, Outcome, adapted
from .classes import Ordinal, TopClass
from .consistency import Consistency
from .correctness import Correctness
from .masks import MaskConsistency, MaskDrop, overlap

__all__ = [
    "Case",
    "Consistency",
    "Correctness",
    "MaskConsistency",
    "MaskDrop",
    "Oracle",
    "OracleDefaults",
    "Ordinal",
    "Outcome",
    "TopClass",
    "adapted",
    "overlap",
]
