"""Protocols of surrogates, and the options that several of them take."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, runtime_checkable

from adaptive_vtt.utils.options import Option

if TYPE_CHECKING:
    from torch import Tensor

BINS = 101
"""Default number of bins of an answer's coordinate in [0, 1], both ends included."""
Form = Annotated[
    Literal["std", "variance"],
    Option("uncertainty as area of 95 % regions (std) or integral of variances"),
]
"""Measure of uncertainty of an ``AnswerGP``."""
History = Annotated[
    Literal["truth", "answer"], Option("predictability given true answers (Geman) or the model's")
]
"""Answers that ``Predictability`` conditions on."""

Points = TypeVar("Points", contravariant=True)
Observations = TypeVar("Observations", contravariant=True)


@dataclass(frozen=True)
class Posterior:
    """Prediction at n points.

    Attributes:
        mean: (n,) expected values.
        variance: (n,) variances, at least 0.
    """

    mean: "Tensor"
    variance: "Tensor"


class Surrogate(Protocol[Observations, Points]):
    """A model that learns from observations and predicts with a variance."""

    def observe(self, observations: Observations) -> None:
        """Learn from observations.

        One batch must give the same posterior as the same observations one by one, except for
        parameters that are fitted only now and then.
        """

    def posterior(self, candidates: Points) -> Posterior:
        """Return the mean and variance, each (n,), at n candidates."""


@runtime_checkable
class Latent(Protocol):
    """A surrogate that separates its own uncertainty from the noise of an answer."""

    def prepare(self, candidates: Any) -> Any:
        """Return the candidates with all inputs that no answer changes.

        The methods below take the result in place of candidates; indexing selects some of them.
        """

    def posterior(self, candidates: Any, *, latent: bool = False) -> Posterior:
        """Return mean and variance of each loss; with ``latent``, of the expected loss."""

    def joint(self, candidates: Any) -> "Tensor":
        """Return the covariance of the expected losses of m candidates, m x m."""

    def features(self, samples: "Tensor") -> "Tensor":
        """Return the features (n, d) of samples (n,)."""
