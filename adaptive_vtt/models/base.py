"""Protocols of a model under test, and the defaults of their optional members.

The engine talks to every model through these: one call after another (`ModelUnderTest`), several
calls in flight (`ConcurrentModel`), or many calls in one job (`BatchModel`).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

from ..errors import ModelError
from ..types import Answer, CallMode, JsonObject, Prompt, Unanswered
from ..utils.other_code import Completed

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from ..journal.facts import BatchFacts, WayFacts


@runtime_checkable
class ModelUnderTest(Protocol):
    """A model that can be audited.

    ``answers`` is "all" if one call answers every concept of an image, else "one". Inherit from
    ``ModelDefaults`` for further, optional members.
    """

    answers: CallMode

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return one answer per prompt, in the same order."""


@runtime_checkable
class ConcurrentModel(Protocol):
    """A model that can have several calls in flight."""

    in_flight: int
    """The most calls in flight; may change (see ``ModelDefaults.adapts``)."""

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Send one prompt without waiting, and return the future of its answer.

        An audit submits from a single thread, apart from the one in which it computes."""


class NotCharged(ModelError):
    """A call failed without cost: the server refused each attempt, or none reached it."""


class Record(Protocol):
    """Store, in the audit's journal, of the batches that a model waits for."""

    def read(self) -> "tuple[BatchFacts, ...]":
        """Return the batches with a call that still waits for its answer, in the order sent."""

    def write(self, batches: "Sequence[BatchFacts]") -> None:
        """Write batches to the journal; they are on the disk when this returns."""


@runtime_checkable
class BatchModel(Protocol):
    """A model that takes many calls at a time and answers them much later.

    Calls keep their numbers in a resumed audit. The model records each batch before it sends it,
    so that a resumed audit never sends a call again while it may still be answered.
    """

    batch: int
    """Number of calls that are drawn and sent together; the belief is not updated in between."""

    def ask_batch(
        self, calls: Mapping[int, Prompt], record: Record
    ) -> dict[int, Answer | Unanswered]:
        """Return the answer to each call, by its number.

        Args:
            calls: Number of the call -> prompt.
            record: The store of batches in progress.

        Raises:
            ModelError: The answers are not available now. Batches that were sent stay recorded.
        """


NO_LIMIT = 1e12
"""A number of pixels that no image reaches."""


@dataclass(frozen=True)
class PriceGuess:
    """The likely cost of a call, guessed before any was made, in the currency of the prices.

    Attributes:
        call: Cost of each call.
        pixel: Additional cost of each pixel of its image, up to ``most_pixels``.
        character: Additional cost of each character of its questions and their options.
        most_pixels: Pixels of an image beyond this number add no cost.
    """

    call: float
    pixel: float = 0.0
    character: float = 0.0
    most_pixels: float = NO_LIMIT

    def __add__(self, other: "PriceGuess") -> "PriceGuess":
        """Return the likely cost of asking both models."""
        return PriceGuess(
            self.call + other.call,
            self.pixel + other.pixel,
            self.character + other.character,
            max((g.most_pixels for g in (self, other) if g.pixel), default=NO_LIMIT),
        )


