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


def remedy_of_value(value: Any) -> str:
    """What to do about a ``value`` that was given for P(yes) and is no probability."""
    if isinstance(value, str):
        return "; give a number per concept, not a word"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    if math.isnan(number):
        return "; look for 0 / 0, log(0) or an overflow in the model"
    percents = "for percents divide by 100; " if 1 < number <= 100 else ""
    return f"; {percents}{_LOGITS}"


def remedy_of_shape(shape: Sequence[int], images: int, concepts: Sequence[str]) -> str:
    """What to do about an array of this ``shape`` in place of images x concepts."""
    names = listed(concepts)
    if tuple(shape) == (len(concepts),) and images == 1:
        return "it is given a list of images: return a row for each, even for one"
    if tuple(shape) == (images,):
        return f"return P(yes) of every concept ({names}) per image, not the likeliest alone"
    if len(shape) == 2 and shape[0] == images:
        return (
            f"return the columns of the concepts {names}, in this order, and no others, or choose "
            "what to ask about by concepts = [...] in [dataset]"
        )
    return f"return a row per image and a column per concept ({names})"


def name_of(model: ModelUnderTest) -> str:
    """The model's own name, or its class."""
    return str(adapted_model(model).name or type(model).__name__)


def image_of(prompt: Prompt, who: str) -> Image:
    """The prompt's image; raises InputError where it has none and ``who``, a model, looks at it."""
    if prompt.image is None:
        raise InputError(f"{who}: expected an image, sample {prompt.sample_id!r} has none")
    return prompt.image


def checked(model: ModelUnderTest, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
    """The model's answers, or ModelError saying what was expected and what came."""
    who = f"model {name_of(model)!r}"
    try:
        with users_threads():
            answers = model.ask(prompts)
    except AvttError:
        raise
    except (Exception, SystemExit) as error:
        raise raised(who, error, prompts) from error
    if not isinstance(answers, Sequence) or len(answers) != len(prompts):
        got = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
        raise ModelError(f"{who}: expected {len(prompts)} answers (one per prompt), got {got}")
    for prompt, answer in zip(prompts, answers, strict=True):
        check_answer(answer, prompt, who)
    return list(answers)


def raised(who: str, error: BaseException, prompts: Sequence[Prompt]) -> ModelError:
    """What to say of a model whose own code failed: what, in which of its lines, asked what."""
    first = prompts[0]
    given = ""
    if first.image is not None:
        shape = " x ".join(map(str, first.image.shape))
        given = f" with a list of {len(prompts)} image{'s' * (len(prompts) > 1)}, {shape} uint8"
    return ModelError(
        f"{who} raised {type(error).__name__}: {one_line(error)}{place_of(error)} "
        f"(asked about sample {first.sample_id!r}, {first.relation} severity {first.severity}"
        f"{given})"
    )


def as_answer(answer: Any, prompt: Prompt, call: int) -> Answer:
    """What somebody tells of a call, one value per concept, in their order or by name; raises
    ModelError for anything else.

    Numbers, or, where the prompt asks in words, texts; a mask or masks as an array of bool.
    """
    if isinstance(answer, Mapping):
        if {*answer} != {*prompt.concepts}:
            raise ModelError(
                f"tell: expected a number for each of {listed(prompt.concepts)} for call {call}, "
                f"got some for {listed(map(str, answer))}"
            )
        answer = [answer[concept] for concept in prompt.concepts]
    if isinstance(answer, np.ndarray) and answer.dtype == np.bool_:
        return Answer(tuple(answer.reshape(-1, *answer.shape[-2:])))
    try:
        if prompt.asks:
            return Answer((answer,) if isinstance(answer, str) else tuple(answer))
        return Answer(tuple(float(v) for v in np.ravel(answer)))
    except (TypeError, ValueError, OverflowError):
        what = "texts" if prompt.asks else "numbers"
        raise ModelError(
            f"tell: expected {len(prompt.concepts)} {what} for call {call}, got {_shown(answer)}"
        ) from None


def as_loss(answer: Any, call: int) -> Answer:
    """What somebody tells of an item; raises ModelError for what is no number in [0, 1]."""
    try:
        loss = float(answer)
    except (TypeError, ValueError, OverflowError):
        loss = math.nan
    if not 0 <= loss <= 1:  # NaN is not
        raise ModelError(
            f"tell: expected a loss between 0 and 1 for item {call}, got {_shown(answer)}"
        )
    return Answer((loss,))


def _shown(answer: object) -> str:
    """The first 80 characters of what was told; Python writes no number of over 4,300 digits."""
    try:
        return f"{answer!r:.80}"
    except ValueError:
        return "a number of thousands of digits"


def check_answer(answer: object, prompt: Prompt, who: str) -> None:
    """Raises ModelError unless ``answer`` is an answer to ``prompt``."""
    where = f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity}"

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
                remedy = f"{place}{remedy_of_value(value)}"
                check(False, "P(yes) between 0 and 1", _shown(value), remedy)


