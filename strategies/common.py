"""What several strategies share: scores of calls, sharpening, sub-samples, clear refusals.

A call may answer several questions, and the engine adds up the weights of a call's
questions. Where the worth of a call is not that sum, it is worked out per call and then
given to its questions in equal parts.
"""

from dataclasses import replace
from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.errors import InputError
from adaptive_vtt.surrogates import QuestionGP
from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option
from adaptive_vtt.utils.random_streams import generator

from .base import BeliefView

Power = Annotated[
    float, Option("calls weigh score ** power: the higher, the nearer to the best alone", ge=0)
]


def per_call(candidates: Candidates, values: Tensor) -> Tensor:
    """(m,): the sums of (n,) values over the questions of each call."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    return torch.zeros(calls, dtype=values.dtype).index_add_(0, candidates.unit, values)


def per_question(candidates: Candidates, values: Tensor) -> Tensor:
    """(n,): each call's value of (m,), in equal parts on its questions."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    share = torch.bincount(candidates.unit, minlength=calls)
    return (values / share)[candidates.unit]


def once_per_call(candidates: Candidates, values: Tensor) -> Tensor:
    """A value (n,) that a call's questions share, in equal parts on them: it counts once."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    by_call = torch.zeros(calls, dtype=values.dtype)
    by_call[candidates.unit] = values
    return per_question(candidates, by_call)


def sharpened(scores: Tensor, power: float) -> Tensor:
    """(score / best) ** power, for scores >= 0; ones where all are 0.

    1 leaves scores as they are; the higher the power, the nearer to the best alone.
    """
    best = scores.max()
    if not bool(best > 0):
        return torch.ones_like(scores)
    return (scores / best) ** power


def some_calls(candidates: Candidates, most: int, *key: int) -> Tensor:
    """Places (ascending) of the questions of a random subset of calls: about ``most`` questions.

    The subset follows from ``key`` alone. All questions where there are no more than that;
    always at least one call.
    """
    n, calls = len(candidates), len(candidates.call)
    if n <= most:
        return torch.arange(n)
    kept = generator(0, "strategy sub-sample", *key).permutation(calls)[: max(1, most * calls // n)]
    chosen = torch.zeros(calls, dtype=torch.bool)
    chosen[torch.from_numpy(kept)] = True
    return (chosen if calls == n else chosen[candidates.unit]).nonzero().squeeze(1)


def taken(candidates: Candidates, places: Tensor) -> Candidates:
    """The candidates at ``places``, as questions to predict (their calls stay as they were)."""
    columns = {name: column[places] for name, column in vars(candidates).items() if name != "call"}
    return replace(candidates, **columns)


def points(candidates: Candidates, places: Tensor) -> Tensor:
    """(k, 1, 1): the candidates at ``places`` (k,) as points of ``BeliefView.model``."""
    return candidates.question[places, None, None].double()


def question_gp(belief: BeliefView, name: str) -> QuestionGP:
    """The belief's question GP; raises InputError where it has none, or another surrogate."""
    if not isinstance(belief.losses, QuestionGP):
        raise InputError(
            f"strategy {name!r} needs the question GP: give half_width (or surrogate=True)"
        )
    return belief.losses


def expected_losses(candidates: Candidates, belief: BeliefView, name: str) -> Tensor:
    """f (n,) on the CPU: by what predicts losses, else by the mean of the targets one belongs to.

    Raises InputError where the belief has neither.
    """
    if belief.predictions is not None and len(belief.predictions) == len(candidates):
        return belief.predictions.cpu()
    if belief.losses is not None:
        return belief.losses.posterior(candidates).mean.cpu()
    if belief.certifier is None:
        raise InputError(f"strategy {name!r} needs expected losses: give half_width")
    inside = torch.from_numpy(belief.certifier.members(candidates.question.numpy())).double()
    centre = torch.from_numpy(belief.certifier.sequences.centre)
    # in no target at all: 1/2, of which nothing is known
    count = inside.sum(0)
    return torch.where(count > 0, centre @ inside / count.clamp(min=1), 0.5)
