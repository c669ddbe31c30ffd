"""Proposers of properties that questions may share.

A proposer is a function from a space to atoms: by columns of metadata, by the relation, severity,
concept and truth of questions (cells), by similarity of images (clusters), and by words of prompts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...certify.targets import Target, common, selected
from ...errors import check_known
from ...families import OfSlice
from ...space import QuestionSpace
from ...types import Bools, Floats, Indices
from ...utils.importing import needed

MAX_VALUES = 16
"""Maximum number of values of a column for one atom each. With more, numbers are put into bins, and
texts are ignored, as they name samples rather than groups."""
BINS = 4
"""Number of bins of a column of numbers, of about equal numbers of samples."""
PLAIN = (str, int, float, bool)
"""Types of values that a filter in SPEC.toml can contain."""
OWN = {"relation", "severity", "concept", "truth"}
"""Fields of a filter that are no columns of metadata."""
COUNTS = (4, 8, 16)
"""Numbers of clusters; the clusters of one number are one field."""
MIN_SAMPLES = 5
"""Minimum number of samples per cluster on average."""
NEAREST = 2
"""Number of samples that describe a cluster."""
MAX_IMAGES = 20_000
"""Maximum number of samples whose images are clustered, as each must be decoded."""
WORD = re.compile(r"[a-z][a-z0-9-]{2,}")
MIN_WITH_WORD = 5
"""Minimum number of samples whose questions contain a word."""
MAX_WORDS = 40
"""Maximum number of words in samples' questions that are proposed, the most frequent ones."""
MAX_READ = 5_000
"""Maximum number of samples whose questions are read, as each must be loaded."""
DULL = "the and for are was were has have does did this that with from what which"
"""Words that are never proposed."""


@dataclass(frozen=True)
class Atom:
    """A property that questions share.

    Attributes:
        field: Kind of the property; a conjunction has at most one atom of each field.
        words: A text that describes the property.
        proposer: Name of its proposer.
        where: The property as a filter, field -> values; None if no filter can express it.
        target: The questions with the property.
    """

    field: str
    words: str
    proposer: str
    where: Mapping[str, Sequence[object]] | None
    target: Target


def by_values(
    space: QuestionSpace, proposer: str, field: str, values: Sequence[object], words: str
) -> Atom:
    """Return the atom of the questions with one of ``values`` in a field of a filter."""
    where = {field: values}
    return Atom(field, words, proposer, where, selected(space, OfSlice(words), where))


def _by_samples(
    space: QuestionSpace, proposer: str, field: str, samples: Bools | Indices, words: str
) -> Atom:
    """Return the atom of the questions about some samples, given as a mask or indices."""
    rows = np.zeros(len(space.dataset.profile[0]), bool)
    rows[space.dataset.profile_row(np.arange(len(space.dataset)))[samples]] = True
    target = replace(selected(space, OfSlice(words), {}), rows=rows)
    return Atom(field, words, proposer, None, target)


def joined(atoms: Sequence[Atom]) -> Target:
    """Return the questions with all properties."""
    words = ", ".join(atom.words for atom in atoms)
    return common(OfSlice(words), [atom.target for atom in atoms])


def by_metadata(space: QuestionSpace) -> list[Atom]:
    """Return an atom for each value, or bin, of each column of metadata."""
    dataset, atoms = space.dataset, []
    for column in (name for name in dataset.metadata_columns if name not in OWN):
        cells = dataset.metadata_values(column)
        plain = [v.item() if isinstance(v, np.generic) else v for v in cells.tolist()]
        values = list(dict.fromkeys(v for v in plain if isinstance(v, PLAIN) and v == v))
        if 2 <= len(values) <= MAX_VALUES:
            named = ((value, f"{column} {value}") for value in values)
            atoms += [by_values(space, "metadata", column, [v], words) for v, words in named]
        elif len(values) > 2 and all(type(v) in (int, float) for v in values):
            numbers = cells.astype(float)
            ends = np.unique(np.nanquantile(numbers, np.linspace(0, 1, BINS + 1)))
            whole = selected(space, OfSlice(""), {})
            for low, high in pairwise(ends):
                rows = (numbers >= low) & ((numbers < high) | (high == ends[-1]))
                words = f"{column} {low:g} to {high:g}"
                target = replace(whole, id=OfSlice(words), rows=rows)
                atoms.append(Atom(column, words, "metadata", None, target))
    return atoms


