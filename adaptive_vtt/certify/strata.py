"""Stratum first: the parts that targets cut a space into, and how often each is drawn from.

A stratum c is a set of calls, of which M_c are unseen. Where a call answers one question, a stratum
holds the questions that belong to the same targets. Where a call answers all questions about an
image, a stratum holds the images of variants that belong to the same targets, such as all images of
a relation. A draw takes these steps; the past alone, or chance, decides each:

1. The past fixes M_c, how many unseen questions n_kc of target k the calls of stratum c hold, a
guess g_kc of their mean loss, G_kc = n_kc g_kc, and shares pi over strata.
2. c is drawn from pi. 3. The candidates are a uniform m of the M_c. 4. The proposal q is over
these. 5. A target k without unseen questions in c does not move. For the others let C be their
strata with unseen questions, rho = pi_c / pi(C), M_kc and m_k the unseen calls and the candidates
of c that touch the target, p_kc the chance of m_k > 0, which the past fixes, and
r = M_kc / (m_k p_kc); their pseudo-outcome is

    N a = S + sum over C of G + ( r ( sum of F + (L_I - F_I) / q(I) ) - G_c ) / rho

where n, F and L are sums over the target's questions within a call, as in ``certifier``. Given c
and the candidates, the mean over I turns the bracket into r times the sum of L over the candidates.
Given c and m_k > 0, those that touch the target are a uniform m_k of the M_kc, and the mean of that
is 1 / p_kc times the sum of L over the stratum's unseen calls; where m_k = 0 the bracket is 0. So
its mean given c is the sum of L. Given that c is in C, c has the proposal rho, so that the G
cancel: E[N a] = N R. A target within one stratum has rho = 1, and G drops out: its correction is no
longer divided by its stratum's share of the draws.

A target moves by all of C, also where no candidate touches it. If it moved only where some do, its
draws would favour the strata with more of it; p_kc makes up for the others, and is 1 where all
calls touch the target, or all are candidates. For the same reason a target with unseen questions in
a stratum whose share is 0 does not move at all.

Bets must not depend on c or the candidates. So the bounds of a pseudo-outcome are the widest over
C: r times the number of the target's questions among the candidates is at most M_kc / p_kc times
the most that one call holds. Where some p_kc is small when an audit begins, that would be too wide,
and there are no strata of calls; nor where more than one target spans strata, since a share of 1/7
makes each of its pseudo-outcomes 7 times as wide.

Strata pay because a draw's proposal, and so the range that bets are bounded by, is that of the
targets which it is about, and because rare targets have as many candidates as common ones. Bets
know the past alone, not c; a target that spans strata could not take c as given, as its mean given
c is not R.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..journal.rows import Reasons
from ..population import Population
from ..types import Bools, CallMode, Floats, Indices
from .targets import Target, counts_by_variant, members

TINY = 1e-300
FIRST_MEAN, FIRST_VARIANCE = 0.5, 0.25
"""Mean and variance of a loss in a stratum from which nothing was drawn yet."""
MAX = 256
"""Strata up to which a draw chooses one first: with many more, few would be drawn from twice, and
what is expected of them would be a guess."""
LEAST_CHANCE = 0.9
"""Chance of each target to be touched by a candidate of its strata, below which calls form no
strata: its bounds would be too wide."""
MOST_SPANNING = 1
"""Targets that may span several strata of calls, such as the mean of all relations. A target that
spans them is divided by its stratum's share: with nine of the demo's 16, strata take more calls."""
SMOOTH = 0.1
"""Weight of the newest variance foreseen for a target that spans strata, which differ in it."""
DIGITS = 9
"""Decimals of shares and means, which are journaled as they are used."""


@dataclass(frozen=True)
class Stratum:
    """The stratum of one draw, for the journal.

    ``place``: the stratum's number; ``shares``: pi (C,), the proposal that it was drawn from;
    ``mean`` and ``variance``: of the losses that its candidates are expected to have, by target
    (K,) where a call answers several questions, else one number each.
    """

    place: int
    shares: Floats
    mean: Floats | float = FIRST_MEAN
    variance: Floats | float = FIRST_VARIANCE

    def row(self) -> Reasons:
        """Return the fields that a draw's reasons hold of its stratum."""
        return Reasons(
            stratum=self.place,
            shares=self.shares.tolist(),
            stratum_mean=np.asarray(self.mean).tolist(),
            stratum_variance=np.asarray(self.variance).tolist(),
        )

    @classmethod
    def of(cls, row: Reasons) -> "Stratum | None":
        """Return the stratum that ``row`` wrote; None where a draw was made from all calls."""
        if "stratum" not in row:
            return None
        shares, mean, variance = (
            np.array(values, float)
            for values in (row["shares"], row["stratum_mean"], row["stratum_variance"])
        )
        return cls(row["stratum"], shares, mean, variance)


