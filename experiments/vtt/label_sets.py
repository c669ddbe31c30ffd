"""Synthetic label sets with the prevalences of the paper's three, and a simulated classifier.

Sizes and concepts are from Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI
2019), section 3.1. The paper gives no prevalences, so each function names its source. The sets have
no images, and answers to their questions are simulated.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import LinearConstraint, milp
from scipy.special import expit, logit

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

Ints = npt.NDArray[np.int64]

ISIC_IMAGES = 3_694
"""Images with released masks of ISIC 2018 task 2; the counts below are of these."""

ISIC_COUNTS = {
    "pigment network": 2_244,
    "globules": 828,
    "milia-like cyst": 773,
    "negative network": 275,
    "streaks": 183,
}
"""Images with each attribute; source: the set's statistics as published by Dataset Ninja."""

ISIC_PAIRS = {
    ("pigment network", "globules"): 464,
    ("pigment network", "milia-like cyst"): 417,
    ("pigment network", "negative network"): 149,
    ("pigment network", "streaks"): 110,
    ("globules", "milia-like cyst"): 165,
    ("globules", "negative network"): 81,
    ("globules", "streaks"): 86,
    ("milia-like cyst", "negative network"): 70,
    ("milia-like cyst", "streaks"): 10,
    ("negative network", "streaks"): 9,
}
"""Images with both attributes; same source."""

IDRID_PREVALENCES = {
    "microaneurysm": 0.57,
    "hard exudate": 0.57,
    "haemorrhage": 0.56,
    "soft exudate": 0.28,
}
"""A reading of the paper's 143 images: the 81 with lesion masks and 62 healthy ones."""

OCT_PREVALENCES = {
    "drusen": 0.60,
    "intraretinal fluid": 0.45,
    "hyper-reflective foci": 0.40,
    "subretinal fluid": 0.30,
    "intraretinal cysts": 0.25,
    "fibrovascular PED": 0.20,
    "epiretinal membrane": 0.15,
    "reticular pseudodrusen": 0.12,
    "outer retinal atrophy": 0.08,
    "geographic atrophy": 0.05,
    "healthy": 0.03,
}
"""Invented, except that drusen is the most common concept and geographic atrophy is rare."""


def isic(samples: int = 100, *, seed: int = 0) -> TableDataset:
    """Return a set like ISIC 2018 task 2: 5 concepts, all counts and pair counts in proportion.

    The counts of the 3,694 images leave the joint distribution open. The one of maximum entropy
    that agrees with them is rounded to ``samples`` whole rows (see ``whole_counts``).
    """
    patterns, expected = isic_law()
    rows = np.repeat(patterns, whole_counts(patterns, expected, samples), axis=0)
    order = generator(seed, "label set isic").permutation(samples)
    return _dataset(rows[order], list(ISIC_COUNTS), "ISIC-like")


def idrid(samples: int = 43, *, seed: int = 0) -> TableDataset:
    """Return a set like IDRiD: 4 concepts, present independently of one another."""
    return independent(IDRID_PREVALENCES, samples, "IDRiD-like", seed=seed)


def oct_like(samples: int = 200, *, seed: int = 0) -> TableDataset:
    """Return a set like the paper's in-house OCT set, with 11 independent concepts."""
    return independent(OCT_PREVALENCES, samples, "OCT-like", seed=seed)


def independent(
    prevalences: Mapping[str, float], samples: int, name: str, *, seed: int
) -> TableDataset:
    """Return a set whose concepts have ``round(prevalence * samples)`` random positives each."""
    rng = generator(seed, f"label set {name}")
    counts = [round(p * samples) for p in prevalences.values()]
    columns = [rng.permutation(np.arange(samples) < count) for count in counts]
    return _dataset(np.stack(columns, axis=1).astype(np.int64), list(prevalences), name)


