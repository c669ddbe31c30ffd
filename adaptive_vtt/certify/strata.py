"""Stratum first: the cells that targets cut a space into, and how often each is drawn from.

Where a call answers one question, questions that belong to the same targets form a stratum c, of
which M_c are unseen. A draw then goes in this order, each step by the past alone or by chance:

1. The past fixes M_c, a guess g_c of the mean loss, G_c = M_c g_c, and shares pi over strata.
2. c is drawn from pi. 3. The candidates are a uniform m of the M_c. 4. The proposal q is over
these. 5. Targets without c stay where they are. For the others let C be their strata with unseen
calls,
   rho = pi_c / pi(C) and r = M_c / m; their pseudo-outcome is

    N a = S + sum over C of G + ( r ( sum of F + (L_I - F_I) / q(I) ) - G_c ) / rho

Given c and the candidates, the mean over I turns the bracket into r times the sum of L; given c,
the candidates are a uniform m of the M_c, so its mean is the sum of L over the stratum's unseen
calls; given that c is in C, c has the proposal rho, so that the G cancel: E[N a] = N R. A target
that is one stratum has rho = 1, and G drops out.

It pays because a draw's proposal, and so the range that bets are bounded by, is that of the targets
which it is about, and because rare targets have as many candidates as common ones. Bets know
the past alone, not c; a target that spans strata could not take c as given, as its mean
given c is not R.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..journal.rows import Reasons
from ..population import Population
from ..types import Bools, Floats, Indices
from .targets import Target

TINY = 1e-300
FIRST_MEAN, FIRST_VARIANCE = 0.5, 0.25
"""Of losses in a stratum that was not drawn from yet."""
MAX = 256
"""Strata up to which a draw chooses one first: with many more, few would be drawn from twice, and
what is expected of them would be a guess."""
SMOOTH = 0.1
"""Weight of the newest variance foreseen for a target that spans strata, which differ in it."""
DIGITS = 9
"""Decimals of shares and means, which are journaled as they are used."""


@dataclass(frozen=True)
class Stratum:
    """What a draw from one stratum was made of: for the journal.

    ``place``: the stratum's number; ``shares``: pi (C,), the proposal that it was drawn from;
    ``mean`` and ``variance``: of the losses that its candidates are expected to have.
    """

    place: int
    shares: Floats
    mean: float = FIRST_MEAN
    variance: float = FIRST_VARIANCE

    def row(self) -> Reasons:
        """For the journal, beside the other reasons of a draw."""
        return Reasons(
            stratum=self.place,
            shares=self.shares.tolist(),
            stratum_mean=self.mean,
            stratum_variance=self.variance,
        )

    @classmethod
    def of(cls, row: Reasons) -> "Stratum | None":
        """The stratum that ``row`` wrote; None where a draw was made from all calls."""
        if "stratum" not in row:
            return None
        mean, variance = row["stratum_mean"], row["stratum_variance"]
        return cls(row["stratum"], np.array(row["shares"], float), mean, variance)


class Strata:
    """The C strata of K targets, and what is known of each; strata are numbered in the order of
    their columns of ``inside`` (K x C), whether a target holds a stratum, read as numbers of K
    binary digits. Questions of no target are in none of them.

    ``unseen`` (C,): questions not drawn; ``mean``, ``variance`` (C,): g_c, and the variance of a
    loss, as expected when the stratum was last drawn from; of strata that were not, the average
    of those that were.
    """

    def __init__(self, space: Population, targets: list[Target]) -> None:
        self._space = space
        cells = cells_of(space, targets)
        counts = space.dataset.counts * space.applicable[:, :, None]  # V x C x 2
        signatures, place = np.unique(cells[:, counts > 0], axis=1, return_inverse=True)
        none = int(not signatures[:, 0].any())  # sorted: the first is that of no target
        self.inside: Bools = signatures[:, none:]
        self._of = np.full(counts.shape, -1)
        self._of[counts > 0] = place.ravel() - none
        self._parts = [np.argwhere(self._of == c) for c in range(self.inside.shape[1])]
        self._ends = [np.cumsum(counts[tuple(parts.T)]) for parts in self._parts]
        self.sizes: Indices = np.array([ends[-1] for ends in self._ends], np.int64)
        self.unseen = self.sizes.copy()
        self.known = np.zeros(len(self.sizes), dtype=np.bool_)
        self.mean = np.full(len(self.sizes), FIRST_MEAN)
        self.variance = np.full(len(self.sizes), FIRST_VARIANCE)

    def __len__(self) -> int:
        return len(self.sizes)

    def of(self, questions: npt.ArrayLike) -> Indices:
        """The stratum of each question (n,); -1: none."""
        sample, variant, concept = self._space.parts(questions)
        truth = self._space.dataset.truth(sample, concept)
        return np.asarray(self._of[variant, concept, truth])

    def nth(self, stratum: int, ranks: Indices) -> Indices:
        """The questions of these ranks in a stratum: a bijection from 0..size-1."""
        ends, parts = self._ends[stratum], self._parts[stratum]
        part = np.searchsorted(ends, ranks, side="right")
        variant, concept, side = parts[part].T
        within = ranks - np.where(part > 0, ends[part - 1], 0)
        found = np.empty(len(ranks), np.int64)
        for cell in np.unique(concept * 2 + side).tolist():
            here = concept * 2 + side == cell
            sample = self._space.dataset.members(cell // 2, cell % 2, within[here])
            found[here] = self._space.number(sample, variant[here], concept[here])
        return found

    def remove(self, questions: Indices) -> None:
        """Counts questions that were drawn."""
        place = self.of(questions)
        self.unseen -= np.bincount(place[place >= 0], minlength=len(self))

    def note(self, stratum: Stratum) -> None:
        """What the candidates of a draw are expected to lose: for the draws after it."""
        self.known[stratum.place] = True
        for values, newest in ((self.mean, stratum.mean), (self.variance, stratum.variance)):
            values[stratum.place] = newest
            values[~self.known] = values[self.known].mean()


@dataclass(frozen=True)
class Frame:
    """What the candidates of a draw stand for, target by target: K targets x J strata.

    ``questions``: the unseen questions n; ``most``: the most that their losses can come to;
    ``guess``: G; ``share``: rho, 0 where the target has nothing left to draw; ``place``: the
    stratum drawn; ``calls`` (K,): M, the unseen calls that touch the target there.

    Without strata there is one, which every target shares, and nothing is guessed.
    """

    questions: Floats
    most: Floats
    guess: Floats
    share: Floats
    place: int
    calls: Floats

    @property
    def active(self) -> Bools:
        """(K,): whether the target may move."""
        return np.asarray(self.share[:, self.place] > 0)

    @property
    def room(self) -> Floats:
        """(K,): the questions that the candidates stand for, at least 1."""
        return np.maximum(self.questions[:, self.place], 1)

    @property
    def drawn(self) -> Floats:
        """(K,): rho of the stratum drawn; 1 where the target does not move."""
        return np.where(self.active, self.share[:, self.place], 1.0)

    @property
    def rest(self) -> Floats:
        """(K,): the sum of G, less G_c / rho."""
        return np.asarray(self.guess.sum(axis=1) - self.guess[:, self.place] / self.drawn)

    @property
    def away(self) -> Floats:
        """(K,): what moving every g by one adds to ``rest``."""
        return np.asarray(self.questions.sum(axis=1) - self.questions[:, self.place] / self.drawn)

    def even(self, touching: Indices, mass: Floats) -> Floats:
        """(K,): what scale would be were the proposal even within each target, of whose candidates
        it draws one with probability ``mass``."""
        every = self.questions.sum(axis=1)
        whole = self.calls / np.maximum(touching, 1) * touching / np.maximum(mass, TINY)
        return np.where(every > self.room, every, whole)

    def blend(self, before: Floats, newest: Floats) -> Floats:
        """(K,): the variance foreseen, from that of before and of the newest draw."""
        rate = np.where((self.share > 0).sum(axis=1) > 1, SMOOTH, 1.0)
        return before + rate * (newest - before)

    def lowest(self, reach: Floats) -> Floats:
        """(K,): lo, where corrections reach no further down than ``reach`` x questions."""
        return np.asarray(self.guess.sum(axis=1) - self._worst(reach, self.guess))

    def highest(self, reach: Floats) -> Floats:
        """(K,): hi, where corrections reach no further up than ``reach`` x questions."""
        return np.asarray(self.guess.sum(axis=1) + self._worst(reach, self.most - self.guess))

    def swing(self, reach: Floats) -> Floats:
        """(K,): how far below 0 the tilt may lie, where that of a stratum lies no further down
        than ``reach`` x questions."""
        share = np.where(self.share > 0, self.share, 1.0)
        lowest = (1 + reach[:, None]) * self.questions / share
        return np.asarray(np.maximum(lowest.max(axis=1) - self.questions.sum(axis=1), 0))

    def _worst(self, reach: Floats, more: Floats) -> Floats:
        share = np.where(self.share > 0, self.share, 1.0)
        return np.asarray(((reach[:, None] * self.questions + more) / share).max(axis=1))


def pooled(questions: Floats, calls: Floats, largest: Floats) -> Frame:
    """The frame of a draw from all calls; all (K,)."""
    column = np.maximum(questions, 1)[:, None]
    one, none = np.ones_like(column), np.zeros_like(column)
    return Frame(column, (calls * largest)[:, None], none, one, 0, calls)


def stratified(strata: Strata, stratum: Stratum) -> Frame:
    """The frame of a draw from a stratum. A target with unseen calls in a stratum whose share is
    0 does not move: the draw does not stand for them."""
    left = strata.inside * strata.unseen.astype(float)
    whole = ~((left > 0) & (stratum.shares == 0)).any(axis=1)
    share = (left > 0) * stratum.shares * whole[:, None]
    share /= np.where(whole & (left > 0).any(axis=1), share.sum(axis=1), 1.0)[:, None]
    return Frame(left, left, left * strata.mean, share, stratum.place, left[:, stratum.place])


def possible(targets: list[Target]) -> bool:
    """Whether strata of these targets can be drawn from without listing their questions, which
    takes targets that are about no samples of their own."""
    return all(target.rows is None for target in targets)


def cells_of(space: Population, targets: list[Target]) -> Bools:
    """K x V x C x 2: which targets hold the questions of a variant, a concept and a truth."""
    return np.array(
        [
            t.variants[:, None, None] & t.concepts[:, None] & t.sides & space.applicable[:, :, None]
            for t in targets
        ]
    )
