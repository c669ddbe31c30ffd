"""The strategies beyond the paper's, against brute force and cases worked out by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.acquisition import UpperConfidenceBound, qUpperConfidenceBound
from scipy.integrate import quad
from scipy.stats import norm

from adaptive_vtt import QuestionSpace, strategies
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.errors import InputError
from adaptive_vtt.strategies.information import information
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.strategy_spaces import (
    Answers,
    after,
    by_call,
    certified_belief,
    learnt,
    looked_at,
    same_proposal,
    space_of,
)

# -- neyman and lure -----------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", [True, False])
def test_neyman_and_lure_are_proportional(surrogate: bool) -> None:
    space = space_of()
    belief = after(space, certified_belief(space, surrogate=surrogate), 20)
    candidates = looked_at(space, belief)
    if surrogate:
        assert belief.losses is not None
        f = belief.losses.posterior(candidates).mean
        assert f.std() > 0.01
    else:
        certifier: Any = belief.certifier
        inside = certifier.members(candidates.question.numpy()).astype(float)
        f = torch.from_numpy(certifier.sequences.centre @ inside / inside.sum(axis=0))
    same_proposal(strategies.get("neyman").weights(candidates, belief), (f * (1 - f)).sqrt())
    same_proposal(strategies.get("lure").weights(candidates, belief), f)


# -- stratified ----------------------------------------------------------------------------


@pytest.mark.parametrize("answers", ["one", "all"])
def test_stratified_is_neyman_allocation_by_the_answers_heard(answers: Answers) -> None:
    space = space_of(relations=("identity", "rotation"))
    belief = Belief(space, seed=0)
    strategy = strategies.get("stratified")
    candidates = looked_at(space, belief, answers)
    even = by_call(candidates, strategy.weights(candidates, belief))
    assert even.tolist() == pytest.approx([float(even[0])] * len(even))

    rng = generator(3, "answers")
    chosen = space.nth(rng.permutation(space.size)[:70])
    said, truth = rng.integers(0, 51, 70) / 50, space.truth(chosen)
    said[:5] = 0.5  # a yes
    belief.learn([learnt(space, int(q), float(f)) for q, f in zip(chosen, said, strict=True)])
    _, variant, concept = space.parts(chosen)
    keys = ["variant", "concept", "truth"] if answers == "one" else ["variant"]
    received = pd.DataFrame({"variant": variant, "concept": concept, "truth": truth})
    received["wrong"] = (said >= 0.5) != (truth == 1)
    strata = received.groupby(keys)["wrong"].agg(["sum", "count"])
    candidates = looked_at(space, belief, answers)
    table = pd.DataFrame({n: getattr(candidates, n).numpy() for n in keys})
    joined = table.join(strata, on=keys).fillna(0)
    p = (joined["sum"] + 1) / (joined["count"] + 2)
    spread = torch.tensor(np.sqrt(p * (1 - p)).to_numpy())
    assert spread.std() > 0.01
    if answers == "all":
        spread = by_call(candidates, spread) / by_call(candidates, torch.ones(len(spread)))
    same_proposal(by_call(candidates, strategy.weights(candidates, belief)), spread)


# -- bald and nipv -------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "variance"), [(0.5, 0.01), (0.3, 0.02), (0.5, 0.0), (0.1, 1e-4)])
def test_bald_is_the_mutual_information(mean: float, variance: float) -> None:
    def entropy(p: float) -> float:
        return -sum(x * np.log(x) for x in (p, 1 - p) if x > 0)

    def expected(function: Any) -> float:
        if variance == 0:
            return float(function(mean))
        sd = variance**0.5

        def inner(z: float) -> float:
            return float(function(min(max(mean + sd * z, 0), 1)) * norm.pdf(z))

        return quad(inner, -8, 8, limit=200)[0]

    wanted = entropy(expected(lambda p: p)) - expected(entropy)
    found = information(torch.tensor([mean]).double(), torch.tensor([variance]).double())
    assert float(found[0]) == pytest.approx(wanted, rel=0.01, abs=1e-9)


@pytest.mark.parametrize("answers", ["one", "all"])
def test_nipv_is_that_of_dense_linear_algebra(answers: Answers) -> None:
    space = space_of(10, 2)
    belief = after(space, certified_belief(space, answers), 12)
    gp: Any = belief.losses
    candidates = looked_at(space, belief, answers)
    weights = strategies.get("nipv").weights(candidates, belief)
    _, covariance, noise = (part.numpy() for part in gp.normal(candidates))
    n = len(candidates)
    wanted = np.zeros(n)
    for x in range(n):
        row = covariance[[x]]
        seen = np.array([[covariance[x, x] + noise[x]]])
        posterior = covariance - row.T @ np.linalg.solve(seen, row)
        wanted[x] = (np.trace(covariance) - np.trace(posterior)) / n
    torch.testing.assert_close(
        weights / weights.max(), torch.from_numpy(wanted / wanted.max()), atol=1e-9, rtol=1e-9
    )


class Upper:
    """An acquisition function of BoTorch as a strategy."""

    def weights(self, candidates: Any, belief: Any) -> Any:
        bound = UpperConfidenceBound(belief.model(), beta=4.0)
        return bound(candidates.question[:, None, None].double()).detach().clamp(min=0)


@pytest.mark.parametrize("answers", ["one", "all"])
def test_questions_are_points_of_a_botorch_model(answers: Answers) -> None:
    space = space_of(10, 2)
    belief = after(space, certified_belief(space, answers), 12)
    gp: Any = belief.losses
    candidates = looked_at(space, belief, answers)
    latent = gp.posterior(candidates, latent=True)
    together = belief.model().posterior(candidates.question[:, None].double())
    torch.testing.assert_close(together.mean[:, 0], latent.mean)
    covariance = together.distribution.covariance_matrix
    torch.testing.assert_close(covariance, gp.joint(candidates))
    torch.testing.assert_close(covariance.diagonal(), latent.variance)
    wanted = latent.mean + 2 * latent.variance.sqrt()
    torch.testing.assert_close(Upper().weights(candidates, belief), wanted)
    pairs = candidates.question[:6].reshape(3, 2, 1).double()
    torch.manual_seed(0)
    best = qUpperConfidenceBound(belief.model(), beta=4.0)(pairs)
    assert best.shape == (3,)


def test_an_audit_without_the_question_gp_has_no_botorch_model() -> None:
    space = space_of(10, 2)
    with pytest.raises(InputError, match=r"expected the question GP, .* got NoneType"):
        Belief(space, seed=0).model()


def test_noise_and_joint_are_those_of_the_gp_after_another_answer() -> None:
    space = space_of(10, 2)
    belief = after(space, certified_belief(space), 12)
    gp: Any = belief.losses
    candidates = looked_at(space, belief)
    _, before, noise = gp.normal(candidates)
    # what the GP itself says of its latent variance after one more answer, kernel and F held
    gp._next_renewal = 10**9
    gp._factor.lower = torch.block_diag(gp._factor.lower, torch.eye(1).double())
    gp._factor._half = torch.cat([gp._factor._half, gp._factor._half.new_zeros(1, 1)])
    wanted = before.diagonal() - before[3] ** 2 / (before[3, 3] + noise[3])
    outcome = learnt(space, int(candidates.question[3]), 0.9)
    gp.observe(belief._losses([outcome]))
    found = gp.posterior(candidates, latent=True).variance
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", ["bald", "nipv"])
@pytest.mark.parametrize("answers", ["one", "all"])
def test_only_whole_calls_of_a_sub_sample_are_scored(name: str, answers: Answers) -> None:
    space = space_of(60, 3)
    belief = after(space, certified_belief(space, answers), 20)
    candidates = looked_at(space, belief, answers)
    weights = strategies.get(name, scored=30).weights(candidates, belief)
    assert 10 <= int((weights > 0).sum()) <= 30
    whole = by_call(candidates, (weights > 0).double()) / by_call(candidates, weights * 0 + 1)
    assert set(whole.tolist()) == {0.0, 1.0}
    again = after(space, belief, 1, seed=3)
    other = strategies.get(name, scored=30).weights(candidates, again)
    assert not torch.equal(weights > 0, other > 0)


# -- k-centre ------------------------------------------------------------------------------


def placed(features: np.ndarray) -> TableDataset:
    labels = pd.DataFrame({"A": [0, 1] * (len(features) // 2), "B": [1, 0] * (len(features) // 2)})
    return from_table(None, labels, features=features)


def test_k_centre_is_farthest_first() -> None:
    places = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 30.0])
    space = QuestionSpace(placed(np.stack([places, 0 * places], axis=1)))
    belief = certified_belief(space)
    gp: Any = belief.losses
    gp._features = lambda samples: torch.from_numpy(places)[samples][:, None]
    candidates = looked_at(space, belief)
    strategy = strategies.get("k-centre")
    assert strategy.weights(candidates, belief).unique().tolist() == [1.0]
    order = [0]
    for _ in range(4):
        belief.learn([learnt(space, order[-1] * 2, 0.5)])
        weights = strategy.weights(candidates, belief)
        distance = np.abs(places[:, None] - places[order]).min(axis=1)
        same_proposal(weights, torch.from_numpy(distance)[candidates.sample])
        order.append(int(candidates.sample[int(weights.argmax())]))
    assert order == [0, 5, 4, 2, 1]


# -- failure-search ------------------------------------------------------------------------


def test_failure_search_scores_the_bound_and_discounts_what_failed() -> None:
    space = space_of(12, 3, ("identity", "rotation"))
    belief = after(space, certified_belief(space), 40)
    candidates = looked_at(space, belief)
    gp: Any = belief.losses
    latent = gp.posterior(candidates, latent=True)
    failed = [
        (s, c) in belief.failed
        for s, c in zip(candidates.sample.tolist(), candidates.concept.tolist(), strict=True)
    ]
    assert 0 < sum(failed) < len(candidates)
    bound = (latent.mean + 0.5 * latent.variance.sqrt()).clamp(max=1)
    wanted = (bound * torch.where(torch.tensor(failed), 0.1, 1.0)) ** 3
    strategy = strategies.get("failure-search", beta=0.5, power=3, again=0.1)
    same_proposal(strategy.weights(candidates, belief), wanted)