def isic_law() -> tuple[Ints, Floats]:
    """Return the 32 patterns of 5 labels (32 x 5) and how many of 3,694 images show each (32,).

    Iterative proportional fitting of all ten 2 x 2 tables, from the uniform distribution, converges
    to the maximum-entropy distribution with these counts (Csiszar, Annals of Probability 3:146,
    1975).
    """
    names = list(ISIC_COUNTS)
    patterns = (np.arange(2 ** len(names))[:, None] >> np.arange(len(names))) & 1
    expected = np.full(len(patterns), ISIC_IMAGES / len(patterns))
    for _ in range(100):
        for (first, second), both in ISIC_PAIRS.items():
            a, b = ISIC_COUNTS[first], ISIC_COUNTS[second]
            table = np.array([[ISIC_IMAGES - a - b + both, b - both], [a - both, both]])
            cell = patterns[:, names.index(first)], patterns[:, names.index(second)]
            current = np.zeros((2, 2))
            np.add.at(current, cell, expected)
            expected *= (table / current)[cell]
    return patterns, expected


def whole_counts(patterns: Ints, expected: Floats, samples: int) -> Ints:
    """Return whole numbers (32,) of rows per pattern, ``samples`` in all.

    An integer programme minimises the weighted sum of their absolute errors: 10 for counts, 1 for
    pair counts and 0.01 for counts of patterns.
    """
    share = expected * (samples / expected.sum())
    singles, pairs, own = patterns.T, _pair_columns(patterns).T, np.eye(len(patterns))
    wanted = np.concatenate([singles, pairs, own])
    weights = np.repeat([10.0, 1.0, 0.01], [len(singles), len(pairs), len(own)])
    errors = len(wanted)
    # variables: the counts, then one bound per error, from both sides
    over = np.hstack([wanted, -np.eye(errors)])
    under = np.hstack([-wanted, -np.eye(errors)])
    total = np.concatenate([np.ones(len(patterns)), np.zeros(errors)])
    solved = milp(
        np.concatenate([np.zeros(len(patterns)), weights]),
        integrality=total,
        constraints=[
            LinearConstraint(over, ub=wanted @ share),
            LinearConstraint(under, ub=-(wanted @ share)),
            LinearConstraint(total[None, :], samples, samples),
        ],
    )
    return np.rint(solved.x[: len(patterns)]).astype(np.int64)


def simulated_classifier(dataset: TableDataset, *, seed: int = 0) -> Floats:
    """Return P(yes) (n, C) of a classifier that is worse at rarer concepts.

    It replaces the paper's trained networks, which are not public. All truths must be known. The
    model is binormal: positives and negatives of a concept of prevalence p have the scores
    N(+d/2, 1) and N(-d/2, 1) with d = 1 + 2.5 sqrt(p). P(yes) is the calibrated posterior,
    expit(d * score + logit(p)). So the area under the ROC curve is 0.98 for p = 0.6 and 0.86 for
    p = 0.05, and the answer is rarely yes for rare concepts, as by networks trained on unbalanced
    labels.
    """
    n, width = len(dataset), len(dataset.concepts)
    truths = dataset.truth(np.arange(n)[:, None], np.arange(width)[None, :])
    prevalence = dataset.counts[:, 1] / n
    distance = 1 + 2.5 * np.sqrt(prevalence)
    noise = generator(seed, "simulated classifier").standard_normal((n, width))
    answers: Floats = expit(distance * ((truths - 0.5) * distance + noise) + logit(prevalence))
    return answers


def _pair_columns(patterns: Ints) -> Ints:
    """Return whether both labels of each pair are present, a column per pair of ISIC_PAIRS."""
    places = combinations(range(patterns.shape[1]), 2)
    return np.stack([patterns[:, i] & patterns[:, j] for i, j in places], axis=1)


def _dataset(rows: Ints, concepts: Sequence[str], name: str) -> TableDataset:
    ids = [f"sample {i}" for i in range(len(rows))]
    return from_table(None, pd.DataFrame(rows, index=ids, columns=list(concepts)), name=name)
