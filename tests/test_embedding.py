"""The optional embedding: what it gives, and what it says where it is missing."""

import sys

import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.surrogates import embed
from adaptive_vtt.testing import tiny_dataset


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(InputError, match=r"pip install 'efficientnet-lite-pytorch>="):
        embed(tiny_dataset())


def test_a_dataset_without_images_is_refused() -> None:
    with pytest.raises(InputError, match="expected images, but dataset 'tiny' has none"):
        embed(tiny_dataset(images=False))


def test_features_are_pooled_and_tell_images_apart() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    dataset = tiny_dataset(5)
    features = embed(dataset, batch=2)
    assert features.shape == (5, 1280)
    assert np.isfinite(features).all()
    assert np.ptp(features, axis=0).max() > 0.05
    assert embed(dataset, batch=5) == pytest.approx(features, abs=1e-4)
