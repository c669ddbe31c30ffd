"""Rules of the betting game of K targets, which are fixed before the first bet."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..types import Bets, Floats, Guarantee
from .decisions import Comparison, Decisions
from .sequences import BETS

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts

MIN_AIM = 0.02
"""Least distance from a limit that bets aim at."""


@dataclass(frozen=True)
class Rules:
    """Goal of an audit and the constants of its game.

    Attributes:
        aim: Half-width in (0, 1) that bets aim at.
        alpha: Probability in (0, 1) that something certified is wrong.
        guarantee: "all" if ``alpha`` covers all intervals at once, "each" if each by itself.
        weights: (K,) every target's share of ``alpha``, summing to 1 (``alpha.alpha_shares``);
            None: even shares.
        limit: Rate in (0, 1) whose side bets decide for every target; None: no decisions.
        by_distance: Whether only the side is asked for. Bets then aim at the distance from
            the limit where that is less than ``aim``.
        bets: Constants of the game.
        changes: (draw, half-width) pairs in ascending order, the first of draw 0. From each draw
            on, bets aim at its half-width. Empty: all bets aim at ``aim``.
        compare: Comparison of two models; None: nothing is compared.
        set_aside: Share in [0, 1) of ``alpha`` for slices, targets discovered during the audit.
            The j-th slice gets 6 / (pi^2 j^2) of it, and these sum to 1.
        slices: How many of the targets are slices; they come last.
        theta: (K - slices,) weight in (0, 1) of bets on larger rates (``sequences``). Empty: 1/2,
            which slices always have.
    """

    aim: float
    alpha: float
    guarantee: Guarantee = "all"
    weights: tuple[float, ...] | None = None
    limit: float | None = None
    by_distance: bool = False
    bets: Bets = BETS
    changes: tuple[tuple[int, float], ...] = ()
    compare: Comparison | None = None
    set_aside: float = 0.0
    slices: int = 0
    theta: tuple[float, ...] = ()

    @classmethod
    def of(cls, certificate: "CertificateFacts") -> "Rules":
        """Return the rules of a journal."""
        compare = None if certificate.versus is None else Comparison.of(certificate.versus)
        return cls(
            certificate.aim,
            1 - certificate.confidence,
            certificate.guarantee,
            certificate.weights,
            limit=certificate.at_most if certificate.decides else None,
            by_distance=certificate.decides and certificate.half_width is None,
            bets=certificate.bets,
            changes=certificate.aims,
            compare=compare,
            set_aside=certificate.set_aside,
            slices=len(certificate.slices),
            theta=certificate.theta,
        )

    @property
    def only_sides(self) -> bool:
        """True if only the side of a limit, or of a claim, is asked for."""
        return self.by_distance or self.claims

    @property
    def claims(self) -> bool:
        """True if a claim about two models is to be decided."""
        return self.compare is not None and self.compare.at_least is not None

    def aiming(self, aim: float, draw: int) -> "Rules":
        """Return these rules with another half-width for ``draw`` and later ones.

        The guarantee stays. A sequence holds with any bets, as long as each is fixed before its
        outcome is known. Someone who changes the aim may have seen every answer so far, so ``draw``
        must not be made yet. Bets on earlier draws stay, also where their answers are not learnt.
        Intervals hold at every moment, so also when a new aim ends the audit. ``alpha`` and its
        shares were fixed before the first bet, and stay.
        """
        before = [change for change in self.changes or ((0, self.aim),) if change[0] < draw]
        return replace(self, aim=aim, changes=(*before, (draw, aim)))

    def alphas(self, count: int) -> Floats:
        """Return the probability (K,) with which the interval of each target may fail."""
        if self.guarantee == "each":
            return np.full(count, self.alpha)
        alpha, first = self.alpha * (1 - self.set_aside), count - self.slices
        even = self.weights is None
        own = np.full(first, alpha / first) if even else alpha * np.array(self.weights)
        later = 6 / (np.pi * np.arange(1, self.slices + 1)) ** 2
        return np.concatenate([own, self.alpha * self.set_aside * later])

    def thetas(self, count: int) -> Floats:
        """Return the weight (K,) of each target's bets on larger rates."""
        return np.array([*self.theta] + [0.5] * (count - len(self.theta)))

    def aims(self, centre: Floats, draw: int) -> Floats:
        """Return the half-widths (K,) that bets aim at.

        Args:
            centre: (K,) expected rates.
            draw: Number of the draw, from 0.
        """
        if self.compare is not None:
            return self.compare.aims(centre)
        reached = [aim for first, aim in self.changes if first <= draw]
        aim = reached[-1] if reached else self.aim
        if self.limit is None or not self.by_distance:
            return np.full(len(centre), aim)
        return np.clip(np.abs(centre - self.limit), MIN_AIM, aim)

    def decisions(self, count: int) -> Decisions | None:
        """Return the decisions of a new audit, None where nothing is to be decided."""
        limits: float | Floats | None = self.limit
        if self.compare is not None and self.claims:
            limits = np.broadcast_to(self.compare.goals, count)
        if limits is None:
            return None
        theta = None if self.only_sides else self.thetas(count)
        return Decisions(limits, self.alphas(count), self.guarantee == "all", theta)
