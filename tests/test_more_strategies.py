"""The strategies beyond the paper's, against brute force and cases worked out by hand."""

import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor

from adaptive_vtt import QuestionSpace, strategies
from adaptive_vtt.certify.plan import Certify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.engine.assembly import fresh_belief
from adaptive_vtt.engine.belief import Belief, Learnt
from adaptive_vtt.engine.candidates import Pool
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments import lookahead
from adaptive_vtt.strategies.common import taken
from adaptive_vtt.strategies.information import information
from adaptive_vtt.strategies.integrated_variance import reduction
from adaptive_vtt.surrogates import AnswerGP, AnswerPoints
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.random_streams import generator

Answers = Literal["one", "all"]
GRID = np.linspace(0, 1, 101)


def certified_belief(
    space: QuestionSpace, answers: Answers = "one", surrogate: bool = True
) -> Belief:
    certify = Certify(0.05, None, 0.95, ("overall", "concepts"), None, "loss", surrogate)
    proxies = Proxies(space, 0, {}, None)
    return fresh_belief(certify, space, answers, seed=0, device="cpu", proxies=proxies)


def learnt(space: QuestionSpace, question: int, f: float, loss: float | None = None) -> Learnt:
    truth = int(space.truth([question])[0])
    wrong = float((f >= 0.5) != truth)
    return Learnt(question, truth, wrong if loss is None else loss, f, (f + truth) / 2)


def space_of(
    samples: int = 12, concepts: int = 3, relations: tuple[str, ...] = ("identity",)
) -> QuestionSpace:
    severities = None if relations == ("identity",) else [1, 3]
    dataset = tiny_dataset(samples, concepts, images=False)
    return QuestionSpace(dataset, relations, severities=severities)


def after(space: QuestionSpace, belief: Belief, count: int, seed: int = 0) -> Belief:
    """The belief after ``count`` random questions with random answers and losses."""
    rng = generator(seed, "answers")
    chosen = space.nth(rng.permutation(space.size)[:count])
    belief.learn([learnt(space, int(q), float(rng.random())) for q in chosen])
    return belief


def looked_at(space: QuestionSpace, belief: Belief, answers: Answers = "one") -> Candidates:
    candidates = Pool(space, seed=0, answers=answers).candidates(0)
    belief.look_at(candidates)
    return candidates


def by_call(candidates: Candidates, weights: Tensor) -> Tensor:
    """What the engine makes of weights."""
    return torch.bincount(candidates.unit, weights, len(candidates.call))


