"""Snapshots of an audit's predictions at about 40 checkpoints, for the report.

A checkpoint is a number of draws that were learnt from, about 1.3 times the one before; the last is
the end. So snapshots depend only on the answers in the order of their draws, and a resumed audit
makes the missing ones as it repeats its journal. Snapshots certify nothing, and no draw
depends on them.

The predicted losses f are those of a sample of questions, fixed by the audit's key: all questions
of a small space, otherwise equally many of every cell. Their latent uncertainty, which more answers
can remove, is the posterior covariance S of f over a part of the sample. It follows from the
question GP by the delta method (``QuestionGP.joint``). In a group of N questions, with weights w_i
that sum to 1,

    between = sum over i != j of w_i w_j S_ij / (1 - sum of w_i^2)      own = sum of w_i S_ii
    sd^2 = (1 - 1/N) between + own/N

is the variance of the mean f of all N questions: however few are sampled, the part that each
question has by itself is averaged over all N. The spread of single losses is the root of the mean
f (1 - f), which no number of answers removes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..journal import Journal
from ..journal.belief_groups import FACT, KINDS, Groups
from ..journal.rows import BeliefRow, CallRow
from ..space import QuestionSpace
from ..surrogates.base import Latent
from ..types import Floats, Indices
from ..utils.random_streams import generator
from .belief import FAILURE, Belief, Observation
from .candidates import columns
from .loop import Hook, Loop
from .tensors import array, candidates_of, tensor

FIRST, GROWTH = 4, 1.3
"""The first checkpoint in draws, and the ratio of two: there are 39 up to 100,000 draws."""
QUESTIONS, IMAGES = 2048, 2000
"""Fewest predicted questions of a larger space, and most described images."""
MAX_QUESTIONS = 2**14
FEWEST_PAIRED, MAX_PAIRED = 128, 512
"""Number of questions whose covariance is computed: two of every cell, within these bounds. At 150
units, 128 of them take 4 ms and 256 take 6 ms."""
PER_IMAGE = 2
"""Most questions of an image that its uncertainty is computed from."""
IMAGES_EVERY = 8
"""Images are described at every eighth checkpoint, and at the end."""
DIGITS = 5
"""Decimals of the figures in a snapshot."""
WIDTH = 128
"""Features of more dimensions are projected at random before their components are computed."""


class Checkpoints(Hook):
    """Takes snapshots of the belief, and writes them to the journal.

    ``seed`` is the audit's key. ``kept`` may be set to False to take no more.
    """

    def __init__(self, belief: Belief, seed: int | str) -> None:
        self._belief, self._seed, self.kept = belief, seed, True
        space = belief.space
        variants = [(v.relation.name, v.severity) for v in space.variants]
        self._groups = Groups(space.concepts, variants)
        self._counts = np.zeros((2, self._groups.cells), np.int64)
        self._learned, self._next, self._number = 0, FIRST, 0
        self._known: set[int] = set()  # numbers of draws that have a snapshot
        self._pending: list[BeliefRow] = []
        self._sample: QuestionSample | None = None
        self._journaled = False

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        self._known.update(row.draws for row in loop.journal.beliefs())

    def learnt(self, outcomes: Sequence[Observation]) -> None:
        """Count the outcomes of a draw that was learnt from; take a snapshot if one is due."""
        self._learned += 1
        for outcome in outcomes:
            if not outcome.excluded:
                _, variant, concept = self._belief.space.numbering.parts(outcome.question)
                cell = concept * len(self._belief.space.variants) + variant
                self._counts[:, cell] += (1, outcome.loss >= FAILURE)
        if self._learned == self._next:
            self._next = max(self._learned + 1, math.ceil(self._learned * GROWTH))
            self._number += 1
            self._take(images=self._number % IMAGES_EVERY == 0)

    def on_end(self, loop: Loop) -> None:
        """Take the last snapshot, with images, and write all that wait to be written."""
        if self._pending and self._pending[-1].draws == self._learned:
            self._known.remove(self._pending.pop().draws)
        if self._learned:
            self._take(images=True)
        self._write(loop.journal, self._pending)

    def after_answers(self, loop: Loop) -> None:
        """Write the snapshots before the newest one, which ``on_end`` may replace."""
        with loop.step():
            self._write(loop.journal, [r for r in self._pending if r.draws < self._learned])

    def _write(self, journal: Journal, rows: list[BeliefRow]) -> None:
        if rows:
            if not self._journaled:
                journal.set_facts(**{FACT: self._questions.fact})
                self._journaled = True
            journal.add(rows)
            self._pending = self._pending[len(rows) :]

    @property
    def _questions(self) -> "QuestionSample":
        if self._sample is None:
            self._sample = QuestionSample(self._belief, self._groups, self._seed)
        return self._sample

    def _take(self, *, images: bool) -> None:
        """Add a snapshot to those that wait to be written, unless the journal has it."""
        if self._learned in self._known or not self.kept:
            return
        self._known.add(self._learned)
        asked, failed = self._counts.tolist()
        uncertainty = [_rounded(row) for row in self._belief.side_uncertainty()]
        counts = {"asked": asked, "failed": failed, "uncertainty": uncertainty}
        figures = self._questions.figures(images=images)
        self._pending.append(BeliefRow(self._learned, {**counts, **figures}))


class QuestionSample:
    """The questions whose predictions a snapshot has. ``fact``: the journal's fact ``Believed``."""

    def __init__(self, belief: Belief, groups: Groups, seed: int | str) -> None:
        self._belief, self._groups = belief, groups
        space = belief.space
        self._sizes = _sizes(space)
        samples, rng = np.arange(len(space.dataset)), generator(seed, "beliefs")
        if len(samples) > IMAGES:
            samples = np.sort(rng.choice(len(samples), IMAGES, replace=False))
        self._whole = space.size <= QUESTIONS
        questions = _sampled(space, samples, self._whole, rng)
        table = columns(space, questions)
        _, _, sample, variant, concept, _ = table
        self._cell = concept * len(space.variants) + variant
        self._samples, self._image = np.unique(sample, return_inverse=True)
        # In random order, the first question of every cell, then the second of every cell ...
        rank = _rank(self._cell)
        order = np.lexsort((rng.random(len(rank)), rank))
        table, self._cell, self._image = table[:, order], self._cell[order], self._image[order]
        per_cell = np.bincount(self._cell, minlength=groups.cells)
        self._weight = (self._sizes / per_cell.clip(1))[self._cell]
        paired = min(max(2 * groups.cells, FEWEST_PAIRED), MAX_PAIRED)
        self._of_images = np.flatnonzero(_rank(self._image) < PER_IMAGE)
        self._candidates: Any = None
        if belief.losses is not None:
            self._candidates = candidates_of((*table, np.arange(len(questions)), table[0]))
        if isinstance(belief.losses, Latent):  # computes once what no answer changes
            self._candidates = belief.losses.prepare(self._candidates)
            self._paired: Any = self._candidates[:paired]
            self._image_candidates: Any = self._candidates[tensor(self._of_images)]
        self.fact = {
            "sizes": self._sizes.tolist(),
            "questions": len(questions),
            "samples": self._samples.tolist(),
            "names": [space.dataset.sample_id(int(k)) for k in self._samples],
            "places": _places(belief, self._samples, rng),
        }

    def figures(self, *, images: bool) -> dict[str, object]:
        """Return the predictions of now, as a ``BeliefRow`` has them.

        If losses are not predicted, there are none.
        """
        losses = self._belief.losses
        if losses is None:
            return {"images": {}} if images else {}
        f = self._belief.predict(self._candidates)
        mean = _mean(f, self._cell, self._groups.cells)
        spread = np.sqrt(_mean(f * (1 - f), self._cell, self._groups.cells))
        values: dict[str, object] = {"predicted": _rounded(mean), "spread": _rounded(spread)}
        columns: dict[str, list[float | None]] = {}
        if images:
            columns["predicted"] = _rounded(self._by_image(f, mean))
        if isinstance(losses, Latent):
            values["sd"] = _rounded(self._sd(array(losses.joint(self._paired))))
            if images:
                latent = array(losses.posterior(self._image_candidates, latent=True).variance)
                variance = _mean(latent, self._image[self._of_images], len(self._samples))
                columns["sd"] = _rounded(np.sqrt(variance))
        return {**values, "images": columns} if images else values

    def _by_image(self, f: Floats, cells: Floats) -> Floats:
        """Return the predicted mean loss (images,) of each image.

        If only some of its questions are sampled, that is the overall mean, plus the mean
        difference of these questions from their ``cells``: which cells are sampled must not matter.
        """
        if self._whole:
            return _mean(f, self._image, len(self._samples))
        overall = float(np.average(f, weights=self._weight))
        difference = _mean(f - cells[self._cell], self._image, len(self._samples))
        return np.clip(overall + difference, 0, 1)

    def _sd(self, covariance: Floats) -> Floats:
        """Return the latent sd (G,) of each group's mean; NaN if fewer than two are sampled."""
        count = len(covariance)
        cell, weight = self._cell[:count], self._weight[:count]
        sizes, deviations = self._groups.sums(self._sizes), []
        for kind in KINDS:
            group, start = self._groups.group_of[kind][cell], self._groups.start[kind]
            groups = int(self._groups.group_of[kind].max()) + 1
            deviations.append(_spread(covariance, weight, group, sizes[start : start + groups]))
        return np.concatenate(deviations)


