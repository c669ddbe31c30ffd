"""Cases of which the quick suite tries some, and the slow one all."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def slowly(*values: Any) -> list[Any]:
    """Values of one parameter that the quick suite leaves out."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def crossed(*axes: Sequence[Any]) -> list[Any]:
    """For ``pytest.mark.parametrize`` of as many names as there are axes: all combinations, of
    which the quick suite tries so many that each value comes up."""
    longest = max(map(len, axes))
    quick = {tuple(k % len(axis) for axis in axes) for k in range(longest)}
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=[] if places in quick else pytest.mark.slow,
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]
