"""What people are shown: cards with pictures, and questions to answer about each."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..engine.judge import with_answers
from ..engine.settings import same_audit
from ..errors import AvttError
from ..journal import Journal
from ..journal.facts import read_facts
from ..space import QuestionSpace
from ..types import Image
from ..utils.image_codec import jpeg, png

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


# -- pictures --------------------------------------------------------------------------------------


SIDE = 640
"""Pictures are shrunk to this many pixels on the longer side."""
FINE_SIDE = 1280
"""The same where details matter."""
SMALL = 256 * 256
"""Pixels of a picture that is kept as it is where details matter: a JPEG would blur it."""


@dataclass(frozen=True)
class Picture:
    """A JPEG or PNG file, named by its usual ending."""

    data: bytes
    ending: str

    @property
    def address(self) -> str:
        """The picture as a data address."""
        return f"data:image/{self.ending};base64,{b64encode(self.data).decode('ascii')}"


class Pictures:
    """Source and follow-up of judged questions.

    ``space``: that of the audit (raises JournalError for another), or None where the data
    are gone; then there are thumbnails of a few failing calls. ``fine``: larger and sharper
    pictures, for whoever judges the picture itself.
    """

    def __init__(
        self, journal: Journal, space: QuestionSpace | None = None, *, fine: bool = False
    ) -> None:
        facts = read_facts(journal.facts())
        if space is not None:
            same_audit(facts, space, {})
        self._space = None if space is None else with_answers(space, journal)
        self._kept = journal.pictures()
        self._fine = fine

    def of(self, card: Card) -> tuple[Picture, Picture] | None:
        """Source and follow-up; None where there are none to be had."""
        made = self._made(card)
        if made is None and card.call in self._kept:
            source, follow_up = self._kept[card.call]
            return Picture(source, "png"), Picture(follow_up, "png")
        return made

    def _made(self, card: Card) -> tuple[Picture, Picture] | None:
        if self._space is None:
            return None
        number = int(self._space.image_of(np.array([card.question]))[0])
        try:
            source, follow_up = self._space.pair(number)
        except AvttError:  # a file is gone since; the journal may still have a thumbnail
            return None
        if source.image is None or follow_up.image is None:
            return None
        return self._picture(source.image), self._picture(follow_up.image)

    def _picture(self, image: Image) -> Picture:
        if self._fine and image.shape[0] * image.shape[1] <= SMALL:
            return Picture(png(image), "png")
        side, quality = (FINE_SIDE, 95) if self._fine else (SIDE, 88)
        return Picture(jpeg(_shrunk(image, side), quality), "jpeg")


def _shrunk(image: Image, side: int) -> Image:
    import cv2

    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale < 1:
        size = (max(1, round(scale * width)), max(1, round(scale * height)))
        return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return image