class ModelDefaults:
    """Optional members of a model, with their defaults."""

    answers: CallMode = "all"
    name: str = ""
    """Name in errors, journals and reports; "": the name of the class."""
    version: str | None = None
    """Version of the model; two different models must differ in name, version or ``content``."""
    model_files: tuple[Path, ...] = ()
    """Files that the model is loaded from, apart from its code; they are hashed into its version
    unless ``content`` covers them."""
    needs_image: bool = True
    """False if prompts without an image can be answered."""
    most_cost: float | None = None
    """The most that a call can cost, with all its retries; None: unknown, so that no cap on cost
    can be kept."""
    most_attempts: int = 1
    """The most attempts of one call that may be billed."""
    currency: str | None = None
    """Currency of the costs (ISO 4217); None: US dollars, or calls are free."""
    price_guess: PriceGuess | None = None
    """The likely cost of a call; None: unknown, or the same for all calls."""
    high_guess: PriceGuess | None = None
    """A high guess of that cost, for a provider that counts many tokens; None: ``price_guess``."""
    template_hash: str | None = None
    """A hash of the prompt template, for the journal; None: the model has no template."""
    takes_words: bool = False
    """True if the model reads ``Prompt.words``; else follow-ups made of words alone are refused."""
    unnamed_columns: bool = False
    """True if the model names no concepts, so that its outputs are assumed to be in their order."""
    may_judge: bool = False
    """True if the model answers questions in words at once, so that it can judge replies."""
    gives_losses: bool = False
    """True if its answers are losses in [0, 1], as those of the items of a ``Pool`` are."""
    doing: str = ""
    """Short text, shown while an audit runs, that explains a long wait."""
    adapts: bool = False
    """True if ``in_flight`` changes during an audit, whose draws then record it."""
    trusted: bool = False
    """True once answers of the model are in the audit's journal; the engine sets it."""

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise TypeError(f"{type(self).__name__} defines no ask")

    @property
    def prices_known(self) -> bool:
        """Return whether the most that a call may cost is known."""
        return self.most_cost is not None

    @property
    def costs_money(self) -> bool:
        """Return whether a call may cost money, so that nothing repeats it without need."""
        return bool(self.most_cost)

    def elicitation(self) -> "dict[str, WayFacts]":
        """Return the elicitation mode that was settled on, which must not change any more.

        The key is "", or "a" and "b" for a pair of models. The mode is journaled before any answer
        that was given in it."""
        return {}

    def keep_to(self, modes: "Mapping[str, WayFacts]") -> None:
        """Adopt the elicitation modes in the journal of a resumed audit."""

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Return the bounds on tokens, sent and answered, that a server's counts have raised.

        The keys are those of ``elicitation``; {} if no count exceeded its bound. Raised bounds are
        journaled before any answer that was counted by them."""
        return {}

    def keep_bounds(self, bounds: "Mapping[str, tuple[int, int]]") -> None:
        """Adopt the ``bounds`` in the journal of a resumed audit."""

    def content(self) -> str | None:
        """Return a hash of the model's parameters or data, which is the version of a model that
        states none; None: unknown."""
        return None

    def protocol(self) -> JsonObject:
        """Return the name of the "template" of prompts and the "temperature" of replies, for the
        journal; {} if neither is known."""
        return {}

    def statistics(self) -> JsonObject | None:
        """Return facts on a run for the journal, as JSON; None: there are none. Numbers are counts,
        which add up over all runs of an audit."""
        return None

    def check_key(self) -> None:
        """Raise ModelError if the model's server refuses its key. The check costs nothing."""

    def close(self) -> None:
        """Release processes and connections of the model."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Adapted(Completed, ModelDefaults):
    """Wrapper that adds ``ModelDefaults`` to a model that does not inherit from it."""

    @property
    def name(self) -> str:  # type: ignore[override]  # where it has none
        return type(self.plain).__name__


class AdaptedConcurrent(Adapted):
    """Wrapper of a model that can have several calls in flight."""

    in_flight = 1

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        return self.plain.submit(prompt)


def adapted_model(model: ModelUnderTest) -> ModelDefaults:
    """Return a model with all members of ``ModelDefaults``: ``model`` itself if it has them.

    Args:
        model: An object with ``answers`` and ``ask``.
    """
    if isinstance(model, ModelDefaults):
        return model
    return AdaptedConcurrent(model) if isinstance(model, ConcurrentModel) else Adapted(model)


ModelSource: TypeAlias = "ModelUnderTest | Callable[[list[Any]], Any] | pd.DataFrame | str"
"""Anything that ``models.local.python.model_of`` makes a model of; a torch module is a callable."""

ProxySource: TypeAlias = (
    "pd.DataFrame | npt.NDArray[Any] | ModelUnderTest | Callable[[list[Any]], Any]"
)
"""A source of cheap guesses of each answer: see ``engine.proxies.Proxies``."""