def by_cells(space: QuestionSpace) -> list[Atom]:
    """Return an atom for each relation, severity, concept and truth, if there are several."""
    kind = space.oracle.concepts_are
    sides = [side for side in (0, 1) if space.cell_counts[:, side].any()]
    truths = ("absent", "present") if kind == "labels" else ("truth 0", "truth 1")
    choices: dict[str, dict[object, str]] = {
        "relation": {v.relation.name: f"relation {v.relation.name}" for v in space.variants},
        "severity": {v: f"severity {v}" for v in sorted({v.severity for v in space.variants})},
        "concept": {concept: str(concept) for concept in space.concepts},
        # questions about classes are all about the true class
        "truth": {} if kind == "classes" else {side: truths[side] for side in sides},
    }
    return [
        by_values(space, "cells", field, [value], words)
        for field, values in choices.items()
        if len(values) > 1
        for value, words in values.items()
    ]


def by_clusters(space: QuestionSpace) -> list[Atom]:
    """Return an atom for each cluster of similar samples, by features or images; [] without both.

    Raises:
        InputError: scikit-learn is not installed.
    """
    dataset = space.dataset
    apart = len(dataset.profile[0]) == len(dataset)  # else rows cannot express a set of samples
    visible = dataset.features is not None or dataset.has_images
    if not (apart and visible) or len(dataset) > MAX_IMAGES:
        return []
    import torch

    from ...surrogates.features import sample_features

    numbers = torch.arange(len(dataset))
    features = sample_features(dataset, seed=dataset.fingerprint)(numbers).numpy()
    table = features[:, len(dataset.concepts) :]  # the truths come first, and are not visible
    counts = [count for count in COUNTS if count * MIN_SAMPLES <= len(table)]
    return [atom for count in counts for atom in _clusters(space, table, count)]


def _clusters(space: QuestionSpace, table: Floats, count: int) -> list[Atom]:
    with needed("slices", "discover_by: 'clusters' needs scikit-learn"):
        from sklearn.cluster import KMeans
    clusters = KMeans(count, n_init=4, random_state=0).fit(table)
    nearest = np.argsort(clusters.transform(table), axis=0)[:NEAREST].T
    atoms = []
    for cluster, samples in enumerate(nearest.tolist()):
        words = f"looks like {' and '.join(map(space.dataset.sample_id, samples))}"
        field, inside = f"one of {count} clusters", clusters.labels_ == cluster
        atoms.append(_by_samples(space, "clusters", field, inside, words))
    return atoms


def by_words(space: QuestionSpace) -> list[Atom]:
    """Return an atom for each word that several concepts share, and for each frequent word in the
    questions of samples.

    Each word is a field, so that a conjunction may combine several.
    """
    sharing: dict[str, list[object]] = defaultdict(list)
    for concept in space.concepts:
        for word in _words(concept):
            sharing[word].append(concept)
    shared = [
        by_values(space, "words", "concept", concepts, f"'{word}' in the question")
        for word, concepts in sharing.items()
        if 1 < len(concepts) < len(space.concepts)
    ]
    atoms = [replace(atom, field=f"word {k}") for k, atom in enumerate(shared)]
    dataset = space.dataset
    if len(dataset) > MAX_READ or len(dataset.profile[0]) != len(dataset):
        return atoms
    if not dataset.has_images or not dataset.sample(0).asks:
        return atoms
    texts = (dataset.sample(k).asks.values() for k in range(len(dataset)))
    asked = [_words(" ".join(ask.text for ask in asks)) for asks in texts]
    for word, count in Counter(word for words in asked for word in words).most_common(MAX_WORDS):
        if MIN_WITH_WORD <= count < len(dataset):
            samples, text = np.array([word in words for words in asked]), f"'{word}'"
            atoms.append(_by_samples(space, "words", text, samples, f"{text} in the question"))
    return atoms


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower())) - set(DULL.split())


PROPOSERS: dict[str, Callable[[QuestionSpace], list[Atom]]] = {
    "metadata": by_metadata,
    "cells": by_cells,
    "clusters": by_clusters,
    "words": by_words,
}
"""Name -> proposer; a new one is a function and its line here."""


def atoms_of(space: QuestionSpace, by: Sequence[str]) -> list[Atom]:
    """Return all atoms of these proposers; raise InputError for an unknown name."""
    for name in by:
        check_known("proposer", name, PROPOSERS, "discover_by")
    return [atom for name in dict.fromkeys(by) for atom in PROPOSERS[name](space)]
