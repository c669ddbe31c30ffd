"""Expected reduction: that of refits and of brute force."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt import strategies
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.surrogates import AnswerGP, AnswerPoints
from tests.helpers.strategy_spaces import GRID, after, learnt, looked_at, space_of

# -- expected-reduction --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["std", "variance"])
@pytest.mark.parametrize("repeats", ["bins", "questions"])
def test_reductions_are_what_refits_of_copies_give(form: Any, repeats: Any) -> None:
    gp = AnswerGP(3, form=form, repeats=repeats, device="cpu")
    random = torch.Generator().manual_seed(0)
    for _ in range(3):  # what is kept from one call to the next must not go stale
        concept = torch.randint(0, 2, (4,), generator=random)
        gp.observe(AnswerPoints(concept, torch.rand(4, generator=random, dtype=torch.float64)))
        found = gp.reductions()
        before = gp.uncertainty().sum(1)
        for c in range(3):
            for place in (*range(0, 101, 9), int(gp.counts[c].argmax())):
                other = copy.deepcopy(gp)
                other.observe(AnswerPoints(torch.tensor([c]), torch.tensor([place / 100.0])))
                fall = before[c] - other.uncertainty()[c].sum()
                assert float(found[c, place]) == pytest.approx(float(fall), abs=1e-9)


def by_hand(belief: Belief, strategy: Any, concept: int, side: int, variant: int) -> float:
    """E[U - U'] with loops, from the answers as they are counted."""
    variants = belief.received.shape[2]
    gp, low = belief.answers, 50 * side

    def smooth(counts: np.ndarray) -> np.ndarray:
        total = np.zeros(51)
        for b in range(51):
            spread = np.exp(-0.5 * ((GRID[:51] - GRID[b]) / strategy.smoothing) ** 2)
            total += counts[b] * spread / spread.sum()
        return total

    everyone = smooth(belief.received[:, side].sum(axis=(0, 1))) + strategy.prior / 51
    own = smooth(belief.received[concept, side].sum(axis=0)) + strategy.prior / 51
    p = own + strategy.pool * everyone / everyone.sum()
    p /= p.sum()
    if strategy.variant_weight and variants > 1:
        p = smooth(belief.received[concept, side, variant]) + strategy.variant_weight * p
        p /= p.sum()
    worth = 0.0
    for b in range(51):
        other = copy.deepcopy(gp)
        point = torch.tensor([(low + b) / 100], dtype=torch.float64)
        other.observe(AnswerPoints(torch.tensor([concept]), point))
        worth += p[b] * float((gp.uncertainty() - other.uncertainty()).sum())
    return worth


@pytest.mark.parametrize("variant_weight", [0.0, 5.0])
def test_expected_reduction_is_that_of_brute_force(variant_weight: float) -> None:
    space = space_of(relations=("identity", "rotation"))
    belief = after(space, Belief(space, seed=0), 30)
    strategy: Any = strategies.get("expected-reduction", variant_weight=variant_weight, prior=1.5)
    found = strategy.expected(belief)
    for concept, side, variant in ((0, 0, 0), (0, 1, 2), (2, 1, 1)):
        here = float(found[concept, side, variant if variant_weight else 0])
        assert here == pytest.approx(by_hand(belief, strategy, concept, side, variant), abs=1e-9)
    candidates = looked_at(space, belief)
    variant_of = candidates.variant if variant_weight else candidates.variant * 0
    worth = found[candidates.concept, candidates.truth, variant_of]
    weights = strategy.weights(candidates, belief)
    assert torch.equal(weights > 0, worth >= worth.max() - 1e-9)
    assert set(weights.unique().tolist()) <= {0.0, 1.0}


def test_a_side_whose_answers_bring_nothing_new_is_left_alone() -> None:
    space = space_of(40, 2)
    candidates = CandidatePool(space, seed=0).candidates(0)
    belief = Belief(space, seed=0)
    yes = candidates.question[candidates.cell == 1].tolist()
    assert len(yes) > 16
    # concept 0, present: always the same answer, so that its side stays the most uncertain
    belief.learn([learnt(space, q, 0.99) for q in yes[:16]])
    for cell in (0, 2, 3):
        rest = candidates.question[candidates.cell == cell].tolist()
        places = [0.25, 0.75]
        belief.learn([learnt(space, q, f) for q, f in zip(rest, places, strict=False)])
    by_uncertainty = strategies.get("uncertainty").weights(candidates, belief)
    assert candidates.cell[by_uncertainty > 0].unique().tolist() == [1]
    ours = strategies.get("expected-reduction").weights(candidates, belief)
    assert 1 not in candidates.cell[ours > 0].unique().tolist()
