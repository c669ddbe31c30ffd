"""Cases of which the quick suite tries each value once, and the slow one every combination."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def crossed(*axes: Sequence[Any]) -> list[Any]:
    """For ``pytest.mark.parametrize`` of as many names as there are axes."""
    longest = max(map(len, axes))
    quick = {tuple(k % len(axis) for axis in axes) for k in range(longest)}
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=[] if places in quick else pytest.mark.slow,
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]
