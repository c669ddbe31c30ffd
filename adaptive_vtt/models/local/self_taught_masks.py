"""Small convolutional nets taught with the audit's own source masks, to be used as a proxy.

They learn a coarse mask, GRID x GRID shares of cells, from small pictures, LOOK pixels high and
wide. What they miss in a follow-up a segmenter often misses, too. As in ``self_taught``, images
are dealt into FOLDS parts, and the net that looks at an image and its follow-ups learnt from the
other parts alone; no net ever hears of questions, answers or draws.

One thread teaches and looks, so that results do not depend on how many there are.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, conv2d, group_norm

from ...datasets.base import Dataset
from ...errors import InputError
from ...types import Floats, Image, Indices, Mask
from ...utils.random_streams import generator
from .adam import move, risen_and_fallen
from .tensors import shrunk

Pictures = npt.NDArray[np.uint8]

LOOK, GRID = 48, 12
"""Side of what the nets see, in pixels, and of the masks they give, in cells."""
LAYERS = ((16, 2, 1), (24, 2, 1), (32, 1, 1), (32, 1, 2))
"""Channels, stride and dilation of the 3 x 3 convolutions; a 1 x 1 layer gives the concepts."""
FOLDS = 3
STEPS, BATCH = 400, 32
"""Gradient steps of each net, and images in each."""
RATE = 8e-3
"""The highest learning rate; see ``adam.risen_and_fallen``."""
MOST = 5_000
"""Images that are learnt from, at most: random ones where there are more."""
FEWEST = 30
"""Masks of a concept that are needed; of others nothing is known."""

Net = list[Tensor]
"""Kernel and offset of each layer, the first layer first."""


class Lessons(NamedTuple):
    """n source images: sample numbers (n,), looks n x LOOK x LOOK x 3, masks n x C x GRID x GRID
    in [0, 255], and which of them are given, n x C."""

    samples: Indices
    looks: Pictures
    masks: Pictures
    given: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, dataset: Dataset, concepts: Sequence[str], samples: Indices) -> Self:
        """Of those samples that have a mask of some concept."""
        looks = np.empty((len(samples), LOOK, LOOK, 3), np.uint8)
        masks = np.zeros((len(samples), len(concepts), GRID, GRID), np.uint8)
        given = np.zeros((len(samples), len(concepts)), bool)
        for row, number in enumerate(samples.tolist()):
            sample = dataset.sample(number)
            looks[row] = look(sample.require_image())
            for column, concept in enumerate(concepts):
                if (mask := sample.masks.get(concept)) is not None:
                    masks[row, column], given[row, column] = coarse(mask), True
        return cls(samples, looks, masks, given).of_rows(np.asarray(given.any(axis=1)))

    def of_rows(self, rows: npt.NDArray[np.bool_]) -> Self:
        """Some of the images alone; ``rows`` (n,)."""
        samples, looks, masks, given = self
        return type(self)(samples[rows], looks[rows], masks[rows], given[rows])


class SelfTaughtMasks:
    """Expected masks of sources and follow-ups; ``SelfTaughtMasks.of`` teaches one.

    ``fold`` (N,): which net looks for each sample. ``known`` (C,): concepts with enough masks.
    ``learnt``: images learnt from. ``lessons``: a hash of them. ``seconds``: teaching took so long.
    """

    name = "self-taught masks"
    version = "1"
    """To be raised whenever the same images and masks would teach other nets."""

    def __init__(
        self,
        nets: Sequence[Net],
        fold: Indices,
        known: npt.NDArray[np.bool_],
        *,
        learnt: int,
        lessons: str,
        seed: int | str,
    ) -> None:
        self._nets, self._fold, self.known = nets, fold, known
        self._learnt, self.lessons, self._seed = learnt, lessons, seed
        self.seconds = 0.0

    def __str__(self) -> str:
        return (
            f"self-taught proxy: learnt masks of {int(self.known.sum())} concepts from "
            f"{self._learnt} source images in {self.seconds:.1f} s"
        )

    def describe(self) -> dict[str, Any]:
        """For the journal: what it is, what it learnt from, and a hash of the weights."""
        return {
            "name": self.name,
            "version": self.version,
            "seed": self._seed,
            "images": self._learnt,
            "weights": self.content(),
        }

    @classmethod
    def of(cls, dataset: Dataset, concepts: Sequence[str], *, seed: int | str = 0) -> Self:
        """Taught with the dataset's images and masks; ``concepts`` (C,): names of masks.

        Raises InputError where ``teachable`` says no.
        """
        if not teachable(dataset, concepts, seed=seed):
            raise InputError(
                f"self-taught proxy: expected images, and a concept with {FEWEST} masks, got "
                f"dataset {dataset.name!r} with "
                + ("fewer masks" if dataset.has_images else "no images")
            )
        begun = time.monotonic()
        rng = generator(seed, "self-taught masks")
        lessons = Lessons.of(dataset, concepts, _chosen(dataset, seed))
        fold = np.zeros(len(dataset), np.int64)  # those not learnt from: any net will do
        fold[lessons.samples] = rng.permutation(len(lessons.samples)) % FOLDS
        part = fold[lessons.samples]
        with one_thread():
            nets = [_taught(lessons, part != number, rng) for number in range(FOLDS)]
        taught = cls(
            nets,
            fold,
            lessons.given.sum(axis=0) >= FEWEST,
            learnt=len(part),
            lessons=_hashed(lessons),
            seed=seed,
        )
        taught.seconds = time.monotonic() - begun
        return taught

    @torch.no_grad()
    def expected(self, sample: int, looks: Pictures) -> Floats:
        """Shares of cells n x C x GRID x GRID in [0, 1], by the net that did not learn ``sample``
        (its number), of pictures n x LOOK x LOOK x 3."""
        with one_thread():
            said = _logits(self._nets[self._fold[sample]], _pixels(looks)).sigmoid()
        return np.asarray(said.double().numpy())

    def content(self) -> str:
        """A hash of the weights."""
        return _hashed(w.numpy() for net in self._nets for w in net)


def teachable(dataset: Dataset, concepts: Sequence[str], *, seed: int | str = 0) -> bool:
    """Whether there are images, and a concept with FEWEST masks among those to be learnt from."""
    if not dataset.has_images:
        return False
    found = dict.fromkeys(concepts, 0)
    for sample in _chosen(dataset, seed).tolist():
        masks = dataset.sample(sample).masks
        found = {concept: count + (concept in masks) for concept, count in found.items()}
        if max(found.values()) >= FEWEST:
            return True
    return False


def look(image: Image) -> Pictures:
    """The image as the nets see it: LOOK x LOOK x 3."""
    return shrunk(image, (LOOK, LOOK, 3))


def coarse(mask: Mask) -> Pictures:
    """GRID x GRID shares of a mask's cells, in [0, 255]."""
    shares = cv2.resize(mask.astype(np.uint8) * 255, (GRID, GRID), interpolation=cv2.INTER_AREA)
    return np.asarray(shares, np.uint8)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes with one thread inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _chosen(dataset: Dataset, seed: int | str) -> Indices:
    return dataset.reference(MOST, generator(seed, "self-taught masks: samples"))[0]


