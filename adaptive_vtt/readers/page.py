"""The cards as one page with everything inside, to be opened in any browser."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..labelling.item_pictures import Picture
from ..labelling.shared_form import add_picture, store, write_form
from .answers import COLUMNS, MOST_WORDS, Answers
from .cards import UNSURE, Card

TEMPLATE = Path(__file__).parent / "cards.html"
Shown = Callable[[Card], Sequence[Picture]]
"""The pictures of a card; () where there are none to be had."""


@dataclass(frozen=True)
class Desk:
    """What one reader works on. ``title`` and ``about`` stand at the top; ``option``: that of
    ``avtt label`` which chose this kind of reading."""

    cards: Sequence[Card]
    reader: str
    mine: Answers
    title: str
    about: str
    option: str


def write_page(path: Path, desk: Desk, shown: Shown, audit: Any) -> None:
    """Writes the page. ``audit``: JSON values that tell this audit from others; what a browser
    keeps of answers is kept apart by them, by the kind of reading and by the reader.

    Nothing of it tells what is right, what the model said, or how an image is called.
    """
    write_form(
        path,
        TEMPLATE,
        _content(desk, shown, audit),
        title=f"{desk.title}: {desk.reader}",
        things="answers",
        option=f"{desk.option} ",
        about=desk.about,
    )


def _content(desk: Desk, shown: Shown, audit: Any) -> dict[str, Any]:
    """What shared_form.js and cards.js work on."""
    pictures: dict[str, str] = {}
    cards = [_entry(card, [add_picture(p, pictures) for p in shown(card)]) for card in desk.cards]
    return {
        "store": store("avtt-answers", [audit, desk.option], desk.reader),
        "person": desk.reader,
        "columns": COLUMNS,
        "unsure": UNSURE,
        "most_words": MOST_WORDS,
        "pictures": pictures,
        "cards": cards,
        "answers": [
            [one.card, one.question, one.answer, one.time.isoformat()] for one in desk.mine.values()
        ],
    }


def _entry(card: Card, pictures: Sequence[str]) -> dict[str, Any]:
    return {
        "number": card.number,
        "titles": card.titles,
        "words": card.words,
        "pictures": pictures,
        "asked": [
            {"id": one.id, "text": one.text, "choices": [list(c) for c in one.choices.items()]}
            for one in card.asked
        ],
    }
