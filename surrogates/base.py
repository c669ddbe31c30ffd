"""What a surrogate is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

from adaptive_vtt.utils.options import Option

if TYPE_CHECKING:
    from torch import Tensor

BINS = 101
"""Of an answer's coordinate in [0, 1], both ends included."""
Form = Annotated[
    Literal["std", "variance"],
    Option("uncertainty as area of 95 % regions (std) or integral of variances"),
]
"""What the uncertainty of an ``AnswerGP`` measures."""
History = Annotated[
    Literal["truth", "answer"],
    Option("predictability given true answers (Geman) or the model's"),
]
"""What ``Predictability`` conditions on."""

Points = TypeVar("Points", contravariant=True)
Observations = TypeVar("Observations", contravariant=True)


@dataclass(frozen=True)
class Posterior:
    """Mean and variance at n points, each (n,)."""

    mean: "Tensor"
    variance: "Tensor"


class Surrogate(Protocol[Observations, Points]):
    """A model that learns from observations and predicts with a variance."""

    def observe(self, observations: Observations) -> None:
        """Learns; observing in one batch or one by one must come to the same, but where
        something is fitted anew whenever so many were observed."""

    def posterior(self, candidates: Points) -> Posterior:
        """Mean and variance, each (n,), at n candidates."""


@runtime_checkable
class Latent(Protocol):
    """What can say how much of what it predicts more answers could still change."""

    def look(self, candidates: Any) -> Any:
        """The candidates as the methods below take them, too, with what no answer changes of them
        worked out; indexing takes some of them."""

    def posterior(self, candidates: Any, *, latent: bool = False) -> Posterior:
        """Mean and variance of each loss; with ``latent`` that of the expected loss itself."""

    def joint(self, candidates: Any) -> "Tensor":
        """m x m covariance of the expected losses of m candidates."""

    def features(self, samples: "Tensor") -> "Tensor":
        """(n, d) features of samples (n,)."""
