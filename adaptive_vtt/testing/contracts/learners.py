"""What every surrogate promises, and every strategy after several histories."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...engine.assembly import fresh_belief
from ...engine.belief import Belief, Observation
from ...engine.candidates import CandidatePool
from ...engine.options import Certify
from ...engine.proxies import Proxies
from ...space import QuestionSpace
from ...strategies import Strategy
from ...surrogates import Posterior, Surrogate
from ...types import CallMode, Candidates
from ...utils.random_streams import generator
from .. import tiny_dataset

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
        assert torch.isfinite(torch.cat([found.mean, found.variance])).all()
        assert (found.variance >= 0).all()
        return found

    def _assert_same(self, one: Surrogate[Any, Any], other: Surrogate[Any, Any]) -> None:
        self._assert_close(self._posterior(one), self._posterior(other))

    def _assert_close(self, one: Posterior, other: Posterior) -> None:
        for mine, theirs in ((one.mean, other.mean), (one.variance, other.variance)):
            torch.testing.assert_close(mine, theirs, atol=self.tolerance, rtol=self.tolerance)


class StrategyContract:
    """``make``: the strategy. ``space``: what is asked about."""

    histories: tuple[tuple[float, tuple[float | None, ...]], ...] = (
        (0.0, ()),
        (0.2, (None,)),
        (0.5, (None, 0.0, 0.5, 1.0)),
    )
    """The share of images asked about before, and what was said: P(yes), or None for nothing."""
    targets: tuple[str, ...] = ("overall", "concepts")
    """What is to be certified."""

    def make(self) -> Strategy:
        raise TypeError(f"{type(self).__name__} defines no make")

    def space(self) -> QuestionSpace:
        """A small space."""
        return QuestionSpace(tiny_dataset(5, 2, images=False), ["identity", "rotation"])

    # -- the tests ---------------------------------------------------------------------

    def test_weights_are_weights_after_any_history(self) -> None:
        for candidates, belief in self._situations():
            self._weights(candidates, belief)

    def test_weights_depend_on_the_arguments_alone(self) -> None:
        for candidates, belief in self._situations():
            torch.manual_seed(1)
            first = self._weights(candidates, belief).clone()
            torch.manual_seed(2)
            assert torch.equal(self._weights(candidates, belief), first)

    def test_candidates_are_left_alone(self) -> None:
        for candidates, belief in self._situations():
            before = [getattr(candidates, field.name).clone() for field in fields(candidates)]
            self._weights(candidates, belief)
            after = [getattr(candidates, field.name) for field in fields(candidates)]
            assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))

    def test_a_single_candidate_has_weight(self) -> None:
        for candidates, belief in self._situations():
            self._weights(_of(candidates, torch.tensor([len(candidates) - 1])), belief)

    def test_one_side_of_one_concept_left_has_weight(self) -> None:
        for candidates, belief in self._situations():
            for cell in candidates.cell.unique().tolist():  # type: ignore[no-untyped-call]
                self._weights(_of(candidates, (candidates.cell == cell).nonzero()[:, 0]), belief)

    # -- what they are made of ---------------------------------------------------------

    def _weights(self, candidates: Candidates, belief: Belief) -> Tensor:
        belief.look_at(candidates)  # as the engine does before every draw
        weights = torch.as_tensor(self.make().weights(candidates, belief))
        assert weights.shape == (len(candidates),)
        assert torch.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() > 0
        return weights

    def _situations(self) -> Iterator[tuple[Candidates, Belief]]:
        """Candidates after each history, and beliefs that know all a strategy may ask for."""
        modes: tuple[CallMode, ...] = ("all", "one")
        for answers in modes:
            for share, said in self.histories:
                space = self.space()
                certify = Certify(0.1, None, 0.95, self.targets, None, "loss")
                more: Any = {"seed": 0, "device": "cpu", "proxies": Proxies(space, {})}
                belief = fresh_belief(certify, space, answers, **more)
                pool = CandidatePool(space, seed=0, limit=4096, answers=answers)
                _learn(belief, pool, space, share, said)
                yield pool.candidates(0), belief


def _learn(
    belief: Belief,
    pool: CandidatePool,
    space: QuestionSpace,
    share: float,
    said: tuple[float | None, ...],
) -> None:
    """A history: this share of all images was asked about, and these answers came."""
    every = space.nth(np.arange(space.size))
    images = np.unique(space.image_of(every))
    rng = generator(0, "contract")
    some = rng.permutation(images)[: int(share * len(images))]
    asked = every[np.isin(space.image_of(every), some)]
    history = []
    for question, truth in zip(asked.tolist(), space.truth(asked).tolist(), strict=True):
        f = said[int(rng.integers(len(said)))]
        known = () if f is None else (f, (f + truth) / 2)
        loss = 1.0 if f is None else abs(f - truth)
        history.append(Observation(question, truth, loss, *known))
    belief.learn(history)
    pool.remove(asked)


def _of(candidates: Candidates, places: Tensor) -> Candidates:
    """The questions at these places, and their calls."""
    kept, unit = candidates.unit[places].unique(return_inverse=True)  # type: ignore[no-untyped-call]
    rest = [f.name for f in fields(candidates) if f.name not in ("unit", "call")]
    questions = {name: getattr(candidates, name)[places] for name in rest}
    return replace(candidates, **questions, unit=unit, call=candidates.call[kept])