def proportions(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def same_law(weights: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(proportions(weights), proportions(expected.double()))


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
    variants = belief.heard.shape[2]
    gp, low = belief.answers, 50 * side

    def smooth(counts: np.ndarray) -> np.ndarray:
        total = np.zeros(51)
        for b in range(51):
            spread = np.exp(-0.5 * ((GRID[:51] - GRID[b]) / strategy.smoothing) ** 2)
            total += counts[b] * spread / spread.sum()
        return total

    everyone = smooth(belief.heard[:, side].sum(axis=(0, 1))) + strategy.prior / 51
    own = smooth(belief.heard[concept, side].sum(axis=0)) + strategy.prior / 51
    p = own + strategy.pool * everyone / everyone.sum()
    p /= p.sum()
    if strategy.variant_weight and variants > 1:
        p = smooth(belief.heard[concept, side, variant]) + strategy.variant_weight * p
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


def test_expected_reduction_of_a_call_is_the_sum_over_its_questions() -> None:
    space = space_of()
    belief = after(space, Belief(space, seed=0), 20)
    strategy: Any = strategies.get("expected-reduction")
    candidates = looked_at(space, belief, "all")
    worth = strategy.expected(belief)[candidates.concept, candidates.truth, 0]
    totals = by_call(candidates, worth)
    law = by_call(candidates, strategy.weights(candidates, belief))
    best = totals >= totals.max() - 1e-9
    assert law.tolist() == pytest.approx(best.double().tolist())


def test_a_side_whose_answers_bring_nothing_new_is_left_alone() -> None:
    space = space_of(40, 2)
    candidates = Pool(space, seed=0).candidates(0)
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


def test_lookahead_bounds_and_table() -> None:
    jobs = [lookahead.Job("ISIC-like", 20, model, 0) for model in ("unbiased", "biased")]
    found = lookahead.run_all(jobs, 1)
    for curves in found:
        ends = [curve[-1] for curve in curves.values()]
        assert ends == pytest.approx([ends[0]] * len(ends), abs=1e-9)
    table = lookahead.summary(jobs, found)
    assert (table["oracle"] <= table[["random", *lookahead.PAPER]].min(axis=1)).all()
    assert "2 panels" in lookahead.note(table)


def test_lookahead_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookahead, "QUICK_SAMPLES", {"IDRiD-like": 6})
    lookahead.main(["--quick", "--out", str(tmp_path)])
    assert len(pd.read_csv(tmp_path / "lookahead.csv")) == 4
    assert "of 4 panels" in (tmp_path / "lookahead.md").read_text(encoding="utf-8")


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
    same_law(strategies.get("neyman").weights(candidates, belief), (f * (1 - f)).sqrt())
    same_law(strategies.get("lure").weights(candidates, belief), f)


def test_neyman_by_strata_uses_the_mean_variance_of_each() -> None:
    space = space_of(relations=("identity", "rotation"))
    belief = after(space, certified_belief(space), 40)
    candidates = looked_at(space, belief)
    assert belief.predictions is not None
    variance = (belief.predictions * (1 - belief.predictions)).numpy()
    table = pd.DataFrame({n: getattr(candidates, n) for n in ("variant", "concept", "truth")})
    expected = table.assign(v=variance).groupby(["variant", "concept", "truth"])["v"]
    wanted = torch.tensor(np.sqrt(expected.transform("mean").to_numpy()))
    same_law(strategies.get("neyman", stratified=True).weights(candidates, belief), wanted)


def test_calls_with_several_questions() -> None:
    space = space_of()
    belief = after(space, certified_belief(space, "all"), 18)
    candidates = looked_at(space, belief, "all")
    f = belief.predictions
    assert f is not None
    neyman = strategies.get("neyman").weights(candidates, belief)
    same_law(by_call(candidates, neyman), by_call(candidates, f * (1 - f)).sqrt())
    lure = strategies.get("lure").weights(candidates, belief)
    same_law(by_call(candidates, lure), by_call(candidates, f))


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
    heard = pd.DataFrame({"variant": variant, "concept": concept, "truth": truth})
    heard["wrong"] = (said >= 0.5) != (truth == 1)
    strata = heard.groupby(keys)["wrong"].agg(["sum", "count"])
    candidates = looked_at(space, belief, answers)
    table = pd.DataFrame({n: getattr(candidates, n).numpy() for n in keys})
    joined = table.join(strata, on=keys).fillna(0)
    p = (joined["sum"] + 1) / (joined["count"] + 2)
    spread = torch.tensor(np.sqrt(p * (1 - p)).to_numpy())
    assert spread.std() > 0.01
    if answers == "all":
        spread = by_call(candidates, spread) / by_call(candidates, torch.ones(len(spread)))
    same_law(by_call(candidates, strategy.weights(candidates, belief)), spread)


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


def test_bald_prefers_what_is_open_and_not_known() -> None:
    mean = torch.tensor([0.5, 0.5, 0.9]).double()
    found = information(mean, torch.tensor([0.02, 0.001, 0.001]).double())
    assert found[0] > found[1] > 0
    assert float(information(mean, mean * 0).max()) == 0


@pytest.mark.parametrize("answers", ["one", "all"])
def test_nipv_is_that_of_dense_linear_algebra(answers: Answers) -> None:
    space = space_of(10, 2)
    belief = after(space, certified_belief(space, answers), 12)
    gp: Any = belief.losses
    candidates = looked_at(space, belief, answers)
    weights = strategies.get("nipv").weights(candidates, belief)
    covariance, noise = gp.joint(candidates).numpy(), gp.noise(candidates).numpy()
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
    every = torch.arange(n)
    found = reduction(torch.from_numpy(covariance), torch.from_numpy(noise), every, every)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)


