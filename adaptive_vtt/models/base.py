"""What a model under test is, what it is asked, and what it may say."""

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
    """``answers`` is "all" where one call answers every concept of an image, else "one".

    Inherit from ``ModelDefaults`` for what else there is to say.
    """

    answers: CallMode

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """One answer per prompt, in the same order."""


@runtime_checkable
class ConcurrentModel(Protocol):
    """A model that can be asked several things at a time."""

    in_flight: int
    """At most so many calls on their way; may change (see ``ModelDefaults.adapts``)."""

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Sends one prompt and does not wait; its answer, or what went wrong, comes later.

        In an audit one thread does this, beside that in which the audit computes."""


class NotCharged(ModelError):
    """A call failed, and no attempt at it can have been charged for: each was refused, or never
    reached the server."""


class Record(Protocol):
    """What a model must not forget while it waits: kept in the audit's journal."""

    def read(self) -> "tuple[BatchFacts, ...]":
        """The batches of which some call still waits for its answer, in the order sent."""

    def write(self, batches: "Sequence[BatchFacts]") -> None:
        """In the journal, on the disk, when this returns."""


@runtime_checkable
class BatchModel(Protocol):
    """A model that takes many calls at a time and answers them much later, whoever waits.

    Calls have numbers that they keep in an audit that is interrupted and goes on. Before
    anything is sent the model writes into the record what it is going to send, so that it finds
    it again: calls that were sent are never sent anew while they may still be answered.
    """

    batch: int
    """How many calls are drawn and sent together; nothing is learnt between those."""

    def ask_batch(
        self, calls: Mapping[int, Prompt], record: Record
    ) -> dict[int, Answer | Unanswered]:
        """What was said to each of the calls. Raises ModelError where that cannot be told now;
        what was sent stays sent, and the record tells of it."""


NO_LIMIT = 1e12
"""Pixels that no image has."""


@dataclass(frozen=True)
class PriceGuess:
    """What a call is likely to cost before any was made, in the unit of the prices: ``call`` in any
    case, ``pixel`` for each pixel of its image up to ``most_pixels``, and ``character`` for each
    character of its questions and their options."""

    call: float
    pixel: float = 0.0
    character: float = 0.0
    most_pixels: float = NO_LIMIT

    def __add__(self, other: "PriceGuess") -> "PriceGuess":
        """What asking both models costs."""
        return PriceGuess(
            self.call + other.call,
            self.pixel + other.pixel,
            self.character + other.character,
            max((g.most_pixels for g in (self, other) if g.pixel), default=NO_LIMIT),
        )


class ModelDefaults:
    """What most models have alike."""

    answers: CallMode = "all"
    name: str = ""
    """For errors, journals and reports; "": that of the class."""
    version: str | None = None
    """Models that are not the same must differ in name or version (or ``content``)."""
    model_files: tuple[Path, ...] = ()
    """Files that it is made of, beside its code; where ``content`` does not follow from them they
    are a part of its version."""
    needs_image: bool = True
    """False where prompts without an image can be answered."""
    most_cost: float | None = None
    """What no call exceeds, all its retries included; None: not known, so a cap on cost could not
    be kept."""
    most_attempts: int = 1
    """The most attempts of one call that may be billed."""
    currency: str | None = None
    """Of what calls cost, as ISO 4217 calls it; None: US dollars, or they cost nothing."""
    price_guess: PriceGuess | None = None
    """What calls are likely to cost; None: not known, or the same for all."""
    dear_guess: PriceGuess | None = None
    """The same where the provider counts much; None: as ``price_guess``."""
    template_hash: str | None = None
    """A hash of the words that prompts are put in, where there are any; journaled."""
    takes_words: bool = False
    """Whether it goes by ``Prompt.words``; where not, follow-ups that are all words are refused."""
    unnamed_columns: bool = False
    """Whether what it answers at once is taken to be in the order of the concepts, with nothing
    that names its columns."""
    may_judge: bool = False
    """Whether it answers questions in words with words, at once, so that it can judge replies."""
    tells_losses: bool = False
    """Whether what it answers is what was lost, in [0, 1], as of the items of a ``Pool``."""
    doing: str = ""
    """What it is waiting for, in a few words, where that takes long: shown while an audit runs."""
    adapts: bool = False
    """Whether ``in_flight`` changes in the course of an audit, whose draws then say how many calls
    were in flight."""
    trusted: bool = False
    """Set once answers of the model stand in the audit's journal."""

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise TypeError(f"{type(self).__name__} defines no ask")

    @property
    def prices_known(self) -> bool:
        """Whether it is known what a call may cost at most."""
        return self.most_cost is not None

    @property
    def costs_money(self) -> bool:
        """Whether a call may cost money: then nothing asks it again without need."""
        return bool(self.most_cost)

    def elicitation(self) -> "dict[str, WayFacts]":
        """What was found out about how to ask, which must stay so: journaled before any answer that
        was asked for so. Of a pair by "a" and "b", else by ""."""
        return {}

    def keep_to(self, ways: "Mapping[str, WayFacts]") -> None:
        """The ``ways`` of the audit's journal, where it goes on."""

    def bounds(self) -> dict[str, tuple[int, int]]:
        """The most tokens, sent and said, that an attempt was counted at, where that is more than
        was expected; by side, as ``ways``. Journaled before any answer that was counted so."""
        return {}

    def keep_bounds(self, bounds: "Mapping[str, tuple[int, int]]") -> None:
        """The ``bounds`` of the audit's journal, where it goes on."""

    def content(self) -> str | None:
        """A hash of what the model is made of, its version if it states none; None: not known."""
        return None

    def protocol(self) -> JsonObject:
        """How prompts are put and replies made, for the journal: "template", its name, and
        "temperature"; {} where neither is known."""
        return {}

    def statistics(self) -> JsonObject | None:
        """What a run should leave in the journal, as JSON has it; None: nothing. Numbers are
        counts, which add up over all runs of an audit."""
        return None

    def check_key(self) -> None:
        """Raise ModelError where the model's server refuses its key, found out without a cost."""

    def close(self) -> None:
        """Lets go of what the model holds: programs, connections."""

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
    """One that can be asked several things at a time."""

    in_flight = 1

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        return self.plain.submit(prompt)


def adapted_model(model: ModelUnderTest) -> ModelDefaults:
    """The model with everything that ``ModelDefaults`` promises."""
    if isinstance(model, ModelDefaults):
        return model
    return AdaptedConcurrent(model) if isinstance(model, ConcurrentModel) else Adapted(model)


ModelSource: TypeAlias = "ModelUnderTest | Callable[[list[Any]], Any] | pd.DataFrame | str"
"""What ``models.local.python.model_of`` makes a model of; a torch module is a callable."""

ProxySource: TypeAlias = (
    "pd.DataFrame | npt.NDArray[Any] | ModelUnderTest | Callable[[list[Any]], Any]"
)
"""What knows a cheaper guess of each answer: see ``engine.proxies.Proxies``."""
