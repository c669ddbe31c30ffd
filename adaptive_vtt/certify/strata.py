"""Strata: disjoint sets of calls that a draw chooses among before it chooses a call.

Stratum c has M_c unseen calls. Where a call asks one question, a stratum holds the questions that
belong to the same targets. Where a call asks all questions about an image, a stratum holds the
images of the variants that belong to the same targets, such as all images of a relation. A draw
takes five steps, each decided by the past or by chance:

1. The past fixes M_c, and n_kc, the unseen questions of target k in stratum c. It also fixes a
   guess g_kc of their mean loss, G_kc = n_kc g_kc, and the shares pi of the strata.
2. c is drawn from pi.
3. The candidates are a uniform m of the M_c.
4. The proposal q is over the candidates.
5. A target without unseen questions in c stays as it is. The others move.

For a target k that moves let C be its strata with unseen questions, and rho = pi_c / pi(C). In c,
M_kc unseen calls and m_k candidates touch the target. The chance p_kc of m_k > 0 is fixed by the
past. With r = M_kc / (m_k p_kc) the pseudo-outcome is

    N a = S + sum over C of G + ( r ( sum of F + (L_I - F_I) / q(I) ) - G_c ) / rho

where F and L are sums over the target's questions in a call, as in ``certifier``. It is unbiased:

- Given c and the candidates, the mean over I turns the bracket into r times the sum of L over the
  candidates. Given c and m_k > 0, the touching candidates are a uniform m_k of the M_kc, and the
  mean over them is 1 / p_kc times the sum of L over the stratum's unseen calls. Where m_k = 0 the
  bracket is 0. So the mean of the bracket given c is that sum of L.
- Given that c is in C, c has the proposal rho, so the G cancel, and E[N a] = N R.

A target within one stratum has rho = 1. Then G drops out, and the correction is not divided by the
stratum's share of the draws.

A target moves with every draw from C, also where no candidate touches it. Otherwise its draws would
favour the strata that hold more of it. p_kc corrects for the draws without a touching candidate; it
is 1 where all calls touch the target, or all are candidates. For the same reason a target stays as
it is as long as one of its strata with unseen questions has the share 0.

Bets must not depend on c or the candidates, so the bounds of a pseudo-outcome are the widest over
the strata in C. The target's questions among the candidates, times r, are at most M_kc / p_kc times
the most that one call holds. Where some p_kc is small at first, calls form no strata: that bound
would be too wide. Calls form no strata either where more than ``MOST_SPANNING`` targets span
strata: a share of 1/7 makes each pseudo-outcome of such a target 7 times as wide.

Strata save calls for two reasons. The proposal, and so the range that bounds bets, is that of the
targets that a draw is about, and rare targets have as many candidates as common ones. Bets know the
past alone, not c: the mean of a target that spans strata is R, but its mean given c is not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..journal.rows import Reasons
from ..population import Population
from ..types import Bools, CallMode, Floats, Indices
from .targets import Target, counts_by_variant, members

TINY = 1e-300
"""Least divisor, so that 0 / 0 stays 0."""
FIRST_MEAN, FIRST_VARIANCE = 0.5, 0.25
"""Expected mean and variance of a loss before the first draw from any stratum."""
MAX = 256
"""Most strata that draws choose among. With many more, few strata would be drawn from twice, and
their expected losses would remain guesses."""
LEAST_CHANCE = 0.9
"""Least chance that some candidate touches a target of its stratum. Below it the target's bounds
would be too wide, so calls form no strata."""
MOST_SPANNING = 1
"""Most targets that may span several strata of calls, such as the mean of all relations. With nine
of the demo's 16 targets spanning strata, strata take more calls than none."""
SMOOTH = 0.1
"""Weight of the newest expected variance of a target that spans strata, whose variances differ."""
DIGITS = 9
"""Decimals of shares and means, which are rounded before they are used and journaled."""


