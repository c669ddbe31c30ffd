"""The kernels that are tried beside the question GP's."""

import pytest
import torch

from adaptive_vtt.experiments.engine.kernels import Relevance, Severities
from adaptive_vtt.surrogates.unit_kernel import LOSSES, UnitKernel, Units

VARIANTS = ([0, *([1] * 3), *([2] * 3)], [0, 1, 2, 3, 1, 2, 3])


def units(count: int = 12) -> Units:
    """Of three concepts, with random looks."""
    rng = torch.Generator().manual_seed(0)
    number = torch.arange(count)
    looks = torch.rand(count, Relevance.more, generator=rng, dtype=torch.float64)
    features = torch.rand(count, 4, generator=rng, dtype=torch.float64)
    return Units(number % 5, number % 7, number % 3, number % 2, looks, features)


def made(kind: type[UnitKernel]) -> UnitKernel:
    options = {"columns": False, "device": torch.device("cpu"), "follow_up_width": Relevance.more}
    return kind(*VARIANTS, 3, **options)


def test_where_all_scales_are_alike_it_is_the_usual_kernel() -> None:
    one, other = made(UnitKernel), made(Relevance)
    assert torch.allclose(one.between(units(), units()), other.between(units(), units()))
    other.raw.data[len(LOSSES)] = 2.0
    assert not torch.allclose(one.between(units(), units()), other.between(units(), units()))


@pytest.mark.parametrize("lengthscale", [-1.0, 0.0])
def test_severities_that_are_near_share_more(lengthscale: float) -> None:
    kernel = made(Severities)
    kernel.raw.data[len(LOSSES) :] = lengthscale
    cells = kernel.tables().cells
    assert cells[1, 2] > cells[1, 3]
    assert torch.linalg.eigvalsh(cells).min() > -1e-9
    assert torch.allclose(cells, cells.mT)


def test_the_further_weights_are_fitted_with_the_others() -> None:
    kernel = made(Relevance)
    with torch.enable_grad():
        kernel.covariance(units(), units()).sum().backward()
    assert kernel.raw.grad is not None
    assert (kernel.raw.grad[len(LOSSES) :] != 0).all()