def _spread(covariance: Floats, weight: Floats, group: Indices, sizes: Floats) -> Floats:
    """Return the sd (g,) of the mean loss over each of g groups, as on top of this file.

    Args:
        covariance: (m, m) of m sampled questions.
        weight: (m,), how many questions each of them stands for.
        group: (m,), the group of each, 0 to g - 1.
        sizes: (g,), number of questions of each group.
    """
    groups, own = len(sizes), covariance.diagonal()
    share = weight / np.bincount(group, weight, groups)[group]
    within = (group[:, None] == group) * covariance @ share  # sum of w_j S_ij over j in i's group
    squares = np.bincount(group, share**2, groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = np.bincount(group, share * (within - share * own), groups)
        between = np.where(sizes > 1, (pairs / (1 - squares)).clip(0), 0.0)
        own_part = np.bincount(group, share * own, groups) / sizes
    variance = ((1 - 1 / sizes.clip(1)) * between + own_part).clip(0)
    few = (np.bincount(group, minlength=groups) < 2) & (sizes > 1) | (sizes == 0)
    return np.where(few, np.nan, np.sqrt(variance))


def _sampled(
    space: QuestionSpace, samples: Indices, whole: bool, rng: np.random.Generator
) -> Indices:
    """Return all questions, or equally many of every cell, spread over these samples."""
    if whole:
        return np.sort(space.nth(np.arange(space.size)))
    cells = [(c, v) for v, c in np.argwhere(space.applicable).tolist()]
    cells = [cells[k] for k in rng.permutation(len(cells))][:MAX_QUESTIONS]
    most, order = math.ceil(QUESTIONS / len(cells)), rng.permutation(samples)
    chosen, start = [], 0
    for concept, variant in cells:
        rotated = np.roll(order, -start)
        questions = space.number(rotated, np.array(variant), np.array(concept))
        questions = questions[space.eligible(questions)][:most]
        start = (start + most) % len(order)
        chosen.append(questions)
    return np.sort(np.concatenate(chosen))


def _sizes(space: QuestionSpace) -> Indices:
    """Return the number of questions (cells,) of each cell."""
    per_concept = np.asarray(space.dataset.counts, np.int64).sum(axis=1)
    return np.asarray((per_concept[:, None] * space.applicable.T).ravel(), np.int64)


def _places(belief: Belief, samples: Indices, rng: np.random.Generator) -> list[list[float]] | None:
    """Return two principal components of each sample's features; None if there are no features."""
    if not isinstance(belief.losses, Latent):
        return None
    values = array(belief.losses.features(tensor(samples))).astype(np.float64)
    if values.shape[1] < 2 or len(values) < 2 or not np.isfinite(values).all():
        return None
    values = values - values.mean(axis=0)
    if values.shape[1] > WIDTH:
        values = values @ rng.standard_normal((values.shape[1], WIDTH)) / math.sqrt(WIDTH)
    left, scale, _ = np.linalg.svd(values, full_matrices=False)
    places = left[:, :2] * scale[:2]
    # The sign of a component is arbitrary; its largest value is made positive.
    places = places * np.where(places[np.abs(places).argmax(axis=0), [0, 1]] < 0, -1, 1)
    return [[round(float(x), 4), round(float(y), 4)] for x, y in places]


def _rank(group: Indices) -> Indices:
    """Return how many elements (n,) of the same group come before each element."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - first
    return rank


def _mean(values: Floats, group: Indices, groups: int) -> Floats:
    """Return the mean (groups,) of each group's values; NaN for an empty group."""
    counts = np.bincount(group, minlength=groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(group, values, groups) / counts)


def _rounded(values: Floats) -> list[float | None]:
    """Return rounded values for JSON; None in place of NaN."""
    rounded = np.round(np.asarray(values, np.float64), DIGITS).tolist()
    return [None if value != value else value for value in rounded]
