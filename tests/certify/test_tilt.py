"""What moving every prediction may do to a bet: no bet loses more than its cap, whatever comes."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.certify.sequences import BETS
from adaptive_vtt.certify.strata import Stratum
from adaptive_vtt.datasets import from_table
from adaptive_vtt.space import QuestionSpace

TARGETS = ["overall", "concepts", "relation-sides", "mine"]
FILTER = {"mine": {"concept": ["a", "b"]}}
SAMPLES = 8


def space_of(rng: np.random.Generator) -> QuestionSpace:
    """Eight images with up to three questions each: calls hold unequal numbers of them."""
    labels = rng.choice([0.0, 1.0, np.nan], (SAMPLES, 3), p=[0.2, 0.15, 0.65])
    labels[0], labels[1] = [0, 1, np.nan], 1
    table = pd.DataFrame(labels, index=[f"s{i}" for i in range(SAMPLES)], columns=["a", "b", "c"])
    return QuestionSpace(from_table(None, table), ["identity"])


class Game:
    """Draws by random proposals and predictions from random subsets of what is unseen."""

    def __init__(self, seed: int, answers: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.space = space_of(self.rng)
        targets = named_targets(self.space, TARGETS, FILTER)
        self.certifier = Certifier(self.space, targets, answers=answers, half_width=0.1)
        if answers == "one":
            self.certifier.stratify()
        left = np.sort(self.space.nth(np.arange(self.space.size)))
        calls = left if answers == "one" else self.space.image_of(left)
        self.left, self.calls = left, calls
        self.steps: list[Any] = []
        sequences = self.certifier.sequences
        move = sequences.move
        sequences.move = lambda step: (self.steps.append(step), move(step))  # type: ignore[assignment,return-value,func-returns-value]

    def draw(self) -> tuple[float, float]:
        """The least factor of wealth over targets and means, and the largest tilt over its bound,
        of one draw whose losses are all 0 or all 1."""
        unseen = np.unique(self.calls)
        stratum, strata = None, self.certifier.strata
        if strata is not None:
            place = strata.of(self.left)
            shares = (strata.unseen > 0) * self.rng.dirichlet(np.ones(len(strata)))
            c = int(self.rng.choice(np.unique(place)))
            unseen, stratum = self.left[place == c], Stratum(c, shares / shares.sum(), 0.4, 0.2)
        most = int(self.rng.integers(1, len(unseen) + 1))
        chosen = np.sort(self.rng.choice(unseen, most, replace=False))
        mine = np.isin(self.calls, chosen)
        unit = np.searchsorted(chosen, self.calls[mine])
        proposal = self.rng.dirichlet(np.full(most, 0.5)) * 0.9 + 0.1 / most
        place = int(self.rng.integers(most))
        inside = self.certifier.members(self.left[mine])
        f = self.rng.random(int(mine.sum()))
        move = self.certifier.bet(inside, unit, f, proposal, place, stratum)
        drawn = np.flatnonzero(mine)[unit == place]
        if strata is not None:
            strata.remove(self.left[drawn])
        losses = np.full(len(drawn), float(self.rng.integers(2)))
        growth, before = self.certifier.sequences.growth, len(self.steps)
        self.certifier.sequences.growth = lambda *told: self._noted(growth(*told))  # type: ignore[method-assign]
        self.certifier.learn(move, inside[:, unit == place], losses, losses)
        self.certifier.sequences.growth = growth  # type: ignore[method-assign]
        step = self.steps[before]
        over = np.where(step.active, step.tilt - step.tilt_most, -1).max()
        under = np.where(step.active, -step.tilt - step.tilt_bound, -1).max()
        keep = ~np.isin(np.arange(len(self.left)), drawn)
        self.left, self.calls = self.left[keep], self.calls[keep]
        return self.least, float(max(over, under))

    def _noted(self, grown: Any) -> Any:
        self.least = float(min(part.min(initial=0) for part in grown))
        return grown


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["one", "all"]))
def test_no_bet_loses_more_than_its_cap_for_any_losses(seed: int, answers: str) -> None:
    """Predictions are noise and the pool is small: bets are at their caps. A random subset of calls
    with many questions each may stand for calls that have fewer."""
    game = Game(seed, answers)
    while len(game.left):
        least, past = game.draw()
        assert past <= 1e-9
        assert np.exp(least) >= 1 - BETS.cap - 1e-9
