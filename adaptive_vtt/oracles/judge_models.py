"""Models that say what a reply meant where reading it by rule finds no option.

EndoBench has been scored in three regimes: by exact match alone, with a judge that matches a
reply to an option (the public code), and with a judge that says whether a reply agrees with
the truth (the paper). Results of different regimes cannot be compared, so each has a name.
A judge has a budget of its own, and is asked about the same reply once.
"""

from collections.abc import Callable
from string import ascii_uppercase
from typing import Any

from ..errors import InputError
from ..types import Ask
from .choice_extraction import extract

EXACT = "exact"
OPTION_MATCHING = "option-matching judge"
YES_NO = "yes-no judge"
REGIMES = (EXACT, OPTION_MATCHING, YES_NO)


class Referee:
    """A judge model with a budget; ``regime`` names how it is used.

    ``decide`` of an option-matching judge: (question, options, reply) -> letter or None; of a
    yes-no judge: (question, the true answer, reply) -> True, False or None. After
    ``most_calls`` it is asked no more, and such replies are no answers. ``price``: what a
    call costs. Raises InputError for an unknown regime and a budget below 0.
    """

    def __init__(
        self,
        decide: Callable[[str, Any, str], Any],
        *,
        regime: str = OPTION_MATCHING,
        most_calls: int | None = None,
        price: float = 0.0,
    ) -> None:
        if regime not in REGIMES[1:]:
            raise InputError(f"judge: expected the regime {REGIMES[1:]}, got {regime!r}")
        if (most_calls or 0) < 0 or price < 0:
            raise InputError(f"judge: expected a budget of 0 or more, got {most_calls} at {price}")
        self.regime = regime
        self.most_calls = most_calls
        self.price = price
        self.calls = 0
        self._decide = decide
        self._known: dict[tuple[Ask, str, str], bool | None] = {}

    @property
    def cost(self) -> float:
        """What the judge has cost so far."""
        return self.calls * self.price

    def right(self, ask: Ask, letter: str, reply: str) -> bool | None:
        """Whether ``reply`` chooses option ``letter``; None where the judge cannot tell."""
        key = (ask, letter, reply)
        if key not in self._known:
            if self.most_calls is not None and self.calls >= self.most_calls:
                return None
            self.calls += 1
            self._known[key] = self._ask(ask, letter, reply)
        return self._known[key]

    def _ask(self, ask: Ask, letter: str, reply: str) -> bool | None:
        if self.regime == OPTION_MATCHING:
            said = self._decide(ask.text, ask.options, reply)
            return None if said is None else said == letter
        truth = ask.options[ascii_uppercase.index(letter)]
        agrees = self._decide(ask.text, truth, reply)
        return None if agrees is None else bool(agrees)


def matching(say: Callable[[str], str]) -> Callable[[str, tuple[str, ...], str], str | None]:
    """``decide`` of an option-matching judge from a function that answers a text with a text."""

    def decide(question: str, options: tuple[str, ...], reply: str) -> str | None:
        listed = "\n".join(f"{c}. {o}" for c, o in zip(ascii_uppercase, options, strict=False))
        said = say(
            "A question with options was answered in free words. Say which option the answer "
            "means: reply with its letter alone, or with Z if none of them comes near it.\n"
            f"Question: {question}\n{listed}\nAnswer given: {reply}\nLetter:"
        )
        return extract(said, options).letter

    return decide


def yes_no(say: Callable[[str], str]) -> Callable[[str, str, str], bool | None]:
    """``decide`` of a yes-no judge from a function that answers a text with a text."""

    def decide(question: str, truth: str, reply: str) -> bool | None:
        said = say(
            "Does the answer given agree with the right answer? Reply Yes or No alone.\n"
            f"Question: {question}\nRight answer: {truth}\nAnswer given: {reply}\nAgrees:"
        )
        word = said.strip(" .*\n").lower()
        return {"yes": True, "no": False}.get(word)

    return decide
