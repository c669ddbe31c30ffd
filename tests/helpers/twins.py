"""Parameters of which the quick suite tries some, and the slow one all."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def slowly(*values: Any) -> list[Any]:
    """Return values of one parameter that the quick suite leaves out."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def crossed(*axes: Sequence[Any]) -> list[Any]:
    """Return all combinations of several parameters' values, for ``pytest.mark.parametrize``.

    The quick suite tries as few of them as contain every value.
    """
    longest = max(map(len, axes))
    quick = {tuple(k % len(axis) for axis in axes) for k in range(longest)}
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=[] if places in quick else pytest.mark.slow,
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]
