"""Search for failures, as many different ones as possible.

It is level set estimation by an upper credible bound on the expected loss. Sources: Gotovos,
Casati, Hitz & Krause, Active Learning for Level Set Estimation (IJCAI 2013); Bryan et al., Active
Learning for Identifying Function Threshold Boundaries (NIPS 2005). The score of a question is

    score = (f + beta * sd) * (``again`` if this concept failed on this sample before, else 1)

with f and the sd of f from the question GP. A failure is a (sample, concept), so the same one under
another change is not new. A call is worth the sum over its questions, and weighs worth ** power.

This proposal finds failures and does not measure how many there are. Without exploration nothing
can be certified, and the engine refuses. With exploration intervals are valid but wide, since draws
count with 1/q. The engine raises the exploration where draws turn out worse than uniform ones.
"""

from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import (
    Power,
    expected_losses,
    per_call,
    per_question,
    question_gp,
    questions_at,
    sharpened,
    some_calls,
)


class FailureSearch:
    """Calls that may bring new failures, by an upper bound on the expected loss.

    The sd takes a triangular solve, so it is computed for about ``bounded`` candidates: half of
    them with the highest f * again, half random. The score of the others is f * again.
    """

    def __init__(
        self,
        beta: Annotated[
            float, Option("standard deviations of the expected loss that are added to it", ge=0)
        ] = 0.25,
        power: Power = 8.0,
        again: Annotated[
            float, Option("factor of the score where a failure was observed before", ge=0, le=1)
        ] = 0.05,
        bounded: Annotated[
            int, Option("approximate number of candidates whose standard deviation is used", ge=2)
        ] = 512,
    ) -> None:
        self.beta = beta
        self.power = power
        self.again = again
        self.bounded = bounded

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        gp = question_gp(belief, "failure-search")
        # (n,): ``again`` for a (sample, concept) that failed before, else 1
        discount = torch.ones(len(candidates), dtype=torch.float64)
        if belief.failed:
            concepts = len(belief.space.concepts)
            failed = torch.tensor([sample * concepts + c for sample, c in belief.failed])
            known = torch.isin(candidates.sample * concepts + candidates.concept, failed)
            discount[known] = self.again
        bound = expected_losses(candidates, belief, "failure-search").clone()
        high = (bound * discount).topk(min(self.bounded // 2, len(bound))).indices
        sampled = some_calls(candidates, self.bounded - self.bounded // 2, len(gp))
        places = torch.unique(torch.cat([high, sampled]))
        latent = gp.posterior(questions_at(candidates, places), latent=True).variance.cpu()
        bound[places] += self.beta * latent.sqrt()
        worth = per_call(candidates, bound.clamp(0, 1) * discount)
        return per_question(candidates, sharpened(worth, self.power))
