"""What other models tell of the regression: leave-one-out, a learned spread, and no more trust
than the answers bear."""

from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt.surrogates import Losses, QuestionGP
from adaptive_vtt.surrogates.cohort import (
    MIN_VARIANCE,
    WIDER,
    Cells,
    CohortPrior,
    Factor,
    logits,
    prior_of,
)
from adaptive_vtt.types import Floats

COUNT, MODELS = 2000, 6
HARD = np.random.default_rng(0).normal(-1, 2, COUNT)
"""How hard every question is: the logit of a usual model's loss."""


def losses(intercept: float, slope: float, seed: int) -> Floats:
    rate = 1 / (1 + np.exp(-(intercept + slope * HARD)))
    return (np.random.default_rng(seed).random(COUNT) < rate).astype(float)


def population(spread: float) -> Floats:
    """Losses n x K of models whose intercepts differ by ``spread``."""
    shifts = spread * np.linspace(-1, 1, MODELS)
    return np.stack([losses(shift, 1, seed + 1) for seed, shift in enumerate(shifts)], axis=1)


def cells(count: int = COUNT) -> Cells:
    return Cells(np.zeros(count, np.int64), np.ones(count, np.int64), (0,), (0,), 1)


def prior(table: Floats) -> CohortPrior:
    return CohortPrior.of(table, np.nan_to_num(table, nan=0.5), cells(len(table)))


def gp(table: Floats, cohort: bool = True, **options: Any) -> QuestionGP:
    """Of the questions of one variant, with what a cohort tells."""
    found = prior(table)

    class Signals:
        effects = found.effects

        def __call__(self, sample: Any, variant: Any, concept: Any) -> Any:
            return torch.from_numpy(found.features(table[sample.numpy()]))

    given = {"cohort": Signals()} if cohort else {}
    return QuestionGP([0], [0], 1, shared=True, **given, **options)


def asked(sample: Any, loss: Any) -> Losses:
    zeros = torch.zeros(len(sample), dtype=torch.int64)
    return Losses(torch.as_tensor(sample), zeros, zeros, zeros + 1, torch.as_tensor(loss))


# -- the prior -------------------------------------------------------------------------------------


def test_each_model_is_regressed_on_the_others_alone() -> None:
    table = population(0.5)
    found = prior(table)
    others = logits(np.delete(table, 2, axis=1).mean(axis=1))
    intercept, slope = found.members[2, :2]
    rate = 1 / (1 + np.exp(-(intercept + slope * others)))
    # the conditions of a logistic regression's mode, which a ridge hardly moves
    assert abs((table[:, 2] - rate).mean()) < 1e-4
    assert abs(((table[:, 2] - rate) * others).mean()) < 1e-4
    changed = table.copy()
    changed[:, 2] = 1 - changed[:, 2]
    again = prior(changed).members
    assert again[2, 1] == pytest.approx(-slope, abs=1e-3)  # towards 1 by a slight ridge
    assert again[0, :2] != pytest.approx(found.members[0, :2], abs=0.05)


def test_mean_and_spread_are_those_of_the_models() -> None:
    members = prior(population(1.0)).members
    mean, variance = prior_of(members)
    assert mean[:2] == pytest.approx(members[:, :2].mean(axis=0))
    assert mean[2] == 0
    assert variance[0] == pytest.approx(WIDER * np.var(members[:, 0], ddof=1) + MIN_VARIANCE)
    assert variance[2] == pytest.approx(WIDER * (members[:, 2] ** 2).mean() + MIN_VARIANCE)


def test_a_factor_has_mean_square_one_and_its_sign_is_settled() -> None:
    table = population(0.3)
    factor = Factor.of(table)
    scores = factor.scores(table)
    assert (scores**2).mean() == pytest.approx(1)
    assert abs(scores.mean()) < 1e-9
    assert factor.loading[np.abs(factor.loading).argmax()] > 0


def test_models_that_were_asked_in_part_count_by_what_they_were_asked() -> None:
    table = population(0.5)
    lacking = table.copy()
    lacking[500:, 0] = np.nan
    found = CohortPrior.of(lacking, table, cells()).members[0]
    others = logits(np.delete(table, 0, axis=1).mean(axis=1))[:500]
    rate = 1 / (1 + np.exp(-(found[0] + found[1] * others)))
    assert abs((table[:500, 0] - rate).mean()) < 1e-4


# -- the question GP -------------------------------------------------------------------------------


def test_losses_are_foreseen_before_any_answer() -> None:
    table = population(0.3)
    truth = losses(0.0, 1.0, 99)
    said = gp(table).posterior(asked(np.arange(COUNT), truth)).mean.numpy()
    error = ((truth - said) ** 2).mean()
    assert error < 0.9 * truth.var()
    usual = gp(table, cohort=False).posterior(asked(np.arange(COUNT), truth)).mean
    assert usual.tolist() == [0.5] * COUNT


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["turned", "inverted", "constant"])
def test_a_model_unlike_its_cohort_is_told_from_it(kind: str) -> None:
    """After 64 answers its cohort hardly counts, and predictions are no worse than without."""
    table, usual = population(0.3), losses(0.0, 1.0, 99)
    truth = {
        "turned": np.roll(usual, COUNT // 2),
        "inverted": 1 - usual,
        "constant": np.ones(COUNT),
    }[kind]
    order = np.random.default_rng(1).permutation(COUNT)
    seen, unseen = order[:64], order[64:]
    errors = {}
    for with_cohort in (True, False):
        model = gp(table, cohort=with_cohort)
        for part in np.split(seen, 8):
            model.observe(asked(part, truth[part]))
        said = model.posterior(asked(unseen, truth[unseen])).mean.numpy()
        errors[with_cohort] = ((truth[unseen] - said) ** 2).mean()
    assert errors[True] <= 1.05 * errors[False] + 0.002
