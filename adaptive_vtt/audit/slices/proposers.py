"""What questions may have in common, in words and as a set of questions.

A proposer is a function from a space to atoms: by columns of metadata, by what a question is
itself (cells), by what images look like (clusters), and by words of prompts.
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
from ...types import Bools, Floats
from ...utils.importing import needed

Where = dict[str, list[object]]


@dataclass(frozen=True)
class Atom:
    """One thing that questions have in common.

    ``field``: what is said of them; a conjunction says no field twice. ``words``: what is said.
    ``found_by``: its proposer. ``where``: the same as a filter, field -> values, or None where no
    filter says it. ``target``: the questions.
    """

    field: str
    words: str
    found_by: str
    where: Mapping[str, Sequence[object]] | None
    target: Target


def by_values(
    space: QuestionSpace, found_by: str, field: str, values: Sequence[object], words: str
) -> Atom:
    """The questions whose field of a filter has one of ``values``."""
    about = selected(space, OfSlice(words), {field: values})
    return Atom(field, words, found_by, {field: values}, about)


def by_rows(space: QuestionSpace, found_by: str, field: str, rows: Bools, words: str) -> Atom:
    """The questions about samples whose profile rows ``rows`` (r,) marks."""
    every = selected(space, OfSlice(words), {})
    return Atom(field, words, found_by, None, replace(every, rows=rows))


def joined(atoms: Sequence[Atom]) -> Target:
    """The questions that have all of them in common."""
    words = ", ".join(atom.words for atom in atoms)
    return common(OfSlice(words), [atom.target for atom in atoms])


def where_of(atoms: Sequence[Atom]) -> Where | None:
    """The conjunction as a filter, field -> values; None where no filter says it."""
    found: Where = {}
    for atom in atoms:
        if atom.where is None:
            return None
        for field, values in atom.where.items():
            found[field] = [v for v in values if v in found.get(field, values)]
    return found


MAX_VALUES = 16
"""Values of a column that are proposed one by one, at most; of more, numbers are put into bins and
words are left alone: they name samples rather than groups."""
BINS = 4
"""Bins of a column of many numbers, with as many samples each as can be."""
PLAIN = (str, int, float, bool)
"""What is proposed of a column: what a filter in a SPEC.toml can say."""
OWN = {"relation", "severity", "concept", "truth"}
"""Fields of a filter that are no columns."""


def by_metadata(space: QuestionSpace) -> list[Atom]:
    """One atom per column and value, or bin."""
    found: list[Atom] = []
    for column in space.dataset.metadata_columns:
        if column not in OWN:
            found += _column(space, column)
    return found


def _column(space: QuestionSpace, column: str) -> list[Atom]:
    there = space.dataset.metadata_values(column)
    plain = [v.item() if isinstance(v, np.generic) else v for v in there.tolist()]
    values = list(dict.fromkeys(v for v in plain if isinstance(v, PLAIN) and v == v))
    if len(values) < 2:
        return []
    if len(values) <= MAX_VALUES:
        return [by_values(space, "metadata", column, [v], f"{column} {v}") for v in values]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return []
    return _bins(space, column, there.astype(float))


def _bins(space: QuestionSpace, column: str, values: Floats) -> list[Atom]:
    ends = np.unique(np.nanquantile(values, np.linspace(0, 1, BINS + 1)))
    found = []
    for low, high in pairwise(ends):
        rows = (values >= low) & ((values < high) | (high == ends[-1]))
        found.append(by_rows(space, "metadata", column, rows, f"{column} {low:g} to {high:g}"))
    return found


def by_cells(space: QuestionSpace) -> list[Atom]:
    """One atom per relation, severity, concept and truth, of those that there are several of."""
    relations = dict.fromkeys(v.relation.name for v in space.variants)
    severities = sorted({v.severity for v in space.variants})
    sides = [side for side in (0, 1) if space.cell_counts[:, side].any()]
    if space.oracle.concepts_are == "classes":  # all is about true classes
        sides = []
    named = {0: "absent", 1: "present"} if space.oracle.concepts_are == "labels" else {}
    choices: dict[str, list[tuple[object, str]]] = {
        "relation": [(name, f"relation {name}") for name in relations],
        "severity": [(level, f"severity {level}") for level in severities],
        "concept": [(concept, str(concept)) for concept in space.concepts],
        "truth": [(side, named.get(side, f"truth {side}")) for side in sides],
    }
    return [
        by_values(space, "cells", field, [value], words)
        for field, values in choices.items()
        if len(values) > 1
        for value, words in values
    ]


COUNTS = (4, 8, 16)
"""Numbers of clusters; those of one number are one field."""
MIN_SAMPLES = 5
"""Samples per cluster on the average, at least."""
NEAREST = 2
"""Samples that stand for a cluster."""
MAX_IMAGES = 20_000
"""Samples above which images are not looked at, as each would have to be decoded."""


def by_clusters(space: QuestionSpace) -> list[Atom]:
    """One atom per cluster; none where samples have neither features nor images.

    Raises InputError where scikit-learn is not installed.
    """
    dataset = space.dataset
    truths, _ = dataset.profile
    apart = len(truths) == len(dataset)  # else no set of samples can be written down as rows
    looks = dataset.features is not None or dataset.has_images
    if not (apart and looks) or len(dataset) > MAX_IMAGES:
        return []
    import torch

    from ...surrogates.features import sample_features

    numbers = torch.arange(len(dataset))
    every = sample_features(dataset, seed=dataset.fingerprint)(numbers).numpy()
    table = every[:, len(dataset.concepts) :]  # the truths come first, and are no look
    return [
        atom
        for count in COUNTS
        if count * MIN_SAMPLES <= len(table)
        for atom in _clusters(space, table, count)
    ]


def _clusters(space: QuestionSpace, table: Floats, count: int) -> list[Atom]:
    with needed("slices", "discover_by: 'clusters' needs scikit-learn"):
        from sklearn.cluster import KMeans
    found = KMeans(count, n_init=4, random_state=0).fit(table)
    away = found.transform(table)
    rows = space.dataset.profile_row(np.arange(len(table)))
    made = []
    for cluster in range(count):
        nearest = np.argsort(away[:, cluster])[:NEAREST]
        like = " and ".join(space.dataset.sample_id(int(sample)) for sample in nearest)
        mask = np.zeros(len(table), bool)
        mask[rows[found.labels_ == cluster]] = True
        words = f"looks like {like}"
        made.append(by_rows(space, "clusters", f"one of {count} clusters", mask, words))
    return made


WORD = re.compile(r"[a-z][a-z0-9-]{2,}")
MIN_WITH_WORD = 5
"""Samples whose own words have a word, at least."""
MAX_WORDS = 40
"""Words of samples that are proposed, at most: the most frequent."""
MAX_READ = 5_000
"""Samples above which their own words are not read, as each would have to be loaded."""
DULL = frozenset(
    (
        *("the", "and", "for", "are", "was", "were", "has", "have", "does", "did", "this"),
        *("that", "with", "from", "what", "which"),
    )
)


def by_words(space: QuestionSpace) -> list[Atom]:
    """One atom per word that several concepts share, and per frequent word of samples' questions.

    Every word is a field of its own, so that a conjunction may ask for two.
    """
    return [*_of_concepts(space), *_of_samples(space)]


def _of_concepts(space: QuestionSpace) -> list[Atom]:
    found: dict[str, list[object]] = defaultdict(list)
    for concept in space.concepts:
        for word in _words(concept):
            found[word].append(concept)
    atoms = (
        by_values(space, "words", "concept", concepts, f"'{word}' in the question")
        for word, concepts in found.items()
        if 1 < len(concepts) < len(space.concepts)
    )
    return [replace(atom, field=f"word {k}") for k, atom in enumerate(atoms)]


def _of_samples(space: QuestionSpace) -> list[Atom]:
    dataset = space.dataset
    if len(dataset) > MAX_READ or len(dataset.profile[0]) != len(dataset):
        return []
    if not dataset.has_images or not dataset.sample(0).asks:
        return []
    texts = (dataset.sample(k).asks.values() for k in range(len(dataset)))
    asked = [_words(" ".join(ask.text for ask in asks)) for asks in texts]
    counts = Counter(word for words in asked for word in words)
    rows = dataset.profile_row(np.arange(len(dataset)))
    found = []
    for word, count in counts.most_common(MAX_WORDS):
        if MIN_WITH_WORD <= count < len(dataset):
            mask = np.zeros(len(dataset), bool)
            mask[rows[[word in words for words in asked]]] = True
            said = f"'{word}' in the question"
            found.append(by_rows(space, "words", f"'{word}'", mask, said))
    return found


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower())) - DULL


Proposer = Callable[[QuestionSpace], list[Atom]]

PROPOSERS: dict[str, Proposer] = {
    "metadata": by_metadata,
    "cells": by_cells,
    "clusters": by_clusters,
    "words": by_words,
}
"""By name; a new one is a function and its line here."""


def atoms_of(space: QuestionSpace, by: Sequence[str]) -> list[Atom]:
    """All atoms of the proposers named. Raises InputError for an unknown name."""
    for name in by:
        check_known("proposer", name, PROPOSERS, "discover_by")
    return [atom for name in dict.fromkeys(by) for atom in PROPOSERS[name](space)]