def _hashed(arrays: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _pixels(looks: Pictures) -> Tensor:
    """n x 3 x LOOK x LOOK, in [-2, 2]."""
    return torch.from_numpy(looks).permute(0, 3, 1, 2).float() / 63.75 - 2


def _logits(net: Net, pixels: Tensor) -> Tensor:
    """n x C x GRID x GRID."""
    *inner, kernel, offset = net
    for place, (_, stride, dilation) in enumerate(LAYERS):
        weight, bias = inner[2 * place : 2 * place + 2]
        seen = conv2d(pixels, weight, None, stride, dilation, dilation)
        # of each picture by itself, so that no picture's mask depends on those beside it
        pixels = (group_norm(seen, 1) + bias[:, None, None]).relu()
    return conv2d(pixels, kernel, offset)


@torch.enable_grad()
def _taught(lessons: Lessons, mine: npt.NDArray[np.bool_], rng: np.random.Generator) -> Net:
    """One net after STEPS steps with the lessons ``mine`` (n,), flipped half of the time."""
    _, looks, masks, given = lessons.of_rows(mine)
    net = [w.requires_grad_() for w in _untaught(masks.shape[1], rng)]
    moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in net]
    for step in range(1, STEPS + 1):
        batch = rng.integers(len(looks), size=BATCH)
        sides = [axis for axis in (2, 3) if rng.random() < 0.5]
        seen = _pixels(looks[batch]).flip(sides)
        wanted = (torch.from_numpy(masks[batch]).float() / 255).flip(sides)
        known = torch.from_numpy(given[batch])[:, :, None, None].float().expand_as(wanted)
        logits = _logits(net, seen)
        loss = binary_cross_entropy_with_logits(logits, wanted, weight=known)
        rate = RATE * risen_and_fallen(step / STEPS)
        for weight, both, gradient in zip(
            net, moments, torch.autograd.grad(loss, net), strict=True
        ):
            move(weight.data, *both, gradient, step, rate)
    return [w.detach() for w in net]


def _untaught(concepts: int, rng: np.random.Generator) -> Net:
    """Small random weights."""
    net, before = [], 3
    for channels, side in (*((layer[0], 3) for layer in LAYERS), (concepts, 1)):
        reach = 1 / np.sqrt(before * side * side)
        for shape in ((channels, before, side, side), (channels,)):
            net.append(torch.from_numpy(rng.uniform(-reach, reach, shape)).float())
        before = channels
    return net
