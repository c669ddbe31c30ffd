"""A small net taught with the audit's own labelled source images, to be used as a proxy.

It is asked about follow-ups in place of the model under test, for nothing: what confuses it often
confuses the model, too. The images are dealt into FOLDS parts, and a follow-up is answered by the
net that saw no image of its source's part, since a net is sure of what it has learnt by heart.
The nets are one hidden layer wide and learn side by side, each with its own part's loss masked. All
of it is done TEAMS times where images are small, with other parts and batches, and the answers are
averaged: that says better what is hard than one net does.

Everything follows from images, labels and seed. The net never hears of questions, answers or
draws, so it cannot know the draws to come.
"""

import hashlib
import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...datasets.base import Dataset
from ...errors import InputError
from ...types import UNKNOWN, Answer, Bools, Floats, Indices, JsonObject, Prompt, Truths, Unanswered
from ...utils.random_streams import generator
from ..base import ModelDefaults
from ..checking import image_of
from .tensors import fitted, small

MEMORY = (0.9, 0.99)
"""Share of its mean and mean square of gradients that Adam keeps in each step."""


Pictures = npt.NDArray[np.uint8]

SIDE = 16
"""Images are shrunk to at most SIDE pixels high and wide."""
FOLDS, TEAMS = 5, 3
WORK = 768
"""Teams times numbers in a small image, at most, which bounds the seconds before the first call:
one team learns from 16 x 16 pixels in colour, three from as many in grey. One alone predicts as
well on average, and differs more from seed to seed."""
HIDDEN = 128
STEPS, BATCH = 300, 64
"""Gradient steps, and images in each: nets that learn longer predict less of another's errors."""
RATE = 5e-3
"""The highest learning rate; it rises for three tenths of the steps, then falls to 0."""
MAX = 5_000
"""Images that are learnt from, at most: random ones where there are more."""
FEWEST = 30
"""Labels of a concept needed on each side; of others the net says .5."""
UNSURE = 0.5


class Nets(NamedTuple):
    """FOLDS nets side by side: F folds, d pixels, h hidden, C concepts; and pixels' mean (d,)."""

    centre: Tensor
    into: Tensor  # d x (F h)
    bias: Tensor  # F x 1 x h
    out: Tensor  # F x h x C
    level: Tensor  # F x 1 x C

    def scaled(self, pixels: Tensor) -> Tensor:
        """Return pixels n x d in [0, 255] as the nets read them."""
        return (pixels - self.centre) / 255

    def logits_of(self, fold: int, scaled: Tensor) -> Tensor:
        """Return n x C for scaled pixels n x d, by the net of one fold alone."""
        into = self.into.chunk(len(self.bias), 1)[fold]
        inner = torch.addmm(self.bias[fold, 0], scaled, into).relu_()
        return torch.addmm(self.level[fold, 0], inner, self.out[fold])


