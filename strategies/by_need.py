"""``certify``: the proposal that makes the widest certified interval shrink fastest.

Ours, on the two criteria of Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019, section
2.2), each turned from a heuristic on answers into what an interval needs. Uncertainty says which
targets are open and how badly: a target weighs by the draws that it still needs. Unpredictability
says which losses cannot be foreseen: a call weighs by the variance f (1 - f) of its losses, and
by how far a bet on it may be wrong. Their product is the call's need (``Certifier.needs``);
weights proportional to sqrt(need), or sqrt(need / cost) where calls differ in cost, are Neyman's
allocation for it.

Beside that the paper's own rule explores: a share ``curiosity`` of the weights goes by its
uncertainty of the question's concept and side, as the answer GPs know it, times 4 p (1 - p), its
unpredictability. Any share is valid, as any proposal over the candidates is.
"""

from collections.abc import Mapping
from typing import Annotated

import numpy as np

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Candidates, Floats
from adaptive_vtt.utils.options import Option, check_options

from .base import BeliefView

NAME = "certify"
CURIOSITY = 0.1
"""Share of the weights that explores by default."""


def needs_targets() -> InputError:
    """What is wrong where this strategy is chosen and nothing is to be certified."""
    return InputError(
        f"strategy {NAME!r} needs targets to certify: give half_width or at_most, or take another"
    )


class ByNeed:
    """Targets that are open, by the draws they need; losses in them that cannot be foreseen.

    Each call weighs sqrt(need / cost), shared out among its questions by their parts of the
    need. Needs targets to certify.
    """

    def __init__(
        self,
        curiosity: Annotated[
            float,
            Option(
                "share of the weights that goes by the paper's uncertainty and unpredictability, "
                "over questions of open targets",
                ge=0,
                lt=1,
            ),
        ] = CURIOSITY,
    ) -> None:
        check_options(ByNeed, {"curiosity": curiosity}, f"strategy {NAME!r}")
        self.curiosity = curiosity

    def weights(self, candidates: Candidates, belief: BeliefView) -> Floats:
        return np.add.reduce([*self.mixture(candidates, belief).values()])

    def mixture(self, candidates: Candidates, belief: BeliefView) -> Mapping[str, Floats]:
        """The weights (n,) as the sum of two: ``by_need``, what the targets need, and
        ``curiosity``, 1 in all; the second is left out where it has no share."""
        unit = np.asarray(candidates.unit)
        by_question = self._parts(candidates, belief).sum(axis=0)
        needs = np.bincount(unit, by_question, len(candidates.call))
        if not (needs > 0).any():  # all that is open lies outside these candidates
            return {"by_need": np.ones(len(candidates))}
        price = np.sqrt(belief.costs(candidates))[unit]
        share = by_question / np.maximum(needs, np.finfo(np.float64).tiny)[unit]
        by_need = np.sqrt(needs)[unit] * share / price
        if belief.certifier is not None and belief.certifier.strata is None:
            by_need = belief.certifier.half_on_whole(by_need, belief.inside)
        if not self.curiosity or belief.space.oracle.tells_losses:
            return {"by_need": by_need}
        curious = self._curious(candidates, belief) * (by_question > 0) / price
        if not curious.sum() > 0:
            return {"by_need": by_need}
        return {
            "by_need": (1 - self.curiosity) * by_need / by_need.sum(),
            "curiosity": self.curiosity * curious / curious.sum(),
        }

    @staticmethod
    def _curious(candidates: Candidates, belief: BeliefView) -> Floats:
        """(n,): the paper's uncertainty times its unpredictability, 4 p (1 - p) of a Yes."""
        u = belief.uncertainty().view(-1).index_select(0, candidates.cell)
        p = belief.predictability.probability(candidates.image, candidates.concept)
        return np.asarray((u * 4 * p * (1 - p)).double())

    def reasons(
        self, candidates: Candidates, belief: BeliefView, place: int
    ) -> dict[str, float | int]:
        """``target``: the place in the certificate of the one for which the question counts most;
        ``need``: that part of its call's need, in [0, 1]; ``predicted_loss`` of the question."""
        parts, unit = self._parts(candidates, belief), np.asarray(candidates.unit)
        target = int(parts[:, place].argmax())
        together = float(parts[:, unit == unit[place]].sum())
        predicted = float(belief.expected()[place])
        reasons: dict[str, float | int] = {"predicted_loss": round(predicted, 6)}
        if together > 0:
            reasons |= {"target": target, "need": round(float(parts[target, place]) / together, 6)}
        return reasons

    def _parts(self, candidates: Candidates, belief: BeliefView) -> Floats:
        if belief.certifier is None:
            raise needs_targets()
        return belief.needs_by_target(candidates)
