"""Protocols of a model under test."""

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
        """Send one prompt without waiting; return its answer, or what went wrong, to come.

        In an audit one thread does this, next to the one in which the audit computes."""


class NotCharged(ModelError):
    """A call failed, and no attempt at it can have been charged for: each was refused, or never
    reached the server."""


class Record(Protocol):
    """The batches that a model must not forget while it waits; kept in the audit's journal."""

    def read(self) -> "tuple[BatchFacts, ...]":
        """Return the batches with a call that still waits for its answer, in the order sent."""

    def write(self, batches: "Sequence[BatchFacts]") -> None:
        """Write batches into the journal, on the disk, before this returns."""


@runtime_checkable
class BatchModel(Protocol):
    """A model that takes many calls at a time and answers them much later.

    Calls keep their numbers in a resumed audit. Before anything is sent the model writes it into
    the record, so that it finds it again: calls that were sent are never sent again while they may
    still be answered.
    """

    batch: int
    """How many calls are drawn and sent together; nothing is learnt between those."""

    def ask_batch(
        self, calls: Mapping[int, Prompt], record: Record
    ) -> dict[int, Answer | Unanswered]:
        """Return the answer to each of the calls. Raise ModelError if they are not available now;
        what was sent stays sent, and in the record."""


NO_LIMIT = 1e12
"""Pixels that no image has."""


@dataclass(frozen=True)
class PriceGuess:
    """The likely cost of a call before any was made, in the unit of the prices.

    ``call`` in any case, ``pixel`` for each pixel of its image up to ``most_pixels``, and
    ``character`` for each character of its questions and their options.
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
    """For errors, journals and reports; "": the name of the class."""
    version: str | None = None
    """Models that are not the same must differ in name or version (or ``content``)."""
    model_files: tuple[Path, ...] = ()
    """Files that it is made of, apart from its code; if ``content`` does not follow from them they
    are a part of its version."""
    needs_image: bool = True
    """False if prompts without an image can be answered."""
    most_cost: float | None = None
    """The most that a call costs, all its retries included; None: not known, so no cap on cost can
    be kept."""
    most_attempts: int = 1
    """The most attempts of one call that may be billed."""
    currency: str | None = None
    """Currency of the costs (ISO 4217); None: US dollars, or calls are free."""
    price_guess: PriceGuess | None = None
    """The likely cost of a call; None: not known, or the same for all."""
    high_guess: PriceGuess | None = None
    """The same for a provider that counts many tokens; None: as ``price_guess``."""
    template_hash: str | None = None
    """A hash of the prompt template, if there is one; journaled."""
    takes_words: bool = False
    """True if it follows ``Prompt.words``; if not, follow-ups that are all words are refused."""
    unnamed_columns: bool = False
    """True if its answers are taken to be in the order of the concepts, as nothing names them."""
    may_judge: bool = False
    """True if it answers questions in words with words, at once, so that it can judge replies."""
    gives_losses: bool = False
    """True if its answers are losses in [0, 1], as of the items of a ``Pool``."""
    doing: str = ""
    """Short text on a long wait, shown while an audit runs."""
    adapts: bool = False
    """True if ``in_flight`` changes during an audit, whose draws then record it."""
    trusted: bool = False
    """Set once answers of the model are in the audit's journal."""

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise TypeError(f"{type(self).__name__} defines no ask")

    @property
    def prices_known(self) -> bool:
        """Return whether the most that a call may cost is known."""
        return self.most_cost is not None

    @property
    def costs_money(self) -> bool:
        """Return whether a call may cost money: then nothing repeats it without need."""
        return bool(self.most_cost)

    def elicitation(self) -> "dict[str, WayFacts]":
        """Return the elicitation mode that was settled on, which must stay: journaled before any
        answer in it. Of a pair by "a" and "b", else by ""."""
        return {}

    def keep_to(self, modes: "Mapping[str, WayFacts]") -> None:
        """Take the elicitation modes of a resumed audit's journal."""

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Return the most tokens, sent and answered, that an attempt counted, if above the bound;
        keys as in ``elicitation``. Journaled before any answer that was counted so."""
        return {}

    def keep_bounds(self, bounds: "Mapping[str, tuple[int, int]]") -> None:
        """Take the ``bounds`` of a resumed audit's journal."""

    def content(self) -> str | None:
        """Return a hash of what the model is made of, its version if it states none; None: not
        known."""
        return None

    def protocol(self) -> JsonObject:
        """Return how prompts are put and replies made, for the journal: "template", its name, and
        "temperature"; {} if neither is known."""
        return {}

    def statistics(self) -> JsonObject | None:
        """Return facts on a run for the journal, as JSON; None: nothing. Numbers are counts, which
        add up over all runs of an audit."""
        return None

    def check_key(self) -> None:
        """Raise ModelError if the model's server refuses its key; this costs nothing."""

    def close(self) -> None:
        """Release what the model holds: programs, connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Adapted(Completed, ModelDefaults):
    """A model that does not inherit from ``ModelDefaults``."""

    @property
    def name(self) -> str:  # type: ignore[override]  # where it has none
        return type(self.plain).__name__


class AdaptedConcurrent(Adapted):
    """One that can have several calls in flight."""

    in_flight = 1

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        return self.plain.submit(prompt)


def adapted_model(model: ModelUnderTest) -> ModelDefaults:
    """Return a model with all members of ``ModelDefaults``.

    Args:
        model: An object with ``answers`` and ``ask``.
    """
    if isinstance(model, ModelDefaults):
        return model
    return AdaptedConcurrent(model) if isinstance(model, ConcurrentModel) else Adapted(model)


ModelSource: TypeAlias = "ModelUnderTest | Callable[[list[Any]], Any] | pd.DataFrame | str"
"""Source of a model, for ``models.local.python.model_of``; a torch module is a callable."""

ProxySource: TypeAlias = (
    "pd.DataFrame | npt.NDArray[Any] | ModelUnderTest | Callable[[list[Any]], Any]"
)
"""A source of cheaper guesses of each answer: see ``engine.proxies.Proxies``."""
