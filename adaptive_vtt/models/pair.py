"""Two models under comparison, presented to the engine as one.

Every prompt is sent to both. Their answers are returned as one, whose values are `PairedAnswer`s.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count, starmap
from typing import Literal, TypeVar

from ..errors import ModelError, unexpected
from ..journal.facts import WayFacts
from ..types import Answer, JsonObject, PairedAnswer, Prompt, Unanswered, Value
from .base import (
    BatchModel,
    ConcurrentModel,
    ModelDefaults,
    ModelUnderTest,
    NotCharged,
    PriceGuess,
    adapted_model,
)
from .checking import check_answer, checked, currency_of, name_of
from .versions import BETWEEN, CONTENT, version_of

Reply = Answer | Unanswered
T = TypeVar("T")
Side = Literal["a", "b"]


class Halves:
    """Store of replies by one model to prompts that the other has not answered yet.

    This class stores nothing; `audit/halves.py` keeps replies on disk, so that a resumed comparison
    pays for none of them twice.
    """

    def take(self, side: Side, prompt: Prompt) -> Reply | None:
        """Return a reply from before an interruption, None if there is none."""
        return None

    def keep(self, side: Side, prompt: Prompt, reply: Reply) -> None:
        """Store a reply of one model. May be called from any thread."""

    def done(self, prompt: Prompt) -> None:
        """Drop the stored replies to a prompt, as both models have answered it."""


class Pair(ModelDefaults):
    """Two models as one, which answers with ``PairedAnswer`` and costs the sum of both.

    ``halves``, which may be set later, stores the reply of one model until the other's arrives.

    Args:
        a: The first model.
        b: The second model.

    Raises:
        InputError: One model answers one concept per call and the other all, a model takes
            batches, or the two are paid in different currencies.
    """

    def __init__(self, a: ModelUnderTest, b: ModelUnderTest) -> None:
        self.a, self.b = a, b = adapted_model(a), adapted_model(b)
        self.sides: dict[Side, ModelDefaults] = {"a": a, "b": b}
        for model in (a, b):
            if isinstance(model, BatchModel):
                got = f"{name_of(model)!r}, which is asked in batches"
                expected = "models that are asked one call at a time"
                raise unexpected("versus", expected, got, "give kind = 'openai'")
        if a.answers != b.answers:
            got = " and ".join(f"{name_of(model)!r} ({model.answers})" for model in (a, b))
            expected = "two models where one call answers the same"
            raise unexpected("versus", expected, got, "give both answers = 'one'")
        self.currency = currency_of([a, b], "versus")
        self.answers = a.answers
        self.halves = Halves()
        self.name = f"{name_of(a)}{BETWEEN}{name_of(b)}"
        self.version = _joined_text(a.version, b.version)
        self.needs_image = a.needs_image or b.needs_image
        self.most_attempts = a.most_attempts + b.most_attempts
        self.template_hash = _joined_text(a.template_hash, b.template_hash)
        self.takes_words = a.takes_words and b.takes_words
        self.gives_losses = a.gives_losses and b.gives_losses

    @property
    def most_cost(self) -> float | None:  # type: ignore[override]  # rises where theirs do
        costs = [model.most_cost for model in self.sides.values()]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def prices_known(self) -> bool:
        return self.a.prices_known and self.b.prices_known

    @property
    def costs_money(self) -> bool:
        return self.a.costs_money or self.b.costs_money

    @property
    def price_guess(self) -> PriceGuess | None:  # type: ignore[override]  # follows from theirs
        """The sum of both guesses; a model without a guess counts with its highest cost."""
        return self._guess(lambda model: model.price_guess)

    @property
    def high_guess(self) -> PriceGuess | None:  # type: ignore[override]  # follows from theirs
        """The sum of both high guesses, as ``price_guess``."""
        return self._guess(lambda model: model.high_guess or model.price_guess)

    def _guess(self, guess_of: Callable[[ModelDefaults], PriceGuess | None]) -> PriceGuess | None:
        if not self.prices_known or {self.a.price_guess, self.b.price_guess} == {None}:
            return None
        models = self.sides.values()
        a, b = (guess_of(model) or PriceGuess(model.most_cost or 0.0) for model in models)
        return a + b

    @property
    def doing(self) -> str:  # type: ignore[override]  # follows from theirs
        return "; ".join(filter(None, (self.a.doing, self.b.doing)))

    @property
    def trusted(self) -> bool:
        return self.a.trusted and self.b.trusted

    @trusted.setter
    def trusted(self, trusted: bool) -> None:
        self.a.trusted = self.b.trusted = trusted

    def content(self) -> str | None:
        a, b = (
            model.content() if model.version else version_of(model) for model in self.sides.values()
        )
        return _joined_text(a and a.removeprefix(CONTENT), b and b.removeprefix(CONTENT))

    def protocol(self) -> JsonObject:
        a, b = self.a.protocol(), self.b.protocol()
        return {name: a[name] for name in a if name in b and a[name] == b[name]}

    def statistics(self) -> JsonObject | None:
        both: JsonObject = {side: model.statistics() for side, model in self.sides.items()}
        return both if any(both.values()) else None

    def elicitation(self) -> dict[str, WayFacts]:
        return _by_side({side: model.elicitation() for side, model in self.sides.items()})

    def keep_to(self, modes: Mapping[str, WayFacts]) -> None:
        for side, model in self.sides.items():
            model.keep_to({"": modes[side]} if side in modes else {})

    def bounds(self) -> dict[str, tuple[int, int]]:
        return _by_side({side: model.bounds() for side, model in self.sides.items()})

    def keep_bounds(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        for side, model in self.sides.items():
            model.keep_bounds({"": bounds[side]} if side in bounds else {})

    def check_key(self) -> None:
        for model in self.sides.values():
            model.check_key()

    def close(self) -> None:
        try:
            self.a.close()
        finally:
            self.b.close()

    def ask(self, prompts: Sequence[Prompt]) -> list[Reply]:
        a, b = (self._replies(side, prompts) for side in self.sides)
        return [self._paired(*both) for both in zip(prompts, a, b, strict=True)]

    def _replies(self, side: Side, prompts: Sequence[Prompt]) -> list[Reply]:
        """Return one model's replies, which is asked only where none is stored."""
        stored = [self.halves.take(side, prompt) for prompt in prompts]
        missing = [prompt for prompt, reply in zip(prompts, stored, strict=True) if reply is None]
        fresh = iter(checked(self.sides[side], missing) if missing else ())
        replies = [next(fresh) if reply is None else reply for reply in stored]
        for prompt, reply in zip(prompts, replies, strict=True):
            self.halves.keep(side, prompt, reply)
        return replies

    def _paired(self, prompt: Prompt, a: Reply, b: Reply) -> Answer:
        """Return both replies as one answer. Raise ModelError if either is invalid."""
        by_name = {"A": a, "B": b}
        for name, reply in by_name.items():
            check_answer(reply, prompt, f"model {name}")
        values = zip(_values(a, prompt), _values(b, prompt), strict=True)
        texts = [f"{name}: {reply.reply}" for name, reply in by_name.items() if reply.reply]
        self.halves.done(prompt)
        paired, unconfirmed = tuple(starmap(PairedAnswer, values)), a.unconfirmed + b.unconfirmed
        return Answer(paired, a.cost + b.cost, unconfirmed, "\n".join(texts))


