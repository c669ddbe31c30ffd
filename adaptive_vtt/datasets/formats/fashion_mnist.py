"""The bundled example: 2,000 test images of Fashion-MNIST with a long-tailed choice of garments.

Images are grey, 28 x 28, uint8. Each shows one garment, from which the truths of all 14 concepts
follow by `CONCEPTS`; the training of the bundled model uses the same table.
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
    """A concept: the garments that have it, and those for which it is unknown; others lack it."""

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
    """Return truths, n x 14 of 0, 1 or NaN (unknown), for the numbers of garments, (n,) of 0..9."""
    answers = np.zeros((len(GARMENTS), len(CONCEPTS)), np.float32)
    for column, concept in enumerate(CONCEPTS):
        answers[[GARMENTS.index(name) for name in concept.yes], column] = 1
        answers[[GARMENTS.index(name) for name in concept.unknown], column] = np.nan
    return answers[garment]


def load_arrays() -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
    """Read the bundled file.

    Returns:
        Images, n x 28 x 28 in [0, 255]; numbers of garments, (n,) of 0..9; and positions in the
        original test set, (n,) of 0..9999.
    """
    with np.load(DATA_FILE, allow_pickle=False) as stored:
        return stored["images"], stored["garment"], stored["index"]


def fashion() -> TableDataset:
    """Read the bundled example: 2,000 images with 14 concepts.

    Sample ids are "test-" and the five-digit position in the original test set. The only column of
    metadata is ``garment``, the garment's name.

    Returns:
        The dataset.
    """
    images, garment, index = load_arrays()
    ids = pd.Index([f"test-{position:05d}" for position in index], name="sample_id")
    labels = pd.DataFrame(concept_answers(garment), index=ids, columns=list(CONCEPT_NAMES))
    metadata = pd.DataFrame({"garment": [GARMENTS[number] for number in garment]}, index=ids)
    return from_table(list(images), labels, metadata=metadata, name="fashion-mnist-longtail")
