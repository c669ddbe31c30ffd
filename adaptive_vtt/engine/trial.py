"""A function of the user's own, tried before anything that takes long is done for its audit."""

import numpy as np

from ..errors import AvttError
from ..models.base import ModelDefaults
from ..models.checking import checked
from ..models.local.python import PythonModel, TorchModel
from ..space import QuestionSpace
from ..types import IDENTITY, Image, Prompt
from ..utils.random_streams import generator
from .judge import asks_of


def try_out(model: ModelDefaults, space: QuestionSpace) -> None:
    """Raises ModelError where a function or torch module that costs nothing cannot answer.

    It is asked about noise as large as the first source image and, since it may rightly refuse
    noise, about that image itself before it is called broken. Only the form of what it says is
    looked at, and nothing counts as a call. Any other model is left alone: asking it may cost
    money.
    """
    if not isinstance(model, PythonModel | TorchModel) or model.costs_money:
        return
    image = space.dataset.sample(0).require_image()
    noise = generator(0, "trial").integers(0, 256, image.shape, np.uint8)
    try:
        checked(model, [_prompt(space, noise)])
    except AvttError:
        checked(model, [_prompt(space, image)])


def _prompt(space: QuestionSpace, image: Image) -> Prompt:
    """What is asked about the first source image, with ``image`` in its place."""
    sample = space.dataset.sample(0)
    asks = asks_of(sample.id, sample.asks, space.asked)
    return Prompt(image, space.asked, sample.id, IDENTITY, 0, asks)
