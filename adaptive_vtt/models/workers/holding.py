"""What a worker holds: the model, built once where the worker runs, and asked a batch at a time."""

import atexit
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import AvttError, InputError, one_line
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.other_code import place_of
from ..base import BatchModel, ConcurrentModel, ModelDefaults, ModelSource, adapted_model
from ..checking import checked, name_of
from ..local.python import model_of

Make = Callable[[], ModelSource]
"""Makes the model, or what one is made of; another process can import it."""
STATED = ModelDefaults.__annotations__.keys() - {"doing", "adapts", "trusted"}
"""Attributes by which a model says what it is; of the others workers have their own."""


@dataclass(frozen=True)
class About:
    """What the audit has to know of a model that it does not hold: see ``ModelDefaults``.

    ``stated``: its attributes, by name.
    """

    stated: JsonObject
    content: str | None
    protocol: JsonObject
    prices_known: bool
    costs_money: bool


class Holding:
    """The model that a pickled ``Make`` makes."""

    def __init__(self, make: bytes) -> None:
        self._make = make

    def about(self) -> About:
        """Make the model and describe it.

        Raises:
            InputError: The model cannot be made, or has several calls in flight by itself.
        """
        try:
            # Bytes that the audit itself pickled: unpickled here, an import that fails is named.
            made = pickle.loads(self._make)()  # noqa: S301
            self._model = model = adapted_model(model_of(made))
        except AvttError:
            raise
        except (Exception, SystemExit) as error:  # a user's code may fail in any way at all
            raise InputError(
                f"worker: cannot make the model: {type(error).__name__}: {one_line(error)}"
                f"{place_of(error)}"
            ) from None
        if isinstance(model, ConcurrentModel | BatchModel):
            raise InputError(
                f"workers: expected a model that computes where it runs, got {name_of(model)!r}, "
                "which has several calls in flight by itself; remove workers, and set in_flight "
                "there"
            )
        atexit.register(model.close)
        stated = {name: getattr(model, name) for name in STATED} | {"name": name_of(model)}
        priced, paid = model.prices_known, model.costs_money
        return About(stated, model.content(), model.protocol(), priced, paid)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return one checked answer per prompt. Raise ModelError where the model fails."""
        return checked(self._model, prompts)
