"""What the betting game of K targets is played for: fixed before the first bet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, unknown
from ..journal.facts import BetFacts
from ..types import Floats, Guarantee
from .sequences import BETS

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts


@dataclass(frozen=True)
class Rules:
    """What is aimed at, and how surely.

    - ``aim``: in (0, 1), the half-width that bets aim at.
    - ``alpha``: in (0, 1), the probability with which anything certified may be wrong: any of the
      intervals where ``guarantee`` is "all", each of them where it is "each".
    - ``weights`` (K,): every target's share of ``alpha``, 0 or more, 1 in all. None: even shares.
    - ``bets``: the game's constants.
    """

    aim: float
    alpha: float
    guarantee: Guarantee = "all"
    weights: tuple[float, ...] | None = None
    bets: BetFacts = BETS

    @classmethod
    def of(cls, certificate: "CertificateFacts") -> "Rules":
        """Those of a journal."""
        return cls(
            certificate.aim,
            1 - certificate.confidence,
            certificate.guarantee,
            certificate.weights,
            certificate.bets,
        )

    def alphas(self, count: int) -> Floats:
        """(K,): the probability with which each target's interval may fail."""
        if self.guarantee == "each":
            return np.full(count, self.alpha)
        if self.weights is None:
            return np.full(count, self.alpha / count)
        return self.alpha * np.array(self.weights)


def shares(weights: Mapping[str, float], targets: Sequence[str]) -> tuple[float, ...]:
    """Weights by target's name, 1 where none is given, as shares that sum to 1, in the order of
    ``targets``. Raises InputError for an unknown target, and for weights that are none."""
    for name, weight in weights.items():
        if name not in targets:
            raise unknown("target", name, targets, "weights")
        if not 0 <= weight < float("inf"):
            raise InputError(f"weights: {name!r}: expected a number of 0 or more, got {weight}")
    given = [float(weights.get(name, 1.0)) for name in targets]
    if sum(given) <= 0:
        raise InputError("weights: expected at least one target with a weight above 0, got none")
    return tuple(weight / sum(given) for weight in given)