class ConcurrentPair(Pair):
    """Pair with at least one model that can have several calls in flight.

    Both are asked at once. A model that takes one call at a time is asked in a thread.
    """

    def __init__(self, a: ModelUnderTest, b: ModelUnderTest) -> None:
        super().__init__(a, b)
        self._concurrent = [m for m in self.sides.values() if isinstance(m, ConcurrentModel)]
        self.adapts = self.a.adapts or self.b.adapts
        self._threads = {side: ThreadPoolExecutor(1) for side in self.sides}

    @property
    def in_flight(self) -> int:
        return min(model.in_flight for model in self._concurrent)

    def submit(self, prompt: Prompt) -> "Future[Reply]":
        replies = [self._sent(side, prompt) for side in self.sides]
        paired: Future[Reply] = Future()
        paired.set_running_or_notify_cancel()
        ended = count(1)

        def one_ended(_: "Future[Reply]") -> None:
            if next(ended) < len(replies):
                return
            try:
                paired.set_result(self._paired(prompt, *(reply.result() for reply in replies)))
            except NotCharged as error:  # the call to the other model may have been charged
                paired.set_exception(ModelError(str(error)))
            except BaseException as error:  # an error of either model is one of the pair
                paired.set_exception(error)

        for reply in replies:
            reply.add_done_callback(one_ended)
        return paired

    def close(self) -> None:
        super().close()
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _sent(self, side: Side, prompt: Prompt) -> "Future[Reply]":
        """Ask one model, unless its reply is stored, and return the future of the reply."""
        reply: Future[Reply] = Future()
        if (stored := self.halves.take(side, prompt)) is not None:
            reply.set_result(stored)
            return reply
        model = self.sides[side]
        try:
            if isinstance(model, ConcurrentModel):
                reply = model.submit(prompt)
            else:
                reply = self._threads[side].submit(lambda: checked(model, [prompt])[0])
        except Exception as error:  # not raised here, as the other model may have been asked
            reply.set_exception(error)

        def keep(reply: "Future[Reply]") -> None:
            if not reply.cancelled() and reply.exception() is None:
                self.halves.keep(side, prompt, reply.result())

        reply.add_done_callback(keep)
        return reply


def pair(a: ModelUnderTest, b: ModelUnderTest) -> Pair:
    """Return two models as one, which is concurrent if either of them is."""
    concurrent = isinstance(a, ConcurrentModel) or isinstance(b, ConcurrentModel)
    return (ConcurrentPair if concurrent else Pair)(a, b)


def _values(reply: Reply, prompt: Prompt) -> tuple[Value, ...]:
    """Return one value per concept; a call that was not answered leaves each concept unanswered."""
    return (reply,) * len(prompt.concepts) if isinstance(reply, Unanswered) else reply.values


def _by_side(facts: Mapping[Side, Mapping[str, T]]) -> dict[str, T]:
    """Return facts by side, where each model has its own under the key ""."""
    return {side: own[""] for side, own in facts.items() if "" in own}


def _joined_text(a: str | None, b: str | None) -> str | None:
    """Return both texts, joined by BETWEEN; None if both are None."""
    return None if a is None and b is None else f"{a}{BETWEEN}{b}"
