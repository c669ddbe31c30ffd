"""Small networks trained on the audit's labelled source images, as a free proxy of the model.

Follow-ups that confuse such a network often confuse the model under test, too. Cross-fitting: the
source images are split into FOLDS folds, with one network for each. It is trained on the other
folds, and answers about follow-ups of its fold, since a network is too sure about images that it
was trained on. The networks have one hidden layer; they are trained together, each with the loss
of its fold masked. If images are small, the whole is repeated TEAMS times with other folds and
batches, and P(yes) is averaged, which predicts difficulty better than one network.

The networks depend on images, labels and the seed alone, not on questions, answers or draws. So
they carry no information about future draws.
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
"""Decay rates of Adam's moving averages, of gradients and of their squares."""


Pictures = npt.NDArray[np.uint8]

SIDE = 16
"""Maximum height and width of images after shrinking."""
FOLDS, TEAMS = 5, 3
"""Number of folds, and maximum number of teams: a team is one network per fold."""
WORK = 768
"""Maximum of teams times numbers in a shrunk image, which bounds the seconds of training: one team
for 16 x 16 pixels in colour, three for as many in grey. One team predicts as well on average, but
varies more between seeds."""
HIDDEN = 128
"""Number of hidden units of a network."""
STEPS, BATCH = 300, 64
"""Gradient steps, and images in each. Longer training predicts fewer errors of another model."""
RATE = 5e-3
"""Highest learning rate; it rises linearly for 30 % of the steps, then falls linearly to 0."""
MAX = 5_000
"""Maximum number of images for training, which are drawn at random if there are more."""
FEWEST = 30
"""Minimum number of images with, and without, a concept; P(yes) of other concepts is UNSURE."""
UNSURE = 0.5


class Nets(NamedTuple):
    """The networks of a team: F folds, d pixels, h hidden units, C concepts."""

    centre: Tensor
    """(d,): mean pixels of the training images."""
    into: Tensor
    """d x (F h): weights of the hidden layer."""
    bias: Tensor
    """F x 1 x h: biases of the hidden layer."""
    out: Tensor
    """F x h x C: weights of the output layer."""
    level: Tensor
    """F x 1 x C: biases of the output layer."""

    def scaled(self, pixels: Tensor) -> Tensor:
        """Return pixels n x d in [0, 255] as input of the networks."""
        return (pixels - self.centre) / 255

    def logits_of(self, fold: int, scaled: Tensor) -> Tensor:
        """Return logits n x C of the network of one fold, for scaled pixels n x d."""
        into = self.into.chunk(len(self.bias), 1)[fold]
        hidden = torch.addmm(self.bias[fold, 0], scaled, into).relu_()
        return torch.addmm(self.level[fold, 0], hidden, self.out[fold])