@dataclass(frozen=True)
class Stratum:
    """Stratum of one draw, as the journal keeps it.

    Attributes:
        place: Number of the stratum.
        shares: Proposal pi (C,) that it was drawn from.
        mean: Expected mean loss of its candidates. By target (K,) where a call asks several
            questions, else one number.
        variance: Expected variance of a loss, likewise.
    """

    place: int
    shares: Floats
    mean: Floats | float = FIRST_MEAN
    variance: Floats | float = FIRST_VARIANCE

    def row(self) -> Reasons:
        """Return the fields about the stratum in a draw's reasons."""
        return Reasons(
            stratum=self.place,
            shares=self.shares.tolist(),
            stratum_mean=np.asarray(self.mean).tolist(),
            stratum_variance=np.asarray(self.variance).tolist(),
        )

    @classmethod
    def of(cls, row: Reasons) -> "Stratum | None":
        """Return the stratum that ``row`` wrote, None for a draw from all calls."""
        if "stratum" not in row:
            return None
        shares, mean = np.array(row["shares"], float), np.array(row["stratum_mean"], float)
        return cls(row["stratum"], shares, mean, np.array(row["stratum_variance"], float))


class Strata(ABC):
    """The C strata of K targets.

    Strata are numbered in ascending order of their columns of ``inside``, read as numbers of K
    binary digits. Calls of no target are in no stratum.

    Attributes:
        inside: (K x C) which targets hold the questions of each stratum.
        sizes: (C,) calls of each stratum.
        unseen: (C,) calls not drawn yet.
        chance: (K x C) p, the chance that a candidate of the stratum touches the target.
        known: (C,) whether the stratum was drawn from.
        ranks: (C,) the number of ranks that ``nth`` accepts.
        largest: (K x C) the most questions of a target that one call asks.
        mean: (K x C) g, the mean loss expected at the stratum's last draw. A stratum without a
            draw has the average of the others.
        variance: (K x C) expected variance of a loss, likewise.
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
        """(K x C): unseen questions of each target."""

    @property
    @abstractmethod
    def calls(self) -> Floats:
        """(K x C): unseen calls that touch each target."""

    @abstractmethod
    def of(self, questions: npt.ArrayLike) -> Indices:
        """Return the stratum of each question (n,), -1 for none."""

    @abstractmethod
    def nth(self, stratum: int, ranks: Indices) -> Indices:
        """Return the calls of these ranks (n,) in a stratum.

        Where a call asks all questions about an image, some of the calls may have no question.
        """

    @abstractmethod
    def remove(self, questions: Indices) -> None:
        """Count calls as drawn, given all their questions (n,)."""

    def note(self, stratum: Stratum) -> None:
        """Keep the expected losses of a draw's candidates for later draws."""
        self.known[stratum.place] = True
        for values, newest in ((self.mean, stratum.mean), (self.variance, stratum.variance)):
            values[:, stratum.place] = newest
            values[:, ~self.known] = values[:, self.known].mean(axis=1, keepdims=True)


