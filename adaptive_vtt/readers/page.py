"""The cards as one page with everything inside, to be opened in any browser."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..labelling.item_pictures import Picture
from ..utils.files import write_text
from .answers import COLUMNS, Answers
from .cards import UNSURE, Card

HERE = Path(__file__).parent
STYLE = HERE.parent / "report" / "page.css"
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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from ..report.section import data

    environment = Environment(
        loader=FileSystemLoader(HERE, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("cards.html").render(
        desk=desk,
        data=data("form-data", _content(desk, shown, audit)),
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup((HERE / "cards.js").read_text(encoding="utf-8")),
    )
    write_text(path, html)


def _content(desk: Desk, shown: Shown, audit: Any) -> dict[str, Any]:
    """What cards.js works on."""
    pictures: dict[str, str] = {}
    cards = [_entry(card, _named(shown(card), pictures)) for card in desk.cards]
    about = json.dumps([audit, desk.option], sort_keys=True)
    digest = hashlib.blake2b(about.encode(), digest_size=8).hexdigest()
    return {
        "store": f"avtt-answers/{digest}/{desk.reader}",
        "reader": desk.reader,
        "columns": COLUMNS,
        "unsure": UNSURE,
        "pictures": pictures,
        "cards": cards,
        "answers": [
            [one.card, one.question, one.answer, one.time.isoformat()] for one in desk.mine.values()
        ],
    }


def _named(found: Iterable[Picture], pictures: dict[str, str]) -> list[str]:
    """Adds pictures, each only once; their names."""
    names = []
    for picture in found:
        name = hashlib.blake2b(picture.data, digest_size=8).hexdigest()
        pictures.setdefault(name, picture.address)
        names.append(name)
    return names


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
