"""What every surrogate promises."""

from collections.abc import Sequence
from typing import Any

import torch

from ...surrogates import Posterior, Surrogate
from ...utils.random_streams import generator

COUNT = 12
"""So many observations there are."""


class SurrogateContract:
    """``make``: the surrogate; ``observations`` and ``candidates``: what it takes, by number."""

    tolerance = 1e-8
    """By how much means and variances may differ when observed in another way."""
    batches_alike = True
    """Whether one batch comes to the same as one by one: not where something is fitted anew
    whenever so many were observed."""
    shrinks = True
    """Whether no observation makes any prediction less sure."""

    def make(self) -> Surrogate[Any, Any]:
        raise TypeError(f"{type(self).__name__} defines no make")

    def observations(self, numbers: Sequence[int]) -> Any:
        """The observations of these numbers (0..11), in this order: always the same."""
        raise TypeError(f"{type(self).__name__} defines no observations")

    def candidates(self, numbers: Sequence[int]) -> Any:
        """The points of these numbers (0..11), in this order: always the same."""
        raise TypeError(f"{type(self).__name__} defines no candidates")

    # -- the tests ---------------------------------------------------------------------

    def test_it_predicts_before_it_has_observed(self) -> None:
        self._posterior(self.make())

    def test_one_batch_comes_to_the_same_as_one_by_one(self) -> None:
        one_by_one = self._after(*([number] for number in range(COUNT)))
        if self.batches_alike:
            self._assert_same(self._after(range(COUNT)), one_by_one)
        self._assert_same(self._after(*([number] for number in range(COUNT))), one_by_one)

    def test_order_of_observations_is_irrelevant(self) -> None:
        shuffled = generator(0, "contract").permutation(COUNT).tolist()
        self._assert_same(self._after(range(COUNT)), self._after(shuffled))

    def test_variance_is_never_negative_and_does_not_grow(self) -> None:
        surrogate = self.make()
        before = self._posterior(surrogate).variance.clone()
        for number in range(COUNT):
            surrogate.observe(self.observations([number]))
            now = self._posterior(surrogate).variance.clone()
            assert not self.shrinks or (now <= before + 1e-10).all()
            before = now

    def test_what_was_observed_changes_what_is_predicted(self) -> None:
        before, after = self._posterior(self.make()), self._posterior(self._after(range(COUNT)))
        assert not torch.equal(before.mean, after.mean)

    def test_candidates_are_predicted_whatever_their_company(self) -> None:
        surrogate = self._after(range(COUNT))
        whole = self._posterior(surrogate)
        few = surrogate.posterior(self.candidates(range(5, 9)))
        self._assert_close(few, Posterior(whole.mean[5:9], whole.variance[5:9]))

    def test_predicting_teaches_nothing(self) -> None:
        surrogate = self._after(range(COUNT))
        for _ in range(3):
            self._posterior(surrogate)
        self._assert_same(surrogate, self._after(range(COUNT)))

    # -- what they are made of ---------------------------------------------------------

    def _after(self, *batches: Sequence[int]) -> Surrogate[Any, Any]:
        surrogate = self.make()
        for batch in batches:
            surrogate.observe(self.observations(batch))
        return surrogate

    def _posterior(self, surrogate: Surrogate[Any, Any]) -> Posterior:
        found = surrogate.posterior(self.candidates(range(COUNT)))
        assert found.mean.shape == found.variance.shape == (COUNT,)
        assert torch.isfinite(found.mean).all()
        assert torch.isfinite(found.variance).all()
        assert (found.variance >= 0).all()
        return found

    def _assert_same(self, one: Surrogate[Any, Any], other: Surrogate[Any, Any]) -> None:
        self._assert_close(self._posterior(one), self._posterior(other))

    def _assert_close(self, one: Posterior, other: Posterior) -> None:
        for mine, theirs in ((one.mean, other.mean), (one.variance, other.variance)):
            torch.testing.assert_close(mine, theirs, atol=self.tolerance, rtol=self.tolerance)
