"""What a surrogate is."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

Points = TypeVar("Points", contravariant=True)
Observations = TypeVar("Observations", contravariant=True)


@dataclass(frozen=True)
class Posterior:
    """Mean and variance at n points, each (n,)."""

    mean: Tensor
    variance: Tensor


class Surrogate(Protocol[Observations, Points]):
    """A model that learns from observations and predicts with a variance."""

    def observe(self, observations: Observations) -> None:
        """Learns; observing in one batch or one by one must come to the same, but where
        something is fitted anew whenever so many were observed."""

    def posterior(self, candidates: Points) -> Posterior:
        """Mean and variance, each (n,), at n candidates."""