class SelfTaught(ModelDefaults):
    """A proxy that answers by small networks; ``SelfTaught.of`` trains them.

    Args:
        concepts: Names of the C concepts.
        shape: Height, width and channels of shrunk images.
        teams: The networks of each team, and the fold, (N,), of each of the N samples.
        known: (C,) of bool: the concepts with enough labels.
        ids: Name -> index of the samples in the training data.
    """

    answers = "all"
    name = "self-taught"
    version = "2"
    """Version of the training, to be raised whenever the same images would give other networks."""

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
        """Return facts for the journal: version, number of training images, hash of the weights."""
        return {"version": self.version, "images": len(self._ids), "weights": self.content()}

    @classmethod
    def of(cls, dataset: Dataset, *, seed: int | str = 0) -> Self:
        """Train networks on the images and truths of a dataset.

        Args:
            dataset: The dataset; unknown truths do not count.
            seed: Seed of folds, batches and initial weights.

        Raises:
            InputError: The dataset is not ``teachable``.
        """
        if not teachable(dataset):
            got = "fewer labels" if dataset.has_images else "no images"
            expected = f"expected images, and a concept with {FEWEST} labels on each side"
            raise InputError(f"self-taught proxy: {expected}, got {dataset.name!r} with {got}")
        began = time.monotonic()
        rng = generator(seed, "self-taught")
        samples, truths = dataset.reference(MAX, rng)
        shape = small(dataset.sample(0).require_image(), SIDE)
        images = (dataset.sample(i).require_image() for i in samples.tolist())
        pictures = np.stack([fitted(image, *shape) for image in images])
        teams = []
        for _ in range(max(1, min(TEAMS, WORK // pictures[0].size))):
            fold = np.zeros(len(dataset), np.int64)  # images outside the training data: fold 0
            fold[samples] = rng.permutation(len(samples)) % FOLDS
            teams.append((_trained(pictures, truths, fold[samples], rng), fold))
        ids = {dataset.sample_id(i): i for i in samples.tolist()}
        proxy = cls(dataset.concepts, shape, teams, _enough(dataset), ids)
        proxy.seconds = time.monotonic() - began
        return proxy

    @torch.no_grad()
    def predict(self, pictures: Pictures, samples: Indices) -> Floats:
        """Return P(yes), n x C, of follow-ups.

        Args:
            pictures: The follow-ups, n x H x W x ch, shrunk to ``shape``.
            samples: (n,), the indices of their source images.
        """
        scaled = self._teams[0][0].scaled(_pixels(pictures))  # all teams share the mean pixels
        total = torch.zeros(len(samples), len(self.concepts), dtype=torch.float64)
        for nets, fold in self._teams:
            folds = fold[samples]
            for number in np.unique(folds).tolist():
                rows = torch.from_numpy(np.flatnonzero(folds == number))
                total.index_add_(0, rows, nets.logits_of(number, scaled[rows]).sigmoid_().double())
        return np.where(self._known, total.numpy() / len(self._teams), UNSURE)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return P(yes) of each prompt's concepts; raise InputError for a prompt without image."""
        if not prompts:
            return []
        # a sample outside the training data is in no fold: any network may answer
        samples = np.array([self._ids.get(p.sample_id, 0) for p in prompts])
        images = (image_of(prompt, "self-taught proxy") for prompt in prompts)
        p_yes = self.predict(np.stack([fitted(image, *self.shape) for image in images]), samples)
        places = [[self.concepts.index(c) for c in p.concepts] for p in prompts]
        return [Answer(tuple(row[p].tolist())) for row, p in zip(p_yes, places, strict=True)]

    def content(self) -> str:
        """Return a hash of the weights."""
        digest = hashlib.blake2b(digest_size=16)
        for weights in itertools.chain(*(nets for nets, _ in self._teams)):
            digest.update(weights.numpy().tobytes())
        return digest.hexdigest()


def teachable(dataset: Dataset) -> bool:
    """Return whether there are images, and a concept with enough labels."""
    return dataset.has_images and bool(_enough(dataset).any())


def _enough(dataset: Dataset) -> Bools:
    """Return the concepts, (C,) of bool, with FEWEST images with and without them."""
    return np.asarray(dataset.counts).min(axis=1) >= FEWEST


def _pixels(pictures: Pictures) -> Tensor:
    return torch.from_numpy(pictures.reshape(len(pictures), -1)).float()


@torch.no_grad()
def _trained(pictures: Pictures, truths: Truths, fold: Indices, rng: np.random.Generator) -> Nets:
    """Train the networks of one team by STEPS steps of Adam on the binary cross-entropy.

    Args:
        pictures: n shrunk images.
        truths: n x C of 0, 1 or UNKNOWN.
        fold: (n,), the fold of each image, whose network is not trained on it.
        rng: Source of batches and initial weights.
    """
    pixels, labels = _pixels(pictures), torch.from_numpy(truths).float()
    # the weight of each label (F x n x C): 0 where it is unknown, or in the network's own fold
    in_training = torch.arange(FOLDS)[:, None] != torch.from_numpy(fold)
    weight_of_loss = in_training[:, :, None] * (labels != UNKNOWN) / BATCH
    nets = _untrained(pixels, labels.shape[1], rng)
    scaled, labels = nets.scaled(pixels), labels.clamp(min=0)
    # weights, gradient and moving averages of all layers are flat, for one step of Adam at once
    sizes = [weight.numel() for weight in nets[1:]]
    weights = torch.cat([weight.reshape(-1) for weight in nets[1:]])
    gradient, mean, square = (torch.zeros_like(weights) for _ in range(3))

    def layers(flat: Tensor) -> list[Tensor]:
        """Return views of a flat tensor in the shapes of the layers."""
        return [p.view(w.shape) for p, w in zip(torch.split(flat, sizes), nets[1:], strict=True)]

    # changed in place, the flat tensors change these layers
    nets, gradients = Nets(nets.centre, *layers(weights)), Nets(nets.centre, *layers(gradient))
    for step in range(1, STEPS + 1):
        batch = torch.from_numpy(rng.integers(len(pixels), size=BATCH))
        inputs = scaled[batch]
        # all folds' hidden units in one product
        hidden = torch.addmm(nets.bias.view(1, -1), inputs, nets.into).relu_()
        by_fold = hidden.view(BATCH, FOLDS, HIDDEN).transpose(0, 1)
        # Backpropagation by hand: through autograd a step takes twice as long. The derivative of
        # the cross-entropy by a logit is P(yes) - label; that of ReLU is 1 where it is above 0.
        p_yes = torch.baddbmm(nets.level, by_fold, nets.out).sigmoid_()
        error = (p_yes - labels[batch]) * weight_of_loss[:, batch]
        torch.sum(error, 1, keepdim=True, out=gradients.level)
        torch.bmm(by_fold.mT, error, out=gradients.out)
        back = (error @ nets.out.mT).transpose(0, 1).reshape(BATCH, -1) * (hidden > 0)
        torch.sum(back, 0, out=gradients.bias.view(-1))
        torch.mm(inputs.mT, back, out=gradients.into)
        # linear warm-up and decay (RATE)
        rate = RATE * min(step / STEPS / 0.3, (1 - step / STEPS) / 0.7)
        # Adam (Kingma and Ba, ICLR 2015, section 2), as the first use of torch.optim takes two
        # seconds
        mean.lerp_(gradient, 1 - MEMORY[0])
        square.mul_(MEMORY[1]).addcmul_(gradient, gradient, value=1 - MEMORY[1])
        root = (1 - MEMORY[1] ** step) ** 0.5
        size = -rate * root / (1 - MEMORY[0] ** step)
        weights.addcdiv_(mean, square.sqrt().add_(1e-8 * root), value=size)
    return nets


def _untrained(pixels: Tensor, concepts: int, rng: np.random.Generator) -> Nets:
    """Return networks with random weights, and the mean pixels of the training images."""
    width = pixels.shape[1]

    def random(*shape: int, fan: int) -> Tensor:
        return torch.from_numpy(rng.uniform(-1, 1, shape) / np.sqrt(fan)).float()

    into, bias = random(width, FOLDS * HIDDEN, fan=width), random(FOLDS, 1, HIDDEN, fan=width)
    out = random(FOLDS, HIDDEN, concepts, fan=HIDDEN)
    return Nets(pixels.mean(0), into, bias, out, torch.zeros(FOLDS, 1, concepts))
