"""Steps of betting games with given outcomes."""

import numpy as np

from adaptive_vtt.certify.sequences import Step
from adaptive_vtt.types import Floats


def step(outcome: Floats, variance: float = 0.25) -> Step:
    """Return a step of each game by its outcome (K,): no tilts, and every question counts."""
    one, none = np.ones(len(outcome)), np.zeros(len(outcome))
    nothing = [none] * 5
    return Step(one > 0, outcome, outcome, none, one, variance * one, *nothing)
