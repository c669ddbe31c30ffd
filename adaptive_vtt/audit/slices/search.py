"""Conjunctions of atoms in which failures concentrate, ranked by the lift that they have at least.

The lift of a slice is its mean loss over that of all questions, both weighed by the inverse of the
draw proposal. A slice of weights W_u, one per image, counts as n = (sum W)^2 / sum W^2 images
(Kish), of which the mean loss p fails as a coin does: no variable in [0, 1] varies more, and
answers about one image count once. By the binomial's tail, p-values; by Benjamini & Hochberg
(JRSS-B 57, 1995) over all conjunctions that were looked at, which of them are not chance; and of
those R of m, the lift is at least the lower Clopper-Pearson bound at level q R / m, over the mean
of all (Benjamini & Yekutieli, JASA 100, 2005). That bound ranks: a rate is worth little where few
images show it, and a slice that is cut out of another for no good reason has fewer.

The best slice is taken, its questions are put aside, and the rest is searched again: so what only
looked bad because a slice is part of it, or it a part of one, does not come back. These are guesses
to be certified, no certificates: pairs are all looked at, larger conjunctions only where their
parts were promising.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from ...certify.targets import Target, member
from ...journal.rows import CallRow, DrawRow
from ...space import QuestionSpace
from ...types import Bools, Floats, Indices
from .proposers import Atom, joined, where_of


@dataclass(frozen=True)
class Evidence:
    """n judged questions, those that do not count left out.

    ``question``, ``sample``, ``variant``, ``concept``, ``truth`` (n,); ``loss`` (n,) in [0, 1];
    ``weight`` (n,): the inverse of the draw proposal, 1 where it was even. Questions were drawn
    where failures were likely, say; weighed so, a mean loss is that of the unseen questions, too.
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
        """What the answered ones among ``draws`` tell; ``calls`` may hold others, too."""
        # the inverse of a call's share under its proposal, relative to an even one
        weights = {
            row.call: 1 / (int(row.why.get("candidates", 1 / row.probability)) * row.probability)
            for row in draws
        }
        told = [
            (answer.question, answer.loss, weights[call.call])
            for call in calls
            if call.call in weights
            for answer in call.answers
            if answer.loss is not None and not answer.excluded
        ]
        question = np.array([q for q, _, _ in told], np.int64)
        sample, variant, concept = space.parts(question)
        truth = np.asarray(space.dataset.truth(sample, concept), np.int64)
        loss, weight = (np.array([row[k] for row in told], float) for k in (1, 2))
        return cls(question, sample, variant, concept, truth, loss, weight)

    @property
    def rate(self) -> float:
        """The weighted mean loss; 0 where nothing is judged."""
        weights = self.weight
        return float(np.average(self.loss, weights=weights)) if weights.any() else 0.0

    def only(self, kept: Bools | Indices) -> Self:
        """Those of the questions that ``kept`` marks (n,), or those at its places."""
        return type(self)(*(getattr(self, f.name)[kept] for f in fields(self)))

    def inside(self, space: QuestionSpace, targets: Sequence[Target]) -> Bools:
        """K x n: which questions belong to which of K targets."""
        return member(space, targets, self.sample, self.variant, self.concept, self.truth)


FALSE = 0.05
"""Share of chance among what is found, at most (q)."""
MIN_LIFT = 1.5
"""A slice that fails less than this many times as often as all is not worth a target."""
MIN_IMAGES = 6.0
"""A slice that fewer images, as they count, speak for is not looked at."""
LARGEST = 0.5
"""A slice with a larger share of what was asked is no part but nearly all."""
ATOMS = 4
"""Atoms of a conjunction, at most."""
BEAM = 30
"""Conjunctions of one size that longer ones are made of, at most: those with the least p-values."""
SAME = 0.8
"""Two sets of questions that share this much of what either has are taken for one."""

BLOCK = 256
"""Conjunctions that are scored at a time."""
TINY = 1e-9

Conjunction = tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """A slice: its ``atoms`` and its questions, ``target``. ``images`` that were asked about, the
    weighted mean loss there, ``rate``, and of all, ``base``; ``least_lift``: see above; ``tried``:
    how many conjunctions it was chosen from."""

    atoms: tuple[Atom, ...]
    target: Target
    images: int
    rate: float
    base: float
    least_lift: float
    tried: int

    @property
    def words(self) -> str:
        """What it is, in words."""
        return str(self.target.id.columns()["filter"])

    @property
    def lift(self) -> float:
        return self.rate / self.base

    @property
    def found_by(self) -> tuple[str, ...]:
        """The proposers of its atoms."""
        return tuple(dict.fromkeys(atom.found_by for atom in self.atoms))

    @property
    def where(self) -> dict[str, list[object]] | None:
        """The slice as a filter, None where none says it."""
        return where_of(self.atoms)


@dataclass(frozen=True)
class _Scores:
    """What c conjunctions come to; all (c,)."""

    images: Indices
    count: Floats
    rate: Floats
    p: Floats


def find(
    space: QuestionSpace,
    evidence: Evidence,
    atoms: Sequence[Atom],
    *,
    most: int,
    known: Sequence[Target] = (),
    slices: Sequence[Target] = (),
) -> list[Found]:
    """Up to ``most`` slices, the surest first. Those of ``slices`` were found before: their
    questions are put aside. One that is much the same as one of ``known`` is left out."""
    found: list[Found] = []
    base = evidence.rate
    for slice_ in slices:
        evidence = evidence.only(~evidence.inside(space, [slice_])[0])
    while len(found) < most and len(evidence):
        best = _best(space, evidence, atoms, known)
        if best is None:
            break
        # found in what those before left, and told against one and the same mean as they are
        least = best.least_lift * best.base / base
        found.append(replace(best, base=base, least_lift=least))
        evidence = evidence.only(~evidence.inside(space, [best.target])[0])
    return found


