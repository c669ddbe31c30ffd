"""What a model under test is, what it is asked, and what it may say."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Literal, Protocol, runtime_checkable

from ..types import Answer, Prompt, Unanswered


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
