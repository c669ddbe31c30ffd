"""Draws made together: each from candidates of its own, exact, and no other than one by one."""

from concurrent.futures import Future
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.engine import selector as selectors
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.selector import Draw, Selector
from adaptive_vtt.strategies import get
from adaptive_vtt.surrogates.base import Posterior
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Prompt, Unanswered

BATCH = 8
TARGETS = ["overall", "relations"]


class AtOnce(ScriptedModel):
    """Takes several calls at a time, and has answered when they are sent."""

    def __init__(self, in_flight: int) -> None:
        super().__init__()
        self.in_flight = in_flight

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        future: Future[Answer | Unanswered] = Future()
        future.set_result(self.ask([prompt])[0])
        return future


class Rates:
    """The expected loss of a question: of those of its variant, one number for each sample."""

    def __init__(self, space: QuestionSpace) -> None:
        self.sum = torch.full((len(space.variants),), 1.0, dtype=torch.float64)
        self.count = 2 * self.sum
        self.asked: list[int] = []

    def observe(self, losses: Any) -> None:
        self.sum.index_add_(0, losses.variant, losses.loss)
        self.count.index_add_(0, losses.variant, torch.ones_like(losses.loss))

    def posterior(self, candidates: Any) -> Posterior:
        self.asked.append(len(candidates.question))
        rate = (self.sum / self.count)[candidates.variant]
        mean = (rate + (candidates.sample % 7) * 0.02).clamp(0, 1)
        return Posterior(mean, mean * (1 - mean))


def space_of(samples: int) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 1), ["identity", "rotation"])


def selector_of(space: QuestionSpace, seed: int, limit: int, confidence: float = 0.8) -> Selector:
    certifier = Certifier(
        space, named_targets(space, TARGETS), answers="one", half_width=0.02, confidence=confidence
    )
    belief = Belief(space, seed=seed, losses=Rates(space), certifier=certifier)
    strategy = get("certify")
    return Selector(
        space, strategy, seed=seed, exploration=0.2, candidates=limit, answers="one", belief=belief
    )


def batch_of(selector: Selector, losses: Any, ahead: bool, count: int = BATCH) -> list[Draw]:
    """``count`` draws, and then what came back."""
    draws = []
    for made in range(count):
        draw = selector.draw(count - made if ahead else 1)
        if draw is None:
            break
        selector.take(np.array([draw.question]), draw.bet)
        draws.append(draw)
    for draw in draws:
        truth = int(selector.space.truth(np.array([draw.question]))[0])
        selector.learn([Observation(draw.question, truth, float(losses[draw.question]))])
    return draws


@pytest.mark.parametrize("limit", [60, 4096], ids=["sampled", "listed"])
def test_draws_made_together_are_those_made_one_by_one_from_one_pass_over_the_space(limit: int):
    space = space_of(60)
    assert BATCH * 60 >= space.size > 60
    losses = np.random.default_rng(0).random(space.total) < 0.3
    one, all_ = selector_of(space, 3, limit), selector_of(space, 3, limit)
    for number in range(4):
        alone, together = batch_of(one, losses, False), batch_of(all_, losses, True)
        assert [d.call for d in together] == [d.call for d in alone]
        assert all(
            a.proposal.pack() == b.proposal.pack() for a, b in zip(alone, together, strict=True)
        )
        assert together[0].proposal.calls.tolist() != together[1].proposal.calls.tolist()
        asked = all_.belief.losses.asked  # type: ignore[union-attr]
        assert asked == [space.size] * (number + 1)


def test_a_space_too_large_for_its_draws_is_not_gone_through(monkeypatch: Any) -> None:
    losses = np.zeros(2000)
    few = selector_of(space_of(60), 3, 20)
    batch_of(few, losses, True)
    assert max(few.belief.losses.asked) == 20  # type: ignore[union-attr]
    monkeypatch.setattr(selectors, "MAX_AHEAD", 100)
    many = selector_of(space_of(60), 3, 60)
    batch_of(many, losses, True)
    assert max(many.belief.losses.asked) == 60  # type: ignore[union-attr]


