"""What a model under test is, what it is asked, and what it may say."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ..datasets.base import Ask, Image, Mask


@dataclass(frozen=True)
class Prompt:
    """What is sent to the model: one image and the concepts asked about.

    ``image`` is H x W x C uint8, or None where the dataset has none. ``asks``: one per
    concept where the questions are in words, else empty. Truths are not here, on purpose.
    """

    image: Image | None
    concepts: tuple[str, ...]
    sample_id: str
    relation: str
    severity: int
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Unanswered:
    """The model gave no answer: a refusal, a timeout, garbage. Never NaN, never zero."""

    reason: str
    cost: float = 0.0


Value = float | Mask | str | Unanswered
"""What a model says of one concept."""


@dataclass(frozen=True)
class Answer:
    """What the model said, and what the call cost.

    ``values``: for each concept of the prompt P(yes) in [0, 1], a mask (H x W of bool, as
    large as the image), words, or Unanswered for a concept the model left out.
    """

    values: tuple[Value, ...]
    cost: float = 0.0


@runtime_checkable
class ModelUnderTest(Protocol):
    """``answers`` is "all" where one call answers every concept of an image, else "one".

    A model may also carry ``name`` (for reports), ``version`` (a text; models that are not the
    same must differ in name or version), ``needs_image`` (default True) and ``most_cost``, which
    no call exceeds, all its retries included; an audit needs that to keep to a cap on cost.
    """

    answers: Literal["one", "all"]

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """One answer per prompt, in the same order."""


@runtime_checkable
class ConcurrentModel(Protocol):
    """A model that can be asked several things at a time."""

    in_flight: int
    """At most so many calls on their way."""

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Sends one prompt and does not wait; its answer, or what went wrong, comes later."""
