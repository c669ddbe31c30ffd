"""What a worker holds: the model, made once where the worker runs, and asked a batch at a time.

This is the far side: it runs in a process (`serve`) or a Ray actor (`ray_actor`). Whatever goes
wrong travels as a `Failure`, since not every exception survives the way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import AvttError, InputError, ModelError, one_line
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.other_code import place_of
from ..base import (
    BatchModel,
    ConcurrentModel,
    ModelDefaults,
    ModelSource,
    adapted_model,
)
from ..checking import checked, name_of
from ..local.python import model_of

Done = TypeVar("Done")
Make = Callable[[], ModelSource]
"""Makes the model, or what one is made of; another process can import it."""


STATED = ModelDefaults.__annotations__.keys() - {"doing", "adapts", "trusted"}
"""Attributes by which a model says what it is; of the others workers have their own."""


@dataclass(frozen=True)
class About:
    """What the driver has to know of a model that it does not hold: see ``ModelDefaults``.

    ``stated``: its attributes, by name.
    """

    stated: JsonObject
    content: str | None
    protocol: JsonObject
    prices_known: bool
    costs_money: bool


@dataclass(frozen=True)
class Failure:
    """An error as a sentence. ``given``: whether it is about what the user gave (InputError)."""

    sentence: str
    given: bool = False

    def error(self) -> AvttError:
        return InputError(self.sentence) if self.given else ModelError(self.sentence)


class Holding:
    """The model that ``make`` makes, made by the first ``about``."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._model: ModelDefaults | None = None

    def about(self) -> About | Failure:
        """What is to be known of the model; a Failure where it cannot be made or held."""
        return _attempted(self._about)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered] | Failure:
        """One checked answer per prompt; a Failure where the model raises or says else."""
        return _attempted(lambda: checked(self._held(), prompts))

    def close(self) -> None:
        if self._model is not None:
            self._model.close()

    def _held(self) -> ModelDefaults:
        if self._model is None:
            self._model = adapted_model(model_of(self._make()))
        return self._model

    def _about(self) -> About:
        model = self._held()
        if isinstance(model, ConcurrentModel | BatchModel):
            raise InputError(
                f"workers: expected a model that computes where it runs, got {name_of(model)!r}, "
                "which has several calls on their way by itself; leave workers out, and say there "
                "how many"
            )
        stated = {name: getattr(model, name) for name in STATED} | {"name": name_of(model)}
        sure, paid = model.prices_known, model.costs_money
        return About(stated, model.content(), model.protocol(), sure, paid)


def _attempted(do: Callable[[], Done]) -> Done | Failure:
    try:
        return do()
    except AvttError as error:
        return Failure(str(error), isinstance(error, InputError))
    except (Exception, SystemExit) as error:  # a user's code may fail in any way at all
        return unforeseen(error)


def unforeseen(error: BaseException) -> Failure:
    """Of an exception that nobody raised on purpose."""
    said = f"{type(error).__name__}: {one_line(error)}{place_of(error)}"
    return Failure(f"worker: cannot make the model: {said}", given=True)


def opened(told: Any) -> Any:
    """What was told, unless that is a Failure, which is raised."""
    if isinstance(told, Failure):
        raise told.error()
    return told
