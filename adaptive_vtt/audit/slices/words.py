"""Words of prompts: of what concepts are called, and of what samples ask in words of their own."""

import re
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from ...space import QuestionSpace
from ...types import Sample
from .atoms import Atom, by_rows, by_values

NAME = "words"
WORD = re.compile(r"[a-z][a-z0-9-]{2,}")
MIN = 5
"""Samples whose own words have a word, at least."""
MAX = 40
"""Words of samples that are proposed, at most: the most frequent."""
MAX_SAMPLES = 5_000
"""Samples above which their own words are not read, as each would have to be loaded."""
DULL = frozenset(
    (
        *("the", "and", "for", "are", "was", "were", "has", "have", "does", "did", "this"),
        *("that", "with", "from", "what", "which"),
    )
)


def atoms(space: QuestionSpace) -> list[Atom]:
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
        by_values(space, NAME, "concept", concepts, f"'{word}' in the question")
        for word, concepts in found.items()
        if 1 < len(concepts) < len(space.concepts)
    )
    return [replace(atom, field=f"word {k}") for k, atom in enumerate(atoms)]


def _of_samples(space: QuestionSpace) -> list[Atom]:
    dataset = space.dataset
    if len(dataset) > MAX_SAMPLES or len(dataset.profile[0]) != len(dataset):
        return []
    if not dataset.has_images or not dataset.sample(0).asks:
        return []
    asked = [_words(_text(dataset.sample(k))) for k in range(len(dataset))]
    counts = Counter(word for words in asked for word in words)
    rows = dataset.profile_row(np.arange(len(dataset)))
    found = []
    for word, count in counts.most_common(MAX):
        if MIN <= count < len(dataset):
            mask = np.zeros(len(dataset), bool)
            mask[rows[[word in words for words in asked]]] = True
            said = f"'{word}' in the question"
            found.append(by_rows(space, NAME, f"'{word}'", mask, said))
    return found


def _text(sample: Sample) -> str:
    return " ".join(ask.text for ask in sample.asks.values())


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower())) - DULL
