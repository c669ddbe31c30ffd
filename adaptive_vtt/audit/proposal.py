"""What to ask and to certify where the user did not say: by what is known of the images.

| what is known | oracle | certified, beside every relation's error |
|---|---|---|
| masks of all that is there | mask-drop (Dice down by a quarter, by half) | both thresholds' EFR |
| exactly one concept per image | top-class | misclassification rate |
| labels | correctness | overall error, both rates of every concept |
| answers in words | multiple-choice; without options contains-truth | overall error |
| nothing | consistency with the source image's answer | overall error |
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..datasets import Dataset
from ..oracles import (
    REGISTRY,
    Consistency,
    ContainsTruth,
    Correctness,
    MaskDrop,
    MultipleChoice,
    Oracle,
    TopClass,
)
from ..relations import Relation
from ..space import QuestionSpace
from ..types import IDENTITY, Sample

RELATIONS = (IDENTITY, "gaussian_noise", "brightness_down", "rotation")
"""What images are put through, unless said otherwise: noise, a darker and a tilted camera."""
EVERYTHING = ("overall", "relations")


@dataclass(frozen=True)
class Proposal:
    """The questions, and the names of the targets that suit them (``certify.named_targets``)."""

    space: QuestionSpace
    targets: tuple[str, ...]


def proposed(
    dataset: Dataset,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
) -> Proposal:
    """The questions about a dataset, by the table above.

    ``relations`` and ``oracle`` (one, or its name) are taken where they are given. A dataset
    without images is asked about as it is. Raises InputError where nothing can be asked.
    """
    suited, targets = _by_truths(dataset)
    if isinstance(oracle, str):
        oracle = REGISTRY.make(oracle, {})
    if relations is None:
        relations = RELATIONS if dataset.has_images else (IDENTITY,)
    if oracle is not None and type(oracle) is not type(suited):
        targets = EVERYTHING
    return Proposal(QuestionSpace(dataset, relations, oracle=oracle or suited), targets)


def _by_truths(dataset: Dataset) -> tuple[Oracle, tuple[str, ...]]:
    counts = np.asarray(dataset.counts)
    if not counts.sum():
        return Consistency(), EVERYTHING
    concept, side = divmod(int(counts[:, ::-1].argmax()), 2)
    labelled = dataset.sample(int(dataset.members(concept, 1 - side, np.zeros(1, int))[0]))
    if labelled.masks and all(labelled.masks.get(c) is not None for c in _present(labelled)):
        return MaskDrop(), ("concepts", "relations")
    if labelled.asks:
        options = any(ask.options for ask in labelled.asks.values())
        return (MultipleChoice() if options else ContainsTruth()), EVERYTHING
    if are_classes(dataset):
        return TopClass(), ("misclassified", "relations")
    return Correctness(), ("overall", "concepts", "relations")


def _present(sample: Sample) -> list[str]:
    return [concept for concept, truth in sample.truth.items() if truth == 1]


def are_classes(dataset: Dataset) -> bool:
    """Whether every image is known to have exactly one of two or more concepts."""
    truths = dataset.profile[0]
    return truths.shape[1] > 1 and bool(((truths == 1).sum(axis=1) == 1).all())
