"""What an audit believes as it goes on, kept at about 40 moments for those who look at it later.

The moments are numbers of draws that have been learnt from, each about 1.3 times the one before,
and the end. So what is kept follows from the answers in the order of their draws alone: a resumed
audit makes what is missing as it goes through its journal, and nothing twice. Nothing here is
certified, and no draw depends on it.

Predicted losses f are those of a sample of questions, fixed by the audit's key: all of a small
space, else as many of every cell. Their latent uncertainty, what more answers could take away, is
the posterior covariance of f, by the delta method df/dmu of the question GP's mu
(``QuestionGP.joint``), over some of the sample. With weights w_i that sum to 1 in a group of N
questions, and S_ij the covariance of questions i and j,

    between = sum over i != j of w_i w_j S_ij / (1 - sum of w_i^2)      own = sum of w_i S_ii
    sd^2 = (1 - 1/N) between + own/N

is that of the mean f of all N questions: no matter how few are looked at, what single questions
have of their own is averaged over all of them. The spread of single losses is the root
of the mean f (1 - f), which no number of answers takes away.
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
"""The first moment, and from one to the next: 39 moments up to 100,000 draws."""
QUESTIONS, IMAGES = 2048, 2000
"""Questions that are predicted, at least, where there are more; images, at most."""
MAX_QUESTIONS = 2**14
FEWEST_PAIRED, MAX_PAIRED = 128, 512
"""Questions whose covariance is worked out: two of every cell, between these numbers. At 150 units
128 of them take 4 ms, 256 take 6."""
PER_IMAGE = 2
"""Questions that show how unsure an image is."""
EVERY = 8
"""Images are described at every eighth moment, and at the end."""
DIGITS = 5
WIDTH = 128
"""Features beyond so many are projected at random before components are computed."""


class Checkpoints(Hook):
    """Counts what is learnt, and keeps what is believed until it is written.

    ``seed``: the audit's key. ``kept``: whether anything is kept from now on.
    """

    def __init__(self, belief: Belief, seed: int | str) -> None:
        self._belief, self._seed, self.kept = belief, seed, True
        space = belief.space
        variants = [(v.relation.name, v.severity) for v in space.variants]
        self._groups = Groups(space.concepts, variants)
        self._counts = np.zeros((2, self._groups.cells), np.int64)
        self._learned, self._next, self._number = 0, FIRST, 0
        self._known: set[int] = set()
        self._pending: list[BeliefRow] = []
        self._sample: Sample | None = None
        self._journaled = False

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        self._known.update(row.draws for row in loop.journal.beliefs())

    def learnt(self, outcomes: Sequence[Observation]) -> None:
        """The belief has learnt the outcomes of one more draw."""
        self._learned += 1
        for outcome in outcomes:
            if not outcome.excluded:
                _, variant, concept = self._belief.space.numbering.parts(outcome.question)
                cell = concept * len(self._belief.space.variants) + variant
                self._counts[:, cell] += (1, outcome.loss >= FAILURE)
        if self._learned == self._next:
            self._next = max(self._learned + 1, math.ceil(self._learned * GROWTH))
            self._number += 1
            self._take(images=self._number % EVERY == 0)

    def on_end(self, loop: Loop) -> None:
        """What is believed now is written, images too, and whatever waits."""
        if self._pending and self._pending[-1].draws == self._learned:
            self._known.remove(self._pending.pop().draws)
        if self._learned:
            self._take(images=True)
        self._write(loop.journal, self._pending)

    def after_answers(self, loop: Loop) -> None:
        """Writes what was kept, but not of this moment, which may turn out to be the end."""
        with loop.step():
            self._write(loop.journal, [r for r in self._pending if r.draws < self._learned])

    def _write(self, journal: Journal, rows: list[BeliefRow]) -> None:
        if rows:
            if not self._journaled:
                journal.set_facts(**{FACT: self._of.about})
                self._journaled = True
            journal.add(rows)
            self._pending = self._pending[len(rows) :]

    @property
    def _of(self) -> "Sample":
        if self._sample is None:
            self._sample = Sample(self._belief, self._groups, self._seed)
        return self._sample

    def _take(self, *, images: bool) -> None:
        if self._learned in self._known or not self.kept:
            return
        self._known.add(self._learned)
        asked, failed = self._counts.tolist()
        columns = {"asked": asked, "failed": failed}
        uncertainty = [_plain(row) for row in self._belief.side_uncertainty()]
        figures = {**columns, "uncertainty": uncertainty, **self._of.figures(images=images)}
        self._pending.append(BeliefRow(self._learned, figures))


class Sample:
    """The questions that describe a belief. ``about``: the fact ``Believed``."""

    def __init__(self, belief: Belief, groups: Groups, seed: int | str) -> None:
        self._belief, self._groups = belief, groups
        space = belief.space
        self._sizes = _sizes(space)
        everyone = np.arange(len(space.dataset))
        dice = generator(seed, "beliefs")
        if len(everyone) > IMAGES:
            everyone = np.sort(dice.choice(len(everyone), IMAGES, replace=False))
        self._whole = space.size <= QUESTIONS
        questions = _questions(space, everyone, self._whole, dice)
        table = columns(space, questions)
        _, _, sample, variant, concept, _ = table
        self._cell = concept * len(space.variants) + variant
        self._samples, self._image = np.unique(sample, return_inverse=True)
        rank = _rank(self._cell)
        order = np.lexsort(
            (dice.random(len(rank)), rank)
        )  # the first of every cell, the second ...
        table, self._cell, self._image = table[:, order], self._cell[order], self._image[order]
        self._weight = (self._sizes / np.bincount(self._cell, minlength=groups.cells).clip(1))[
            self._cell
        ]
        paired = min(max(2 * groups.cells, FEWEST_PAIRED), MAX_PAIRED)
        self._shown = np.flatnonzero(_rank(self._image) < PER_IMAGE)
        self._asked: Any = None
        if belief.losses is not None:
            asked = (*table, np.arange(len(questions)), table[0])
            self._asked = candidates_of(asked)
        if isinstance(belief.losses, Latent):  # nothing that stays as it is is worked out twice
            self._asked = belief.losses.prepare(self._asked)
            self._paired: Any = self._asked[:paired]
            self._of_images: Any = self._asked[tensor(self._shown)]
        self.about = {
            "sizes": self._sizes.tolist(),
            "questions": len(questions),
            "samples": self._samples.tolist(),
            "names": [space.dataset.sample_id(int(k)) for k in self._samples],
            "places": _places(belief, self._samples, dice),
        }

    def figures(self, *, images: bool) -> dict[str, object]:
        """What is predicted now, as a row has it; no figures where losses are not predicted."""
        losses = self._belief.losses
        if losses is None:
            return {"images": {}} if images else {}
        f = self._belief.predict(self._asked)
        mean = _mean(f, self._cell, self._groups.cells)
        spread = np.sqrt(_mean(f * (1 - f), self._cell, self._groups.cells))
        values: dict[str, object] = {"predicted": _plain(mean), "spread": _plain(spread)}
        columns: dict[str, list[float | None]] = {}
        if images:
            columns["predicted"] = _plain(self._by_image(f, mean))
        if isinstance(losses, Latent):
            values["sd"] = _plain(self._sd(array(losses.joint(self._paired))))
            if images:
                latent = array(losses.posterior(self._of_images, latent=True).variance)
                shown = self._image[self._shown]
                columns["sd"] = _plain(np.sqrt(_mean(latent, shown, len(self._samples))))
        return {**values, "images": columns} if images else values

    def _by_image(self, f: Floats, cells: Floats) -> Floats:
        """(images,): the mean loss predicted of each. Where only some of its questions are looked
        at, how these differ from what their cells are expected to lose."""
        if self._whole:
            return _mean(f, self._image, len(self._samples))
        overall = float(np.average(f, weights=self._weight))
        own = _mean(f - cells[self._cell], self._image, len(self._samples))
        return np.clip(overall + own, 0, 1)

    def _sd(self, covariance: Floats) -> Floats:
        """(G,): see above; NaN for groups of which fewer than two questions are looked at."""
        count = len(covariance)
        cell, weight = self._cell[:count], self._weight[:count]
        sizes, deviations = self._groups.sums(self._sizes), []
        for kind in KINDS:
            group, start = self._groups.group_of[kind][cell], self._groups.start[kind]
            groups = int(self._groups.group_of[kind].max()) + 1
            deviations.append(_spread(covariance, weight, group, sizes[start : start + groups]))
        return np.concatenate(deviations)


def _spread(covariance: Floats, weight: Floats, group: Indices, sizes: Floats) -> Floats:
    """(g,): the sd of the mean over each of g groups of ``sizes`` questions, by m of them."""
    groups, own = len(sizes), covariance.diagonal()
    share = weight / np.bincount(group, weight, groups)[group]
    within = (group[:, None] == group) * covariance @ share  # each with those of its group
    squares = np.bincount(group, share**2, groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = np.bincount(group, share * (within - share * own), groups)
        between = np.where(sizes > 1, (pairs / (1 - squares)).clip(0), 0.0)
        alone = np.bincount(group, share * own, groups) / sizes
    few = (np.bincount(group, minlength=groups) < 2) & (sizes > 1) | (sizes == 0)
    return np.where(few, np.nan, np.sqrt(((1 - 1 / sizes.clip(1)) * between + alone).clip(0)))


def _questions(
    space: QuestionSpace, samples: Indices, whole: bool, dice: np.random.Generator
) -> Indices:
    """All questions, or as many of every cell, spread over these images."""
    if whole:
        return np.sort(space.nth(np.arange(space.size)))
    cells = [(c, v) for v, c in np.argwhere(space.applicable).tolist()]
    cells = [cells[k] for k in dice.permutation(len(cells))][:MAX_QUESTIONS]
    most, order = math.ceil(QUESTIONS / len(cells)), dice.permutation(samples)
    chosen, start = [], 0
    for concept, variant in cells:
        turned = np.roll(order, -start)
        questions = space.number(turned, np.array(variant), np.array(concept))
        questions = questions[space.eligible(questions)][:most]
        start = (start + most) % len(order)
        chosen.append(questions)
    return np.sort(np.concatenate(chosen))


def _sizes(space: QuestionSpace) -> Indices:
    """(cells,): how many questions each has."""
    per_concept = np.asarray(space.dataset.counts, np.int64).sum(axis=1)
    return np.asarray((per_concept[:, None] * space.applicable.T).ravel(), np.int64)


def _places(
    belief: Belief, samples: Indices, dice: np.random.Generator
) -> list[list[float]] | None:
    """Two principal components of the features of each sample; None where there are none."""
    if not isinstance(belief.losses, Latent):
        return None
    values = array(belief.losses.features(tensor(samples))).astype(np.float64)
    if values.shape[1] < 2 or len(values) < 2 or not np.isfinite(values).all():
        return None
    values = values - values.mean(axis=0)
    if values.shape[1] > WIDTH:
        values = values @ dice.standard_normal((values.shape[1], WIDTH)) / math.sqrt(WIDTH)
    left, scale, _ = np.linalg.svd(values, full_matrices=False)
    places = left[:, :2] * scale[:2]
    places = places * np.where(places[np.abs(places).argmax(axis=0), [0, 1]] < 0, -1, 1)
    return [[round(float(x), 4), round(float(y), 4)] for x, y in places]


def _rank(group: Indices) -> Indices:
    """(n,): how many before each are of the same group."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - first
    return rank


def _mean(values: Floats, group: Indices, groups: int) -> Floats:
    """(groups,): the mean of each, NaN where there is nothing."""
    counts = np.bincount(group, minlength=groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(group, values, groups) / counts)


def _plain(values: Floats) -> list[float | None]:
    """For JSON, rounded; None for NaN."""
    rounded = np.round(np.asarray(values, np.float64), DIGITS).tolist()
    return [None if value != value else value for value in rounded]
