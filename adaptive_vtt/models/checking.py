"""Validate what a model returns, before the engine uses it.

Models are other people's code: an answer of another form, shape or range ends the audit with one
sentence that names what was expected, what came, for which image, and the remedy.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import AvttError, InputError, ModelError, listed, one_line
from ..types import Answer, Image, PairedAnswer, Prompt, Unanswered, Value
from ..utils.figures import USD
from ..utils.other_code import place_of
from ..utils.threads import users_threads
from .base import ModelDefaults, ModelUnderTest, adapted_model

_LOGITS = (
    "for logits apply a sigmoid, or say output = 'logits' in [model] (in Python "
    "models.load(..., output='logits'); of onnx and open-inference activation = 'sigmoid')"
)
_NO_NUMBER = (TypeError, ValueError, OverflowError)
"""Errors of ``float`` for a value that is no number."""


def name_of(model: ModelUnderTest) -> str:
    """Return the model's name, by default that of its class."""
    return str(adapted_model(model).name or type(model).__name__)


def image_of(prompt: Prompt, who: str) -> Image:
    """Return the prompt's image. Raise InputError, which begins with ``who``, if it has none."""
    if prompt.image is None:
        raise InputError(f"{who}: expected an image, sample {prompt.sample_id!r} has none")
    return prompt.image


def currency_of(models: Sequence[ModelDefaults], where: str) -> str | None:
    """Return the currency in which calls of all models are paid, None if all are free.

    Args:
        models: The models of one audit.
        where: The part of the audit that uses them, for the error.

    Raises:
        InputError: Currencies differ, so that costs cannot be added up.
    """
    names = {m.currency or USD: name_of(m) for m in models if m.costs_money or m.currency}
    if len(names) > 1:
        got = " and ".join(f"{currency} of {name!r}" for currency, name in names.items())
        raise InputError(
            f"{where}: currency: expected prices in one currency, as costs are added up, got "
            f"{got}; convert the prices of one, and say its currency = ..."
        )
    return next(iter(names), None)


# -- answers of a model ----------------------------------------------------------------------------


GIVEN = (
    "it is given a list of numpy arrays (height, width, channels); PIL.Image.fromarray(image) "
    "makes a PIL image of one"
)
"""Remedy where a function expects one image, or images of PIL."""


def checked(model: ModelUnderTest, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
    """Ask a model and return its answers, one per prompt.

    Raises:
        ModelError: The model raised an error, or returned something else.
    """
    who = f"model {name_of(model)!r}"
    try:
        with users_threads():
            answers = model.ask(prompts)
    except AvttError:
        raise
    except (Exception, SystemExit) as error:
        first, images = prompts[0], ""
        if first.image is not None:
            shape = " x ".join(map(str, first.image.shape))
            count = f"{len(prompts)} image{'s' * (len(prompts) > 1)}"
            images = f" with a list of {count}, {shape} uint8"
        about, text = f" (asked about {_place(first)}{images})", one_line(error)
        mistaken = isinstance(error, AttributeError | TypeError)
        if mistaken and hasattr(model, "function") and ("'list'" in text or "ndarray" in text):
            about = f"; {GIVEN}"
        raise ModelError(
            f"{who} raised {type(error).__name__}: {text}{place_of(error)}{about}"
        ) from error
    if not isinstance(answers, Sequence) or len(answers) != len(prompts):
        got = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
        raise ModelError(f"{who}: expected {len(prompts)} answers (one per prompt), got {got}")
    for prompt, answer in zip(prompts, answers, strict=True):
        check_answer(answer, prompt, who)
    return list(answers)


def check_answer(answer: object, prompt: Prompt, who: str) -> None:
    """Raise ModelError, which begins with ``who``, unless ``answer`` is one to ``prompt``.

    It needs one value per concept: P(yes) in [0, 1], a mask of bool as large as the image, words if
    the prompt asks in words, or Unanswered. Its cost must be finite and at least 0.
    """
    where = _place(prompt)

    def check(correct: bool, expected: str, got: object, place: str = where) -> None:
        if not correct:
            raise ModelError(f"{who}: expected {expected}, got {got} for {place}")

    is_answer = isinstance(answer, Answer | Unanswered)
    check(is_answer, "Answer or Unanswered", type(answer).__name__)
    assert isinstance(answer, Answer | Unanswered)
    cost, unconfirmed = answer.cost, answer.unconfirmed
    check(is_cost(cost), "a cost that is finite and 0 or more", f"{cost!r:.40}")
    part = f"an unconfirmed part of the cost between 0 and {cost:g}"
    check(0 <= unconfirmed <= cost * (1 + 1e-9), part, f"{unconfirmed!r:.40}")
    if isinstance(answer, Unanswered):
        return
    count = len(prompt.concepts)
    check(len(answer.values) == count, f"{count} values (one per concept)", len(answer.values))
    for concept, of_concept in zip(prompt.concepts, answer.values, strict=True):
        place = f"{where}, concept {concept!r}"
        pair = of_concept if isinstance(of_concept, PairedAnswer) else None
        for value in (of_concept,) if pair is None else (pair.a, pair.b):
            if isinstance(value, Unanswered) or (isinstance(value, str) and prompt.asks):
                continue
            if isinstance(value, np.ndarray):
                size = value.shape if prompt.image is None else prompt.image.shape[:2]
                is_mask = value.dtype == np.bool_ and value.shape == size
                expected = f"a mask of bool as large as the image, {size}"
                check(is_mask, expected, f"{value.dtype} of shape {value.shape}", place)
            elif not _is_within(value, 1):
                remedy = f"{place}{_remedy_of_value(value)}"
                check(False, "P(yes) between 0 and 1", _shown(value), remedy)


def is_cost(value: object) -> bool:
    """Return whether a number can be money spent: finite and 0 or more. NaN would disable a cap."""
    return _is_within(value, sys.float_info.max)


def _is_within(value: object, most: float) -> bool:
    """Return whether a value is a number from 0 to ``most``; NaN is not."""
    try:
        return bool(0 <= value <= most)  # type: ignore[operator]
    except (TypeError, ValueError):
        return False


def _place(prompt: Prompt) -> str:
    return f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity}"


