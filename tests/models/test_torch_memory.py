"""Torch modules that need more memory than there is."""

import numpy as np
import pytest
import torch
from torch import nn

from adaptive_vtt.errors import ModelError
from adaptive_vtt.models import Answer, Prompt, TorchModel
from adaptive_vtt.models.checking import checked
from adaptive_vtt.utils.random_streams import generator

IMAGES = generator(0, "lines").integers(0, 256, (3, 5, 4, 3), dtype=np.uint8)
PROMPTS = [Prompt(image, ("a", "b"), f"s{i}", "identity", 0) for i, image in enumerate(IMAGES)]


class Hungry(nn.Module):
    """Means of images; out of memory for more than ``fits`` of them."""

    def __init__(self, fits):
        super().__init__()
        self.fits = fits
        self.batches: list[int] = []

    def forward(self, images):
        self.batches.append(len(images))
        if len(images) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return images.mean(dim=(2, 3))[:, :2]


def test_batches_that_do_not_fit_are_halved_for_good():
    hungry = Hungry(fits=3)
    model = TorchModel(hungry, device="cpu", batch_size=16)
    prompts = [PROMPTS[i % 3] for i in range(10)]
    answers = [a.values for a in checked(model, prompts) if isinstance(a, Answer)]
    means = IMAGES.mean((1, 2))[[i % 3 for i in range(10)], :2] / 255
    assert np.allclose(np.array(answers, float), 1 / (1 + np.exp(-means)), atol=1e-6)
    assert hungry.batches == [10, 5, 2, 2, 2, 2, 2]
    assert model.batch_size == 2


def test_one_image_that_does_not_fit_ends_the_audit():
    with pytest.raises(ModelError, match="raised OutOfMemoryError: CUDA out of memory"):
        checked(TorchModel(Hungry(fits=0), device="cpu"), PROMPTS)
