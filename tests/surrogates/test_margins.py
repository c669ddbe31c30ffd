"""Margins behind losses, and follow-up images: what the question GP makes of both."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import Correctness, MaskDrop
from adaptive_vtt.oracles.labels import SUREST, margin
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.surrogates import Losses, QuestionGP
from adaptive_vtt.surrogates.features import FOLLOW_UP_WIDTH, FollowUpFeatures
from adaptive_vtt.surrogates.loss_mean import Judged, LossMean
from adaptive_vtt.surrogates.question_gp import _joined
from adaptive_vtt.surrogates.regression import Margins
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Answer, Outcome, Question

RELATION, SEVERITY = [0, *[1] * 5], [0, *range(1, 6)]
V, SAMPLES = 6, 60
LOOKS = np.random.default_rng(4).normal(size=(SAMPLES, V, 6)) / 6**0.5


class Looks:
    """A follow-up's look: six numbers that its losses depend on."""

    width = 6

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor:
        return torch.from_numpy(LOOKS[sample, variant])


def model(**options: Any) -> QuestionGP:
    return QuestionGP(RELATION, SEVERITY, 1, shared=True, **options)


def everything(seed: int = 0) -> Losses:
    """All questions in random order; right by a margin that follows from the look."""
    rng = np.random.default_rng(seed)
    sample, variant = np.divmod(rng.permutation(SAMPLES * V), V)
    look = Looks()(torch.tensor(sample), torch.tensor(variant))
    margins = 5 * look[:, :3].sum(1) + 1 + 0.3 * torch.tensor(rng.normal(size=len(sample)))
    whole = [torch.tensor(c) for c in (sample, variant, 0 * sample, 0 * sample + 1)]
    return Losses(*whole, (margins < 0).double(), margins)


def rows(losses: Losses, chosen: Any) -> Losses:
    columns = (None if c is None else c[chosen] for c in vars(losses).values())
    return Losses(*columns)  # type: ignore[arg-type]


def explained(gp: QuestionGP, seen: Losses, unseen: Losses) -> float:
    gp.observe(seen)
    rest = (unseen.loss - gp.posterior(unseen).mean).square().mean()
    return 1 - float(rest / unseen.loss.var())


def split(count: int = 130, seed: int = 0) -> tuple[Losses, Losses]:
    every = everything(seed)
    return rows(every, slice(0, count)), rows(every, slice(count, None))


def of_margins(gp: QuestionGP) -> bool:
    return isinstance(gp.coordinate, Margins)


# -- where margins come from ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("truth", "yes", "expected"),
    [(1, 0.8, math.log(4)), (0, 0.8, -math.log(4)), (1, 0.5, 0), (1, 1, SUREST), (0, 1, -SUREST)],
)
def test_a_margin_is_the_logit_of_the_truths_probability(
    truth: int, yes: float, expected: float
) -> None:
    outcome = Correctness().judge(_question(truth), yes, truth)
    assert margin(truth, outcome.coordinate, None) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("after", "lost"), [(0.44, 1.0), (0.46, 0.0)])
def test_a_graded_oracles_margin_is_score_less_threshold_and_is_journaled(
    after: float, lost: float
) -> None:
    """Source .9, limit a drop by half: .45 is just enough."""
    question = replace(_question(1), concept="polyp drop > 0.5")
    outcome = MaskDrop().judge(question, after, (None, 0.9))
    assert (outcome.loss, outcome.margin) == (lost, pytest.approx(after - 0.45))


class Odd(Correctness):
    """Says what it is told of every answer."""

    def __init__(self, said: float) -> None:
        super().__init__()
        self.said = said

    def judge(
        self, question: Question, answer: Any, expected: int, source_answer: Any = None
    ) -> Outcome:
        found = super().judge(question, answer, expected, source_answer)
        return replace(found, margin=self.said)


def test_an_oracles_margin_is_kept_with_the_answer_and_read_back_from_it() -> None:
    judge = Judge(QuestionSpace(tiny_dataset(4, 2), oracle=Odd(-0.25)), "all")
    rows = judge.judged(0, Answer((0.9, 0.9)))
    assert [margin(a.truth or 0, a.coordinate, a.details) for a in rows] == [-0.25, -0.25]


def test_a_margin_that_is_no_number_is_refused() -> None:
    judge = Judge(QuestionSpace(tiny_dataset(4, 2), oracle=Odd(math.nan)), "all")
    with pytest.raises(InputError, match=r"oracle 'Odd' .* a margin from .*, got nan"):
        judge.judged(0, Answer((0.9, 0.9)))


def _question(truth: int) -> Question:
    return Question(0, "0", "identity", 0, "light", truth)


# -- what margins are good for -------------------------------------------------------------


@pytest.mark.slow
def test_margins_that_tell_more_than_losses_are_taken_and_pay() -> None:
    seen, unseen = split()
    hard, soft = model(follow_ups=Looks()), model(follow_ups=Looks())
    alone = explained(hard, replace(seen, margin=None), unseen)
    assert explained(soft, seen, unseen) > alone + 0.05
    assert (of_margins(hard), of_margins(soft)) == (False, True)


