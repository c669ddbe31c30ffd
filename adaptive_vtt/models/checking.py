"""The border between the engine and a model it does not trust."""

from collections.abc import Sequence

import numpy as np

from ..errors import AvttError, ModelError, one_line
from .base import Answer, ModelUnderTest, Prompt, Unanswered


def name_of(model: ModelUnderTest) -> str:
    """The model's own name, or its class."""
    return str(getattr(model, "name", type(model).__name__))


def checked(model: ModelUnderTest, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
    """The model's answers, or ModelError saying what was expected and what came."""
    who = f"model {name_of(model)!r}"
    try:
        answers = model.ask(prompts)
    except AvttError:
        raise
    except Exception as error:
        raise ModelError(
            f"{who} raised {type(error).__name__}: {one_line(error)} "
            f"(asked about sample {prompts[0].sample_id!r}, {prompts[0].relation} "
            f"severity {prompts[0].severity})"
        ) from error
    if not isinstance(answers, Sequence) or len(answers) != len(prompts):
        got = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
        raise ModelError(f"{who}: expected {len(prompts)} answers (one per prompt), got {got}")
    for prompt, answer in zip(prompts, answers, strict=True):
        check_answer(answer, prompt, who)
    return list(answers)


def check_answer(answer: object, prompt: Prompt, who: str) -> None:
    """Raises ModelError unless ``answer`` is an answer to ``prompt``."""
    where = f"sample {prompt.sample_id!r}, {prompt.relation} severity {prompt.severity}"
    if isinstance(answer, Unanswered):
        return
    if not isinstance(answer, Answer):
        raise ModelError(
            f"{who}: expected Answer or Unanswered, got {type(answer).__name__} for {where}"
        )
    if len(answer.values) != len(prompt.concepts):
        raise ModelError(
            f"{who}: expected {len(prompt.concepts)} values (one per concept), "
            f"got {len(answer.values)} for {where}"
        )
    for concept, value in zip(prompt.concepts, answer.values, strict=True):
        if isinstance(value, Unanswered):
            continue
        if not _is_probability(value):
            raise ModelError(
                f"{who}: expected P(yes) between 0 and 1, got {value} for {where}, "
                f"concept {concept!r}"
            )


def _is_probability(value: object) -> bool:
    try:
        return bool(0 <= value <= 1)  # type: ignore[operator]  # NaN is not
    except (TypeError, ValueError):
        return False


def table_to_answers(table: object, prompts: Sequence[Prompt], who: str) -> list[Answer]:
    """An array n x C of P(yes) as answers; raises ModelError for any other shape."""
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{who}: expected an array of numbers, got {type(table).__name__} ({one_line(error)})"
        ) from None
    expected = (len(prompts), len(prompts[0].concepts))
    if values.shape != expected:
        raise ModelError(
            f"{who}: expected an array of shape {expected} (images x concepts), "
            f"got shape {values.shape}"
        )
    return [Answer(tuple(row)) for row in values.tolist()]
