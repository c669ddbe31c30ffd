"""Which of two models is better: on which side of its pivot every target's rate lies.

The rate is that of pairs, y = (1 + L_A - L_B) / 2, whose pivot is 1/2, or model B's alone, whose
pivot is the known rate of model A. The difference delta = R_A - R_B is ``scale`` times the rate's
distance from the pivot. A target is decided "better" (B loses less) or "worse" once its whole
interval lies on one side, and "within" once no part of it lies further than ``margin`` from 0. All
three follow from the interval alone, so they hold whenever it does, at every moment.

A claim delta >= ``at_least``, registered before the first draw, is decided by bets against that
very difference instead (``decisions``), each way at the target's full alpha: whatever delta is,
only one of "holds" and "fails" can be wrong. It takes fewer questions than the interval's side.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..types import Bools, Floats
from .decisions import Decisions

if TYPE_CHECKING:
    from ..journal.facts import VersusFacts

MIN_AIM = 0.0025
"""Bets aim at least this far from the expected rate: about two grid cells."""
MAX_AIM = 0.1
"""Bets aim no further than this."""
EDGE = 1e-9
"""Differences nearer to 0, or to the margin, than this are rounding: an interval often ends at a
pivot, which lies on the grid."""
BETTER, WORSE, WITHIN, OPEN = "better", "worse", "within", "open"
HOLDS, FAILS = "holds", "fails"


@dataclass(frozen=True)
class Comparison:
    """``pivot`` (K,) or (1,): the rate at which both models are alike; ``scale``: see the module;
    ``margin``: in [0, 1), on the scale of delta; 0: differences of any size matter. ``stops``:
    whether an audit ends once all are decided; False: its other rules alone end it. ``at_least``:
    in (-1, 1), the delta that is claimed to be reached; None: no claim, intervals decide."""

    pivot: tuple[float, ...] = (0.5,)
    scale: float = 2.0
    margin: float = 0.0
    stops: bool = True
    at_least: float | None = None

    @classmethod
    def of(cls, facts: "VersusFacts") -> "Comparison":
        """That of a journal."""
        return cls(facts.pivot, facts.scale, facts.margin, at_least=facts.at_least)

    def describe(self) -> dict[str, object]:
        """For the journal."""
        claim = {} if self.at_least is None else {"at_least": self.at_least}
        return {"pivot": [*self.pivot], "scale": self.scale, "margin": self.margin, **claim}

    @property
    def goals(self) -> Floats:
        """(K,) or (1,): the rates whose side is to be found: of the claim, else the pivots. What
        reaches a claim exactly fulfils it, so they lie ``EDGE`` on its other side."""
        claimed = 0.0 if self.at_least is None else self.at_least - EDGE
        return np.array(self.pivot) + claimed / self.scale

    def differences(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """(K,) each: delta at least, and at most."""
        ends = np.sort(self.scale * (np.stack([lower, upper]) - np.array(self.pivot)), axis=0)
        return ends[0], ends[1]

    def ends(
        self, k: int, estimate: float, lower: float, upper: float
    ) -> tuple[float, float, float]:
        """Of target ``k`` the estimated delta, and delta at least and at most."""
        pivot = self.pivot[k % len(self.pivot)]
        delta, one, other = (self.scale * (rate - pivot) for rate in (estimate, lower, upper))
        return delta, min(one, other), max(one, other)

    def decisions(self, lower: Floats, upper: Floats) -> list[str]:
        """Per target "better", "worse", "within" or "open"."""
        least, most = self.differences(lower, upper)
        inside = np.maximum(-least, most) <= self.margin + EDGE
        found = zip(least > EDGE, most < -EDGE, inside, strict=True)
        return [BETTER if b else WORSE if w else WITHIN if i else OPEN for b, w, i in found]

    def rows(
        self, lower: Floats, upper: Floats, doubtful: Bools, claims: Decisions | None
    ) -> list[dict[str, str]]:
        """Per target its decision; "open" where intervals and draws disagree."""
        told = self.decisions(lower, upper) if claims is None else self.claimed(claims)
        found = zip(told, doubtful, strict=True)
        return [{"decision": OPEN if doubted else side} for side, doubted in found]

    def claimed(self, claims: Decisions) -> list[str]:
        """Per target whether the claim "holds", "fails" or is "open"."""
        holds, fails = claims.above, claims.below
        if self.scale < 0:
            holds, fails = fails, holds
        found = zip(holds, fails, strict=True)
        return [HOLDS if held else FAILS if failed else OPEN for held, failed in found]

    def decided(self, lower: Floats, upper: Floats) -> Bools:
        """(K,)"""
        least, most = self.differences(lower, upper)
        inside = np.maximum(-least, most) <= self.margin + EDGE
        return np.asarray((least > EDGE) | (most < -EDGE) | inside)

    def aims(self, centre: Floats) -> Floats:
        """(K,): the half-widths at which targets of these rates would be decided."""
        away = np.abs(centre - self.goals)
        inside = self.margin / abs(self.scale) - away
        return np.clip(np.maximum(away, inside), MIN_AIM, MAX_AIM)
