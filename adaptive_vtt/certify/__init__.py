"""Certificates: intervals that hold although the questions were chosen adaptively."""

from .certifier import Certifier, Move
from .derived import derive
from .formulas import Bounds
from .sequences import Sequences
from .targets import Target, default_targets, named_targets

__all__ = [
    "Bounds",
    "Certifier",
    "Move",
    "Sequences",
    "Target",
    "default_targets",
    "derive",
    "named_targets",
]
