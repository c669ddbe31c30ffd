"""How predictable a question's answer is, given what was answered about the same image.

Source: Geman, Geman, Hallonquist & Younes, Visual Turing test for computer vision systems
(PNAS 112:3618, 2015), as used by Concept-centric VTT, section 2.2: p(yes | history) is the
fraction of reference samples that agree with the history and have the concept.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.types import UNKNOWN, Floats, Indices, Truths

from .base import History

DIRECT = 2**20
"""Image number up to which rows are looked up in an array (16 MB at most), which is faster than a
search; higher numbers are searched for."""


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
        history: History = "truth",
        prior: float = 0.0,
        leave_one_out: bool = True,
    ) -> None:
        self.history = history
        self.prior = prior
        self.leave_one_out = leave_one_out
        self._samples = samples
        known = (truths != UNKNOWN).astype(np.float64)
        # which samples have a concept, and which lack it: C x m bits
        self._yes = np.packbits(truths.T == 1, axis=1)
        self._no = np.packbits(truths.T == 0, axis=1)
        # side by side, so that one product counts both
        self._yes_known = np.concatenate([(truths == 1).astype(np.float64), known], axis=1)
        half = np.full(truths.shape[1], 0.5)
        self.prevalence = self._share(self._yes_known.sum(axis=0), half)
        # one bit per sample: of everything an audit keeps per image, this would be the most
        self._matches: dict[int, npt.NDArray[np.uint8]] = {}
        # row 0 of the table is the prevalence; every image asked about has a row of its own
        self._rows = _Rows()
        self._table = self.prevalence[None, :].repeat(64, axis=0)

    def observe(self, image: int, sample: int, concept: int, truth: int, answer: float) -> None:
        """One answered question about ``image``, made from ``sample``; ``answer`` is P(yes)."""
        said = truth if self.history == "truth" else int(answer >= 0.5)
        row = self._rows[image] or self._add(image, sample)
        matches = self._matches[image]
        matches &= (self._yes if said == 1 else self._no)[concept]
        among = np.unpackbits(matches, count=len(self._samples)).astype(np.float64)
        self._table[row] = self._share(among @ self._yes_known, self.prevalence)

    def probability(self, image: Tensor, concept: Tensor) -> Tensor:
        """p(yes) (n,) for n (image, concept) pairs."""
        rows = self._rows.of(image.cpu().numpy())
        # one flat index is twice as fast as two
        places = rows * self._table.shape[1] + concept.cpu().numpy()
        return torch.from_numpy(self._table.ravel().take(places)).to(image.device)

    def _add(self, image: int, sample: int) -> int:
        """A row for an image not asked about before, matching every sample but its own."""
        matches = np.ones(len(self._samples), bool)
        own = int(np.searchsorted(self._samples, sample))
        if self.leave_one_out and own < len(matches) and self._samples[own] == sample:
            matches[own] = False
        self._matches[image] = np.packbits(matches)
        row = self._rows.add(image)
        if row >= len(self._table):
            self._table = np.concatenate([self._table, np.empty_like(self._table)])
        return row

    def _share(self, counts: Floats, otherwise: Floats) -> Floats:
        """(yes + alpha) / (known + 2 alpha) (C,) of 2C counts; ``otherwise`` for 0 / 0."""
        yes, size = counts[: len(otherwise)], counts[len(otherwise) :]
        if self.prior:
            yes, size = yes + self.prior, size + 2 * self.prior
        return np.divide(yes, size, out=otherwise.copy(), where=size > 0)


class _Rows:
    """The row of a table that belongs to an image: 1, 2, ... in order of arrival, 0 for none."""

    def __init__(self) -> None:
        self._row: dict[int, int] = {}
        # looked up directly while numbers are low; the last place is no image's
        self._direct = np.zeros(64, np.int64)
        self._highest = -1
        self._sorted: tuple[Indices, Indices] | None = None

    def __len__(self) -> int:
        return len(self._row)

    def __getitem__(self, image: int) -> int:
        return self._row.get(image, 0)

    def add(self, image: int) -> int:
        """A row for a new image."""
        row = self._row[image] = len(self._row) + 1
        self._sorted = None
        self._highest = max(self._highest, image)
        if self._highest < DIRECT:
            missing = self._highest + 2 - len(self._direct)
            if missing > 0:
                self._direct = np.pad(self._direct, (0, max(missing, len(self._direct))))
            self._direct[image] = row
        return row

    def of(self, images: Indices) -> Indices:
        """Rows (n,) of images (n,)."""
        if self._highest < DIRECT:
            return self._direct.take(images, mode="clip")
        if self._sorted is None:
            asked = np.fromiter(self._row, np.int64, len(self._row))
            order = np.argsort(asked)
            self._sorted = asked[order], order + 1
        asked, rows = self._sorted
        place = np.searchsorted(asked, images).clip(max=len(asked) - 1)
        return np.where(asked[place] == images, rows[place], 0)
