"""Thresholds of similarity: the best there is on pairs judged by hand."""

import numpy as np
import pytest

from adaptive_vtt.experiments.reic.calibration import calibrate, pairs


@pytest.mark.parametrize(
    ("scores", "right", "expected"),
    [
        ([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], 0.55),
        ([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], 0.2),  # all of .3 and above: F1 = 4 / 5
        ([np.inf, 0.8, 0.3, -np.inf], [1, 0, 0, 1], 0.55),
    ],
)
def test_calibrated_threshold(scores: list[float], right: list[int], expected: float) -> None:
    assert calibrate(scores, right) == pytest.approx(expected)


def test_pairs_are_balanced_and_each_there_once() -> None:
    known = pairs()
    assert len({frozenset((pair.one, pair.other)) for pair in known}) == len(known) >= 300
    for half in (True, False):
        right = [pair.same for pair in known if pair.held_out is half]
        assert sum(right) * 2 == len(right) >= 150
