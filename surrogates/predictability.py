"""Predictability of a question's answer, given earlier answers about the same image.

Source: Geman, Geman, Hallonquist & Younes, Visual Turing test for computer vision systems (PNAS
112:3618, 2015), as used by Concept-centric VTT, section 2.2. Of the reference samples that agree
with the history, p(yes | history) is the fraction that have the concept.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.types import UNKNOWN, Floats, Indices, Truths

from .base import History


class Predictability:
    """p(yes) per (image, concept), counted over m reference samples.

    The image's own sample never matches, since it would reveal the answer. Before any answer about
    an image, and where no sample matches, p is the prevalence.

    Args:
        samples: (m,) numbers of the reference samples, ascending.
        truths: (m, C) their truths.
        history: "truth" if a sample matches where it agrees with the true answers (Geman et al.),
            "answer" if with the model's (the paper's notation p(f(q) = Yes | H)).
    """

    def __init__(self, samples: Indices, truths: Truths, *, history: History = "truth") -> None:
        self.history = history
        self._samples = samples
        known = (truths != UNKNOWN).astype(np.float64)
        # samples that have a concept, and samples that lack it: C x m bits
        self._yes = np.packbits(truths.T == 1, axis=1)
        self._no = np.packbits(truths.T == 0, axis=1)
        # in one matrix, so that one product counts both
        self._yes_known = np.concatenate([(truths == 1).astype(np.float64), known], axis=1)
        half = np.full(truths.shape[1], 0.5)
        self.prevalence = self._share(self._yes_known.sum(axis=0), half)
        # one bit per sample, since nothing else takes as much memory per image
        self._matches: dict[int, npt.NDArray[np.uint8]] = {}
        # images asked about, ascending, with a row of p each; the last row is for other images
        self._images = np.zeros(0, np.int64)
        self._table = self.prevalence[None, :]

    def observe(self, image: int, sample: int, concept: int, truth: int, answer: float) -> None:
        """Learn one answer.

        Args:
            image: Number of the image.
            sample: Number of the sample that it was made from.
            concept: Number of the concept asked about.
            truth: The true answer, 0 or 1.
            answer: The model's P(yes).
        """
        side = truth if self.history == "truth" else int(answer >= 0.5)
        row = np.searchsorted(self._images, image)
        if image not in self._matches:
            matching = np.ones(len(self._samples), bool)
            own = int(np.searchsorted(self._samples, sample))
            if own < len(matching) and self._samples[own] == sample:
                matching[own] = False
            self._matches[image] = np.packbits(matching)
            self._images = np.insert(self._images, row, image)
            self._table = np.insert(self._table, row, self.prevalence, axis=0)
        matches = self._matches[image]
        matches &= (self._yes if side == 1 else self._no)[concept]
        among = np.unpackbits(matches, count=len(self._samples)).astype(np.float64)
        self._table[row] = self._share(among @ self._yes_known, self.prevalence)

    def probability(self, image: Tensor, concept: Tensor) -> Tensor:
        """Return p(yes) (n,) for n (image, concept) pairs."""
        images = image.cpu().numpy()
        rows = np.searchsorted(self._images, images)
        rows[np.append(self._images, -1)[rows] != images] = len(self._images)
        # one flat index is twice as fast as two
        places = rows * self._table.shape[1] + concept.cpu().numpy()
        return torch.from_numpy(self._table.ravel().take(places)).to(image.device)

    def _share(self, counts: Floats, otherwise: Floats) -> Floats:
        """Return yes / known (C,) from 2C counts, and ``otherwise`` for 0 / 0."""
        yes, size = counts[: len(otherwise)], counts[len(otherwise) :]
        return np.divide(yes, size, out=otherwise.copy(), where=size > 0)
