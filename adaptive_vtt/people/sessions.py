"""A reader's session: the cards as one page for any browser, or one by one on a terminal."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..types import JsonObject
from ..utils.files import write_text
from ..utils.web import templates_of
from .answers import COLUMNS, MAX_WORDS, Answers, Given
from .cards import NONE, SIGNS, UNSURE, Asked, Card, Picture

# -- one page with everything inside ---------------------------------------------------------------


HERE = Path(__file__).parent
STYLE = HERE.parent / "results" / "report" / "page.css"
Shown = Callable[[Card], Sequence[Picture]]
"""The pictures of a card; () where there are none to be had."""


@dataclass(frozen=True)
class Session:
    """What one reader works on. ``title`` and ``about`` stand at the top; ``option``: that of
    ``avtt label`` which chose this kind of reading, "" for captions."""

    cards: Sequence[Card]
    reader: str
    mine: Answers
    title: str
    about: str
    option: str


def page_of(template: str, **values: Any) -> str:
    """A template of this folder, filled in, in the style of reports."""
    style = Markup(STYLE.read_text(encoding="utf-8"))
    return templates_of(HERE).get_template(template).render(style=style, **values)


def write_page(path: Path, session: Session, shown: Shown, audit: Any) -> None:
    """Writes the page. ``audit``: JSON values that tell this audit from others; what a browser
    keeps of answers is kept apart by them, by the kind of reading and by the reader.

    Nothing of it tells more than the cards do.
    """
    from ..results.report.section import data

    html = page_of(
        "cards.html",
        data=data("form-data", _content(session, shown, audit)),
        script=Markup((HERE / "cards.js").read_text(encoding="utf-8")),
        title=f"{session.title}: {session.reader}",
        option=f"{session.option} " if session.option else "",
        about=session.about,
    )
    write_text(path, html)


def _content(session: Session, shown: Shown, audit: Any) -> JsonObject:
    pictures: dict[str, str] = {}
    whose = _digest(json.dumps([audit, session.option], sort_keys=True).encode())
    cards = [_entry(card, [_added(p, pictures) for p in shown(card)]) for card in session.cards]
    return {
        "store": f"avtt-answers/{whose}/{session.reader}",
        "person": session.reader,
        "columns": COLUMNS,
        "unsure": UNSURE,
        "none": NONE,
        "signs": SIGNS,
        "most_words": MAX_WORDS,
        "pictures": pictures,
        "cards": cards,
        "answers": [
            [one.card, one.question, one.answer, one.time.isoformat()]
            for one in session.mine.values()
        ],
    }


def _entry(card: Card, pictures: Sequence[str]) -> JsonObject:
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


# -- a terminal: one question at a time, one key per answer ----------------------------------------


QUIT, BACK, SKIP = "q", "b", "s"
"""What moves, unless it is an answer to what is asked."""
MOVES = {BACK: "back", SKIP: "skip", QUIT: "quit"}


def run(
    session: Session,
    shown: Shown,
    save: Callable[[Given], None],
    key: Callable[[], str],
    console: Console,
    line: Callable[[], str],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Asks what is left, in order, until the reader quits. ``key`` waits for one key, ``line`` for
    a line of words; every answer is saved as it is given."""
    every = [(card, one) for card in session.cards for one in card.asked]
    asked_keys = [(card.number, one.id) for card, one in every]
    said = {about: given.answer for about, given in session.mine.items()}

    def left_from(place: int) -> int:
        """The first that is not answered, from a place on."""
        return next(
            (k for k in range(place, len(asked_keys)) if asked_keys[k] not in said), len(asked_keys)
        )

    place = left_from(0)
    with TemporaryDirectory(prefix="avtt-label-") as folder:
        while place < len(every):
            card, asked = every[place]
            where = written(card, shown, Path(folder))
            done = sum(about in said for about in asked_keys)
            head = f"--- {place + 1} of {len(every)}, {done} answered ---"
            console.print(_shown(card, asked, where, head, said.get(asked_keys[place])))
            answer, move = _answer(asked, key, line, console)
            if move == QUIT:
                break
            if move == BACK:
                place = max(0, place - 1)
                continue
            if answer is not None:
                save(Given(*asked_keys[place], session.reader, answer, clock()))
                said[asked_keys[place]] = answer
            place = left_from(place + 1)
    rest = sum(about not in said for about in asked_keys)
    console.print(
        f"{len(asked_keys) - rest} of {len(asked_keys)} answered; "
        + ("the same command goes on with the rest" if rest else "nothing is left"),
        markup=False,
    )


def keys(asked: Asked) -> dict[str, str]:
    """Key -> answer: y and n, and letters and digits for themselves, where every answer has a key
    of its own; else numbers, 0 for no error. u for who cannot tell."""
    signs = [SIGNS.get(choice, choice.lower()) for choice in asked.choices]
    if len({sign for sign in signs if len(sign) == 1} - {"u", QUIT}) < len(signs):
        first = 0 if NONE in asked.choices else 1
        signs = [str(number) for number in range(first, first + len(signs))]
    found = dict(zip(signs, asked.choices, strict=True))
    return found | {SIGNS[answer]: answer for answer in asked.answers[len(signs) :]}


def _answer(
    asked: Asked, key: Callable[[], str], line: Callable[[], str], console: Console
) -> tuple[str | None, str]:
    """Waits for an answer, or a key that moves."""
    known = keys(asked)
    try:
        while True:
            by_line = not asked.choices or len(known) > 10
            pressed = line().strip() if by_line else key()
            if pressed in ("\r", "\n") and asked.suggested is not None:
                return asked.suggested, ""
            if pressed.lower() in known:
                return known[pressed.lower()], ""
            if pressed.lower() in MOVES:
                return None, pressed.lower()
            if pressed and not asked.choices and len(pressed) <= MAX_WORDS:
                return pressed, ""
            wrong = (
                "no such answer here" if asked.choices else f"1 to {MAX_WORDS} characters, please"
            )
            console.print(f"  {wrong}", style="red")
    except (KeyboardInterrupt, EOFError):
        return None, QUIT


def _shown(card: Card, asked: Asked, where: Sequence[Path], head: str, before: str | None) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("", Text(head))
    for title, path in zip(card.titles, where, strict=False):
        table.add_row(title, Text(str(path)))
    for title, words in zip(card.titles, card.captions, strict=False):
        caption = Text(words)
        caption.highlight_words([card.mark], "bold reverse")
        table.add_row(title, caption)
    told = [("told", card.words)] if card.words else []
    for name, text in [*told, *card.told, ("question", asked.text)]:
        table.add_row(name, Text(text))
    if before is not None:
        table.add_row("you said", Text(asked.worded(before)))
    known = keys(asked)
    for pressed, answer in known.items():
        note = "  (suggested: Enter)" if answer == asked.suggested else ""
        table.add_row(Text(f"  [{pressed}]"), Text(asked.worded(answer) + note))
    for pressed, what in MOVES.items():
        if pressed not in known:
            words = "quit; or write the answer" if not asked.choices and pressed == QUIT else what
            table.add_row(Text(f"  [{pressed}]"), Text(words))
    return table


def written(card: Card, shown: Shown, folder: Path) -> list[Path]:
    """The card's pictures as files."""
    paths = []
    for name, picture in zip(("first", "second"), shown(card), strict=False):
        path = folder / f"{card.number}-{name}.{picture.ending}"
        path.write_bytes(picture.data)
        paths.append(path)
    return paths
