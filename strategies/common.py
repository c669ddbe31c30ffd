"""Helpers of several strategies: scores of calls, sharpening, sub-samples, refusals.

A call may ask several questions, and the engine adds up the weights of a call's questions. Where
the worth of a call is another one, a strategy computes it per call and divides it evenly among the
call's questions.
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
    float, Option("calls weigh score ** power; a higher power favours the best calls", ge=0)
]


def per_call(candidates: Candidates, values: Tensor) -> Tensor:
    """Return the sums (m,) of values (n,) over the questions of each call."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    return torch.zeros(calls, dtype=values.dtype).index_add_(0, candidates.unit, values)


def per_question(candidates: Candidates, values: Tensor) -> Tensor:
    """Return each call's value (m,) divided evenly among its questions, (n,)."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    share = torch.bincount(candidates.unit, minlength=calls)
    return (values / share)[candidates.unit]


def once_per_call(candidates: Candidates, values: Tensor) -> Tensor:
    """Divide a value (n,) that all questions of a call share evenly, so that it counts once."""
    calls = len(candidates.call)
    if calls == len(candidates):
        return values
    by_call = torch.zeros(calls, dtype=values.dtype)
    by_call[candidates.unit] = values
    return per_question(candidates, by_call)


def sharpened(scores: Tensor, power: float) -> Tensor:
    """Return (score / best) ** power of scores >= 0; ones where all scores are 0.

    A higher power favours the best scores.
    """
    best = scores.max()
    if not bool(best > 0):
        return torch.ones_like(scores)
    return (scores / best) ** power


def some_calls(candidates: Candidates, most: int, *key: int) -> Tensor:
    """Return the places of the questions of a random subset of calls, ascending.

    Args:
        candidates: n candidates.
        most: About the number of questions in the subset. All are in it if there are no more, and
            always those of one call.
        *key: Seeds of the choice.
    """
    n, calls = len(candidates), len(candidates.call)
    if n <= most:
        return torch.arange(n)
    kept = generator(0, "strategy sub-sample", *key).permutation(calls)[: max(1, most * calls // n)]
    chosen = torch.zeros(calls, dtype=torch.bool)
    chosen[torch.from_numpy(kept)] = True
    return (chosen if calls == n else chosen[candidates.unit]).nonzero().squeeze(1)


def questions_at(candidates: Candidates, places: Tensor) -> Candidates:
    """Return the candidates at ``places``, as questions to predict; their calls do not change."""
    columns = {name: column[places] for name, column in vars(candidates).items() if name != "call"}
    return replace(candidates, **columns)


def points(candidates: Candidates, places: Tensor) -> Tensor:
    """Return the candidates at ``places`` (k,) as points of ``BeliefView.model``, (k, 1, 1)."""
    return candidates.question[places, None, None].double()


def question_gp(belief: BeliefView, name: str) -> QuestionGP:
    """Return the belief's question GP. Raise InputError where it has none."""
    if not isinstance(belief.losses, QuestionGP):
        raise InputError(
            f"strategy {name!r} needs the question GP: give half_width (or surrogate=True)"
        )
    return belief.losses


def expected_losses(candidates: Candidates, belief: BeliefView, name: str) -> Tensor:
    """Return the expected loss f of each candidate, (n,) on the CPU.

    It is the surrogate's prediction, or else the mean of the targets that hold the question.

    Raises:
        InputError: The belief has neither a surrogate nor targets.
    """
    if belief.predictions is not None and len(belief.predictions) == len(candidates):
        return belief.predictions.cpu()
    if belief.losses is not None:
        return belief.losses.posterior(candidates).mean.cpu()
    if belief.certifier is None:
        raise InputError(f"strategy {name!r} needs expected losses: give half_width")
    inside = torch.from_numpy(belief.certifier.members(candidates.question.numpy())).double()
    centre = torch.from_numpy(belief.certifier.sequences.centre)
    # nothing is known about questions of no target: 1/2
    count = inside.sum(0)
    return torch.where(count > 0, centre @ inside / count.clamp(min=1), 0.5)
