"""The performance model against golden numbers and against a plain gpytorch model."""

from collections.abc import Sequence
from typing import Any

import gpytorch
import pytest
import torch
from torch import Tensor

from adaptive_vtt.surrogates import AnswerGP, AnswerPoints

TENTHS = [i / 10 for i in range(11)]
ALL_BINS = [i / 100 for i in range(101)]
# observed coordinates, u- and u+ in the variance form, u- and u+ in the std form; computed
# apart from this program, on the grid 0, .01 ... 1 by trapezoids, latent posterior
GOLDEN = [
    pytest.param([], (2.0, 2.0), (2.0, 2.0), id="none"),
    pytest.param([0.25], (1.3086, 1.9999), (1.5257, 1.9999), id=".25"),
    pytest.param([0.75], (1.9999, 1.3086), (1.9999, 1.5257), id=".75"),
    pytest.param([0.5], (1.6542, 1.6542), (1.7628, 1.7628), id=".50"),
    pytest.param([0.0], (1.6542, 2.0), (1.7628, 2.0), id=".00"),
    pytest.param([0.1, 0.9], (1.3630, 1.3630), (1.5544, 1.5544), id=".10,.90"),
    pytest.param([0.25, 0.75], (1.3085, 1.3085), (1.5256, 1.5256), id=".25,.75"),
    pytest.param(TENTHS, (0.0505, 0.0505), (0.3175, 0.3175), id="tenths"),
    pytest.param(ALL_BINS, (0.0064, 0.0064), (0.1123, 0.1123), id="all bins"),
]
GOLDEN_REPEATS = [
    pytest.param([0.25] * 2, (1.3001, 1.9999), (1.5133, 1.9999), id=".25 twice"),
    pytest.param([0.25] * 10, (1.2931, 1.9999), (1.5013, 1.9999), id=".25 ten times"),
]


def points(concept: int, coordinates: Sequence[float]) -> AnswerPoints:
    places = torch.tensor(coordinates, dtype=torch.float64)
    return AnswerPoints(torch.full((len(places),), concept), places)


def observed(coordinates: Sequence[float], **options: Any) -> AnswerGP:
    gp = AnswerGP(3, device="cpu", **options)
    if coordinates:
        gp.observe(points(1, coordinates))
    return gp


@pytest.mark.parametrize(
    ("coordinates", "variance_form", "std_form", "repeats"),
    [
        pytest.param(*case.values, repeats, id=f"{case.id}, {repeats}")
        for repeats, cases in (("bins", GOLDEN), ("questions", GOLDEN + GOLDEN_REPEATS))
        for case in cases
    ],
)
def test_uncertainty_is_as_computed_by_hand(
    coordinates: list[float],
    variance_form: tuple[float, float],
    std_form: tuple[float, float],
    repeats: Any,
) -> None:
    """Repeated answers count where questions are observations."""
    for form, expected in (("variance", variance_form), ("std", std_form)):
        gp = observed(coordinates, form=form, repeats=repeats)
        assert gp.uncertainty()[1].tolist() == pytest.approx(expected, abs=5.1e-5)
        assert gp.uncertainty()[[0, 2]].flatten().tolist() == pytest.approx([2.0] * 4)


@pytest.mark.parametrize("form", ["std", "variance"])
def test_prior_uncertainty_is_what_is_measured_before_any_answer(form: Any) -> None:
    gp = AnswerGP(2, form=form, signal_variance=2.25, device="cpu")
    assert gp.uncertainty().tolist() == [pytest.approx([gp.prior_uncertainty] * 2)] * 2
    assert gp.prior_uncertainty == pytest.approx(3.0 if form == "std" else 4.5)


# -- against gpytorch ----------------------------------------------------------------------


def double(value: float) -> Tensor:
    """Without this, gpytorch rounds hyper-parameters to 32 bits."""
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(("bins", "lengthscale"), [(101, 0.1), (11, 0.1), (101, 0.07), (51, 0.3)])
def test_the_prior_is_gpytorchs_to_the_last_bit_without_what_imports_sympy(
    bins: int, lengthscale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else audits of earlier versions would go on with other proposals."""
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = double(1.0), double(lengthscale)
    grid = torch.linspace(0, 1, bins, dtype=torch.float64)[:, None]
    with torch.no_grad():
        expected = kernel(grid).to_dense()
    monkeypatch.delattr(torch, "broadcast_shapes")
    gp = AnswerGP(1, bins=bins, lengthscale=lengthscale, device="cpu")
    assert torch.equal(gp.covariance[0], expected)


class PlainGP(gpytorch.models.ExactGP):  # type: ignore[misc]
    """The paper's GP for one concept, as gpytorch does it."""

    def __init__(self, x: Tensor, y: Tensor, lengthscale: float, signal: float, noise: float):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = double(noise)
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
        self.kernel.outputscale = double(signal)
        self.kernel.base_kernel.lengthscale = double(lengthscale)
        self.eval()

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def plain_posterior(
    bins: Tensor, repeats: str, lengthscale: float, signal: float, noise: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance on the grid, from the bins of one concept's answers."""
    if repeats == "bins":
        places, counts = bins.unique(return_counts=True)
    else:
        places, counts = bins, torch.ones_like(bins)
    model = PlainGP(places.double()[:, None] / 100, counts.double(), lengthscale, signal, noise)
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        latent = model(grid)
        return latent.mean, latent.variance


@pytest.mark.parametrize("repeats", ["bins", "questions"])
@pytest.mark.parametrize(
    ("seed", "lengthscale", "signal", "noise"),
    [(0, 0.1, 1.0, 0.025), (1, 0.1, 1.0, 0.025), (2, 0.2, 3.0, 0.1)],
)
def test_posterior_of_every_concept_is_that_of_a_plain_gp(
    seed: int, lengthscale: float, signal: float, noise: float, repeats: Any
) -> None:
    random = torch.Generator().manual_seed(seed)
    concept = torch.randint(0, 3, (60,), generator=random)
    # Crowded near 0, so that bins repeat.
    coordinate = torch.rand(60, generator=random, dtype=torch.float64) ** 2
    gp = AnswerGP(
        3,
        lengthscale=lengthscale,
        signal_variance=signal,
        noise_variance=noise,
        repeats=repeats,
        device="cpu",
    )
    gp.observe(AnswerPoints(concept, coordinate))
    everywhere = torch.arange(101).double() / 100
    for c in range(3):
        bins = gp.bin_of(coordinate[concept == c])
        mean, variance = plain_posterior(bins, repeats, lengthscale, signal, noise)
        mine = gp.posterior(AnswerPoints(torch.full((101,), c), everywhere))
        torch.testing.assert_close(mine.mean, mean, atol=1e-8, rtol=1e-8)
        torch.testing.assert_close(mine.variance, variance, atol=1e-8, rtol=1e-8)
        torch.testing.assert_close(gp.mean()[c], mean, atol=1e-8, rtol=1e-8)
        torch.testing.assert_close(gp.variance()[c], variance, atol=1e-8, rtol=1e-8)
