"""Suggest an oracle, relations and targets for a dataset, if the user names none.

The oracle depends on the truths that are known. Targets are its rate overall and per relation:

- Masks of all present concepts: mask-drop, whether Dice falls by a quarter or by half.
- Exactly one concept per image: top-class, the misclassification rate.
- Labels: correctness, the label error.
- Answers in words: multiple-choice, or contains-truth without options.
- No labels: consistency with the answer about the source image.

``avtt init``, ``avtt.audit`` and ``avtt.census`` use these suggestions.
"""

from dataclasses import dataclass

import numpy as np

from ..datasets import Dataset
from ..datasets.base import adapted_dataset
from ..types import IDENTITY

RELATIONS = (IDENTITY, "gaussian_noise", "brightness_down", "rotation")
"""Image changes that most cameras cause: noise, too little light, a tilt."""
OVERALL, PER_CONCEPT = ("overall", "relations"), ("concepts", "relation-sides")


@dataclass(frozen=True)
class Proposed:
    """Names of an oracle, relations and targets, and the reason ``why`` they suit the data."""

    oracle: str
    relations: tuple[str, ...]
    targets: tuple[str, ...]
    why: str


def proposed(dataset: Dataset) -> Proposed:
    """Return an oracle, relations and targets for a dataset.

    Without images the only relation is the identity.
    """
    oracle, why = _oracle(dataset)
    relations = RELATIONS if dataset.has_images else (IDENTITY,)
    return Proposed(oracle, relations, PER_CONCEPT if oracle == "mask-drop" else OVERALL, why)


def _oracle(dataset: Dataset) -> tuple[str, str]:
    """Return the name of an oracle, and the reason for it."""
    counts = np.asarray(dataset.counts)
    if not counts.sum():
        return "consistency", "no labels: each answer is compared with that about the source image"
    concept, side = divmod(int(counts[:, ::-1].argmax()), 2)
    labelled = dataset.sample(int(dataset.members(concept, 1 - side, np.zeros(1, int))[0]))
    present = [concept for concept, truth in labelled.truth.items() if truth == 1]
    if labelled.masks and all(labelled.masks.get(concept) is not None for concept in present):
        return "mask-drop", "masks: how often Dice falls by a quarter, and by half"
    if asks := labelled.asks or adapted_dataset(dataset).asks(0):
        if any(ask.options for ask in asks.values()):
            return "multiple-choice", "questions with options: the share of wrong choices"
        return "contains-truth", "questions in words: the share of replies without the answer"
    if are_classes(dataset):
        return "top-class", "one class per image: the misclassification rate"
    return "correctness", "labels: the label error, over images and labels"


def are_classes(dataset: Dataset) -> bool:
    """Return whether each image is known to have exactly one of two or more concepts."""
    truths = dataset.profile[0]
    return truths.shape[1] > 1 and bool(((truths == 1).sum(axis=1) == 1).all())
