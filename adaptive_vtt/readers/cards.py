"""What people are shown: cards with pictures, and questions to answer about each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSURE = "unsure"
"""The answer of somebody who cannot tell; every question takes it."""
YES, NO = "yes", "no"
Key = tuple[int, str]
"""The number of a card, and one of its questions."""


@dataclass(frozen=True)
class Asked:
    """A question of a card. ``id``: what it is called in files; ``text``: how it is put;
    ``choices``: answer -> what stands on its button, UNSURE left out; none: any words do."""

    id: str
    text: str
    choices: Mapping[str, str]


@dataclass(frozen=True)
class Card:
    """What is judged at once. ``number``: what it is called in files; ``question`` and ``call``: of
    the audit, where its pictures come from; ``titles``: one per picture, the source's first;
    ``words``: what is said of the picture beside the questions, or "".
    """

    number: int
    question: int
    call: int
    titles: tuple[str, ...]
    asked: tuple[Asked, ...]
    words: str = ""

    @property
    def all(self) -> list[Key]:
        """All that is asked of it."""
        return [(self.number, one.id) for one in self.asked]


def known(cards: Sequence[Card]) -> dict[Key, Asked]:
    """Every question of the cards."""
    return {(card.number, one.id): one for card in cards for one in card.asked}


def yes_or_no(id: str, text: str) -> Asked:
    """A question to be answered with yes or no."""
    return Asked(id, text, {YES: "Yes", NO: "No"})