class QuestionStrata(Strata):
    """Strata of calls that ask one question each."""

    def __init__(self, space: Population, targets: list[Target]) -> None:
        self._space = space
        cells = cells_of(space, targets)
        counts = space.dataset.counts * space.applicable[:, :, None]  # V x C x 2
        inside, place = _distinct(cells[:, counts > 0])
        self._stratum_of = np.full(counts.shape, -1)  # V x C x 2
        self._stratum_of[counts > 0] = place
        self._parts = [np.argwhere(self._stratum_of == c) for c in range(inside.shape[1])]
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
        return np.asarray(self._stratum_of[variant, concept, truth])

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
    """Strata of calls that ask all questions about an image; each holds some variants.

    Args:
        space: The space that questions are drawn from.
        targets: The K targets.
        limit: The most candidate calls of a draw.
        assigned: (V,) the stratum of each variant, -1 for none; None: the variants of the same
            targets form a stratum.
    """

    def __init__(
        self,
        space: Population,
        targets: list[Target],
        limit: int = 4096,
        assigned: Indices | None = None,
    ) -> None:
        self._space, self._targets, self.limit = space, targets, limit
        masks = np.array([target.variants for target in targets])
        self.assigned = assigned
        self._stratum_of = by_variant(masks) if assigned is None else assigned
        strata = range(self._stratum_of.max() + 1)
        self._variants = [np.flatnonzero(self._stratum_of == c) for c in strata]

        def by_stratum(table: npt.NDArray[Any], combine: Callable[..., Any]) -> npt.NDArray[Any]:
            """Combine the columns of K x V that are in the same stratum, K x C."""
            return np.stack([combine(table[:, own], axis=1) for own in self._variants], axis=1)

        images = counts_by_variant(space)[1]
        sizes = np.array([images[own].sum() for own in self._variants])
        super().__init__(by_stratum(masks, np.any), sizes)
        counts = [counts_by_variant(space, target) for target in targets]  # K x 3 x V
        questions, calls, largest = np.stack(counts, axis=1).astype(float)
        self._questions, self._calls = by_stratum(questions, np.sum), by_stratum(calls, np.sum)
        self.largest = by_stratum(largest, np.max)
        self.ranks = np.array([len(space.dataset) * len(own) for own in self._variants])
        for stratum in range(len(self)):
            self._update(stratum)

    def _update(self, stratum: int) -> None:
        """Set the chance (K,) that some candidate of a draw touches each target.

        It is 1 minus the chance of none, the product over i < m of 1 - M_kc / (M_c - i).
        """
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
        return np.asarray(self._stratum_of[self._space.parts(questions)[1]])

    def nth(self, stratum: int, ranks: Indices) -> Indices:
        sample, place = np.divmod(ranks, len(self._variants[stratum]))
        return np.asarray(sample * len(self._stratum_of) + self._variants[stratum][place])

    def remove(self, questions: Indices) -> None:
        sample, variant, _ = self._space.parts(questions)
        image = sample * len(self._stratum_of) + variant
        inside = members(self._space, self._targets, questions)
        for call in np.unique(image).tolist():
            stratum = self._stratum_of[call % len(self._stratum_of)]
            count = inside[:, image == call].sum(axis=1)
            if stratum >= 0:
                self.unseen[stratum] -= 1
                self._questions[:, stratum] -= count
                self._calls[:, stratum] -= count > 0
                self._update(stratum)


def by_variant(masks: Bools) -> Indices:
    """Return the stratum of each variant (V,), -1 for none, given the targets' masks, K x V."""
    return _distinct(masks)[1]


def strata_of(
    space: Population,
    targets: list[Target],
    answers: CallMode,
    limit: int,
    assigned: Indices | None = None,
) -> Strata | None:
    """Return the strata that draws choose among, None where they draw from all calls.

    Args:
        space: The space that questions are drawn from.
        targets: The K targets.
        answers: Whether a call asks one question, or all about an image.
        limit: The most candidate calls of a draw.
        assigned: (V,) strata of calls by variant, which are used in any case.
    """
    if answers == "all" and assigned is not None:
        return CallStrata(space, targets, limit, assigned)
    if answers == "all":
        strata: Strata = CallStrata(space, targets, limit)
        if (strata.inside.sum(axis=1) > 1).sum() > MOST_SPANNING:
            return None
    elif countable(targets):
        strata = QuestionStrata(space, targets)
    else:
        return None
    sure = (strata.chance >= LEAST_CHANCE).all()
    return strata if sure and 1 < len(strata) <= MAX else None


def _distinct(columns: Bools) -> tuple[Bools, Indices]:
    """Return the distinct columns of K x n, sorted, and the place of each column among them (n,).

    A column of no target is left out, and has the place -1.
    """
    signatures, place = np.unique(columns, axis=1, return_inverse=True)
    none = int(not signatures[:, 0].any())  # sorted: the first is that of no target
    return signatures[:, none:], place.ravel() - none


