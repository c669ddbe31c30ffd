"""The cards as one page with everything inside, to be opened in any browser."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..utils.files import write_text
from .answers import COLUMNS, MAX_WORDS, Answers
from .cards import NONE, SIGNS, UNSURE, Card
from .pictures import Picture

HERE = Path(__file__).parent
STYLE = HERE.parent / "results" / "report" / "page.css"
Shown = Callable[[Card], Sequence[Picture]]
"""The pictures of a card; () where there are none to be had."""


@dataclass(frozen=True)
class Desk:
    """What one reader works on. ``title`` and ``about`` stand at the top; ``option``: that of
    ``avtt label`` which chose this kind of reading, "" for captions."""

    cards: Sequence[Card]
    reader: str
    mine: Answers
    title: str
    about: str
    option: str


def write_page(path: Path, desk: Desk, shown: Shown, audit: Any) -> None:
    """Writes the page. ``audit``: JSON values that tell this audit from others; what a browser
    keeps of answers is kept apart by them, by the kind of reading and by the reader.

    Nothing of it tells more than the cards do.
    """
    from markupsafe import Markup

    from ..results.report.section import data
    from ..utils.web import templates_of

    html = (
        templates_of(HERE)
        .get_template("cards.html")
        .render(
            data=data("form-data", _content(desk, shown, audit)),
            style=Markup(STYLE.read_text(encoding="utf-8")),
            script=Markup((HERE / "cards.js").read_text(encoding="utf-8")),
            title=f"{desk.title}: {desk.reader}",
            option=f"{desk.option} " if desk.option else "",
            about=desk.about,
        )
    )
    write_text(path, html)


def _content(desk: Desk, shown: Shown, audit: Any) -> dict[str, Any]:
    """What cards.js works on."""
    pictures: dict[str, str] = {}
    whose = _digest(json.dumps([audit, desk.option], sort_keys=True).encode())
    cards = [_entry(card, [_added(p, pictures) for p in shown(card)]) for card in desk.cards]
    return {
        "store": f"avtt-answers/{whose}/{desk.reader}",
        "person": desk.reader,
        "columns": COLUMNS,
        "unsure": UNSURE,
        "none": NONE,
        "signs": SIGNS,
        "most_words": MAX_WORDS,
        "pictures": pictures,
        "cards": cards,
        "answers": [
            [one.card, one.question, one.answer, one.time.isoformat()] for one in desk.mine.values()
        ],
    }


def _entry(card: Card, pictures: Sequence[str]) -> dict[str, Any]:
    found = asdict(card)
    del found["question"], found["call"]
    for one in found["asked"]:
        one["choices"] = list(one["choices"].items())  # pairs: JavaScript would put "3" first
    return found | {"pictures": pictures}


def _added(picture: Picture, pictures: dict[str, str]) -> str:
    """Adds a picture's address to ``pictures``, each only once; its name there."""
    name = _digest(picture.data)
    pictures.setdefault(name, picture.address)
    return name


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