class Strata(ABC):
    """The C strata of K targets, and what is known of each.

    Strata are numbered in the order of their columns of ``inside`` (K x C), whether a target
    belongs to a stratum, read as numbers of K binary digits. What belongs to no target is in none.

    ``sizes``, ``unseen`` (C,): calls, and those not drawn; ``chance`` (K x C): p; ``ranks`` (C,):
    how many ranks ``nth`` takes; ``largest`` (K x C): the most questions of a target that one call
    answers; ``mean``, ``variance`` (K x C): g, and the variance of a loss, as expected when the
    stratum was last drawn from; of strata that were not, the average of those that were.
    """

    ranks: Indices
    largest: Floats

    def __init__(self, inside: Bools, sizes: Indices) -> None:
        self.inside, self.sizes, self.unseen = inside, sizes, sizes.copy()
        self.chance = np.ones(inside.shape)
        self.known = np.zeros(len(sizes), dtype=np.bool_)
        self.mean = np.full(inside.shape, FIRST_MEAN)
        self.variance = np.full(inside.shape, FIRST_VARIANCE)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    @abstractmethod
    def questions(self) -> Floats:
        """K x C: each target's unseen questions."""

    @property
    @abstractmethod
    def calls(self) -> Floats:
        """K x C: the unseen calls that touch each target."""

    @abstractmethod
    def of(self, questions: npt.ArrayLike) -> Indices:
        """Return the stratum of each question (n,); -1: none."""

    @abstractmethod
    def nth(self, stratum: int, ranks: Indices) -> Indices:
        """Return the calls of these ranks in a stratum, in ascending order of rank. Where a call
        answers all questions about an image, some may have nothing to ask."""

    @abstractmethod
    def remove(self, questions: Indices) -> None:
        """Count the questions of calls that were drawn."""

    def note(self, stratum: Stratum) -> None:
        """Keep what the candidates of a draw are expected to lose, for the draws after it."""
        self.known[stratum.place] = True
        for values, newest in ((self.mean, stratum.mean), (self.variance, stratum.variance)):
            values[:, stratum.place] = newest
            values[:, ~self.known] = values[:, self.known].mean(axis=1, keepdims=True)


