"""The border between the engine and a model it does not trust."""

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


def name_of(model: ModelUnderTest) -> str:
    """Return the model's own name, or its class."""
    return str(adapted_model(model).name or type(model).__name__)


def image_of(prompt: Prompt, who: str) -> Image:
    """Return the prompt's image; raise InputError, about the model ``who``, if it has none."""
    if prompt.image is None:
        raise InputError(f"{who}: expected an image, sample {prompt.sample_id!r} has none")
    return prompt.image


def currency_of(models: Sequence[ModelDefaults], where: str) -> str | None:
    """Return the currency of the calls of all ``models``, None if all are free.

    Raise InputError, about ``where``, if they differ, as costs are added up.
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


def checked(model: ModelUnderTest, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
    """Return the model's answers. Raise ModelError for what is none, with what was expected."""
    who = f"model {name_of(model)!r}"
    try:
        with users_threads():
            answers = model.ask(prompts)
    except AvttError:
        raise
    except (Exception, SystemExit) as error:
        first, given = prompts[0], ""
        if first.image is not None:
            shape = " x ".join(map(str, first.image.shape))
            count = f"{len(prompts)} image{'s' * (len(prompts) > 1)}"
            given = f" with a list of {count}, {shape} uint8"
        raise ModelError(
            f"{who} raised {type(error).__name__}: {one_line(error)}{place_of(error)} "
            f"(asked about {_place(first)}{given})"
        ) from error
    if not isinstance(answers, Sequence) or len(answers) != len(prompts):
        got = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
        raise ModelError(f"{who}: expected {len(prompts)} answers (one per prompt), got {got}")
    for prompt, answer in zip(prompts, answers, strict=True):
        check_answer(answer, prompt, who)
    return list(answers)


def check_answer(answer: object, prompt: Prompt, who: str) -> None:
    """Raise ModelError unless ``answer`` is an answer to ``prompt``."""
    where = _place(prompt)

    def check(right: bool, expected: str, got: object, place: str = where) -> None:
        if not right:
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
    size = None if prompt.image is None else prompt.image.shape[:2]
    for concept, both in zip(prompt.concepts, answer.values, strict=True):
        place = f"{where}, concept {concept!r}"
        for value in (both.a, both.b) if isinstance(both, PairedAnswer) else (both,):
            if isinstance(value, Unanswered) or (isinstance(value, str) and prompt.asks):
                continue
            if isinstance(value, np.ndarray):
                mask = f"a mask of bool as large as the image, {size or value.shape}"
                right = value.dtype == np.bool_ and value.shape == (size or value.shape)
                check(right, mask, f"{value.dtype} of shape {value.shape}", place)
            elif not _is_within(value, 1):
                remedy = f"{place}{_remedy_of_value(value)}"
                check(False, "P(yes) between 0 and 1", _shown(value), remedy)


def is_cost(value: object) -> bool:
    """Return whether a number can be money spent: finite and 0 or more. NaN would disable a cap."""
    return _is_within(value, sys.float_info.max)


def _is_within(value: object, most: float) -> bool:
    try:
        return bool(0 <= value <= most)  # type: ignore[operator]  # NaN is not
    except (TypeError, ValueError):
        return False


def _place(prompt: Prompt) -> str:
    return f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity}"


def _shown(answer: object) -> str:
    """Return the first 80 characters; Python writes no number of over 4,300 digits."""
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


# -- answers that a user gives by hand -------------------------------------------------------------


def as_answer(answer: Any, prompt: Prompt, call: int) -> Answer:
    """Return a user's answer to a call.

    Args:
        answer: One value per concept, in their order or by name: numbers, or, if the prompt asks in
            words, texts; or a mask, or masks, as an array of bool.
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
    if not 0 <= loss <= 1:  # NaN is not
        expected = f"expected a loss between 0 and 1 for item {call}"
        raise ModelError(f"tell: {expected}, got {_shown(answer)}")
    return Answer((loss,))


# -- answers made of arrays ------------------------------------------------------------------------


def to_answers(returned: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """Return the answers that a function returned.

    Args:
        returned: One of three. P(yes), n x C or, of a single concept, (n,). Texts, n of them.
            Masks, of bool or of P(yes): n x C x H x W. If images differ in size they are a list of
            n arrays C x H x W (H x W of a single concept). Torch tensors count as arrays.
        prompts: The n prompts.
        who: The model, for messages.

    Raises:
        ModelError: The function returned something else.
    """
    returned = without_torch(returned)
    parts = list(returned) if isinstance(returned, Sequence | np.ndarray) else []
    count = len(prompts)
    if prompts and prompts[0].asks and not isinstance(returned, str):
        if len(parts) == count and all(isinstance(part, str) for part in parts):
            return [Answer((str(part),)) for part in parts]
        if all(part is None or isinstance(part, str) for part in parts):
            raise ModelError(f"{who}: expected a list of {count} texts, got {returned!r:.80}")
    if parts and all(np.ndim(part) >= 2 for part in parts):
        if len(parts) != count:
            shape = np.shape(parts[0])
            # as scikit-learn's predict_proba of several outputs
            forest = "; take [:, 1] of each, one column per concept" * (shape == (count, 2))
            expected = f"expected masks of {count} images, or an array n x C"
            got = f"{len(parts)} arrays of shape {shape}{forest}"
            raise ModelError(f"{who}: {expected}, got {got}")
        pairs = zip(parts, prompts, strict=True)
        return [Answer(_masks(np.asarray(part), prompt, who)) for part, prompt in pairs]
    return _rows(returned, prompts, who)


def without_torch(returned: Any) -> Any:
    """Return torch tensors, also in lists, as arrays of their values; anything else unchanged."""
    torch = sys.modules.get("torch")  # a tensor cannot exist before torch is imported
    if torch is None:
        return returned
    if isinstance(returned, torch.Tensor):
        plain = returned.detach().cpu()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    return [*map(without_torch, returned)] if isinstance(returned, list | tuple) else returned


def _rows(table: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """Return an array n x C, or (n,) of a single concept, as answers."""
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


def _masks(part: npt.NDArray[Any], prompt: Prompt, who: str) -> tuple[Value, ...]:
    """Return C x H x W of bool or of P(yes) as one mask per concept."""
    count, sample = len(prompt.concepts), f"for sample {prompt.sample_id!r}"
    if part.ndim == 2 and count == 1:
        part = part[None]
    if part.ndim != 3 or len(part) != count:
        expected = f"{who}: expected masks of shape ({count}, H, W) (concepts x image)"
        raise ModelError(f"{expected}, got {part.shape} {sample}")
    if part.dtype == np.bool_:
        return tuple(part)
    if not bool(((part >= 0) & (part <= 1)).all()):  # NaN is neither
        raise ModelError(
            f"{who}: expected masks of bool or of P(yes) between 0 and 1, got values from "
            f"{part.min()} to {part.max()} {sample}{_remedy_of_value(part.min())}"
        )
    return tuple(part >= 0.5)
