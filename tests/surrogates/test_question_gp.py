"""The question GP: numbers it must never leave, what it must learn, and its algebra."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from adaptive_vtt.surrogates import Losses, QuestionGP, sample_features, unit_kernel
from adaptive_vtt.surrogates.question_gp import _joined
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.twins import slowly

RELATION = [0, *[1] * 5, *[2] * 5]
SEVERITY = [0, *range(1, 6), *range(1, 6)]
V = len(RELATION)
SAMPLES = 40


def features(samples: Tensor) -> Tensor:
    """Two numbers per sample, the same every time."""
    return torch.stack([torch.sin(samples * 1.7), torch.cos(samples * 0.9)], 1).double()


def model(concepts: int = 3, shared: bool = True, **options: Any) -> QuestionGP:
    return QuestionGP(
        RELATION, SEVERITY, concepts, shared=shared, **{"features": features, **options}
    )


def asked(sample: Any, variant: Any, concept: Any = 0, truth: Any = 1, loss: Any = 0.0) -> Losses:
    """Numbers or arrays, broadcast."""
    columns = np.broadcast_arrays(*(np.atleast_1d(x) for x in (sample, variant, concept, truth)))
    whole = [torch.tensor(np.array(c), dtype=torch.int64) for c in columns]
    losses = np.array(np.broadcast_to(np.atleast_1d(loss), columns[0].shape))
    return Losses(*whole, torch.tensor(losses, dtype=torch.float64))


def some(count: int, seed: int = 0, concepts: int = 3) -> Losses:
    """``count`` calls that answer all concepts; images break at a severity of their own."""
    rng = np.random.default_rng(seed)
    units = rng.permutation(SAMPLES * V)[:count]
    sample, variant = (np.repeat(x, concepts) for x in np.divmod(units, V))
    concept = np.tile(np.arange(concepts), count)
    breaks = 1 + (sample * 7 + concept) % 7
    loss = np.array(SEVERITY)[variant] >= breaks
    return asked(sample, variant, concept, (sample + concept) % 2, loss.astype(float))


def rows(losses: Losses, chosen: Any) -> Losses:
    columns = (None if c is None else c[chosen] for c in vars(losses).values())
    return Losses(*columns)  # type: ignore[arg-type]


def everything(concepts: int = 3) -> Losses:
    number = np.arange(SAMPLES * V * concepts)
    unit, concept = np.divmod(number, concepts)
    sample, variant = np.divmod(unit, V)
    return asked(sample, variant, concept, (sample + concept) % 2)


def sane(gp: QuestionGP, concepts: int = 3) -> Tensor:
    """The mean everywhere, after checking what always has to hold."""
    found, latent = (
        gp.posterior(everything(concepts)),
        gp.posterior(everything(concepts), latent=True),
    )
    assert found.mean.dtype == torch.float64
    assert found.mean.min() >= 0.02
    assert found.mean.max() <= 0.98
    torch.testing.assert_close(found.variance, found.mean * (1 - found.mean))
    assert torch.isfinite(latent.variance).all()
    assert (latent.variance >= 0).all()
    return found.mean


# -- what always holds ---------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_one_answer_moves_the_mean_toward_it_and_not_too_far(shared: bool, loss: float) -> None:
    gp = model(shared=shared)
    gp.observe(asked(3, 4, loss=loss))
    mean = sane(gp)
    assert (mean.mean() - 0.5) * (loss - 0.5) > 0
    assert (mean - 0.5).abs().max() < 0.35


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_losses_that_are_all_alike_stay_inside(shared: bool, loss: float) -> None:
    gp = model(shared=shared)
    seen = some(60)
    gp.observe(Losses(seen.sample, seen.variant, seen.concept, seen.truth, seen.loss * 0 + loss))
    assert (sane(gp) - loss).abs().max() < 0.2


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("count", [50, *slowly(7, 120)])
def test_means_stay_inside_whatever_was_seen(shared: bool, count: int) -> None:
    gp = model(shared=shared)
    for part in range(0, count * 3, 9):
        gp.observe(rows(some(count), slice(part, part + 9)))
    sane(gp)


def test_the_same_question_twice_is_no_trouble() -> None:
    gp = model()
    for _ in range(40):
        gp.observe(asked(3, 4, loss=1.0))
    assert sane(gp)[(3 * V + 4) * 3] > 0.8


@pytest.mark.parametrize("shared", [True, False])
def test_truths_and_concepts_may_be_missing(shared: bool) -> None:
    seen = some(60)
    part = rows(seen, torch.arange(180) % 5 != 0)
    part.truth[::7] = -1
    gp = model(shared=shared)
    gp.observe(rows(part, slice(0, 120)))
    for place in range(120, len(part.loss)):
        gp.observe(rows(part, slice(place, place + 1)))
    sane(gp)


# -- algebra -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_predictions_are_the_same_to_the_last_bit_whenever_they_were_asked_for(
    shared: bool,
) -> None:
    seen, often, seldom = some(80), model(shared=shared), model(shared=shared)
    for start in range(0, 240, 3):
        for gp in (often, seldom):
            gp.observe(rows(seen, slice(start, start + 3)))
        if start % 21 in (0, 6):
            often.posterior(everything())
    assert torch.equal(often.posterior(everything()).mean, seldom.posterior(everything()).mean)
    assert torch.equal(often._factor.lower, seldom._factor.lower)


def dense(gp: QuestionGP, questions: Losses) -> tuple[Tensor, Tensor]:
    """Mean and covariance of mu by the textbook: K_* (K + noise)^-1, for one column."""
    assert gp._units is not None
    with torch.no_grad():
        residual, _ = gp._chosen.residuals(_joined(gp._parts)[1], 0, len(gp._units))
        total = gp.kernel.between(gp._units, gp._units)
        total += gp.kernel.noise * torch.eye(len(total))
        units = gp.prepare(questions).units
        cross = gp.kernel.between(units, gp._units)
        solved = torch.linalg.solve(total, cross.mT)
        prior = gp.kernel.between(units, units)
        return (solved.mT @ residual), prior - cross @ solved


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("few", [True, *slowly(False)])
def test_posterior_is_that_of_the_textbook(shared: bool, few: bool) -> None:
    gp = model(shared=shared)
    gp.observe(rows(some(60), slice(0, 150)))
    gp._next_renewal = 10**9
    for start in range(150, 180, 3):  # the factor grows by these
        gp.observe(rows(some(60), slice(start, start + 3)))
    questions = rows(everything(), slice(0, 1320, 97 if few else 1))
    found, latent = gp.posterior(questions), gp.posterior(questions, latent=True)
    shift, covariance = dense(gp, questions)
    column = questions.concept if shared else torch.zeros_like(questions.concept)
    with torch.no_grad():
        judged = gp._judged_of(gp.prepare(questions))
        expected = gp.mean.expected(judged.variant, judged.side, judged.features)
    spread = (expected * (1 - expected)).sqrt()
    mean = expected + spread * shift.gather(1, column[:, None])[:, 0]
    torch.testing.assert_close(found.mean, mean.clamp(0.02, 0.98), atol=2e-5, rtol=0)
    variance = spread**2 * covariance.diagonal()
    torch.testing.assert_close(latent.variance, variance, atol=1e-8, rtol=0)
    joint = gp.joint(questions)
    torch.testing.assert_close(joint.diagonal(), variance, atol=1e-8, rtol=0)
    torch.testing.assert_close(joint, joint.mT, atol=1e-8, rtol=0)
    assert torch.linalg.eigvalsh(joint).min() > -1e-8


def test_shared_and_single_answers_agree_where_there_is_one_concept() -> None:
    seen = some(80, concepts=1)
    one, other = model(1, shared=True), model(1, shared=False)
    for gp in (one, other):
        gp.observe(rows(seen, slice(0, 50)))
        gp.observe(rows(seen, slice(50, 80)))
    torch.testing.assert_close(sane(one, 1), sane(other, 1), atol=1e-6, rtol=0)


def test_what_is_not_known_leaves_its_column_as_it_was() -> None:
    gp = model(2, first_fit=10**9)
    gp.observe(asked(np.repeat(np.arange(20), 2), 4, np.tile([0, 1], 20), 1, np.arange(40) % 3 / 2))
    gp._next_renewal = 10**9
    before = gp.posterior(asked(np.arange(SAMPLES), 5, 1)).mean
    gp.observe(asked(30, 5, 0, 1, 1.0))
    after = gp.posterior(asked(np.arange(SAMPLES), 5, 1)).mean
    torch.testing.assert_close(after, before, atol=1e-6, rtol=0)
    assert gp.posterior(asked(30, 5, 0)).mean > gp.posterior(asked(31, 5, 0)).mean


# -- what is learnt ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_severities_at_which_images_break_are_learnt(shared: bool) -> None:
    gp = model(shared=shared)
    gp.observe(some(150))
    unseen = some(SAMPLES * V)
    unseen = rows(unseen, slice(450, None))
    mean = gp.posterior(unseen).mean
    assert ((unseen.loss - mean) ** 2).mean() < 0.6 * unseen.loss.var()


def test_a_failure_at_a_mild_severity_tells_more_of_harsher_ones() -> None:
    gp = model(1, first_fit=10**9)
    rng = np.random.default_rng(0)
    sample, severity = rng.integers(20, SAMPLES, 150), rng.integers(1, 6, 150)
    gp.observe(asked(sample, severity, loss=(severity >= 2 + sample % 5).astype(float)))
    gp._next_renewal = 10**9
    before = gp.posterior(asked(3, [1, 4])).mean
    gp.observe(asked(3, 2, loss=1.0))
    rise = gp.posterior(asked(3, [1, 4])).mean - before
    assert rise[1] > rise[0] > 0


def test_severities_are_the_less_alike_the_further_apart() -> None:
    gp = model(1)
    rng = np.random.default_rng(0)
    sample, severity = rng.integers(20, SAMPLES, 100), rng.integers(1, 6, 100)
    gp.observe(asked(sample, severity, loss=(severity >= 1 + sample % 6).astype(float)))
    steps = gp.kernel.steps
    torch.testing.assert_close(steps.diagonal(), torch.ones(V, dtype=torch.float64))
    assert torch.linalg.eigvalsh(steps).min() > -1e-9
    assert (steps[1, 1:6].diff() < 0).all()


# -- proxies -------------------------------------------------------------------------------


def explained(proxies: Callable[..., Tensor] | None, count: int = 200) -> float:
    """Share of the variance of unseen losses, failing at random for one sample in three."""
    rng = np.random.default_rng(5)
    loss = torch.tensor(rng.random(SAMPLES * V) < 1 / 3).double()
    order = torch.tensor(rng.permutation(SAMPLES * V))
    gp = model(1, proxies=proxies)
    questions = everything(1)
    all_losses = Losses(*list(vars(questions).values())[:4], loss)
    gp.observe(rows(all_losses, order[:count]))
    mean = gp.posterior(rows(questions, order[count:])).mean
    rest = loss[order[count:]]
    return 1 - float(((rest - mean) ** 2).mean() / rest.var())


def truth_of(sample: Tensor, variant: Tensor) -> Tensor:
    rng = np.random.default_rng(5)
    return torch.tensor(rng.random(SAMPLES * V) < 1 / 3).double()[sample * V + variant]


def test_a_proxy_that_knows_the_losses_is_believed() -> None:
    assert explained(None) < 0.05
    assert explained(lambda s, v, c, t: truth_of(s, v)[:, None]) > 0.8


def test_what_a_proxy_gets_wrong_is_expected_to_be_got_wrong_before_answers_say_so() -> None:
    """Three answers that tell nothing of the proxy: it is believed all the same, a little."""
    gp = model(1, proxies=lambda s, v, c, t: torch.where(s % 2 == 0, 0.9, 0.1)[:, None])
    gp.observe(asked([0, 1, 2], [0, 0, 0], loss=0.5))
    mean = gp.posterior(asked([10, 11], [0, 0])).mean
    assert mean[0] > mean[1] + 0.1


def noise(s: Tensor, v: Tensor, c: Tensor, t: Tensor) -> Tensor:
    key = (s * V + v)[:, None] * 12.9898 + torch.arange(3) * 78.233
    return (torch.sin(key) * 43758.5453) % 1


def constant(level: float) -> Callable[..., Tensor]:
    return lambda s, v, c, t: torch.full((len(s), 3), level)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("proxies", "count", "harm"),
    [(noise, 40, 0.06), (noise, 200, 0.06), *((constant(k), 200, 0.03) for k in (0.0, 0.5, 1.0))],
)
def test_proxies_that_tell_nothing_do_little_harm(
    proxies: Callable[..., Tensor], count: int, harm: float
) -> None:
    assert explained(proxies, count) > explained(None, count) - harm


# -- bounds, features ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_beyond_the_limit_the_gp_stays_small_and_sane(shared: bool) -> None:
    gp = model(shared=shared, exact_limit=60, fit_limit=40)
    seen = some(200)
    for start in range(0, 600, 6):
        gp.observe(rows(seen, slice(start, start + 6)))
        assert gp._factor.size <= 60
    assert len(gp) == (200 if shared else 600)
    sane(gp)


def test_sample_features_are_of_a_common_scale_and_the_same_every_time() -> None:
    dataset = tiny_dataset(30, 3)
    found, again = sample_features(dataset, 0), sample_features(dataset, 0)
    every = torch.arange(30)
    values = found(every)
    assert values.shape[0] == 30
    assert values.dtype == torch.float64
    assert torch.isfinite(values).all()
    assert 0.5 < float(values.square().sum(1).mean().sqrt()) < 2
    torch.testing.assert_close(again(every.flip(0)).flip(0), values, atol=1e-6, rtol=0)
    assert torch.equal(found(torch.tensor([7, 7])), values[[7, 7]])


def test_a_line_search_that_steps_to_a_singular_covariance_keeps_the_best_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values: list[tuple[float, Tensor]] = []
    real = unit_kernel._likelihood

    def fails_the_fourth_time(*arguments: Any) -> Any:
        if len(values) == 3:
            raise NotPSDError("singular")
        value, slope = real(*arguments)
        values.append((float(value), slope))
        return value, slope

    gp = model()
    monkeypatch.setattr(unit_kernel, "_likelihood", fails_the_fourth_time)
    gp.observe(some(64))
    assert len(values) == 3
    assert bool(torch.isfinite(gp.kernel.raw).all())
    assert not torch.equal(gp.kernel.raw, gp.kernel.raw_prior.loc)
    sane(gp)
