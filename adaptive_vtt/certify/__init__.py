"""Certificates: intervals that hold although the questions were chosen adaptively."""

from .certifier import Certifier, Move
from .sequences import Sequences
from .targets import Target, default_targets, named_targets

__all__ = ["Certifier", "Move", "Sequences", "Target", "default_targets", "named_targets"]
