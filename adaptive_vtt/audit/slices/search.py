"""Search for conjunctions of atoms with many failures, ranked by a lower bound of their lift.

The lift of a slice is its mean loss divided by that of all questions, both weighted by the inverse
of the draw proposal. A slice with weights W_u, one per image, has the effective number of images
n = (sum W)^2 / sum W^2 (Kish). Its mean loss is treated as that of n Bernoulli variables: no
variable in [0, 1] with the same mean has a larger variance, and answers about one image count once.

P-values are tails of the binomial distribution. Benjamini & Hochberg (JRSS-B 57, 1995) select R of
m conjunctions. Their rate is at least the lower Clopper-Pearson bound at level q R / m (Benjamini &
Yekutieli, JASA 100, 2005), which divided by the mean of all questions bounds the lift. Slices are
ranked by that bound, which prefers many images: a high rate of few images shows little.

The best slice is chosen, its questions are removed, and the search is repeated, so that a group
which fails often only because it overlaps with a slice is not chosen. All pairs of atoms are
examined, and larger conjunctions only if their parts have small p-values. Slices are hypotheses
that need a certificate.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import pandas as pd

from ...certify.targets import Target, member
from ...journal.rows import CallRow, DrawRow
from ...space import QuestionSpace
from ...types import Bools, Floats, Indices
from .proposers import Atom, joined


@dataclass(frozen=True)
class Evidence:
    """n judged questions, without excluded ones.

    Attributes:
        question: Numbers of the questions, (n,).
        sample: Their samples, (n,).
        variant: Their variants, (n,).
        concept: Their concepts, (n,).
        truth: Their truths, (n,) of 0 or 1.
        loss: Their losses, (n,) in [0, 1].
        weight: Inverse of the draw proposal, (n,), 1 if it was uniform. As draws favour likely
            failures, only a weighted mean loss is an estimate for all questions.
    """

    question: Indices
    sample: Indices
    variant: Indices
    concept: Indices
    truth: Indices
    loss: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.question)

    @classmethod
    def of(cls, space: QuestionSpace, draws: Sequence[DrawRow], calls: Collection[CallRow]) -> Self:
        """Return the judged questions of some draws.

        Args:
            space: The space.
            draws: The draws.
            calls: Answered calls; those of other draws are ignored.
        """
        # uniform probability of a call divided by that under its proposal
        weights = {
            row.call: 1 / (int(row.why.get("candidates", 1 / row.probability)) * row.probability)
            for row in draws
        }
        known = [call for call in calls if call.call in weights]
        judged = [
            (answer.question, answer.loss, weights[call.call])
            for call in known
            for answer in call.answers
            if answer.loss is not None and not answer.excluded
        ]
        question = np.array([number for number, _, _ in judged], np.int64)
        sample, variant, concept = space.parts(question)
        truth = np.asarray(space.dataset.truth(sample, concept), np.int64)
        loss, weight = np.array([row[1:] for row in judged], float).reshape(-1, 2).T
        return cls(question, sample, variant, concept, truth, loss, weight)

    @property
    def rate(self) -> float:
        """The weighted mean loss; 0 if nothing is judged."""
        return float(np.average(self.loss, weights=self.weight)) if self.weight.any() else 0.0

    def only(self, kept: Bools | Indices) -> Self:
        """Return some of the questions, by a mask, (n,), or by positions."""
        return type(self)(*(getattr(self, f.name)[kept] for f in fields(self)))

    def without(self, space: QuestionSpace, target: Target) -> Self:
        """Return the questions outside a target."""
        return self.only(~self.inside(space, [target])[0])

    def inside(self, space: QuestionSpace, targets: Sequence[Target]) -> Bools:
        """Return a mask, K x n, of the questions that belong to each of K targets."""
        return member(space, targets, self.sample, self.variant, self.concept, self.truth)


FALSE = 0.05
"""False discovery rate of a search, q."""
MIN_LIFT = 1.5
"""Minimum lift of a slice."""
MIN_IMAGES = 6.0
"""Minimum effective number of images of a slice, n."""
LARGEST = 0.5
"""Maximum share of the judged questions in a slice."""
ATOMS = 4
"""Maximum number of atoms of a conjunction."""
BEAM = 30
"""Maximum number of conjunctions of one size that are extended, those with the least p-values."""
SAME = 0.8
"""Share of their union from which on the intersection of two sets makes them count as one."""

BLOCK = 256
"""Number of conjunctions that are scored at a time."""
TINY = 1e-9

Conjunction = tuple[int, ...]
"""Indices of atoms."""


@dataclass(frozen=True)
class Slice:
    """A group of questions in which failures concentrate.

    Attributes:
        atoms: Properties that its questions share.
        target: Its questions.
        images: Number of its images that were asked about.
        rate: Weighted mean loss of its questions.
        base: Weighted mean loss of all questions.
        least_lift: Lower bound of ``rate / base``; see the module's docstring.
        tried: Number of conjunctions among which it was selected.
    """

    atoms: tuple[Atom, ...]
    target: Target
    images: int
    rate: float
    base: float
    least_lift: float
    tried: int

    @property
    def words(self) -> str:
        """A text that describes the slice."""
        return str(self.target.id.columns()["filter"])

    @property
    def lift(self) -> float:
        """Its rate as a multiple of the rate of all questions."""
        return self.rate / self.base

    @property
    def proposers(self) -> tuple[str, ...]:
        """The proposers of its atoms."""
        return tuple(dict.fromkeys(atom.proposer for atom in self.atoms))

    @property
    def where(self) -> dict[str, list[object]] | None:
        """The slice as a filter, field -> values; None if no filter describes it."""
        filters: dict[str, list[object]] = {}
        for atom in self.atoms:
            if atom.where is None:
                return None
            for field, values in atom.where.items():
                filters[field] = [v for v in values if v in filters.get(field, values)]
        return filters


def find(
    space: QuestionSpace,
    evidence: Evidence,
    atoms: Sequence[Atom],
    *,
    most: int,
    known: Sequence[Target] = (),
    slices: Sequence[Target] = (),
) -> list[Slice]:
    """Return new slices, the one with the largest lower bound of lift first.

    Args:
        space: The question space.
        evidence: The judged questions.
        atoms: Properties to combine.
        most: Largest number of slices.
        known: Targets; slices that are nearly the same as one of them are omitted.
        slices: Earlier slices, whose questions are put aside.
    """
    result: list[Slice] = []
    base = evidence.rate
    for slice_ in slices:
        evidence = evidence.without(space, slice_)
    while len(result) < most and len(evidence):
        best = _best(space, evidence, atoms, known)
        if best is None:
            break
        # relative to the mean of all questions, not only of those that are left
        result.append(replace(best, base=base, least_lift=best.least_lift * best.base / base))
        evidence = evidence.without(space, best.target)
    return result


def _best(
    space: QuestionSpace, evidence: Evidence, atoms: Sequence[Atom], known: Sequence[Target]
) -> Slice | None:
    """Return the new slice with the largest lower bound of lift, None if no bound is above 1."""
    # answers about one image become adjacent
    evidence = evidence.only(np.argsort(evidence.sample, kind="stable"))
    base = evidence.rate
    if base <= 0 or not atoms:
        return None
    columns = evidence.inside(space, [atom.target for atom in atoms])
    by_size = [*_conjunctions(evidence, atoms, columns, base)]
    if not by_size:
        return None
    conjunctions = [conjunction for part, _, _ in by_size for conjunction in part]
    inside = np.concatenate([rows for _, rows, _ in by_size])
    scores = pd.concat([table for _, _, table in by_size], ignore_index=True)
    least_lift = _least_lift(scores, base)
    least_lift[(scores["rate"] < MIN_LIFT * base) | (inside.mean(axis=1) > LARGEST)] = 0
    targets = evidence.inside(space, known)
    for place in np.argsort(-least_lift, kind="stable"):
        if least_lift[place] <= 1:
            return None
        row, score = inside[place], scores.loc[place]
        known_already = (row & targets).sum(axis=1) >= SAME * (row | targets).sum(axis=1)
        if not known_already.any():
            chosen = tuple(atoms[k] for k in conjunctions[place])
            figures = (int(score["images"]), float(score["rate"]), base, float(least_lift[place]))
            return Slice(chosen, joined(chosen), *figures, tried=len(conjunctions))
    return None


def _conjunctions(
    evidence: Evidence, atoms: Sequence[Atom], columns: Bools, base: float
) -> Iterator[tuple[list[Conjunction], Bools, pd.DataFrame]]:
    """Yield the conjunctions of 1, 2 ... ATOMS atoms with enough images, one size at a time.

    Of several conjunctions with the same questions, only the one with the fewest atoms is used.

    Args:
        evidence: n questions, in order of their images.
        atoms: The atoms.
        columns: The questions of each atom, atoms x n.
        base: Mean loss of all questions.

    Yields:
        The c conjunctions of a size, their questions, a mask c x n, and their scores.
    """
    fields = np.unique([atom.field for atom in atoms], return_inverse=True)[1]
    names: list[Conjunction] = [()]
    rows = np.ones((1, len(evidence)), bool)
    seen: set[bytes] = set()
    for size in range(ATOMS):
        longer = list(_longer(names, rows, columns, fields, seen))
        if not longer:
            return
        rows = np.array([row for _, row in longer])
        scores = _scores(evidence, rows, base)
        kept = np.flatnonzero(scores["count"] >= MIN_IMAGES)
        names, rows, scores = [longer[k][0] for k in kept], rows[kept], scores.iloc[kept]
        if not names:
            return
        yield names, rows, scores
        if size:  # single atoms are all extended, so that all pairs are examined
            best = np.argsort(scores["p"].to_numpy(), kind="stable")[:BEAM]
            names, rows = [names[k] for k in best], rows[best]


def _longer(
    names: Sequence[Conjunction], rows: Bools, columns: Bools, fields: Indices, seen: set[bytes]
) -> Iterator[tuple[Conjunction, Bools]]:
    """Yield each conjunction with one more atom of another field, if its questions are new."""
    for name, row in zip(names, rows, strict=True):
        used = fields[list(name)]
        for k in np.flatnonzero(~np.isin(fields, used)).tolist():
            both = row & columns[k]
            key = np.packbits(both).tobytes()
            if key not in seen and both.any():
                seen.add(key)
                yield tuple(sorted((*name, k))), both


def _scores(evidence: Evidence, rows: Bools, base: float) -> pd.DataFrame:
    """Return a table of c sets of questions with number of images, effective number ("count"),
    weighted mean loss ("rate"), and p-value ("p").

    Args:
        evidence: n questions, in order of their images.
        rows: The questions of each set, c x n.
        base: Mean loss of all questions.
    """
    from scipy.special import betainc

    starts = np.flatnonzero(np.diff(evidence.sample, prepend=-1))
    sums = []
    for first in range(0, len(rows), BLOCK):
        part = rows[first : first + BLOCK] * evidence.weight
        weights = np.add.reduceat(part, starts, axis=1)
        sums.append([(weights > 0).sum(axis=1), weights.sum(axis=1), (weights**2).sum(axis=1)])
    images, total, squares = np.concatenate(sums, axis=1)
    count, rate = total**2 / squares, (rows @ (evidence.weight * evidence.loss)) / total
    failed = np.clip(rate * count, TINY, count)
    p = betainc(failed, count - failed + 1, base)
    return pd.DataFrame({"images": images, "count": count, "rate": rate, "p": p})


def _least_lift(scores: pd.DataFrame, base: float) -> Floats:
    """Return lower bounds of lift, (m,); 0 for sets that Benjamini & Hochberg do not select."""
    from scipy.special import betaincinv

    count, rate, p = (scores[name].to_numpy() for name in ("count", "rate", "p"))
    passed = np.sort(p) <= FALSE * np.arange(1, len(p) + 1) / len(p)
    if not passed.any():
        return np.zeros(len(p))
    level = FALSE * (1 + int(np.flatnonzero(passed)[-1])) / len(p)
    failed = np.clip(rate * count, TINY, count)
    lower = betaincinv(failed, count - failed + 1, level)
    return np.where(p <= level, lower / base, 0.0)
