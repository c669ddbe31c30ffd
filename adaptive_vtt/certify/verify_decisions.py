"""Decisions anew: on which side of the limit every target lies, by code of its own."""

import math

FEW = 2
"""Targets up to which decisions share alpha as intervals do."""
Evidence = tuple[float, float, float, float]
"""After a draw: the best log-wealth against the limit so far, upwards and downwards, and the least
and the largest rate that the questions not answered yet allow."""


def decided(
    evidence: list[list[Evidence]],
    levels: list[float],
    limits: list[float],
    shared: bool,
    beside: bool,
) -> list[str]:
    """On which side of its limit each target was decided to lie: "above", "below" or "open".

    ``evidence``: by target and draw; ``levels``: every target's alpha; ``shared``: whether all
    decisions hold at once, so that what is decided leaves its alpha to the others; ``beside``:
    whether intervals were asked for, too, and spend the same alpha.
    """
    if beside:
        levels, shared = [level / 2 for level in levels], False
    sides = ["open"] * len(levels)
    for now in zip(*evidence, strict=True):
        for k, (_, _, least, most) in enumerate(now):
            if sides[k] == "open" and (least > limits[k] or most <= limits[k]):
                sides[k] = "above" if least > limits[k] else "below"
        again = True
        while again:
            again = False
            thresholds = [_thresholds(sides, levels, k, shared) for k in range(len(levels))]
            for k, (up, down, _, _) in enumerate(now):
                above, below = up >= thresholds[k][0], down >= thresholds[k][1]
                if sides[k] == "open" and (above or below):
                    sides[k] = "above" if above else "below"
                    again = True
    return sides


def _thresholds(sides: list[str], levels: list[float], k: int, shared: bool) -> tuple[float, float]:
    """The log-wealth at which target ``k`` is decided to be above, and at most."""
    if levels[k] == 0:
        return math.inf, math.inf
    if not shared or len(levels) <= FEW:
        return -math.log(levels[k]), -math.log(levels[k])
    half = sum(levels) / 2
    left = [
        sum(level for level, side in zip(levels, sides, strict=True) if side != direction)
        for direction in ("above", "below")
    ]
    up, down = (math.log(rest / (half * levels[k])) if rest else -math.inf for rest in left)
    return up, down
