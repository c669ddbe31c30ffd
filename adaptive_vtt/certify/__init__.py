"""Certificates: intervals that hold although the questions were chosen adaptively."""

from .certifier import Certifier, Move
from .derived import Bounds
from .population import Population
from .sequences import Sequences
from .targets import Target, default_targets, named_targets

__all__ = [
    "Bounds",
    "Certifier",
    "Move",
    "Population",
    "Sequences",
    "Target",
    "default_targets",
    "named_targets",
]
