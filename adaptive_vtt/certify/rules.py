"""What the betting game of K targets is played for: fixed before the first bet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, unknown
from ..families import TargetId
from ..types import Bets, Floats, Guarantee
from .decisions import Comparison, Decisions
from .sequences import BETS

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts

MIN_AIM = 0.02
"""Where a rate is expected nearer than this to a limit, bets are best this far from it."""
MIN_SHARE = 0.1
"""Part of alpha that is spread evenly, whatever targets need."""

THETA, RARE = 0.25, 0.25
"""What bets on larger rates weigh where the mean loss foreseen is below ``RARE``: 3/4 of alpha is
left for the upper end of the interval, which is the last to come near such a rate. Nearer to 1/2
both ends decide, and 1/4 costs one more than 3/4 saves the other (experiments.engine.bets)."""


@dataclass(frozen=True)
class Rules:
    """What is aimed at, and how surely.

    - ``aim``: in (0, 1), the half-width that bets aim at.
    - ``alpha``: in (0, 1), the probability with which anything certified may be wrong: any of the
      intervals where ``guarantee`` is "all", each of them where it is "each".
    - ``weights`` (K,): every target's share of ``alpha``, 0 or more, 1 in all. None: even shares.
    - ``limit``: in (0, 1), a rate; bets decide on which side of it every target lies. None: no
      decisions. ``by_distance``: nothing else is asked for, so bets aim at the distance of the
      centre from the limit, where that is less than ``aim``.
    - ``bets``: the game's constants.
    - ``changes``: (draw, half-width) pairs in the order of their draws, the first of them 0: from
      that draw on, bets aim at that half-width. Empty: all of them at ``aim``.
    - ``compare``: what decides which of two models is better. None: nothing is compared.
    - ``set_aside``: in [0, 1), the share of ``alpha`` that is kept for slices, targets that are
      discovered while the audit goes on; the j-th gets 6 / (pi^2 j^2) of it, so that however many
      there will be, no more is spent. ``slices``: how many of the targets, the last ones, are some.
    - ``theta`` (K,): in (0, 1), what bets on larger rates weigh against those on smaller ones, see
      ``sequences``, for every target but slices. Empty: 1/2, as for slices.
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
        """Those of a journal."""
        by_bets = certificate.decides
        compare = None if certificate.versus is None else Comparison.of(certificate.versus)
        return cls(
            certificate.aim,
            1 - certificate.confidence,
            certificate.guarantee,
            certificate.weights,
            certificate.at_most if by_bets else None,
            by_bets and certificate.half_width is None,
            certificate.bets,
            certificate.aims,
            compare,
            certificate.set_aside,
            len(certificate.slices),
            certificate.theta,
        )

    @property
    def only_sides(self) -> bool:
        """Whether nothing is asked for but on which side of a limit, or a claim, targets lie."""
        return self.by_distance or self.claims

    @property
    def claims(self) -> bool:
        """Whether a claim about two models is to be decided."""
        return self.compare is not None and self.compare.at_least is not None

    def aiming(self, aim: float, draw: int) -> "Rules":
        """These rules, but that bets on ``draw`` and those after it aim at another half-width.

        What holds stays so. A sequence holds whatever its bets are, as long as each is fixed before
        the outcome that it is about is known. Whoever changes the aim may have seen every answer
        that came back, so ``draw`` must be one that has not been made yet; bets on draws whose
        answers are still waited for, or not learnt yet, stay as they were. Intervals hold at every
        moment, so also at the one at which a wider or a narrower aim ends the audit. ``alpha`` and
        its shares were fixed before the first bet and are not touched.
        """
        before = [change for change in self.changes or ((0, self.aim),) if change[0] < draw]
        return replace(self, aim=aim, changes=(*before, (draw, aim)))

    def alphas(self, count: int) -> Floats:
        """(K,): the probability with which each target's interval may fail."""
        if self.guarantee == "each":
            return np.full(count, self.alpha)
        alpha, first = self.alpha * (1 - self.set_aside), count - self.slices
        even = self.weights is None
        own = np.full(first, alpha / first) if even else alpha * np.array(self.weights)
        later = 6 / (np.pi * np.arange(1, self.slices + 1)) ** 2
        return np.concatenate([own, self.alpha * self.set_aside * later])

    def thetas(self, count: int) -> Floats:
        """(K,): the weight of every target's bets on larger rates."""
        return np.array([*self.theta] + [0.5] * (count - len(self.theta)))

    def aims(self, centre: Floats, draw: int) -> Floats:
        """(K,): the half-widths that bets on a draw, counted from 0, aim at, with rates expected
        about ``centre``."""
        if self.compare is not None:
            return self.compare.aims(centre)
        reached = [aim for first, aim in self.changes if first <= draw]
        aim = reached[-1] if reached else self.aim
        if self.limit is None or not self.by_distance:
            return np.full(len(centre), aim)
        return np.clip(np.abs(centre - self.limit), MIN_AIM, aim)

    def decisions(self, count: int) -> Decisions | None:
        """Those of an audit that has not begun; None where nothing is to be decided."""
        limits: float | Floats | None = self.limit
        if self.compare is not None and self.claims:
            limits = np.broadcast_to(self.compare.goals, count)
        if limits is None:
            return None
        theta = None if self.only_sides else self.thetas(count)
        return Decisions(limits, self.alphas(count), self.guarantee == "all", theta)


def theta_for(means: Floats) -> tuple[float, ...]:
    """Return every target's ``Rules.theta`` from the mean loss (K,) that is foreseen of it before
    the first draw, NaN where nothing is."""
    rare, frequent = means < RARE, means > 1 - RARE
    return tuple(np.select([rare, frequent], [THETA, 1 - THETA], 0.5).tolist())


def shares(weights: Mapping[str, float], targets: Sequence[TargetId]) -> tuple[float, ...]:
    """Weights by targets' names or handles, 1 where none is given, as shares that sum to 1, in the
    order of ``targets``. Raises InputError for an unknown target, and for weights that are none."""
    given = [1.0] * len(targets)
    for name, weight in weights.items():
        places = [k for k, target in enumerate(targets) if target.is_named(name)]
        if not places:
            raise unknown("target", name, [target.name for target in targets], "weights")
        if not 0 <= weight < float("inf"):
            raise InputError(f"weights: {name!r}: expected a number of 0 or more, got {weight}")
        for place in places:
            given[place] = float(weight)
    if sum(given) <= 0:
        raise InputError("weights: expected at least one target with a weight above 0, got none")
    return tuple(weight / sum(given) for weight in given)


def by_size(calls: Floats, largest: Floats, total: int) -> tuple[float, ...]:
    """Shares of alpha by what is known before the first draw, (K,) summing to 1.

    ``calls`` (K,) of ``total`` bring an answer to a target, at most ``largest`` (K,) each. Where
    calls serve several targets, one that few calls touch is waited for, and one that most calls
    touch is done long before, with any share. Where a call brings many of a target's answers their
    mean varies less, though not as little as if they were independent: hence the root. Nobody gets
    less than a tenth of an even share; where no call need touch two targets all shares are even.
    """
    need = (1 - calls / total) ** 2 / np.sqrt(largest)
    if calls.sum() <= total or not need.any():
        need = np.ones_like(need)
    share = (1 - MIN_SHARE) * need / need.sum() + MIN_SHARE / len(need)
    return tuple((share / share.sum()).tolist())