def test_margins_that_are_noise_are_left_alone() -> None:
    seen, unseen = split()
    noise = torch.tensor(np.random.default_rng(1).normal(size=len(seen.loss)))
    hard, lied_to = model(follow_ups=Looks()), model(follow_ups=Looks())
    alone = explained(hard, replace(seen, margin=None), unseen)
    assert explained(lied_to, replace(seen, margin=noise), unseen) > alone - 0.03
    assert not of_margins(lied_to)


def test_answers_that_never_came_stand_where_others_failed() -> None:
    seen, unseen = split()
    late = seen.variant == 3
    refused = replace(
        seen,
        loss=torch.where(late, 1.0, seen.loss),
        margin=torch.where(late, torch.nan, seen.margin),  # type: ignore[call-overload]
    )
    gp = model(follow_ups=Looks())
    gp.observe(refused)
    mean = gp.posterior(unseen).mean
    assert of_margins(gp)
    assert torch.isfinite(mean).all()
    assert mean[unseen.variant == 3].mean() > mean[unseen.variant != 3].mean() + 0.3


@pytest.mark.slow
def test_what_failing_looks_like_is_learnt_for_each_truth_apart() -> None:
    """Samples of odd truths fail where the others do not."""
    every = everything()
    odd = every.sample % 2 == 1
    assert every.margin is not None
    margins = torch.where(odd, -every.margin, every.margin)
    every = replace(every, margin=margins, loss=(margins < 0).double())
    seen, unseen = rows(every, slice(0, 200)), rows(every, slice(200, None))
    alike = explained(model(follow_ups=Looks()), seen, unseen)
    apart = explained(model(follow_ups=Looks(), truths=lambda s: s % 2), seen, unseen)
    assert apart > alike + 0.1


# -- algebra -------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_the_posterior_is_that_of_the_textbook_through_the_link(shared: bool) -> None:
    gp = QuestionGP(
        RELATION, SEVERITY, 1, shared=shared, follow_ups=Looks(), truths=lambda s: s % 3
    )
    seen, unseen = split()
    gp.observe(rows(seen, slice(0, 100)))
    gp.observe(rows(seen, slice(100, 110)))
    assert of_margins(gp)
    assert gp._units is not None
    with torch.no_grad():
        residual, _ = gp._chosen.residuals(_joined(gp._parts)[1], 0, len(gp._units))
        total = gp.kernel.between(gp._units, gp._units) + gp.kernel.noise * torch.eye(110)
        asked = gp.prepare(unseen)
        units = asked.units
        solved = torch.linalg.solve(total, gp.kernel.between(gp._units, units))
        expected, slope = gp.coordinate.losses(gp._judged_of(asked), (solved.mT @ residual)[:, 0])
        prior = gp.kernel.variance(unseen.variant)
        left = prior - (gp.kernel.between(gp._units, units) * solved).sum(0)
    torch.testing.assert_close(gp.posterior(unseen).mean, expected, atol=1e-3, rtol=0)
    latent = gp.posterior(unseen, latent=True).variance
    torch.testing.assert_close(latent, slope.square() * left, atol=1e-5, rtol=1e-2)
    torch.testing.assert_close(gp.joint(unseen).diagonal(), latent, atol=1e-8, rtol=0)


def test_the_logistic_mean_without_an_answer_is_about_that_fitted_without_it() -> None:
    seen, _ = split(60)
    zeros = torch.zeros(60, dtype=torch.int64)
    noise = torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    proxy = noise.double() - seen.loss[:, None]
    none = torch.full((60,), torch.nan, dtype=torch.float64)
    judged = Judged(torch.arange(60), seen.variant, zeros, zeros + 1, seen.loss, none, proxy)
    mean = LossMean(RELATION, SEVERITY, 1)
    mean.fit(judged)
    quick, inside = mean.left_out(judged), mean.logits(judged)
    slow = []
    for left in range(0, 60, 5):
        again = LossMean(RELATION, SEVERITY, 1)
        again.fit(judged[torch.arange(60) != left])
        slow.append(again.logits(judged[[left]]))
    exact = torch.cat(slow)
    off, before = quick[::5] - exact, inside[::5] - exact
    assert off.abs().mean() < 0.35 * before.abs().mean()


# -- follow-up images ----------------------------------------------------------------------


def test_every_follow_up_is_looked_at_once_and_features_have_the_promised_width() -> None:
    seen: list[int] = []

    def thumbnails(images: Any) -> Any:
        seen.extend(images.tolist())
        return np.random.default_rng(0).integers(0, 256, (40, 5), np.uint8)[images]

    features = FollowUpFeatures(thumbnails, np.arange(40), images=40, variants=4)
    assert seen == []
    sample, variant = torch.arange(10).repeat(2), torch.arange(20) % 4
    found = features(sample, variant)
    again = features(sample.flip(0), variant.flip(0))
    assert found.shape == (20, FOLLOW_UP_WIDTH)
    torch.testing.assert_close(again.flip(0), found)
    assert found[:, 5:].abs().max() == 0
    assert len(seen) == 40 + len(set((sample * 4 + variant).tolist()))


def test_a_judge_says_what_is_expected_of_each_question() -> None:
    data = tiny_dataset(4, 2)
    for answers in ("one", "all"):
        judge = Judge(QuestionSpace(data), answers)
        said = [judge.expected(question) for question in range(8)]
        assert said == data.truth(np.arange(8) // 2, np.arange(8) % 2).tolist()
