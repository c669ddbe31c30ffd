"""The arithmetic of certificates, to the last digit: nothing but a decision changes it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit
from adaptive_vtt.certify import Sequences, named_targets
from adaptive_vtt.certify.sequences import BETS
from adaptive_vtt.certify.targets import fingerprint
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.testing import ScriptedModel
from tests.golden.make_certifier import CASES, FILTER, TARGETS, given, played
from tests.helpers.steps import step

GOLDEN = Path(__file__).parents[1] / "golden" / "certifier.json"


def close(ours: Any, golden: Any) -> bool:
    """Equal but for rounding, numbers and what holds them."""
    if isinstance(golden, dict):
        return set(ours) >= set(golden) and all(close(ours[k], golden[k]) for k in golden)
    if isinstance(golden, list):
        return len(ours) == len(golden) and all(map(close, ours, golden))
    if isinstance(golden, float) and not isinstance(ours, bool):
        return bool(ours == pytest.approx(golden, rel=1e-7, abs=1e-9))
    return bool(ours == golden)


@pytest.mark.parametrize("name", CASES)
def test_every_figure_of_a_certificate_is_what_it_was(name: str) -> None:
    golden = json.loads(GOLDEN.read_text())[name]
    for place, (ours, before) in enumerate(zip(played(*CASES[name]), golden, strict=True)):
        for figure in before:
            assert close(ours[figure], before[figure]), (place, figure)


# -- the sequences against a reckoning mean by mean --------------------------------------------


def reckoned(
    outcomes: list[float], aim: float, alpha: float, cells: int, theta: float
) -> list[float]:
    """The interval that bets on losses of 0 and 1 leave, and the estimate, by the definition."""
    means = [k / cells for k in range(cells + 1)]
    rising, falling = [1.0] * len(means), [1.0] * len(means)
    lower, upper, total, strays = 0.0, 1.0, 0.0, 8.0
    weights: list[float] = []
    for t, a in enumerate(outcomes):
        centre = min(max((total / 0.25 + 0.5 * 32) / (t / 0.25 + 32), 0.02), 0.98)
        spread = max(0.25 * strays / (8 + t), 1e-9)
        for k, m in enumerate(means):
            skew = min(max(m * (1 - m) / (centre * (1 - centre)), 1 / 3), 3)
            bet = 1.2 * aim / spread / skew
            rising[k] *= 1 + min(bet, 0.98 / m if m else np.inf) * (a - m)
            falling[k] *= 1 + min(bet, 0.98 / (1 - m) if m < 1 else np.inf) * (m - a)
        weights.append(centre * (1 - centre))
        strays += (a - centre) ** 2 / 0.25
        total += a
        sums = zip(means, rising, falling, strict=True)
        mixed = [(m, theta * up + (1 - theta) * down) for m, up, down in sums]
        left = [m for m, wealth in mixed if wealth < 1 / alpha and lower <= m <= upper]
        lower, upper = max(lower, min(left) - 1 / cells), min(upper, max(left) + 1 / cells)
    return [lower, upper, float(np.average(outcomes, weights=weights))]


@pytest.mark.parametrize(("error", "theta"), [(0.02, 0.25), (0.3, 0.5), (0.9, 0.75)])
def test_bets_leave_the_means_that_their_definition_leaves(error: float, theta: float) -> None:
    cells, outcomes = 100, (np.random.default_rng(1).random(300) < error).astype(float).tolist()
    bets = replace(BETS, cell=1 / cells)
    one, none = np.ones(1), np.zeros(1)
    sequences = Sequences(0.1 * one, 0.1 * one, bets, theta=theta * one)
    for a in outcomes:
        sequences.move(step(np.array([a])))
    sequences.bound(none, one)
    ours = [sequences.lower[0], sequences.upper[0], sequences.estimate[0]]
    assert ours == pytest.approx(reckoned(outcomes, 0.1, 0.1, cells, theta))
    assert ours[1] - ours[0] < 0.3


def test_a_mean_between_two_of_the_grid_is_no_sign_of_a_change() -> None:
    one, none = np.ones(1), np.zeros(1)
    sequences = Sequences(0.01 * one, 0.1 * one, replace(BETS, cell=1 / 9))
    for _ in range(400):  # excludes 4/9 and 5/9 at the same moment
        sequences.move(step(0.5 * one, 0.01))
    sequences.bound(none, one)
    assert (sequences.lower[0], sequences.upper[0]) == pytest.approx((3 / 9, 6 / 9))
    assert not sequences.emptied[0]


def test_before_any_answer_an_interval_is_all_there_is() -> None:
    audit = Audit(given(), ScriptedModel(), half_width=0.2, targets=["overall"])
    audit.ask()
    (interval,) = verify(audit.journal)
    assert (interval.lower, interval.upper, interval.estimate) == (0, 1, 0.5)
    assert not interval.emptied
    assert not interval.invalidated


# -- targets -------------------------------------------------------------------------------------


def test_targets_are_told_apart_by_what_they_hold_and_not_by_name() -> None:
    space = given()
    targets = named_targets(space, TARGETS, FILTER)
    prints = {fingerprint([target]) for target in targets}
    assert len(prints) == len(targets)
    renamed = named_targets(space, ["another"], {"another": FILTER["mine"]})
    assert fingerprint(renamed) == fingerprint(targets[-1:])
    assert fingerprint(targets[:2]) != fingerprint(targets[1::-1])