def test_noise_and_joint_are_those_of_the_gp_after_another_answer() -> None:
    space = space_of(10, 2)
    belief = after(space, certified_belief(space), 12)
    gp: Any = belief.losses
    candidates = looked_at(space, belief)
    before, noise = gp.joint(candidates), gp.noise(candidates)
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
        same_law(weights, torch.from_numpy(distance)[candidates.sample])
        order.append(int(candidates.sample[int(weights.argmax())]))
    assert order == [0, 5, 4, 2, 1]


def test_k_centre_without_a_question_gp_looks_at_truths() -> None:
    labels = pd.DataFrame({"A": [0, 1, 1, 0], "B": [0, 0, 1, np.nan]})
    space = QuestionSpace(from_table(None, labels))
    belief = Belief(space, seed=0)
    belief.learn([learnt(space, 0, 0.1)])
    candidates = looked_at(space, belief)
    weights = strategies.get("k-centre", power=2).weights(candidates, belief)
    same_law(weights, torch.tensor([0, 1, 2, 0.25])[candidates.sample])


@pytest.mark.parametrize("answers", ["one", "all"])
def test_k_centre_once_every_sample_was_asked(answers: Answers) -> None:
    space = space_of(4, 2)
    belief = after(space, Belief(space, seed=0), space.size)
    candidates = looked_at(space, belief, answers)
    law = by_call(candidates, strategies.get("k-centre").weights(candidates, belief))
    assert law.tolist() == pytest.approx([1.0] * len(law))


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
    same_law(strategy.weights(candidates, belief), wanted)


def planted() -> tuple[QuestionSpace, np.ndarray]:
    """300 samples x 2 concepts in a plane; failures fill one disc, under every perturbation."""
    rng = generator(7, "planted failures")
    features = rng.normal(size=(300, 2))
    labels = pd.DataFrame(rng.integers(0, 2, (300, 2)), columns=["A", "B"])
    space = QuestionSpace(
        from_table(None, labels, features=features), ["identity", "rotation"], severities=[1, 3]
    )
    failing = np.linalg.norm(features - [1.0, 1.0], axis=1) < 0.6
    return space, failing


def distinct_failures(name: str, calls: int, answers: Answers, seed: int) -> int:
    space, failing = planted()
    belief = certified_belief(space, answers)
    selector = Selector(
        space, strategies.get(name), seed=seed, floor=0.2, answers=answers, belief=belief
    )
    for _ in range(calls):
        draw = selector.draw()
        assert draw is not None
        one = np.array([draw.call])
        questions = one if answers == "one" else draw.call * 2 + np.arange(2)
        selector.take(questions, draw.move)
        samples = space.parts(questions)[0]
        pairs = zip(questions.tolist(), samples, strict=True)
        selector.learn([learnt(space, q, 0.5, float(failing[s])) for q, s in pairs])
    return len(belief.failed)


@pytest.mark.parametrize(
    ("answers", "calls"), [("one", 120), pytest.param("all", 100, marks=pytest.mark.slow)]
)
def test_failure_search_finds_twice_the_failures_of_random(answers: Answers, calls: int) -> None:
    random = distinct_failures("random", calls, answers, seed=2)
    found = distinct_failures("failure-search", calls, answers, seed=2)
    assert found >= 2 * random > 0, (found, random)


# -- all of them ---------------------------------------------------------------------------


def test_every_strategy_is_listed() -> None:
    paper = [
        "random",
        "stratified",
        "unpredictability",
        "uncertainty",
        "uncertainty+unpredictability",
    ]
    others = "expected-reduction neyman lure bald nipv k-centre failure-search"
    others += " distinct-violations reic"
    assert strategies.names() == [*paper, *others.split()]


def test_candidates_taken_for_prediction_keep_their_calls() -> None:
    candidates = Pool(space_of(), seed=0).candidates(0)
    some = taken(candidates, torch.tensor([3, 1]))
    assert some.question.tolist() == candidates.question[[3, 1]].tolist()
    assert some.call is candidates.call
