"""How often a thing is got wrong for the first time: by its name, its size, how it is checked,
and how often it was got right before.

rate = base of the check x factor of the name x of the size x of the checks passed. Factors are
fitted in turn to violations seen over violations expected, as insurers rate by several traits at
once (Bailey & Simon, Two Studies in Automobile Insurance Ratemaking, ASTIN Bulletin, 1960), and
shrunk towards their first guess. A captioner's faults persist: an object that passed some checks
is likelier to pass the next.
"""

import numpy as np
import numpy.typing as npt

from ..types import Floats

Ints = npt.NDArray[np.int64]

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

    def predict(self, names: Ints, shares: Floats, passed: Ints) -> Floats:
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


def _factors(trait: Ints, wrong: Ints, expected: Floats, most: int = 1) -> Floats:
    """Violations over those expected, by trait, shrunk towards 1."""
    found: Floats = (np.bincount(trait, wrong, most) + PRIOR) / (
        np.bincount(trait, expected, most) + PRIOR
    )
    return found
