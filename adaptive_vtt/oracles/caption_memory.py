"""What judged captions teach: which objects are got wrong, and where more is to be found.

Of every image that was captioned the objects are known, and with them what every follow-up
of it retains, makes ambiguous, makes disappear. Of the others only what a detector found is;
their follow-ups are taken to do what those of the same relation and severity did elsewhere.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..relations.reduction import Reductions, visible_shares
from ..relations.reic import Reduced, Spans, differences, spans, statuses
from ..types import Bools, Box, Floats, Indices, Sample, mask_of
from .base import Questions
from .findings import thing

# -- how often a thing is got wrong for the first time ---------------------------------------------
# rate = base of the check x factor of the name x of the size x of the checks passed. Factors are
# fitted in turn to violations seen over violations expected, as insurers rate by several traits at
# once (Bailey & Simon, Two Studies in Automobile Insurance Ratemaking, ASTIN Bulletin, 1960), and
# shrunk towards their first guess. A captioner's faults persist: an object that passed some checks
# is likelier to pass the next.


RETAINED, DISAPPEARED, UNNAMED = range(3)
"""What is checked: that a thing in view is named (rule 1), that one out of view is not (rule
2), that one the source's caption left out is not named later (rule 3)."""
FIRST_GUESS = (0.15, 0.05, 0.5)
"""Probability of a violation per check (retained, disappeared, unnamed) before any data; each
counts as much as GUESSED checks."""
GUESSED = 4.0
"""Weight of FIRST_GUESS, as a number of checks."""
PRIOR = 2.0
"""Weight of a factor's first guess, as a number of expected violations."""
SIZES = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Borders between size classes, as shares of the picture's area: things between two borders share
one factor."""
MAX_PASSED = 6
"""Number of passed checks at which counting stops: a thing that passed more is treated as one that
passed this many."""
FADING = 2.0
"""Before anything is known, passing k checks divides a rate by 1 + k / FADING."""
ROUNDS = 4
"""How often each factor is fitted given the others."""


class Rates:
    """Learns from checks of objects of which no violation was known; names are 0, 1 ..."""

    def __init__(self) -> None:
        self._checks = np.zeros((0, 5), np.int64)  # name, size, passed, check, wrong
        self._count = 0
        self._fitted = -1
        self._base = np.array(FIRST_GUESS)
        self._by_name = np.ones(1)
        self._by_size = np.ones(len(SIZES) + 1)
        self._guess = 1 / (1 + np.arange(MAX_PASSED + 1) / FADING)
        self._by_passed = self._guess.copy()

    def observe(self, name: int, share: float, passed: int, check: int, wrong: bool) -> None:
        """One check of a thing that takes up ``share`` of the source image and ``passed`` so
        many checks before."""
        if self._count == len(self._checks):
            more = np.zeros((max(64, self._count), 5), np.int64)
            self._checks = np.concatenate([self._checks, more])
        size, passed = int(np.searchsorted(SIZES, share)), min(passed, MAX_PASSED)
        self._checks[self._count] = name, size, passed, check, wrong
        self._count += 1

    def predict(self, names: Indices, shares: Floats, passed: Indices) -> Floats:
        """(..., 3): how likely things are got wrong, for each check; 0 for names below 0."""
        self._fit()
        known = np.where(names < len(self._by_name), names, -1)
        by_name = np.append(self._by_name, 1.0)[known]  # -1: the last
        by_size = self._by_size[np.searchsorted(SIZES, shares)]
        traits = by_name * by_size * self._by_passed[np.minimum(passed, MAX_PASSED)]
        found = np.clip(traits[..., None] * self._base, 0, 0.95)
        return np.where(names[..., None] >= 0, found, 0.0)

    @property
    def fading(self) -> float:
        """What is left of a rate after one check passed."""
        self._fit()
        return float(np.clip(self._by_passed[1] / self._by_passed[0], 0, 1))

    def _fit(self) -> None:
        if self._fitted == self._count:
            return
        self._fitted = self._count
        name, size, passed, check, wrong = self._checks[: self._count].T
        self._by_name = np.ones(max(1, int(name.max(initial=0)) + 1))
        self._by_size = np.ones(len(SIZES) + 1)
        self._by_passed = self._guess.copy()
        for _ in range(ROUNDS):
            traits = self._by_name[name] * self._by_size[size] * self._by_passed[passed]
            seen = np.bincount(check, traits, 3) + GUESSED
            self._base = (np.bincount(check, wrong, 3) + GUESSED * np.array(FIRST_GUESS)) / seen
            rest = self._base[check] * self._by_passed[passed]
            self._by_name = _factors(name, wrong, rest * self._by_size[size])
            self._by_size = _factors(size, wrong, rest * self._by_name[name], len(self._by_size))
            rest = self._base[check] * self._by_name[name] * self._by_size[size]
            fitted = _factors(passed, wrong, rest * self._guess[passed], len(self._guess))
            self._by_passed = self._guess * fitted


def _factors(trait: Indices, wrong: Indices, expected: Floats, most: int = 1) -> Floats:
    """Violations over those expected, by trait, shrunk towards 1."""
    found: Floats = (np.bincount(trait, wrong, most) + PRIOR) / (
        np.bincount(trait, expected, most) + PRIOR
    )
    return found


# -- what is remembered ----------------------------------------------------------------------------


MAX_OBJECTS = 8
"""Objects per image that are kept track of; the rest of a crowded image is ignored."""
MAX_IMAGES = 20_000
"""Samples in a dataset above which images are not looked at before they are captioned: looking at
every image ahead would take too long."""
DULL = 0.85
"""Base of the feature by which the question GP is told how many objects a follow-up retains, blurs
or loses: 1 - DULL ** k for k of them, in 0..1, since one object more matters less the more there
are."""
NOWHERE = 2
"""Status of an object that was not located, and of places in a row that hold no object; all other
statuses are those of ``reic.statuses``."""


class CaptionMemory:
    """Learns from ``oracles.ReducedCaptions``' details.

    ``found``: the distinct violations so far, (sample, what) pairs: the detector's label of
    the thing, or else its name. ``drawn``: the variants asked about, by sample. Arrays over
    samples have a row per sample looked at and M = MAX_OBJECTS columns: the objects that the
    source's caption names, then those it left out as far as a detector tells.
    """

    def __init__(self, space: Questions, down: float, up: float) -> None:
        self.space = space
        self.down, self.up = down, up
        self.found: set[tuple[int, str]] = set()
        self.drawn: dict[int, list[int]] = {}
        self._rates = Rates()
        self._spans: dict[int, Spans | None] = {}
        self._rows: dict[int, int] = {}
        self._things: list[list[str]] = []
        self._numbers: dict[str, int] = {}
        shape = (64, len(space.variants))
        self._known = np.zeros(64, bool)
        self._name = np.full((64, MAX_OBJECTS), -1)
        self._size = np.zeros((64, MAX_OBJECTS))  # shares of the picture
        self._left_out = np.zeros((64, MAX_OBJECTS), bool)
        self._status = np.full((*shape, MAX_OBJECTS), NOWHERE, np.int8)
        self._nearest = np.ones(shape)
        self._own = np.zeros((64, MAX_OBJECTS, 2))  # checks and violations of an object
        # follow-ups that show all that was named, and those of them that name something new;
        # the first numbers are a guess that counts as much as 4 follow-ups
        self._new = np.array([4.0, 0.5])
        self._typical = np.ones((len(space.variants), 3))  # retained, ambiguous, disappeared
        self._versions: dict[int, int] = {}
        self._mentioned = np.ones(2)  # objects of captions, and labels of the same images

    # -- learning ----------------------------------------------------------------------

    def take(self, question: int) -> None:
        sample, variant, _ = (int(p) for p in self.space.parts(question))
        self.drawn.setdefault(sample, []).append(variant)
        seen = self._spans.get(sample)
        if seen is not None:
            self._bring_near(sample, seen, variant)

    def learn(self, question: int, details: Mapping[str, Any]) -> None:
        sample, variant, _ = (int(p) for p in self.space.parts(question))
        objects = details["objects"]
        named = [o for o in objects if o["status"] != "new"]
        if sample not in self._spans:
            self._meet(sample, named, details["unnamed"], details["size"])
        self._versions[sample] = details["versions"]
        wrong = {thing(o) for o in objects if o["rule"] is not None}
        self.found |= {(sample, what) for what in wrong}
        for one in named:
            if one["status"] in ("retained", "disappeared"):
                check = RETAINED if one["status"] == "retained" else DISAPPEARED
                self._check(self.row(sample), thing(one), check, thing(one) in wrong)
        if named and all(o["status"] == "retained" for o in named):
            self._new += 1, any(o["rule"] == 3 for o in objects)
            self._check_left_out(self.row(sample), variant, wrong)

    def _check_left_out(self, row: int, variant: int, wrong: set[str]) -> None:
        there = self._left_out[row] & (self._status[row, variant] == 1)
        for place in np.flatnonzero(there):
            what = self._things[row][place]
            self._check(row, what, UNNAMED, what in wrong)

    def _check(self, row: int, what: str, check: int, wrong: bool) -> None:
        if what in self._things[row]:
            place = self._things[row].index(what)
            passed, wrongs = self._own[row, place]
            if not wrongs:
                size = float(self._size[row, place])
                self._rates.observe(self._numbers[what], size, int(passed), check, wrong)
            self._own[row, place] += 1, wrong

    def _meet(
        self,
        sample: int,
        named: Sequence[Mapping[str, Any]],
        left_out: Sequence[Mapping[str, Any]],
        size: Sequence[int],
    ) -> None:
        """Works out what all follow-ups of an image do to the objects of its caption."""
        objects = [*named, *left_out][:MAX_OBJECTS]
        row = self.row(sample)
        self._mentioned += len(named), len(self._things[row])
        boxes = [[Box("", *edges) for edges in one["boxes"]] for one in objects]
        areas = [sum(b.area for b in some) / (size[0] * size[1]) for some in boxes]
        self._take_in(row, [thing(o) for o in objects], areas)
        self._left_out[row] = np.arange(MAX_OBJECTS) >= len(named)
        self._known[row], self._spans[sample] = True, None
        source = self.space.dataset.sample(sample)
        reductions = self._reductions(source)
        if source.image is None or not reductions:
            return
        height, width = source.image.shape[:2]
        for place, some in enumerate(boxes):
            mask = mask_of(some, height, width)
            if mask.any():
                shares = visible_shares([mask], reductions)[0]
                self._status[row, :, place] = statuses(shares, self.down, self.up)
        for place, code in enumerate((1, 0, -1)):
            self._typical[:, place] += (self._status[row] == code).sum(axis=1)
        self._spans[sample] = seen = spans(reductions, height, width)
        for variant in self.drawn.get(sample, ()):
            self._bring_near(sample, seen, variant)

    def _bring_near(self, sample: int, seen: Spans, variant: int) -> None:
        """Brings predicted shares near those seen; follow-ups that were asked about keep what they
        had."""
        row = self.row(sample)
        here = self.relation == self.relation[variant]
        here[self.drawn[sample]] = False
        far = differences(seen[here], seen[variant])
        self._nearest[row, here] = np.minimum(self._nearest[row, here], far)

    def _reductions(self, source: Sample) -> Reductions:
        chosen = [(v.relation, v.severity) for v in self.space.variants]
        known = [r.reduction(source, s) for r, s in chosen if isinstance(r, Reduced)]
        return known if len(known) == len(chosen) else ()

    # -- rows --------------------------------------------------------------------------

    def row(self, sample: int) -> int:
        """The row of a sample; of one that was not captioned its names are those detected."""
        if sample not in self._rows:
            self._rows[sample] = row = len(self._rows)
            if row == len(self._known):
                self._grow()
            self._things.append([])
            self._take_in(row, *self._detected(sample))
        return self._rows[sample]

    def _detected(self, sample: int) -> tuple[list[str], list[float]]:
        if len(self.space.dataset) > MAX_IMAGES:
            return [], []
        source = self.space.dataset.sample(sample)
        areas: dict[str, float] = {}
        for box in source.boxes:
            areas[box.label] = areas.get(box.label, 0.0) + box.area
        pixels = 1 if source.image is None else source.image.shape[0] * source.image.shape[1]
        return [*areas], [area / pixels for area in areas.values()]

    def rows(self, samples: Tensor) -> Indices:
        """(n,): the rows of samples (n,)."""
        numbers, back = np.unique(samples.numpy(), return_inverse=True)
        return np.array([self.row(int(number)) for number in numbers])[back]

    def _grow(self) -> None:
        for name, empty in _EMPTY.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full_like(old, empty)]))

    def _take_in(self, row: int, things: list[str], sizes: list[float]) -> None:
        """Writes down what is in a picture, the first MAX_OBJECTS of it."""
        self._things[row] = things[:MAX_OBJECTS]
        self._name[row], self._size[row] = -1, 0.0
        for place, what in enumerate(self._things[row]):
            self._name[row, place] = self._numbers.setdefault(what, len(self._numbers))
            self._size[row, place] = sizes[place]

    # -- what is known -----------------------------------------------------------------

    def known(self, rows: Indices) -> Bools:
        """(n,): whether an image was captioned, and a follow-up of it judged."""
        return np.asarray(self._known[rows], bool)

    def checks(self, rows: Indices, variants: Indices) -> Floats:
        """n x M x 3: the probability that each of n follow-ups makes each of the three checks of
        ``Rates`` on each object; 0 or 1 where the image was captioned."""
        retained, _, disappeared = np.moveaxis(self.shares(rows, variants), -1, 0)
        left_out = self._left_out[rows]
        found = np.zeros((*retained.shape, 3))
        found[..., RETAINED] = np.where(left_out, 0.0, retained)
        found[..., DISAPPEARED] = np.where(left_out, 0.0, disappeared)
        whole = self._whole(rows, retained)
        found[..., UNNAMED] = np.where(left_out, retained * whole[:, None], 0.0)
        return found

    def is_blank(self, sample: int) -> bool:
        """Whether an image was captioned and none of the objects named could be located."""
        row = self.row(sample)
        return bool(self._known[row]) and bool((self._status[row] == NOWHERE).all())

    def shares(self, rows: Indices, variants: Indices) -> Floats:
        """n x M x 3: the probability that each object is retained, ambiguous, disappeared in each
        of n follow-ups; 0 or 1 where the image was captioned."""
        status = self._status[rows, variants]
        sure = np.stack([status == code for code in (1, 0, -1)], axis=-1)
        typical = (self._typical / self._typical.sum(axis=1, keepdims=True))[variants]
        there = self._name[rows] >= 0
        guess = typical[:, None, :] * there[:, :, None]
        return np.where(self._known[rows][:, None, None], sure, guess)

    def _whole(self, rows: Indices, retained: Floats) -> Floats:
        """(n,): the probability that all that was named stays in view, so that rule 3 applies."""
        there = (self._name[rows] >= 0) & ~self._left_out[rows]
        whole = np.where(there, retained, 1.0).prod(axis=1)
        return np.where(there.any(axis=1), whole, 0.0)

    def rates(self, rows: Indices) -> Floats:
        """n x M x 3: how likely each object is got wrong in each check of ``Rates``."""
        checks, wrong = np.moveaxis(self._own[rows], -1, 0)
        passed = (checks - wrong).astype(np.int64)
        expected = self._rates.predict(self._name[rows], self._size[rows], passed)
        again = (wrong[..., None] + expected) / (checks[..., None] + 1)
        return np.where(wrong[..., None] > 0, again, expected)

    @property
    def fading(self) -> float:
        """What is left of an object's rate after a check that it passed."""
        return self._rates.fading

    def fresh(self, rows: Indices) -> Bools:
        """n x M: the objects of which no violation is known yet."""
        return np.asarray((self._name[rows] >= 0) & (self._own[rows, :, 1] == 0), bool)

    def surprise(self, rows: Indices, variants: Indices) -> Floats:
        """(n,): the probability that a follow-up's caption names something that the source's left
        out (rule 3); 0 for captioned images, where such things are known one by one."""
        whole = self._whole(rows, self.shares(rows, variants)[..., 0])
        return np.where(self._known[rows], 0.0, whole * self._new[1] / self._new[0])

    @property
    def named(self) -> float:
        """How many objects a caption names per one that a detector finds."""
        return float(self._mentioned[0] / self._mentioned[1])

    @property
    def extra(self) -> float:
        return float(np.mean([*self._versions.values()])) if self._versions else 0.0

    def ambiguity(self, sample: int) -> Floats:
        """(V,): S_amb of every follow-up."""
        rows, variants = (
            np.full(len(self.relation), self.row(sample)),
            np.arange(len(self.relation)),
        )
        _, ambiguous, disappeared = np.moveaxis(self.shares(rows, variants).sum(axis=1), 1, 0)
        return np.asarray(disappeared - ambiguous, np.float64)

    def spans(self, sample: int) -> Spans | None:
        """What every follow-up of a captioned image leaves in view."""
        return self._spans.get(sample)

    @cached_property
    def relation(self) -> Indices:
        """(V,): the relation of every variant, by where it first stands."""
        names = [v.relation.name for v in self.space.variants]
        return np.array([names.index(name) for name in names])

    # -- for the question GP -----------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return "retained", "disappeared", "ambiguous", "difference", "violation"

    def signals(self, sample: Tensor, variant: Tensor) -> Tensor:
        rows, variants = self.rows(sample), variant.numpy()
        shares = self.shares(rows, variants)
        retained, ambiguous, disappeared = (1 - DULL ** shares[:, :, k].sum(1) for k in range(3))
        fine = (1 - self.checks(rows, variants) * self.rates(rows)).prod(axis=(1, 2))
        fine = fine * (1 - self.surprise(rows, variants))
        near = self._nearest[rows, variants]
        return torch.from_numpy(
            np.stack([retained, disappeared, ambiguous, near, 1 - fine], axis=1)
        )


_EMPTY = {
    "_known": 0,
    "_name": -1,
    "_size": 0,
    "_left_out": 0,
    "_status": NOWHERE,
    "_nearest": 1,
    "_own": 0,
}
"""The arrays that grow with the samples looked at, and what stands in them at first."""