class QuestionStrata(Strata):
    """Strata of calls that answer one question each."""

    def __init__(self, space: Population, targets: list[Target]) -> None:
        self._space = space
        cells = cells_of(space, targets)
        counts = space.dataset.counts * space.applicable[:, :, None]  # V x C x 2
        inside, place = _distinct(cells[:, counts > 0])
        self._of = np.full(counts.shape, -1)
        self._of[counts > 0] = place
        self._parts = [np.argwhere(self._of == c) for c in range(inside.shape[1])]
        self._ends = [np.cumsum(counts[tuple(parts.T)]) for parts in self._parts]
        super().__init__(inside, np.array([ends[-1] for ends in self._ends], np.int64))
        self.ranks, self.largest = self.sizes, np.ones(inside.shape)

    @property
    def questions(self) -> Floats:
        return self.inside * self.unseen.astype(float)

    @property
    def calls(self) -> Floats:
        return self.questions

    def of(self, questions: npt.ArrayLike) -> Indices:
        sample, variant, concept = self._space.parts(questions)
        truth = self._space.dataset.truth(sample, concept)
        return np.asarray(self._of[variant, concept, truth])

    def nth(self, stratum: int, ranks: Indices) -> Indices:
        ends, parts = self._ends[stratum], self._parts[stratum]
        part = np.searchsorted(ends, ranks, side="right")
        variant, concept, side = parts[part].T
        within = ranks - np.where(part > 0, ends[part - 1], 0)
        questions = np.empty(len(ranks), np.int64)
        for cell in np.unique(concept * 2 + side).tolist():
            here = concept * 2 + side == cell
            sample = self._space.dataset.members(cell // 2, cell % 2, within[here])
            questions[here] = self._space.number(sample, variant[here], concept[here])
        return questions

    def remove(self, questions: Indices) -> None:
        place = self.of(questions)
        self.unseen -= np.bincount(place[place >= 0], minlength=len(self))


class CallStrata(Strata):
    """Strata of calls that answer all questions about an image: by variant. ``limit``: the most
    calls that are candidates of a draw; ``given``: the stratum of each variant (V,), -1: none, by
    default those of the targets."""

    def __init__(
        self,
        space: Population,
        targets: list[Target],
        limit: int = 4096,
        given: Indices | None = None,
    ) -> None:
        self._space, self._targets, self.limit = space, targets, limit
        masks = np.array([target.variants for target in targets])
        self.given, self._of = given, by_variant(masks) if given is None else given
        self._variants = [np.flatnonzero(self._of == c) for c in range(self._of.max() + 1)]
        inside = np.stack([masks[:, own].any(axis=1) for own in self._variants], axis=1)
        counts = [counts_by_variant(space, target) for target in targets]  # K x 3 x V
        questions, calls, largest = np.stack(counts, axis=1).astype(float)
        images = counts_by_variant(space)[1]
        super().__init__(inside, np.array([images[own].sum() for own in self._variants]))
        self._questions, self._calls, self.largest = (
            np.stack([add(table[:, own], axis=1) for own in self._variants], axis=1)
            for table, add in ((questions, np.sum), (calls, np.sum), (largest, np.max))
        )
        self.ranks = np.array([len(space.dataset) * len(own) for own in self._variants])
        for stratum in range(len(self)):
            self._update(stratum)

    def _update(self, stratum: int) -> None:
        """Set the chance that some candidate of a draw touches each target (K,): one minus that of
        none, which is the product over i < m of 1 - M_kc / (M_c - i)."""
        calls, unseen = self._calls[:, stratum], int(self.unseen[stratum])
        drawn = np.arange(min(unseen, self.limit))
        # beyond 40 the product is 0 to the precision of a float
        rare = (calls > 0) & (calls * len(drawn) < 40 * unseen) & (calls + len(drawn) <= unseen)
        self.chance[:, stratum] = 1.0
        left = 1 - calls[rare, None] / (unseen - drawn)
        self.chance[rare, stratum] = 1 - left.prod(axis=1)

    @property
    def questions(self) -> Floats:
        return self._questions

    @property
    def calls(self) -> Floats:
        return self._calls

    def of(self, questions: npt.ArrayLike) -> Indices:
        return np.asarray(self._of[self._space.parts(questions)[1]])

    def nth(self, stratum: int, ranks: Indices) -> Indices:
        sample, place = np.divmod(ranks, len(self._variants[stratum]))
        return np.asarray(sample * len(self._of) + self._variants[stratum][place])

    def remove(self, questions: Indices) -> None:
        sample, variant, _ = self._space.parts(questions)
        image = sample * len(self._of) + variant
        inside = members(self._space, self._targets, questions)
        for call in np.unique(image).tolist():
            place, count = self._of[call % len(self._of)], inside[:, image == call].sum(axis=1)
            if place >= 0:
                self.unseen[place] -= 1
                self._questions[:, place] -= count
                self._calls[:, place] -= count > 0
                self._update(place)


def by_variant(masks: Bools) -> Indices:
    """Return the stratum of each variant (V,) where targets have ``masks`` (K x V), -1: none."""
    return _distinct(masks)[1]


def strata_of(
    space: Population,
    targets: list[Target],
    answers: CallMode,
    limit: int,
    given: Indices | None = None,
) -> Strata | None:
    """Return the strata that draws of up to ``limit`` candidate calls may choose first, None where
    there is no choice, or too much of it; those ``given`` in any case."""
    if answers == "all" and given is not None:
        return CallStrata(space, targets, limit, given)
    if answers == "all":
        strata: Strata = CallStrata(space, targets, limit)
        if (strata.inside.sum(axis=1) > 1).sum() > MOST_SPANNING:
            return None
    elif possible(targets):
        strata = QuestionStrata(space, targets)
    else:
        return None
    sure = (strata.chance >= LEAST_CHANCE).all()
    return strata if sure and 1 < len(strata) <= MAX else None


def _distinct(columns: Bools) -> tuple[Bools, Indices]:
    """Return the distinct columns (K x C) of K x n, sorted, without that of no target, and which
    of them each column is (n,); -1: of no target."""
    signatures, place = np.unique(columns, axis=1, return_inverse=True)
    none = int(not signatures[:, 0].any())  # sorted: the first is that of no target
    return signatures[:, none:], place.ravel() - none


@dataclass(frozen=True)
class Frame:
    """What the candidates of a draw stand for, target by target: K targets x J strata.

    ``questions``: the unseen questions n; ``most``: the most that their losses can come to;
    ``guess``: G; ``share``: rho, 0 where the target has nothing left to draw; ``place``: the
    stratum drawn; ``calls``: the unseen calls that touch the target; ``chance`` (K,): that some
    candidate of the stratum drawn does.

    Without strata there is one, which every target shares, and nothing is guessed.
    """

    questions: Floats
    most: Floats
    guess: Floats
    share: Floats
    place: int
    calls: Floats
    chance: Floats

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
        calls = self.calls[:, self.place]
        whole = calls / np.maximum(touching, 1) * touching / np.maximum(mass, TINY)
        spans = self.questions.sum(axis=1) > self.room
        return np.where(spans, self.calls.sum(axis=1), whole)

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
    most = (calls * largest)[:, None]
    return Frame(column, most, none, one, 0, calls[:, None], one[:, 0])


def stratified(strata: Strata, stratum: Stratum) -> Frame:
    """The frame of a draw from a stratum. A target with unseen questions in a stratum whose share
    is 0 does not move: the draw does not stand for them."""
    left, calls = strata.questions, strata.calls
    whole = ~((left > 0) & (stratum.shares == 0)).any(axis=1)
    share = (left > 0) * stratum.shares * whole[:, None]
    share /= np.where(whole & (left > 0).any(axis=1), share.sum(axis=1), 1.0)[:, None]
    most, guess = calls * strata.largest / strata.chance, left * strata.mean
    chance = strata.chance[:, stratum.place]
    return Frame(left, most, guess, share, stratum.place, calls, chance)


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
