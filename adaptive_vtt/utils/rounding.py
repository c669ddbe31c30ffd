"""Certified figures to three decimals, rounded outward wherever they are shown.

A bound rounded to the nearest promises too much half of the time, and one figure would have two
values on two pages.
"""

import math

SLACK = 1e-6
"""Part of a step that floating point may be off: of 0.13 it makes 0.13000000000000003."""


def outward(lower: float, upper: float) -> tuple[float, float]:
    """An interval to three decimals that holds what it held."""
    return math.floor(1000 * lower + SLACK) / 1000, math.ceil(1000 * upper - SLACK) / 1000
