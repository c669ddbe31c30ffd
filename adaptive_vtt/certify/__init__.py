"""Certificates: intervals that hold although the questions were chosen adaptively."""

from ..population import Population
from .certifier import Bet, Certifier
from .sequences import Sequences
from .targets import Target, named_targets

__all__ = ["Bet", "Certifier", "Population", "Sequences", "Target", "named_targets"]
