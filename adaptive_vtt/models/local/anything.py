"""A model of whatever may stand for one."""

from ...errors import InputError
from ...utils.lazy import is_table
from ..base import ModelSource, ModelUnderTest
from .loading import as_model, load


def model_of(source: ModelSource) -> ModelUnderTest:
    """An object with ``ask`` is a model; a torch module (images -> logits) and any other callable
    (list of images -> n x C of P(yes), or n names of classes) are wrapped; a DataFrame holds
    recorded answers; a text names any of these, ``file.py:name`` or ``package.module:name``.

    Raises InputError for anything else, a class among it: a model is made of that first.
    """
    if isinstance(source, str):
        return load(source)
    if is_table(source):
        from .recorded import Recorded

        return Recorded(source)
    if isinstance(source, type):
        made = f"{source.__name__}(...)"
        raise InputError(f"model: expected a model, got a class; give one made of it, {made}")
    name = getattr(source, "__name__", type(source).__name__)
    return as_model(source, str(name))
