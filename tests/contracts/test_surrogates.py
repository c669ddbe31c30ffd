"""What every surrogate promises; hypothesis tries the answer GP with many more histories."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.surrogates import AnswerGP, AnswerPoints, Losses, QuestionGP
from adaptive_vtt.testing.contracts import SurrogateContract

from .registered import assert_covered

CONCEPTS = 3
COORDINATES = (0.0, 0.25, 0.5, 0.504, 1.0, 0.5, 0.1, 0.9, 0.25, 0.7, 0.0, 1.0)


def answer_points(numbers: Sequence[int]) -> AnswerPoints:
    places = list(numbers)
    return AnswerPoints(
        torch.tensor([n % CONCEPTS for n in places], dtype=torch.int64),
        torch.tensor([COORDINATES[n] for n in places], dtype=torch.float64),
    )


def losses(numbers: Sequence[int]) -> Losses:
    """Twelve questions about six images, two variants and two concepts."""
    places = torch.tensor(list(numbers), dtype=torch.int64)
    concept = places % 2
    loss = torch.tensor([COORDINATES[n] for n in numbers], dtype=torch.float64)
    return Losses(places // 4, places // 2 % 2, concept, (places // 3) % 2, loss)


def answer_gp(form: Any, repeats: Any) -> Callable[[], AnswerGP]:
    return lambda: AnswerGP(CONCEPTS, form=form, repeats=repeats, device="cpu")


def question_gp(shared: bool) -> Callable[[], QuestionGP]:
    return lambda: QuestionGP([0, 1], [0, 1], 2, shared=shared, device="cpu")


CASES: dict[str, tuple[Callable[[], Any], Callable[[Sequence[int]], Any]]] = {
    **{
        f"answer-gp, {form}, {repeats}": (answer_gp(form, repeats), answer_points)
        for form, repeats in product(("std", "variance"), ("bins", "questions"))
    },
    "question-gp, one call a question": (question_gp(False), losses),
    "question-gp, one call an image": (question_gp(True), losses),
}


def test_every_surrogate_has_a_case() -> None:
    assert_covered("surrogates", {**CASES})


class TestSurrogates(SurrogateContract):
    @pytest.fixture(autouse=True, params=CASES)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self._make, self._points = CASES[request.param]
        if request.param.startswith("question-gp"):  # F is fitted at 1, 2, 3 ... units
            self.shrinks, self.batches_alike, self.tolerance = False, False, 1e-6

    def make(self) -> Any:
        return self._make()

    def observations(self, numbers: Sequence[int]) -> Any:
        return self._points(numbers)

    def candidates(self, numbers: Sequence[int]) -> Any:
        return self._points(numbers)


# Few different coordinates, so that bins are hit again and again.
PAIRS = st.tuples(
    st.integers(0, CONCEPTS - 1), st.sampled_from([0.0, 0.25, 0.5, 0.504, 1.0]) | st.floats(0, 1)
)
EVERYWHERE = [(c, a / 20) for c in range(CONCEPTS) for a in range(21)]
ANSWER_GPS = [make for name, (make, _) in CASES.items() if name.startswith("answer-gp")]


def points(pairs: Sequence[tuple[int, float]]) -> AnswerPoints:
    concepts = torch.tensor([c for c, _ in pairs], dtype=torch.int64)
    return AnswerPoints(concepts, torch.tensor([a for _, a in pairs], dtype=torch.float64))


@pytest.mark.parametrize("make", ANSWER_GPS)
@given(batch=st.lists(PAIRS, min_size=1, max_size=12), data=st.data())
@settings(max_examples=20)
def test_any_history_comes_to_the_same_in_any_order_and_one_by_one(
    make: Callable[[], AnswerGP], batch: list[tuple[int, float]], data: st.DataObject
) -> None:
    whole, single = make(), make()
    whole.observe(points(batch))
    before = single.posterior(points(EVERYWHERE)).variance.clone()
    for pair in data.draw(st.permutations(batch)):
        single.observe(points([pair]))
        now = single.posterior(points(EVERYWHERE)).variance.clone()
        assert (now >= 0).all()
        assert (now <= before + 1e-10).all()
        before = now
    one, other = whole.posterior(points(EVERYWHERE)), single.posterior(points(EVERYWHERE))
    torch.testing.assert_close(one.mean, other.mean, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(one.variance, other.variance, atol=1e-8, rtol=1e-8)
