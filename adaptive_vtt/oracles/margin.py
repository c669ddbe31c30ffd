"""By how much an answer was right."""

import math
from collections.abc import Mapping
from typing import Any

MARGIN = "margin"
"""Where a margin stands among an answer's details, if its oracle gave one."""

SUREST = 8.0
"""Largest size of a margin that is a logit: a probability of .9997."""

MIN = 1 / (1 + math.exp(SUREST))
"""The probability whose logit is -SUREST."""


def margin(truth: int, coordinate: float | None, details: Mapping[str, Any] | None) -> float | None:
    """By how much an answer was right: what its oracle found, else the logit of the probability
    it gave to the truth, from -SUREST to SUREST; None where nothing was answered.

    Follows from what is journaled alone, so that an audit that goes on learns the same.
    """
    if details is not None and MARGIN in details:
        return float(details[MARGIN])
    if coordinate is None:
        return None
    yes = 2 * coordinate - truth
    right = min(max(yes if truth else 1 - yes, MIN), 1 - MIN)
    return math.log(right / (1 - right))
