"""Runs in the browser while they go on: their reports, a list of them, and two beside each other.

Served on this machine alone, from the journals alone, which are only read.
"""

from .server import View

__all__ = ["View"]
