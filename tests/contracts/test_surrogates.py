"""What every surrogate promises: `CASES` lists them, each with random observations for it."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.surrogates import AnswerGP, AnswerPoints

CONCEPTS = 3


@dataclass(frozen=True)
class Case:
    """A surrogate to be made anew for each test, and lists of (concept, coordinate) for it."""

    make: Callable[[], Any]
    observations: Callable[[list[tuple[int, float]]], Any]


def answer_points(pairs: list[tuple[int, float]]) -> AnswerPoints:
    concepts = torch.tensor([c for c, _ in pairs], dtype=torch.int64)
    return AnswerPoints(concepts, torch.tensor([a for _, a in pairs], dtype=torch.float64))


def answer_gp(form: Any, repeats: Any) -> Callable[[], AnswerGP]:
    return lambda: AnswerGP(CONCEPTS, form=form, repeats=repeats, device="cpu")


CASES = {
    f"answer-gp-{form}-{repeats}": Case(answer_gp(form, repeats), answer_points)
    for form, repeats in product(("std", "variance"), ("bins", "questions"))
}
EVERYWHERE = [(c, a / 20) for c in range(CONCEPTS) for a in range(21)]
# Few different coordinates, so that bins are hit again and again.
pairs = st.tuples(
    st.integers(0, CONCEPTS - 1), st.sampled_from([0.0, 0.25, 0.5, 0.504, 1.0]) | st.floats(0, 1)
)
observed = st.lists(pairs, min_size=1, max_size=12)
every_surrogate = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def after(case: Case, *batches: list[tuple[int, float]]) -> Any:
    surrogate = case.make()
    for batch in batches:
        surrogate.observe(case.observations(batch))
    return surrogate


def assert_same(case: Case, one: Any, other: Any) -> None:
    candidates = case.observations(EVERYWHERE)
    mine, theirs = one.posterior(candidates), other.posterior(candidates)
    torch.testing.assert_close(mine.mean, theirs.mean, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(mine.variance, theirs.variance, atol=1e-8, rtol=1e-8)


@every_surrogate
@given(batch=observed)
@settings(max_examples=25)
def test_one_batch_comes_to_the_same_as_one_by_one(
    case: Case, batch: list[tuple[int, float]]
) -> None:
    assert_same(case, after(case, batch), after(case, *([pair] for pair in batch)))


@every_surrogate
@given(batch=observed, data=st.data())
@settings(max_examples=25)
def test_order_of_observations_is_irrelevant(
    case: Case, batch: list[tuple[int, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(batch))
    assert_same(case, after(case, batch), after(case, shuffled))


@every_surrogate
@given(batch=observed)
@settings(max_examples=25)
def test_variance_is_never_negative_and_never_grows(
    case: Case, batch: list[tuple[int, float]]
) -> None:
    surrogate, candidates = case.make(), case.observations(EVERYWHERE)
    before = surrogate.posterior(candidates).variance.clone()
    for pair in batch:
        surrogate.observe(case.observations([pair]))
        now = surrogate.posterior(candidates).variance.clone()
        assert (now >= 0).all()
        assert (now <= before + 1e-10).all()
        before = now


@every_surrogate
@given(batch=observed)
@settings(max_examples=10)
def test_candidates_are_predicted_one_value_each_and_independently(
    case: Case, batch: list[tuple[int, float]]
) -> None:
    surrogate, candidates = after(case, batch), case.observations(EVERYWHERE)
    whole = surrogate.posterior(candidates)
    assert whole.mean.shape == whole.variance.shape == (len(EVERYWHERE),)
    assert torch.isfinite(whole.mean).all()
    few = type(candidates)(*(getattr(candidates, f.name)[5:9] for f in fields(candidates)))
    torch.testing.assert_close(surrogate.posterior(few).mean, whole.mean[5:9])
    torch.testing.assert_close(surrogate.posterior(few).variance, whole.variance[5:9])


@every_surrogate
@given(batch=observed)
@settings(max_examples=10)
def test_predicting_teaches_nothing(case: Case, batch: list[tuple[int, float]]) -> None:
    surrogate = after(case, batch)
    for _ in range(3):
        surrogate.posterior(case.observations(EVERYWHERE))
    assert_same(case, surrogate, after(case, batch))
