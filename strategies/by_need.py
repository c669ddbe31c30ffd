"""``certify``: the proposal that makes the widest certified interval shrink fastest.

It is ours. It turns the two criteria of Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019,
section 2.2), which are heuristics on answers, into what an interval needs:

- Uncertainty: a target weighs by the draws that it still needs.
- Unpredictability: a call weighs by the variance f (1 - f) of its losses, and by how far a bet on
  it may be wrong.

Their product is the call's need (``Certifier.needs``). Weights proportional to sqrt(need / cost)
are Neyman's allocation for it.

A share ``curiosity`` of the weights explores by the paper's own rule. That is the answer GPs'
uncertainty of the question's concept and side, times its unpredictability 4 p (1 - p). Any share is
valid, because any positive proposal over the candidates is.
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
    """Return the error for an audit with this strategy and no targets."""
    return InputError(
        f"strategy {NAME!r} needs targets to certify: give half_width or at_most, or take another"
    )


class ByNeed:
    """Unpredictable questions of open targets, so that the widest interval shrinks fastest.

    Each call weighs sqrt(need / cost), divided among its questions by their parts of the need. It
    needs targets to certify.
    """

    def __init__(
        self,
        curiosity: Annotated[
            float,
            Option(
                "share of the weights that follows the paper's uncertainty and unpredictability, "
                "over questions of open targets",
                ge=0,
                lt=1,
            ),
        ] = CURIOSITY,
    ) -> None:
        check_options(ByNeed, {"curiosity": curiosity}, f"strategy {NAME!r}")
        self.curiosity = curiosity

    def weights(self, candidates: Candidates, belief: BeliefView) -> Floats:
        return np.sum([*self.mixture(candidates, belief).values()], axis=0)

    def mixture(self, candidates: Candidates, belief: BeliefView) -> Mapping[str, Floats]:
        """Return the parts of the weights (n,), which sum to 1 where there are two.

        ``by_need`` follows the targets' needs, and ``curiosity`` explores. The latter is left out
        where it has no share.
        """
        unit = np.asarray(candidates.unit)
        by_question = self._parts(candidates, belief).sum(axis=0)
        needs = np.bincount(unit, by_question, len(candidates.call))
        if not (needs > 0).any():  # no candidate belongs to an open target
            return {"by_need": np.ones(len(candidates))}
        price = np.sqrt(belief.costs(candidates))[unit]
        share = by_question / np.maximum(needs, np.finfo(np.float64).tiny)[unit]
        by_need = np.sqrt(needs)[unit] * share / price
        if belief.certifier is not None and belief.certifier.strata is None:
            by_need = belief.certifier.half_on_whole(by_need, belief.inside)
        if not self.curiosity or belief.space.oracle.tells_losses:
            return {"by_need": by_need}
        # the paper's uncertainty times its unpredictability of a Yes
        u = belief.uncertainty().view(-1).index_select(0, candidates.cell)
        p = belief.predictability.probability(candidates.image, candidates.concept)
        curious = np.asarray((u * 4 * p * (1 - p)).double()) * (by_question > 0) / price
        if not curious.sum() > 0:
            return {"by_need": by_need}
        return {
            "by_need": (1 - self.curiosity) * by_need / by_need.sum(),
            "curiosity": self.curiosity * curious / curious.sum(),
        }

    def reasons(
        self, candidates: Candidates, belief: BeliefView, place: int
    ) -> dict[str, float | int]:
        """Return the question's predicted loss, and the target that it matters most to.

        ``target`` is that target's number in the certificate. ``need`` is its part of the call's
        need, in [0, 1].
        """
        parts, unit = self._parts(candidates, belief), np.asarray(candidates.unit)
        target = int(parts[:, place].argmax())
        need = float(parts[:, unit == unit[place]].sum())
        predicted = float(belief.expected()[place])
        reasons: dict[str, float | int] = {"predicted_loss": round(predicted, 6)}
        if need > 0:
            reasons |= {"target": target, "need": round(float(parts[target, place]) / need, 6)}
        return reasons

    def _parts(self, candidates: Candidates, belief: BeliefView) -> Floats:
        """Return each question's part of its call's need, by target, K x n."""
        if belief.certifier is None:
            raise needs_targets()
        return belief.needs_by_target(candidates)