@dataclass(frozen=True)
class Frame:
    """Sizes of K targets in J strata from which a draw's bounds and bases follow.

    A draw from all calls has one stratum and no guesses.

    Attributes:
        questions: (K x J) n, the unseen questions.
        most: (K x J) largest possible r times the candidates' losses.
        guess: (K x J) G, the expected sum of their losses.
        share: (K x J) rho, 0 where the target does not move or has no unseen questions.
        place: Number of the stratum drawn.
        calls: (K x J) unseen calls that touch the target.
        chance: (K,) chance that some candidate of the stratum drawn touches the target.
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
        """(K,): whether the draw may move the target."""
        return np.asarray(self.share[:, self.place] > 0)

    @property
    def room(self) -> Floats:
        """(K,): unseen questions of the stratum drawn, at least 1."""
        return np.maximum(self.questions[:, self.place], 1)

    @property
    def drawn(self) -> Floats:
        """(K,): rho of the stratum drawn; 1 where the target does not move."""
        return np.where(self.active, self.share[:, self.place], 1.0)

    @property
    def other_base(self) -> Floats:
        """(K,): the sum of G less G_c / rho, which the bases of both ends contain."""
        return np.asarray(self.guess.sum(axis=1) - self.guess[:, self.place] / self.drawn)

    @property
    def other_tilt(self) -> Floats:
        """(K,): the change of ``other_base`` if every g rose by 1."""
        return np.asarray(self.questions.sum(axis=1) - self.questions[:, self.place] / self.drawn)

    def even_scale(self, touching: Indices, mass: Floats) -> Floats:
        """Return the scale (K,) that a proposal would have that is even within each target.

        ``touching`` (K,) candidates touch a target, and the proposal draws one of them with
        probability ``mass`` (K,).
        """
        calls = self.calls[:, self.place]
        within = calls / np.maximum(touching, 1) * touching / np.maximum(mass, TINY)
        spans = self.questions.sum(axis=1) > self.room
        return np.where(spans, self.calls.sum(axis=1), within)

    def blend(self, before: Floats, newest: Floats) -> Floats:
        """Return the variance (K,) to expect after a draw: the newest, or a moving average."""
        rate = np.where((self.share > 0).sum(axis=1) > 1, SMOOTH, 1.0)
        return before + rate * (newest - before)

    def lowest(self, reach: Floats) -> Floats:
        """Return lo (K,), if corrections reach at most ``reach`` (K,) x questions downwards."""
        return np.asarray(self.guess.sum(axis=1) - self._worst(reach, self.guess))

    def highest(self, reach: Floats) -> Floats:
        """Return hi (K,), if corrections reach at most ``reach`` (K,) x questions upwards."""
        return np.asarray(self.guess.sum(axis=1) + self._worst(reach, self.most - self.guess))

    def swing(self, reach: Floats) -> Floats:
        """Return how far below 0 the tilt may lie (K,).

        In its own stratum it lies at most ``reach`` (K,) x questions below 0.
        """
        share = np.where(self.share > 0, self.share, 1.0)
        lowest = (1 + reach[:, None]) * self.questions / share
        return np.asarray(np.maximum(lowest.max(axis=1) - self.questions.sum(axis=1), 0))

    def _worst(self, reach: Floats, more: Floats) -> Floats:
        """Return the largest (reach x questions + more) / rho over the strata, (K,)."""
        share = np.where(self.share > 0, self.share, 1.0)
        return np.asarray(((reach[:, None] * self.questions + more) / share).max(axis=1))


def pooled(questions: Floats, calls: Floats, largest: Floats) -> Frame:
    """Return the frame of a draw from all calls, given unseen questions and calls, (K,) each."""
    column = np.maximum(questions, 1)[:, None]
    one, none = np.ones_like(column), np.zeros_like(column)
    most = (calls * largest)[:, None]
    return Frame(column, most, none, one, 0, calls[:, None], one[:, 0])


def stratified(strata: Strata, stratum: Stratum) -> Frame:
    """Return the frame of a draw from a stratum."""
    left, calls = strata.questions, strata.calls
    # a stratum with the share 0 is never drawn, so targets with unseen questions there stay
    moves = ~((left > 0) & (stratum.shares == 0)).any(axis=1)
    share = (left > 0) * stratum.shares * moves[:, None]
    share /= np.where(moves & (left > 0).any(axis=1), share.sum(axis=1), 1.0)[:, None]
    most, guess = calls * strata.largest / strata.chance, left * strata.mean
    chance = strata.chance[:, stratum.place]
    return Frame(left, most, guess, share, stratum.place, calls, chance)


def countable(targets: list[Target]) -> bool:
    """Return whether the questions of each stratum can be counted without listing them.

    They cannot where a target is about some samples only.
    """
    return all(target.rows is None for target in targets)


def cells_of(space: Population, targets: list[Target]) -> Bools:
    """Return which targets hold the questions of each variant, concept and truth, K x V x C x 2."""
    return np.array(
        [
            t.variants[:, None, None] & t.concepts[:, None] & t.sides & space.applicable[:, :, None]
            for t in targets
        ]
    )