def is_cost(value: object) -> bool:
    """Whether a number can be money spent: finite and 0 or more. NaN would switch off a cap."""
    return _is_within(value, sys.float_info.max)


def currency_of(models: Sequence[ModelDefaults], where: str) -> str | None:
    """The currency that the calls of all ``models`` are paid in; None where all are free.

    Raises InputError where they differ, as costs are added up; ``where``: for messages.
    """
    names = {m.currency or USD: name_of(m) for m in models if m.costs_money or m.currency}
    if len(names) > 1:
        got = " and ".join(f"{currency} of {name!r}" for currency, name in names.items())
        raise InputError(
            f"{where}: currency: expected prices in one currency, as costs are added up, got "
            f"{got}; convert the prices of one, and say its currency = ..."
        )
    return next(iter(names), None)


def _is_within(value: object, most: float) -> bool:
    try:
        return bool(0 <= value <= most)  # type: ignore[operator]  # NaN is not
    except (TypeError, ValueError):
        return False


def to_answers(returned: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """P(yes), n x C, masks, n x C x H x W, or n texts, as answers.

    Raises ModelError for anything else. Torch tensors are taken as the arrays they hold.

    Masks may come as one array or, of images that differ in size, as a list of n arrays
    C x H x W (H x W where there is one concept), of bool or of P(yes).
    """
    returned = without_torch(returned)
    parts = list(returned) if isinstance(returned, Sequence | np.ndarray) else []
    count = len(prompts)
    if prompts and prompts[0].asks and not isinstance(returned, str):
        if parts and all(isinstance(part, str) for part in parts) and len(parts) == count:
            return [Answer((str(part),)) for part in parts]
        if all(part is None or isinstance(part, str) for part in parts):
            raise ModelError(f"{who}: expected a list of {count} texts, got {returned!r:.80}")
    if parts and all(np.ndim(part) >= 2 for part in parts):
        if len(parts) != count:
            shape = np.shape(parts[0])
            # as scikit-learn's predict_proba of several outputs
            forest = "; take [:, 1] of each, one column per concept" * (shape == (count, 2))
            raise ModelError(
                f"{who}: expected masks of {count} images, or an array n x C, got {len(parts)} "
                f"arrays of shape {shape}{forest}"
            )
        pairs = zip(parts, prompts, strict=True)
        return [Answer(_masks(np.asarray(part), prompt, who)) for part, prompt in pairs]
    return table_to_answers(returned, prompts, who)


def without_torch(returned: Any) -> Any:
    """Torch tensors, also in lists, as arrays of their values; anything else as it is."""
    torch = sys.modules.get("torch")  # a tensor cannot exist before torch is imported
    if torch is None:
        return returned
    if isinstance(returned, torch.Tensor):
        plain = returned.detach().cpu()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    return [*map(without_torch, returned)] if isinstance(returned, list | tuple) else returned


def _masks(part: npt.NDArray[Any], prompt: Prompt, who: str) -> tuple[Value, ...]:
    """C x H x W of bool or of P(yes) as one mask per concept."""
    count = len(prompt.concepts)
    if part.ndim == 2 and count == 1:
        part = part[None]
    if part.ndim != 3 or len(part) != count:
        raise ModelError(
            f"{who}: expected masks of shape ({count}, H, W) (concepts x image), got "
            f"{part.shape} for sample {prompt.sample_id!r}"
        )
    if part.dtype == np.bool_:
        return tuple(part)
    if not bool(((part >= 0) & (part <= 1)).all()):  # NaN is neither
        raise ModelError(
            f"{who}: expected masks of bool or of P(yes) between 0 and 1, got values from "
            f"{part.min()} to {part.max()} for sample {prompt.sample_id!r}"
            f"{remedy_of_value(part.min())}"
        )
    return tuple(part >= 0.5)


def table_to_answers(table: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """An array n x C of P(yes), of a single concept (n,), too, as answers.

    Raises ModelError for any other shape.
    """
    concepts = prompts[0].concepts
    expected = (len(prompts), len(concepts))
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        remedy = "return numbers, P(yes) of each concept"
        if isinstance(table, dict):
            remedy = f"return the values in the order of the concepts: {listed(concepts)}"
        raise ModelError(
            f"{who}: expected an array of numbers, got {type(table).__name__} ({one_line(error)}); "
            f"{remedy}"
        ) from None
    if values.shape == expected[:1] and len(concepts) == 1:
        values = values[:, None]
    if values.shape == expected:
        return [Answer(tuple(row)) for row in values.tolist()]
    if table is None:
        got = "None; does the function return what it computes?"
    elif prompts[0].asks:
        raise ModelError(
            f"{who}: expected a list of texts, one per image ({len(prompts)}), got an array of "
            f"shape {values.shape}; return in words what is asked for, such as captions"
        )
    else:
        got = f"shape {values.shape}; {remedy_of_shape(values.shape, len(prompts), concepts)}"
    raise ModelError(f"{who}: expected an array of shape {expected} (images x concepts), got {got}")
