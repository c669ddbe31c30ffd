"""Contract suites of surrogates and of strategies."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...engine.belief import Belief, Observation
from ...engine.candidates import CandidatePool
from ...engine.options import Certify
from ...engine.predictors import fresh_belief
from ...engine.proxies import Proxies
from ...space import QuestionSpace
from ...surrogates import Posterior, Surrogate
from ...types import CallMode, Candidates
from ...utils.random_streams import generator
from .. import tiny_dataset
from .checks import Contract

COUNT = 12
"""Number of observations."""


class SurrogateContract(Contract):
    """Tests of a surrogate, which ``make`` returns.

    ``observations`` and ``candidates`` return its inputs by number.
    """

    tolerance = 1e-8
    """Maximum difference of means and variances between orders and batches of observations."""
    batches_alike = True
    """True if one batch has the same result as single observations; False if the surrogate is
    refitted at certain numbers of observations."""
    shrinks = True
    """True if no observation increases the variance of a prediction."""

    def observations(self, numbers: Sequence[int]) -> Any:
        """Return fixed observations by their numbers (0..11), in this order."""
        raise TypeError(f"{type(self).__name__} defines no observations")

    def candidates(self, numbers: Sequence[int]) -> Any:
        """Return fixed points by their numbers (0..11), in this order."""
        raise TypeError(f"{type(self).__name__} defines no candidates")

    # -- the tests ---------------------------------------------------------------------

    def test_batches_and_the_order_of_observations_are_irrelevant(self) -> None:
        one_by_one = self._after(*([number] for number in range(COUNT)))
        if self.batches_alike:
            self._assert_same(self._after(range(COUNT)), one_by_one)
        self._assert_same(self._after(*([number] for number in range(COUNT))), one_by_one)
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

    def test_predictions_do_not_depend_on_other_candidates_or_earlier_predictions(self) -> None:
        surrogate = self._after(range(COUNT))
        for _ in range(3):
            whole = self._posterior(surrogate)
        few = surrogate.posterior(self.candidates(range(5, 9)))
        self._assert_close(few, Posterior(whole.mean[5:9], whole.variance[5:9]))
        self._assert_same(surrogate, self._after(range(COUNT)))

    def _after(self, *batches: Sequence[int]) -> Surrogate[Any, Any]:
        surrogate = self.make()
        for batch in batches:
            surrogate.observe(self.observations(batch))
        return surrogate

    def _posterior(self, surrogate: Surrogate[Any, Any]) -> Posterior:
        posterior = surrogate.posterior(self.candidates(range(COUNT)))
        assert posterior.mean.shape == posterior.variance.shape == (COUNT,)
        assert torch.isfinite(torch.cat([posterior.mean, posterior.variance])).all()
        assert (posterior.variance >= 0).all()
        return posterior

    def _assert_same(self, one: Surrogate[Any, Any], other: Surrogate[Any, Any]) -> None:
        self._assert_close(self._posterior(one), self._posterior(other))

    def _assert_close(self, one: Posterior, other: Posterior) -> None:
        for mine, theirs in ((one.mean, other.mean), (one.variance, other.variance)):
            torch.testing.assert_close(mine, theirs, atol=self.tolerance, rtol=self.tolerance)


class StrategyContract(Contract):
    """Tests of a strategy, which ``make`` returns, on the questions of ``space``."""

    histories: tuple[tuple[float, tuple[float | None, ...]], ...] = (
        (0.0, ()),
        (0.2, (None,)),
        (0.5, (None, 0.0, 0.5, 1.0)),
    )
    """Histories: the share of images that were asked about, and the possible answers, P(yes) or
    None for unanswered."""
    targets: tuple[str, ...] = ("overall", "concepts")
    """Targets to certify."""

    def space(self) -> QuestionSpace:
        """Return a small question space."""
        return QuestionSpace(tiny_dataset(5, 2, images=False), ["identity", "rotation"])

    # -- the tests ---------------------------------------------------------------------

    def test_weights_depend_on_the_arguments_alone_and_leave_them_alone(self) -> None:
        for candidates, belief in self._situations():
            before = [getattr(candidates, field.name).clone() for field in fields(candidates)]
            torch.manual_seed(1)
            first = self._weights(candidates, belief).clone()
            torch.manual_seed(2)
            assert torch.equal(self._weights(candidates, belief), first)
            after = [getattr(candidates, field.name) for field in fields(candidates)]
            assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))

    def test_a_single_candidate_and_one_side_of_one_concept_have_weight(self) -> None:
        for candidates, belief in self._situations():
            self._weights(_of(candidates, torch.tensor([len(candidates) - 1])), belief)
            for cell in candidates.cell.unique().tolist():  # type: ignore[no-untyped-call]
                self._weights(_of(candidates, (candidates.cell == cell).nonzero()[:, 0]), belief)

    def _weights(self, candidates: Candidates, belief: Belief) -> Tensor:
        belief.look_at(candidates)  # as the engine does before every draw
        weights = torch.as_tensor(self.make().weights(candidates, belief))
        assert weights.shape == (len(candidates),)
        assert torch.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() > 0
        return weights

    def _situations(self) -> Iterator[tuple[Candidates, Belief]]:
        """Yield the candidates and the belief after all histories, for both modes of calls."""
        modes: tuple[CallMode, ...] = ("all", "one")
        for answers, (share, possible) in product(modes, self.histories):
            space = self.space()
            certify = Certify(0.1, None, 0.95, self.targets, None, "loss")
            more: Any = {"seed": 0, "device": "cpu", "proxies": Proxies(space, {})}
            belief = fresh_belief(certify, space, answers, **more)
            pool = CandidatePool(space, seed=0, limit=4096, answers=answers)
            belief.learn(history := _history(space, share, possible))
            pool.remove(np.array([observation.question for observation in history], int))
            yield pool.candidates(0), belief


def _history(
    space: QuestionSpace, share: float, possible: tuple[float | None, ...]
) -> list[Observation]:
    """Return observations of a share of all images, with answers drawn from ``possible``."""
    questions = space.nth(np.arange(space.size))
    images = np.unique(space.image_of(questions))
    rng = generator(0, "contract")
    asked_images = rng.permutation(images)[: int(share * len(images))]
    asked = questions[np.isin(space.image_of(questions), asked_images)]
    history = []
    for question, truth in zip(asked.tolist(), space.truth(asked).tolist(), strict=True):
        answer = possible[int(rng.integers(len(possible)))]
        known = () if answer is None else (answer, (answer + truth) / 2)
        loss = 1.0 if answer is None else abs(answer - truth)
        history.append(Observation(question, truth, loss, *known))
    return history


def _of(candidates: Candidates, places: Tensor) -> Candidates:
    """Return the questions at these positions, and their calls."""
    kept, unit = candidates.unit[places].unique(return_inverse=True)  # type: ignore[no-untyped-call]
    rest = [f.name for f in fields(candidates) if f.name not in ("unit", "call")]
    questions = {name: getattr(candidates, name)[places] for name in rest}
    return replace(candidates, **questions, unit=unit, call=candidates.call[kept])