class SelfTaught(ModelDefaults):
    """Answers every concept of a follow-up by small nets; ``SelfTaught.of`` teaches them.

    Args:
        concepts: Their names, C of them.
        shape: Height, width and channels of what the nets see.
        teams: Each FOLDS nets, and (N,) which of them answers for each sample.
        known: (C,), the concepts with enough labels.
        ids: The samples that the nets learnt from, by name.
    """

    answers = "all"
    name = "self-taught"
    version = "2"
    """To be raised whenever the same images would teach other nets."""

    def __init__(
        self,
        concepts: Sequence[str],
        shape: tuple[int, int, int],
        teams: Sequence[tuple[Nets, Indices]],
        known: Bools,
        ids: dict[str, int],
    ) -> None:
        self.concepts, self.shape = tuple(concepts), shape
        self._teams, self._known, self._ids = tuple(teams), known, ids
        self.seconds = 0.0
        if len(teams) < TEAMS:
            self.version = f"{self.version}, teams: {len(teams)}"

    def __str__(self) -> str:
        known = int(self._known.sum())
        return (
            f"self-taught proxy: learnt {known} concept{'s' * (known != 1)} from {len(self._ids)} "
            f"source images in {self.seconds:.1f} s"
        )

    def describe(self) -> JsonObject:
        """Return facts for the journal: how much it learnt from, and a hash of the weights."""
        return {"version": self.version, "images": len(self._ids), "weights": self.content()}

    @classmethod
    def of(cls, dataset: Dataset, *, seed: int | str = 0, side: int = SIDE) -> Self:
        """Teach with the dataset's images and truths; unknown truths are left out.

        Raises InputError for a dataset that is not ``teachable``.
        """
        if not teachable(dataset):
            got = "fewer labels" if dataset.has_images else "no images"
            expected = f"expected images, and a concept with {FEWEST} labels on each side"
            raise InputError(f"self-taught proxy: {expected}, got {dataset.name!r} with {got}")
        begun = time.monotonic()
        rng = generator(seed, "self-taught")
        samples, truths = dataset.reference(MAX, rng)
        shape = small(dataset.sample(0).require_image(), side)
        images = (dataset.sample(i).require_image() for i in samples.tolist())
        pictures = np.stack([fitted(image, *shape) for image in images])
        teams = []
        for _ in range(max(1, min(TEAMS, WORK // pictures[0].size))):
            fold = np.zeros(len(dataset), np.int64)  # those not learnt from: any net will do
            fold[samples] = rng.permutation(len(samples)) % FOLDS
            teams.append((_taught(pictures, truths, fold[samples], rng), fold))
        ids = {dataset.sample_id(i): i for i in samples.tolist()}
        taught = cls(dataset.concepts, shape, teams, _enough(dataset), ids)
        taught.seconds = time.monotonic() - begun
        return taught

    @torch.no_grad()
    def predict(self, pictures: Pictures, samples: Indices) -> Floats:
        """Return P(yes) n x C of follow-ups n x H x W x ch, in ``shape``, of samples (n,)."""
        scaled = self._teams[0][0].scaled(_pixels(pictures))  # all teams learnt the same images
        likely = torch.zeros(len(samples), len(self.concepts), dtype=torch.float64)
        for nets, fold in self._teams:
            folds = fold[samples]
            for number in np.unique(folds).tolist():
                mine = torch.from_numpy(np.flatnonzero(folds == number))
                likely.index_add_(0, mine, nets.logits_of(number, scaled[mine]).sigmoid_().double())
        return np.where(self._known, likely.numpy() / len(self._teams), UNSURE)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return P(yes) of each prompt's concepts; raise InputError for a prompt without image."""
        if not prompts:
            return []
        # of a sample not learnt from any net says what it says of the first
        samples = np.array([self._ids.get(p.sample_id, 0) for p in prompts])
        images = (image_of(prompt, "self-taught proxy") for prompt in prompts)
        likely = self.predict(np.stack([fitted(image, *self.shape) for image in images]), samples)
        places = [[self.concepts.index(c) for c in p.concepts] for p in prompts]
        return [Answer(tuple(row[p].tolist())) for row, p in zip(likely, places, strict=True)]

    def content(self) -> str:
        """Return a hash of the weights."""
        digest = hashlib.blake2b(digest_size=16)
        for weights in itertools.chain(*(nets for nets, _ in self._teams)):
            digest.update(weights.numpy().tobytes())
        return digest.hexdigest()


def teachable(dataset: Dataset) -> bool:
    """Return whether there are images, and a concept with FEWEST labels on each side."""
    return dataset.has_images and bool(_enough(dataset).any())


def _enough(dataset: Dataset) -> Bools:
    """Return (C,): which concepts have FEWEST labels on each side."""
    return np.asarray(dataset.counts).min(axis=1) >= FEWEST


def _pixels(pictures: Pictures) -> Tensor:
    return torch.from_numpy(pictures.reshape(len(pictures), -1)).float()


@torch.no_grad()
def _taught(pictures: Pictures, truths: Truths, fold: Indices, rng: np.random.Generator) -> Nets:
    """Return the nets after STEPS steps; ``truths`` n x C, ``fold`` (n,): the net not to see it."""
    pixels, labels = _pixels(pictures), torch.from_numpy(truths).float()
    unseen = torch.arange(FOLDS)[:, None] != torch.from_numpy(fold)
    counts = unseen[:, :, None] * (labels != UNKNOWN) / BATCH
    nets = _untaught(pixels, labels.shape[1], rng)
    scaled, labels = nets.scaled(pixels), labels.clamp(min=0)
    sizes = [weight.numel() for weight in nets[1:]]
    weights = torch.cat([weight.reshape(-1) for weight in nets[1:]])
    gradient, mean, square = (torch.zeros_like(weights) for _ in range(3))

    def parts(flat: Tensor) -> list[Tensor]:
        return [p.view(w.shape) for p, w in zip(torch.split(flat, sizes), nets[1:], strict=True)]

    nets, slopes = Nets(nets.centre, *parts(weights)), Nets(nets.centre, *parts(gradient))
    for step in range(1, STEPS + 1):
        batch = torch.from_numpy(rng.integers(len(pixels), size=BATCH))
        seen = scaled[batch]
        inner = torch.addmm(nets.bias.view(1, -1), seen, nets.into).relu_()
        hidden = inner.view(BATCH, FOLDS, HIDDEN).transpose(0, 1)
        # backpropagation by hand: through autograd a step takes twice as long
        likely = torch.baddbmm(nets.level, hidden, nets.out).sigmoid_()
        error = (likely - labels[batch]) * counts[:, batch]
        torch.sum(error, 1, keepdim=True, out=slopes.level)
        torch.bmm(hidden.mT, error, out=slopes.out)
        back = (error @ nets.out.mT).transpose(0, 1).reshape(BATCH, -1) * (inner > 0)
        torch.sum(back, 0, out=slopes.bias.view(-1))
        torch.mm(seen.mT, back, out=slopes.into)
        rate = RATE * min(step / STEPS / 0.3, (1 - step / STEPS) / 0.7)
        # Adam (Kingma and Ba, ICLR 2015): the first use of torch.optim takes two seconds
        mean.lerp_(gradient, 1 - MEMORY[0])
        square.mul_(MEMORY[1]).addcmul_(gradient, gradient, value=1 - MEMORY[1])
        root = (1 - MEMORY[1] ** step) ** 0.5
        size = -rate * root / (1 - MEMORY[0] ** step)
        weights.addcdiv_(mean, square.sqrt().add_(1e-8 * root), value=size)
    return nets


def _untaught(pixels: Tensor, concepts: int, rng: np.random.Generator) -> Nets:
    width = pixels.shape[1]

    def random(*shape: int, fan: int) -> Tensor:
        return torch.from_numpy(rng.uniform(-1, 1, shape) / np.sqrt(fan)).float()

    into, bias = random(width, FOLDS * HIDDEN, fan=width), random(FOLDS, 1, HIDDEN, fan=width)
    out = random(FOLDS, HIDDEN, concepts, fan=HIDDEN)
    return Nets(pixels.mean(0), into, bias, out, torch.zeros(FOLDS, 1, concepts))