def _shown(answer: object) -> str:
    """Return the first 80 characters of a value; Python prints no number of over 4,300 digits."""
    try:
        return f"{answer!r:.80}"
    except ValueError:
        return "a number of thousands of digits"


def _remedy_of_value(value: Any) -> str:
    if isinstance(value, str):
        return "; give a number per concept, not a word"
    try:
        number = float(value)
    except _NO_NUMBER:
        return ""
    if math.isnan(number):
        return "; look for 0 / 0, log(0) or an overflow in the model"
    percents = "for percents divide by 100; " if 1 < number <= 100 else ""
    return f"; {percents}{_LOGITS}"


# -- answers that users pass to Audit.tell ---------------------------------------------------------


def as_answer(answer: Any, prompt: Prompt, call: int) -> Answer:
    """Return a user's answer to a call as an `Answer`.

    Args:
        answer: One value per concept, in their order or by name: numbers, or texts if the prompt
            asks in words; or masks as an array of bool, C x H x W or H x W.
        prompt: The prompt.
        call: The number of the call, for messages.

    Raises:
        ModelError: The answer has another form.
    """
    if isinstance(answer, Mapping):
        if {*answer} != {*prompt.concepts}:
            expected = f"expected a number for each of {listed(prompt.concepts)} for call {call}"
            raise ModelError(f"tell: {expected}, got some for {listed(map(str, answer))}")
        answer = [answer[concept] for concept in prompt.concepts]
    if isinstance(answer, np.ndarray) and answer.dtype == np.bool_:
        return Answer(tuple(answer.reshape(-1, *answer.shape[-2:])))
    try:
        if prompt.asks:
            return Answer((answer,) if isinstance(answer, str) else tuple(answer))
        return Answer(tuple(float(v) for v in np.ravel(answer)))
    except _NO_NUMBER:
        expected = f"{len(prompt.concepts)} {'texts' if prompt.asks else 'numbers'}"
        raise ModelError(
            f"tell: expected {expected} for call {call}, got {_shown(answer)}"
        ) from None


def as_loss(answer: Any, call: int) -> Answer:
    """Return a user's loss of an item; raise ModelError unless it is a number in [0, 1]."""
    try:
        loss = float(answer)
    except _NO_NUMBER:
        loss = math.nan
    if not _is_within(loss, 1):
        expected = f"expected a loss between 0 and 1 for item {call}"
        raise ModelError(f"tell: {expected}, got {_shown(answer)}")
    return Answer((loss,))


