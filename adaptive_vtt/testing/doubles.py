"""Deterministic doubles, for this package's tests and for tests of your own plug-ins."""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..datasets.base import DatasetDefaults
from ..datasets.table import TableDataset, from_table
from ..errors import unknown
from ..models.base import ModelDefaults
from ..types import Answer, CallMode, Indices, Prompt, Sample, Truths, Unanswered
from ..utils.random_streams import generator


def tiny_dataset(
    samples: int = 12, concepts: int = 3, *, images: bool = True, seed: int = 0
) -> TableDataset:
    """A few random 16 x 16 colour images with random truths, every concept on both sides."""
    rng = generator(seed, "tiny dataset")
    labels = (rng.random((samples, concepts)) < 0.4).astype(int)
    labels[0], labels[1] = 0, 1
    table = pd.DataFrame(
        labels,
        index=[f"s{i}" for i in range(samples)],
        columns=[f"c{i}" for i in range(concepts)],
    )
    pictures = rng.integers(0, 256, (samples, 16, 16, 3), dtype=np.uint8) if images else None
    return from_table(pictures, table, name="tiny")


class TiledDataset(DatasetDefaults):
    """A table of truths repeated until there are ``samples`` of them; costs no memory.

    For trials of scale: 10^9 samples are as quick to make as 10. It has no images.
    """

    has_images = False

    def __init__(self, truths: npt.ArrayLike, samples: int, name: str = "tiled") -> None:
        self.name = name
        self._tile: Truths = np.asarray(truths, np.int8)
        self._samples = samples
        self.concepts = tuple(f"c{i}" for i in range(self._tile.shape[1]))
        whole, rest = divmod(samples, len(self._tile))
        sides = [self._tile == side for side in (0, 1)]
        self.counts = np.stack([whole * s.sum(axis=0) + s[:rest].sum(axis=0) for s in sides], 1)

    def __len__(self) -> int:
        return self._samples

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(self._tile.tobytes() + str(self._samples).encode()).hexdigest()[:24]

    def sample(self, index: int) -> Sample:
        row = self._tile[index % len(self._tile)]
        truth = {c: int(v) for c, v in zip(self.concepts, row, strict=True) if v >= 0}
        return Sample(self.sample_id(index), None, truth)

    def sample_id(self, index: int) -> str:
        return f"t{index}"

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self._tile[samples % len(self._tile), concepts]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        places = np.flatnonzero(self._tile[:, concept] == side)
        tile, place = np.divmod(ranks, len(places))
        return tile * len(self._tile) + places[place]

    @property
    def profile(self) -> tuple[Truths, Indices]:
        whole, rest = divmod(self._samples, len(self._tile))
        return self._tile, np.where(np.arange(len(self._tile)) < rest, whole + 1, whole)

    def profile_row(self, samples: Indices) -> Indices:
        return samples % len(self._tile)

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        raise unknown("metadata column", column, [], f"dataset {self.name!r}")

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        count = min(most, self._samples, len(self._tile))
        return np.arange(count), self._tile[:count]


class ScriptedModel(ModelDefaults):
    """Answers by a fixed rule of (seed, image, concept), and counts what it is asked.

    Answers are uniform in [0, 1]; every answered call costs 1, a refused one 0.5.
    ``refuse``: share of calls that come back Unanswered. ``asked`` lists (sample, relation,
    severity, concepts) in order, so that tests can see anything paid for twice.
    """

    needs_image = False
    most_cost = 1.0

    def __init__(self, *, answers: CallMode = "all", seed: int = 0, refuse: float = 0.0) -> None:
        self.answers = answers
        self.name = "scripted"
        self.asked: list[tuple[str, str, int, tuple[str, ...]]] = []
        self._seed = seed
        self._refuse = refuse

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(p) for p in prompts]

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        key = f"{prompt.sample_id}/{prompt.relation}/{prompt.severity}"
        self.asked.append((prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts))
        refusal = generator(self._seed, f"refuse/{key}/{'/'.join(prompt.concepts)}")
        if refusal.random() < self._refuse:
            return Unanswered("refused", cost=0.5)
        values = [generator(self._seed, f"{key}/{c}").random() for c in prompt.concepts]
        return Answer(tuple(values), cost=1.0)