# -- exactness ------------------------------------------------------------------------------


def second_draws(first: tuple[int, ...], place: int) -> tuple[Any, Any, Any]:
    """All ways in which the second draw of a batch can go, after the first took the question at
    ``place`` of the candidates ``first``: N a+ and N a- of all targets, and N R."""
    space = space_of(2)
    losses = (np.random.default_rng(4).random(space.total) < 0.5).astype(float)
    eligible = space.nth(np.arange(space.size)).tolist()

    def made(certifier: Certifier, subset: tuple[int, ...], drawn: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(list(subset))
        f, proposal = rng.random(len(subset)), rng.dirichlet(np.ones(len(subset))) * 0.8
        proposal += 0.2 / len(subset)
        inside = certifier.members(np.array(subset))
        move = certifier.bet(inside, np.arange(len(subset)), f, proposal, drawn)
        return move, proposal[drawn]

    unseen = [q for q in eligible if q != first[place]]
    subsets = list(combinations(unseen, len(first)))
    values, weights = [], []
    for subset in subsets:
        for drawn, question in enumerate(subset):
            targets = named_targets(space, TARGETS)
            certifier = Certifier(space, targets, answers="one", half_width=0.1, confidence=0.8)
            made(certifier, first, place)
            seen = certifier.members(np.array([first[place]]))[:, 0] * losses[first[place]]
            move, probability = made(certifier, subset, drawn)
            loss = certifier.members(np.array([question]))[:, 0] * losses[question]
            low = seen + move.low_base + move.scale * (loss - move.low_predicted)
            high = seen + move.high_base + move.scale * (loss - move.high_predicted)
            values.append(np.where(move.active, [low, high], np.nan))
            weights.append(probability / len(subsets))
    truth = certifier.members(np.array(eligible)) @ losses[eligible]
    return np.array(values), np.array(weights), truth


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 2])
def test_given_the_first_draw_of_a_batch_and_its_candidates_the_second_is_unbiased(place: int):
    values, weights, truth = second_draws((0, 3, 8), place)
    assert weights.sum() == pytest.approx(1)
    moved = ~np.isnan(values)
    chance = np.einsum("t,twk->wk", weights, moved)
    mean = np.einsum("t,twk->wk", weights, np.nan_to_num(values)) / chance
    np.testing.assert_allclose(mean, [truth, truth], atol=1e-9)


@pytest.mark.slow
def test_intervals_of_batches_cover_as_often_as_they_say_at_every_moment() -> None:
    """100 audits in batches of 8 at level .2: a tenth of a percent of honest ones fail here."""
    space, missed = space_of(60), 0
    every = space.nth(np.arange(space.size))
    for seed in range(100):
        losses = (np.random.default_rng(seed).random(space.total) < 0.25).astype(float)
        selector = selector_of(space, seed, limit=48)
        certifier = selector.belief.certifying
        inside = certifier.members(every)
        truth = inside @ losses[every] / inside.sum(axis=1)
        held = True
        for _ in range(6):
            batch_of(selector, losses, True)
            sequences = certifier.sequences
            held &= bool(((sequences.lower <= truth) & (truth <= sequences.upper)).all())
        missed += not held
    assert missed <= binom.isf(1e-3, 100, 0.2)


# -- many calls in flight -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("in_flight", "block"), [(1, 1), (9, 4)])
def test_blocks_of_half_as_many_draws_as_calls_in_flight_know_the_same(in_flight: int, block: int):
    space = QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"])
    audit = Audit(space, AtOnce(in_flight), half_width=0.02, targets=TARGETS, budget=40)
    audit.run()
    learned = [row.learned for row in audit.journal.draws()]
    assert learned == [max(0, t // block * block - 2 * in_flight) for t in range(40)]