# -- answers from arrays that a function returns ---------------------------------------------------


def to_answers(returned: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """Return what a function returned for n prompts and C concepts as answers.

    Args:
        returned: One of three; torch tensors count as arrays.
            P(yes), n x C, or (n,) for a single concept.
            A list of n texts.
            Masks of bool or of P(yes), n x C x H x W. If images differ in size, they are a list of
            n arrays C x H x W, or H x W for a single concept.
        prompts: The n prompts.
        who: The model, for messages.

    Raises:
        ModelError: The function returned something else.
    """
    returned = without_torch(returned)
    items = list(returned) if isinstance(returned, Sequence | np.ndarray) else []
    count = len(prompts)
    if prompts and prompts[0].asks and not isinstance(returned, str):
        if len(items) == count and all(isinstance(item, str) for item in items):
            return [Answer((str(item),)) for item in items]
        if all(item is None or isinstance(item, str) for item in items):
            raise ModelError(f"{who}: expected a list of {count} texts, got {returned!r:.80}")
    if items and all(np.ndim(item) >= 2 for item in items):
        if len(items) != count:
            shape = np.shape(items[0])
            # scikit-learn's predict_proba returns such a list for several outputs
            forest = "; take [:, 1] of each, one column per concept" * (shape == (count, 2))
            expected = f"expected masks of {count} images, or an array n x C"
            got = f"{len(items)} arrays of shape {shape}{forest}"
            raise ModelError(f"{who}: {expected}, got {got}")
        pairs = zip(items, prompts, strict=True)
        return [Answer(_masks(np.asarray(item), prompt, who)) for item, prompt in pairs]
    return _rows(returned, prompts, who)


def without_torch(returned: Any) -> Any:
    """Return torch tensors, also those in lists, as NumPy arrays, and anything else unchanged."""
    torch = sys.modules.get("torch")  # a tensor cannot exist before torch is imported
    if torch is None:
        return returned
    if isinstance(returned, torch.Tensor):
        tensor = returned.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return [*map(without_torch, returned)] if isinstance(returned, list | tuple) else returned


def _rows(table: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """Return P(yes) n x C, or (n,) for a single concept, as n answers."""
    count, concepts = len(prompts), prompts[0].concepts
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        remedy = "return numbers, P(yes) of each concept"
        if isinstance(table, dict):
            remedy = f"return the values in the order of the concepts: {listed(concepts)}"
        got = f"{type(table).__name__} ({one_line(error)})"
        raise ModelError(f"{who}: expected an array of numbers, got {got}; {remedy}") from None
    expected = count, len(concepts)
    if values.shape == (count,) and len(concepts) == 1:
        values = values[:, None]
    if values.shape == expected:
        return [Answer(tuple(row)) for row in values.tolist()]
    if table is None:
        got = "None; does the function return what it computes?"
    elif prompts[0].asks:
        raise ModelError(
            f"{who}: expected a list of texts, one per image ({count}), got an array of shape "
            f"{values.shape}; return in words what is asked for, such as captions"
        )
    else:
        one = "it is given a list of images: " * (values.shape == (len(concepts),) and count == 1)
        row = f"{one}return a row for each image, a column for each of {listed(concepts)}"
        got = f"shape {values.shape}; {row}"
    raise ModelError(f"{who}: expected an array of shape {expected} (images x concepts), got {got}")


def _masks(masks: npt.NDArray[Any], prompt: Prompt, who: str) -> tuple[Value, ...]:
    """Return C x H x W, or H x W, of bool or of P(yes) as one mask of bool per concept."""
    count, sample = len(prompt.concepts), f"for sample {prompt.sample_id!r}"
    if masks.ndim == 2 and count == 1:
        masks = masks[None]
    if masks.ndim != 3 or len(masks) != count:
        expected = f"{who}: expected masks of shape ({count}, H, W) (concepts x image)"
        raise ModelError(f"{expected}, got {masks.shape} {sample}")
    if masks.dtype == np.bool_:
        return tuple(masks)
    if not bool(((masks >= 0) & (masks <= 1)).all()):  # false for NaN, too
        raise ModelError(
            f"{who}: expected masks of bool or of P(yes) between 0 and 1, got values from "
            f"{masks.min()} to {masks.max()} {sample}{_remedy_of_value(masks.min())}"
        )
    return tuple(masks >= 0.5)
