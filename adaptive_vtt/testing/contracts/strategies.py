"""What every strategy promises, after several histories."""

from collections.abc import Iterator
from dataclasses import fields, replace

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
from ...types import CallMode, Candidates
from ...utils.random_streams import generator
from .. import tiny_dataset


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
                memory = space.oracle.memory(space)
                certify = Certify(0.1, None, 0.95, self.targets, None, "loss")
                proxies = Proxies(space, {}, memory=memory)
                belief = fresh_belief(
                    certify, space, answers, seed=0, device="cpu", memory=memory, proxies=proxies
                )
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
