"""What a surrogate is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

from adaptive_vtt.utils.options import Option

if TYPE_CHECKING:
    from torch import Tensor

BINS = 101
"""Bins of an answer's coordinate in [0, 1], both ends included."""
Form = Annotated[
    Literal["std", "variance"],
    Option("uncertainty as area of 95 % regions (std) or integral of variances"),
]
"""What the uncertainty of an ``AnswerGP`` measures."""
History = Annotated[
    Literal["truth", "answer"], Option("predictability given true answers (Geman) or the model's")
]
"""What ``Predictability`` conditions on."""

Points = TypeVar("Points", contravariant=True)
Observations = TypeVar("Observations", contravariant=True)


@dataclass(frozen=True)
class Posterior:
    """What a surrogate predicts at n points.

    Attributes:
        mean: (n,), the expected value.
        variance: (n,), at least 0.
    """

    mean: "Tensor"
    variance: "Tensor"


class Surrogate(Protocol[Observations, Points]):
    """A model that learns from observations and predicts with a variance."""

    def observe(self, observations: Observations) -> None:
        """Learn from observations.

        One batch and the same observations one by one must give the same posterior, up to
        parameters that are fitted again after so many observations.
        """

    def posterior(self, candidates: Points) -> Posterior:
        """Return the mean and variance, each (n,), at n candidates."""


@runtime_checkable
class Latent(Protocol):
    """A surrogate that separates what more answers can change from the noise of an answer."""

    def look(self, candidates: Any) -> Any:
        """Return the candidates with all that no answer changes computed once.

        The methods below take the result in place of candidates; indexing selects some of them.
        """

    def posterior(self, candidates: Any, *, latent: bool = False) -> Posterior:
        """Return mean and variance of each loss; with ``latent``, of the expected loss."""

    def joint(self, candidates: Any) -> "Tensor":
        """Return the m x m covariance of the expected losses of m candidates."""

    def features(self, samples: "Tensor") -> "Tensor":
        """Return the (n, d) features of samples (n,)."""
