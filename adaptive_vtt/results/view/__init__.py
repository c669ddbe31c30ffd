"""Runs in the browser, live: their reports, a list of them, and two side by side.

Served on this machine alone, from the journals alone, which are only read.
"""

from .pages import View

__all__ = ["View"]
