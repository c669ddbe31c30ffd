"""What to do about answers that cannot be used: the last part of a message, or ""."""

from collections.abc import Sequence
from typing import Any

from ..errors import listed

LOGITS = (
    "for logits apply a sigmoid, or say output = 'logits' in [model] (in Python "
    "models.load(..., output='logits'); of onnx and open-inference activation = 'sigmoid')"
)
NOTHING = "; does the function return what it computes?"
PERCENT = 100.0


def of_value(value: Any) -> str:
    """``value``: what was given for P(yes) and is no probability."""
    if isinstance(value, str):
        return "; give a number per concept, not a word"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return ""
    if number != number:
        return "; look for 0 / 0, log(0) or an overflow in the model"
    percents = "for percents divide by 100; " if 1 < number <= PERCENT else ""
    return f"; {percents}{LOGITS}"


def of_shape(shape: Sequence[int], images: int, concepts: Sequence[str]) -> str:
    """``shape``: what was given in place of images x concepts."""
    names = listed(concepts)
    if tuple(shape) == (len(concepts),) and images == 1:
        return "; it is given a list of images: return a row for each, even for one"
    if tuple(shape) == (images,):
        return f"; return P(yes) of every concept ({names}) per image, not the likeliest alone"
    if len(shape) == 2 and shape[0] == images:
        return (
            f"; return the columns of the concepts {names}, in this order, and no others, or "
            "choose what to ask about by concepts = [...] in [dataset]"
        )
    return f"; return a row per image and a column per concept ({names})"


def of_thing(said: Any, concepts: Sequence[str]) -> str:
    """``said``: what was given in place of an array of numbers."""
    if isinstance(said, dict):
        return f"; return the values in the order of the concepts: {listed(concepts)}"
    return "; return numbers, P(yes) of each concept"
