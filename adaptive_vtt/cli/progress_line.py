"""How far an audit is, in words that fit the width there is."""

from collections.abc import Sequence

import numpy as np

from ..engine.options import Certify, Limits
from ..stopping import State
from ..types import Floats

SOON = 0.05
"""Share of the way below which nothing is said of the time that is left."""
VACUOUS = 0.5
"""The half-width of an interval of which nothing is known."""
TINY = 1e-9
MIN = 16
"""Columns below which the last part, which may be cut, is left out."""


def share_done(state: State, cost: float, certify: Certify, limits: Limits) -> float | None:
    """How much of the way to the end an audit has behind it, in [0, 1]; None where no end is known.

    It ends when its goals are reached together, or at the first limit.
    """
    goals, ends = _goals(state, certify), []
    if goals:
        ends.append(min(goals))
    if limits.budget:
        ends.append(state.calls / limits.budget)
    if limits.max_cost:
        ends.append(cost / limits.max_cost)
    return min(max(ends), 1.0) if ends else None


def _goals(state: State, certify: Certify) -> list[float]:
    if state.lower is None or state.upper is None:
        return []
    goals = []
    if certify.half_width is not None:
        goals.append(_narrowed((state.upper - state.lower) / 2, certify.half_width))
    if state.above is not None and state.below is not None:
        goals.append(float(np.mean(state.above | state.below)))
    if state.compared is not None:
        goals.append(float(np.mean(state.compared)))
    return goals


def _narrowed(half_widths: Floats, goal: float) -> float:
    """How far intervals are on the way to the goal: halfway between the widest and the mean of all.

    Precision, 1 / half-width^2, grows with the calls of a target. The widest alone would stand
    still while others are worked on, and the mean alone hide one that takes long.
    """
    now, then = np.maximum(half_widths, TINY) ** -2, VACUOUS**-2
    shares = np.clip((now - then) / max(goal**-2 - then, TINY), 0, 1)
    return float(shares.min() + shares.mean()) / 2


def still_open(state: State, certify: Certify) -> tuple[str, int] | None:
    """How many targets are done, and the place of the widest; None where nothing is certified."""
    if state.lower is None or state.upper is None:
        return None
    widths = (state.upper - state.lower) / 2
    if state.above is not None and state.below is not None:
        done = f"{int((state.above | state.below).sum())}/{len(widths)} decided"
    elif state.compared is not None:
        done = f"{int(state.compared.sum())}/{len(widths)} decided"
    elif certify.half_width is not None:
        done = f"{int((widths <= certify.half_width).sum())}/{len(widths)} certified"
    else:
        done = ""
    return done, int(np.argmax(widths))


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours: 1:05, 2:03:04."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def time_left(share: float | None, began: float, seconds: float) -> str:
    """About how long it takes to the end, by the pace from the share where it ``began``."""
    if share is None or share - began < SOON or share >= 1:
        return ""
    return f"~{clock(seconds * (1 - share) / (share - began))} left"


def fitted(parts: Sequence[str], last: str, width: int, joint: str = "  ") -> str:
    """As many of the parts as fit, in order, then as much of the last one; "" are left out."""
    line = ""
    for part in filter(None, parts):
        longer = f"{line}{joint}{part}" if line else part
        if len(longer) > width:
            return line
        line = longer
    room = width - len(line) - len(joint)
    if not last or room < min(MIN, len(last)):
        return line
    return f"{line}{joint}{last if len(last) <= room else last[: room - 1] + '…'}"
