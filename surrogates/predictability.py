"""How predictable a question's answer is, given what was answered about the same image.

Source: Geman, Geman, Hallonquist & Younes, Visual Turing test for computer vision systems
(PNAS 112:3618, 2015), as used by Concept-centric VTT, section 2.2: p(yes | history) is the
fraction of reference samples that agree with the history and have the concept.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.datasets.base import UNKNOWN, Indices, Truths

Floats = npt.NDArray[np.float64]


class Predictability:
    """p(yes) per (image, concept), counted over m reference samples.

    ``samples`` (m,) ascending, and ``truths`` m x C, are the reference. ``history``: a
    sample matches where it agrees with the true answers ("truth", Geman et al.) or with
    what the model said ("answer", the paper's notation p(f(q) = Yes | H)). ``prior``:
    pseudo-count alpha, p = (yes + alpha) / (matching + 2 alpha). ``leave_one_out``: the
    image's own sample is no match, since it would give the answer away.
    Before any answer about an image, and where nothing matches, p is the prevalence.
    """

    def __init__(
        self,
        samples: Indices,
        truths: Truths,
        *,
        history: Literal["truth", "answer"] = "truth",
        prior: float = 0.0,
        leave_one_out: bool = True,
    ) -> None:
        self.history = history
        self.prior = prior
        self.leave_one_out = leave_one_out
        self._samples = samples
        self._known = (truths != UNKNOWN).astype(np.float64)
        self._yes = (truths == 1).astype(np.float64)
        self._no = (truths == 0).astype(np.float64)
        self.prevalence = self._share(self._yes.sum(axis=0), self._known.sum(axis=0), 0.5)
        self._matches: dict[int, Floats] = {}
        # row 0 of the table is the prevalence; every image asked about has a row of its own
        self._row: dict[int, int] = {}
        self._table = self.prevalence[None, :].repeat(64, axis=0)
        self._sorted: tuple[Indices, Indices] | None = None

    def observe(self, image: int, sample: int, concept: int, truth: int, answer: float) -> None:
        """One answered question about ``image``, made from ``sample``; ``answer`` is P(yes)."""
        said = truth if self.history == "truth" else int(answer >= 0.5)
        if image not in self._row:
            self._add(image, sample)
        matches = self._matches[image]
        matches *= self._yes[:, concept] if said == 1 else self._no[:, concept]
        self._table[self._row[image]] = self._share(
            matches @ self._yes, matches @ self._known, self.prevalence
        )

    def probability(self, image: Tensor, concept: Tensor) -> Tensor:
        """p(yes) (n,) for n (image, concept) pairs."""
        rows = self._rows(image.cpu().numpy())
        return torch.from_numpy(self._table[rows, concept.cpu().numpy()]).to(image.device)

    def _rows(self, images: Indices) -> Indices:
        if not self._row:
            return np.zeros_like(images)
        if self._sorted is None:
            asked = np.fromiter(self._row, np.int64, len(self._row))
            order = np.argsort(asked)
            self._sorted = asked[order], order + 1
        asked, rows = self._sorted
        place = np.searchsorted(asked, images).clip(max=len(asked) - 1)
        return np.where(asked[place] == images, rows[place], 0)

    def _add(self, image: int, sample: int) -> None:
        matches = np.ones(len(self._samples))
        own = int(np.searchsorted(self._samples, sample))
        if self.leave_one_out and own < len(matches) and self._samples[own] == sample:
            matches[own] = 0.0
        self._matches[image] = matches
        self._row[image] = len(self._row) + 1
        self._sorted = None
        if len(self._row) >= len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])

    def _share(self, yes: Floats, known: Floats, otherwise: Floats | float) -> Floats:
        size = known + 2 * self.prior
        return np.where(size > 0, (yes + self.prior) / np.where(size > 0, size, 1), otherwise)
