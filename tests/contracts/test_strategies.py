"""What every registered strategy promises; hypothesis tries it after any history."""

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from adaptive_vtt import QuestionSpace, strategies
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.errors import InputError
from adaptive_vtt.strategies import Strategy
from adaptive_vtt.testing.contracts import StrategyContract
from adaptive_vtt.types import Candidates
from tests.helpers.strategy_spaces import certified_belief, space_of
from tests.helpers.twins import slowly

NAMES = strategies.names()
NEEDY = {"certify", "neyman", "lure", "bald", "nipv", "failure-search"}
"""Those that need targets, expected losses, or the question GP itself."""


class Some(StrategyContract):
    histories = StrategyContract.histories[::2]


@cache
def once() -> list[tuple[Candidates, Belief]]:
    """Situations that all strategies are tried in: each takes longer to make than to score."""
    return [*Some()._situations()]


class TestStrategies(Some):
    def _situations(self) -> Iterator[tuple[Candidates, Belief]]:
        yield from once()

    @pytest.fixture(autouse=True, params=NAMES)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self._name = request.param

    def make(self) -> Strategy:
        return strategies.get(self._name)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Belief, CandidatePool]:
    """A small random space, and what is known and left after a random history in it."""
    rows = draw(st.integers(1, 6))
    concepts = draw(st.integers(1, 3))
    truth = st.sampled_from([0.0, 1.0, np.nan])
    table = draw(
        st.lists(
            st.lists(truth, min_size=concepts, max_size=concepts), min_size=rows, max_size=rows
        )
    )
    assume(np.isfinite(table).any())
    severities = draw(st.sampled_from([None, [1, 2]]))
    names = ["identity"] if severities is None else ["identity", "rotation"]
    labels = pd.DataFrame(table, columns=[f"c{i}" for i in range(concepts)])
    space = QuestionSpace(from_table(None, labels), names, severities=severities)
    answers: Literal["one", "all"] = draw(st.sampled_from(["one", "all"]))
    # with a limit below the size, candidates are sampled anew for each draw
    pool = CandidatePool(space, seed=0, limit=draw(st.sampled_from([4096, 3])), answers=answers)
    belief = certified_belief(space, answers)
    asked = draw(st.lists(st.integers(0, space.size - 1), unique=True, max_size=space.size - 1))
    history: list[Observation] = []
    for question in space.nth(np.array(asked, int)).tolist():
        f = draw(st.floats(0, 1) | st.sampled_from([None, 0.0, 0.5, 1.0]))
        truth_here = int(space.truth([question])[0])
        answer = None if f is None else (f, (f + truth_here) / 2)
        history.append(Observation(question, truth_here, float(question % 2), *(answer or ())))
    belief.learn(history)
    gone = np.array([outcome.question for outcome in history], np.int64)
    if answers == "all":  # a call takes all questions about its image out
        every = space.nth(np.arange(space.size))
        gone = every[np.isin(space.image_of(every), space.image_of(gone))]
    pool.remove(gone)
    assume(len(pool) > 0)
    belief.look_at(pool.candidates(0))
    return belief, pool


def columns(candidates: Candidates) -> Tensor:
    return torch.cat([getattr(candidates, f.name) for f in fields(candidates)])


def contents(belief: Belief, candidates: Candidates) -> list[Tensor]:
    """Everything a belief says, as tensors of its own."""
    expected = belief.predictability.probability(candidates.image, candidates.concept)
    gp = belief.answers
    said = [belief.uncertainty(), gp.mean(), gp.variance(), gp.counts, gp.reductions(), expected]
    assert belief.losses is not None
    assert belief.certifier is not None
    losses = belief.losses.posterior(candidates, latent=True)
    said += [losses.mean, losses.variance, torch.from_numpy(belief.certifier.sequences.half_width)]
    said += [torch.from_numpy(belief.received), torch.tensor(sorted(belief.asked))]
    said += [torch.tensor(sorted(belief.failed))]
    return [tensor.clone() for tensor in said]


def check_weights(strategy: Strategy, candidates: Candidates, belief: Belief) -> Tensor:
    belief.look_at(candidates)  # as the engine does before every draw
    weights = torch.as_tensor(strategy.weights(candidates, belief))
    assert weights.shape == (len(candidates),)
    assert torch.isfinite(weights).all()
    assert (weights >= 0).all()
    assert weights.sum() > 0
    return weights


@pytest.mark.parametrize("name", NAMES)
def test_weights_leave_what_is_believed_alone(name: str) -> None:
    for candidates, belief in once():
        belief.look_at(candidates)
        known = contents(belief, candidates)
        check_weights(strategies.get(name), candidates, belief)
        pairs = zip(known, contents(belief, candidates), strict=True)
        assert all(torch.equal(before, after) for before, after in pairs)


@pytest.mark.parametrize("name", ["certify", *slowly(*sorted({*NAMES} - {"certify"}))])
@given(situation=situations())
@settings(max_examples=6)
def test_weights_after_any_history_depend_on_the_arguments_alone_and_change_neither(
    name: str, situation: tuple[Belief, CandidatePool]
) -> None:
    belief, pool = situation
    candidates = pool.candidates(0)
    asked, known = columns(candidates).clone(), contents(belief, candidates)
    torch.manual_seed(1)
    first = check_weights(strategies.get(name), candidates, belief).clone()
    assert torch.equal(columns(candidates), asked)
    for before, after in zip(known, contents(belief, candidates), strict=True):
        assert torch.equal(before, after)
    torch.manual_seed(2)
    assert torch.equal(torch.as_tensor(strategies.get(name).weights(candidates, belief)), first)


def test_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match=r"strategy 'unpredictability': .*'epsilom'"):
        strategies.get("unpredictability", epsilom=0.1)
    with pytest.raises(InputError, match=r"strategy 'random': .*'epsilon'"):
        strategies.get("random", epsilon=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_without_certificates_weights_are_weights_or_what_is_missing_is_named(name: str) -> None:
    space = space_of(4, 2)
    belief, candidates = Belief(space, seed=0), CandidatePool(space, seed=0).candidates(0)
    if name in NEEDY:
        with pytest.raises(InputError, match=rf"strategy '{name}' needs .*: give half_width"):
            strategies.get(name).weights(candidates, belief)
    else:
        check_weights(strategies.get(name), candidates, belief)
