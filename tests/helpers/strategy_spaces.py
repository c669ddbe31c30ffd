"""Beliefs and candidates for tests of strategies."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt import QuestionSpace
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.candidates import CandidatePool
from adaptive_vtt.engine.options import Certify
from adaptive_vtt.engine.predictors import fresh_belief
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.random_streams import generator

Answers = Literal["one", "all"]
GRID = np.linspace(0, 1, 101)


def certified_belief(
    space: QuestionSpace, answers: Answers = "one", surrogate: bool = True
) -> Belief:
    certify = Certify(0.05, None, 0.95, ("overall", "concepts"), None, "loss", surrogate)
    proxies = Proxies(space, {}, None)
    return fresh_belief(certify, space, answers, seed=0, device="cpu", proxies=proxies)


def learnt(space: QuestionSpace, question: int, f: float, loss: float | None = None) -> Observation:
    truth = int(space.truth([question])[0])
    wrong = float((f >= 0.5) != truth)
    return Observation(question, truth, wrong if loss is None else loss, f, (f + truth) / 2)


def space_of(
    samples: int = 12, concepts: int = 3, relations: tuple[str, ...] = ("identity",)
) -> QuestionSpace:
    severities = None if relations == ("identity",) else [1, 3]
    dataset = tiny_dataset(samples, concepts, images=False)
    return QuestionSpace(dataset, relations, severities=severities)


def after(space: QuestionSpace, belief: Belief, count: int, seed: int = 0) -> Belief:
    """Teach the belief ``count`` random questions with random answers, and return it."""
    rng = generator(seed, "answers")
    chosen = space.nth(rng.permutation(space.size)[:count])
    belief.learn([learnt(space, int(q), float(rng.random())) for q in chosen])
    return belief


def looked_at(space: QuestionSpace, belief: Belief, answers: Answers = "one") -> Candidates:
    candidates = CandidatePool(space, seed=0, answers=answers).candidates(0)
    belief.look_at(candidates)
    return candidates


def by_call(candidates: Candidates, weights: Tensor) -> Tensor:
    """Return the sum of weights per call, as the engine uses them."""
    return torch.bincount(candidates.unit, weights, len(candidates.call))


def proportions(weights: Tensor) -> Tensor:
    return weights / weights.sum()


def same_proposal(weights: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(proportions(weights), proportions(expected.double()))
