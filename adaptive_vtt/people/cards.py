"""What people are shown: cards with pictures, and questions to answer about each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSURE = "unsure"
"""The answer of somebody who cannot tell."""
YES, NO = "yes", "no"
NONE = "none"
"""The answer that there is no error, and so no type of one."""
Key = tuple[int, str]
"""The number of a card, and one of its questions."""
SIGNS = {YES: "y", NO: "n", UNSURE: "u", NONE: "0"}
"""Keys of a keyboard for answers that are no single letter."""


@dataclass(frozen=True)
class Asked:
    """A question of a card. ``id``: what it is called in files; ``text``: how it is put;
    ``choices``: answer -> what stands on its button, UNSURE left out; none: any words do;
    ``unsure``: whether UNSURE is an answer; ``suggested``: the choice that Enter confirms."""

    id: str
    text: str
    choices: Mapping[str, str]
    unsure: bool = True
    suggested: str | None = None

    @property
    def answers(self) -> list[str]:
        """All choices, UNSURE among them."""
        return [*self.choices, *([UNSURE] if self.unsure else [])]

    def worded(self, answer: str) -> str:
        """What stands on the button of an answer."""
        return "I cannot tell" if answer == UNSURE else self.choices.get(answer, answer)


@dataclass(frozen=True)
class Card:
    """What is judged at once. ``number``: what it is called in files; ``question`` and ``call``: of
    the audit, where its pictures come from; ``titles``: one per picture, the source's first;
    ``words``: what is said of the picture beside the questions, or ""; ``captions``: one per
    picture, or none, in which ``mark`` is marked; ``boxes``: what is outlined in the first picture
    of ``size`` (height, width): left, top, right, bottom in pixels; ``told``: name and text of what
    else is known.
    """

    number: int
    question: int
    call: int
    titles: tuple[str, ...]
    asked: tuple[Asked, ...]
    words: str = ""
    captions: tuple[str, ...] = ()
    mark: str = ""
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    size: tuple[int, int] = (1, 1)
    told: tuple[tuple[str, str], ...] = ()

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
