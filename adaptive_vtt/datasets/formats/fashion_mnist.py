"""Bundled example set: 2,000 Fashion-MNIST test images, long-tailed on purpose.

The images are grey, 28 x 28, uint8 in [0, 255]. Every image has one garment; the answers to all
14 concepts follow from that garment through `CONCEPTS`, which data, training and model share.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...utils.files import data_of
from ..table import TableDataset, from_table

DATA_FILE = Path(__file__).parent / "data" / "fashion.npz"

_NAMES = data_of(__package__, "fashion.toml")
GARMENTS: tuple[str, ...] = tuple(_NAMES["garments"])


class Concept(NamedTuple):
    """A yes/no question: garments with the answer yes, and unknown ones; no for all others."""

    name: str
    yes: tuple[str, ...]
    unknown: tuple[str, ...] = ()


CONCEPTS: tuple[Concept, ...] = (
    *(Concept(garment, (garment,)) for garment in GARMENTS),
    *(
        Concept(name, tuple(answers["yes"]), tuple(answers.get("unknown", ())))
        for name, answers in _NAMES["concepts"].items()
    ),
)
CONCEPT_NAMES: tuple[str, ...] = tuple(concept.name for concept in CONCEPTS)


def concept_answers(garment: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return answers (n, 14), 0, 1 or NaN (unknown), for class numbers `garment` (n,) in 0..9."""
    answers = np.zeros((len(GARMENTS), len(CONCEPTS)), np.float32)
    for column, concept in enumerate(CONCEPTS):
        answers[[GARMENTS.index(name) for name in concept.yes], column] = 1
        answers[[GARMENTS.index(name) for name in concept.unknown], column] = np.nan
    return answers[garment]


def load_arrays() -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
    """Read the bundled file.

    Returns images (n, 28, 28) in [0, 255], garment (n,) in 0..9, and index (n,) in 0..9999: the
    position in the original test set.
    """
    with np.load(DATA_FILE, allow_pickle=False) as stored:
        return stored["images"], stored["garment"], stored["index"]


def fashion() -> TableDataset:
    """Read the bundled long-tailed set: 2,000 images, 14 concepts, answers 0, 1 or NaN (unknown).

    Sample ids are `test-` and the five-digit position in the original test set. The metadata
    has one column, `garment`: the garment's name.
    """
    images, garment, index = load_arrays()
    ids = pd.Index([f"test-{position:05d}" for position in index], name="sample_id")
    labels = pd.DataFrame(concept_answers(garment), index=ids, columns=list(CONCEPT_NAMES))
    metadata = pd.DataFrame({"garment": [GARMENTS[number] for number in garment]}, index=ids)
    return from_table(list(images), labels, metadata=metadata, name="fashion-mnist-longtail")