def _best(
    space: QuestionSpace, evidence: Evidence, atoms: Sequence[Atom], known: Sequence[Target]
) -> Found | None:
    order = np.argsort(evidence.sample, kind="stable")  # answers about an image side by side
    evidence = evidence.only(order)
    base = evidence.rate
    if base <= 0 or not atoms:
        return None
    columns = evidence.inside(space, [atom.target for atom in atoms])
    looked = list(_conjunctions(evidence, atoms, columns, base))
    if not looked:
        return None
    names = [name for part, _, _ in looked for name in part]
    rows = np.concatenate([inside for _, inside, _ in looked])
    scores = [s for _, _, s in looked]
    images, count, rate, p = (
        np.concatenate([getattr(s, f) for s in scores]) for f in ("images", "count", "rate", "p")
    )
    least = _least_lift(count, rate, p, base)
    least[(rate < MIN_LIFT * base) | (rows.mean(axis=1) > LARGEST)] = 0
    there = evidence.inside(space, known)
    for place in np.argsort(-least, kind="stable"):
        if least[place] <= 1:
            return None
        if not _among(rows[place], there):
            chosen = tuple(atoms[k] for k in names[place])
            figures = (int(images[place]), float(rate[place]), base, float(least[place]))
            return Found(chosen, joined(chosen), *figures, tried=len(names))
    return None


def _conjunctions(
    evidence: Evidence, atoms: Sequence[Atom], columns: Bools, base: float
) -> Iterator[tuple[list[Conjunction], Bools, _Scores]]:
    """Conjunctions of 1, 2 ... ATOMS atoms that enough images speak for, each set of questions
    once, by the fewest atoms: their places, their questions c x n, what they come to."""
    fields = np.unique([atom.field for atom in atoms], return_inverse=True)[1]
    names: list[Conjunction] = [()]
    rows = np.ones((1, len(evidence)), bool)
    seen: set[bytes] = set()
    for size in range(ATOMS):
        made = list(_longer(names, rows, columns, fields, seen))
        if not made:
            return
        names, rows = [name for name, _ in made], np.array([row for _, row in made])
        scores = _score(evidence, rows, base)
        kept = scores.count >= MIN_IMAGES
        names = [name for name, keep in zip(names, kept, strict=True) if keep]
        rows = rows[kept]
        scores = _Scores(*(getattr(scores, f)[kept] for f in ("images", "count", "rate", "p")))
        if not names:
            return
        yield names, rows, scores
        if size:  # all pairs are looked at, whatever their parts are
            best = np.argsort(scores.p, kind="stable")[:BEAM]
            names, rows = [names[k] for k in best], rows[best]


def _longer(
    names: Sequence[Conjunction], rows: Bools, columns: Bools, fields: Indices, seen: set[bytes]
) -> Iterator[tuple[Conjunction, Bools]]:
    """Every conjunction with one atom more, of a field that it has not."""
    for name, row in zip(names, rows, strict=True):
        taken = {int(fields[k]) for k in name}
        for k, column in enumerate(columns):
            if int(fields[k]) in taken:
                continue
            both = row & column
            key = np.packbits(both).tobytes()
            if key not in seen and both.any():
                seen.add(key)
                yield tuple(sorted((*name, k))), both


def _score(evidence: Evidence, rows: Bools, base: float) -> _Scores:
    """What each of c sets of questions, c x n, comes to; answers stand in order of their images."""
    starts = np.flatnonzero(np.diff(evidence.sample, prepend=-1))
    images, total, squares = np.zeros(len(rows), np.int64), np.zeros(len(rows)), np.zeros(len(rows))
    for first in range(0, len(rows), BLOCK):
        part = slice(first, first + BLOCK)
        weights = np.add.reduceat(rows[part] * evidence.weight, starts, axis=1)
        images[part], total[part] = (weights > 0).sum(axis=1), weights.sum(axis=1)
        squares[part] = (weights**2).sum(axis=1)
    count, rate = total**2 / squares, (rows @ (evidence.weight * evidence.loss)) / total
    failed = np.clip(rate * count, TINY, count)
    from scipy.special import betainc

    return _Scores(images, count, rate, betainc(failed, count - failed + 1, base))


def _least_lift(count: Floats, rate: Floats, p: Floats, base: float) -> Floats:
    """(m,): the least lift of those that are not chance, 0 for the others."""
    order = np.sort(p)
    passed = order <= FALSE * np.arange(1, len(p) + 1) / len(p)
    if not passed.any():
        return np.zeros(len(p))
    level = FALSE * (1 + int(np.flatnonzero(passed)[-1])) / len(p)
    failed = np.clip(rate * count, TINY, count)
    from scipy.special import betaincinv

    lower = betaincinv(failed, count - failed + 1, level)
    return np.where(p <= level, lower / base, 0.0)


def _among(row: Bools, others: Bools) -> bool:
    """Whether a set of questions is much the same as one of ``others``, K x n."""
    shared, either = (row & others).sum(axis=1), (row | others).sum(axis=1)
    return bool((shared >= SAME * either).any())
