"""``certify``: the law that makes the widest certified interval shrink fastest.

Ours, on the two criteria of Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019, section
2.2), each turned from a heuristic on answers into what an interval needs. Uncertainty says which
targets are open and how badly: a target weighs by the draws that it still needs. Unpredictability
says which losses cannot be foreseen: a call weighs by the variance f (1 - f) of its losses, and
by how far a bet on it may be wrong. Their product is the call's stake (``Certifier.stakes``);
weights proportional to sqrt(stake), or sqrt(stake / cost) where calls differ in cost, are Neyman's
allocation for it. The answer GPs, and so the paper's own uncertainty, do not enter.
"""

import torch
from torch import Tensor

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Candidates

from .base import BeliefView
from .common import expected_losses, per_call

NAME = "certify"


def needs_targets() -> InputError:
    """What is wrong where this strategy is chosen and nothing is to be certified."""
    return InputError(
        f"strategy {NAME!r} needs targets to certify: give half_width or at_most, or take another"
    )


class ByStakes:
    """Targets that are open, by the draws they need; losses in them that cannot be foreseen.

    Each call weighs sqrt(stake / cost), shared out among its questions by their parts of the
    stake. Needs targets to certify.
    """

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        by_question = self._parts(candidates, belief).sum(0)
        stakes = per_call(candidates, by_question)
        if not bool((stakes > 0).any()):  # all that is open lies outside these candidates
            return torch.ones(len(candidates), dtype=torch.float64)
        root = (stakes / belief.costs(candidates)).sqrt()
        share = by_question / stakes.clamp(min=torch.finfo(stakes.dtype).tiny)[candidates.unit]
        return root[candidates.unit] * share

    def reasons(
        self, candidates: Candidates, belief: BeliefView, place: int
    ) -> dict[str, float | int]:
        """``target``: the place in the certificate of the one for which the question counts most;
        ``stake``: that part of its call's stake, in [0, 1]; ``predicted_loss`` of the question."""
        parts = self._parts(candidates, belief)
        target = int(parts[:, place].argmax())
        together = float(parts[:, candidates.unit == candidates.unit[place]].sum())
        predicted = float(expected_losses(candidates, belief, NAME)[place])
        found: dict[str, float | int] = {"predicted_loss": round(predicted, 6)}
        if together > 0:
            found |= {"target": target, "stake": round(float(parts[target, place]) / together, 6)}
        return found

    def _parts(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        if belief.certifier is None:
            raise needs_targets()
        return belief.stakes_by_target(candidates)
