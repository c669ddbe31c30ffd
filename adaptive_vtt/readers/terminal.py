"""The cards on a terminal: one question at a time, one key per answer."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .answers import MOST_WORDS, Given
from .cards import NO, UNSURE, YES, Asked, Card
from .page import Desk, Shown

QUIT = "q"
_KEYS = {YES: "y", NO: "n", UNSURE: "u"}


def run(
    desk: Desk,
    shown: Shown,
    save: Callable[[Given], None],
    key: Callable[[], str],
    console: Console,
    line: Callable[[], str],
) -> None:
    """Asks what is left, in order, until the reader quits. ``key`` waits for one key, ``line`` for
    a line of words; every answer is saved as it is given."""
    answered = set(desk.mine)
    left = [(c, one) for c in desk.cards for one in c.asked if (c.number, one.id) not in answered]
    total, given = sum(len(card.asked) for card in desk.cards), 0
    with TemporaryDirectory(prefix="avtt-label-") as folder:
        for place, (card, asked) in enumerate(left):
            where = written(card, shown, Path(folder))
            console.print(_shown(card, asked, where, f"{place + 1} of {len(left)} left"))
            said = _answer(asked, key, line, console)
            if said is None:
                break
            save(Given(card.number, asked.id, desk.reader, said, datetime.now(UTC)))
            given += 1
    rest = len(left) - given
    console.print(
        f"{total - rest} of {total} answered; "
        + ("the same command goes on with the rest" if rest else "nothing is left"),
        markup=False,
    )


def keys(asked: Asked) -> dict[str, str]:
    """Key -> answer: y and n, and letters and digits for themselves, where every answer has a key
    of its own; else numbers. u for who cannot tell."""
    signs = [_KEYS.get(choice, choice.lower()) for choice in asked.choices]
    if len({sign for sign in signs if len(sign) == 1} - {_KEYS[UNSURE], QUIT}) < len(signs):
        signs = [str(number) for number in range(1, len(signs) + 1)]
    return dict(zip(signs, asked.choices, strict=True)) | {_KEYS[UNSURE]: UNSURE}


def _answer(
    asked: Asked, key: Callable[[], str], line: Callable[[], str], console: Console
) -> str | None:
    """Waits for an answer; None for quitting."""
    known = keys(asked)
    try:
        while True:
            by_line = not asked.choices or len(known) > 10
            pressed = line().strip() if by_line else key().lower()
            if pressed.lower() == QUIT:
                return None
            if pressed.lower() in known:
                return known[pressed.lower()]
            if pressed and not asked.choices and len(pressed) <= MOST_WORDS:
                return pressed
            wrong = (
                "no such answer here" if asked.choices else f"1 to {MOST_WORDS} characters, please"
            )
            console.print(f"  {wrong}", style="red")
    except (KeyboardInterrupt, EOFError):
        return None


def _shown(card: Card, asked: Asked, where: Sequence[Path], place: str) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("", Text(f"--- {place} ---"))
    for title, path in zip(card.titles, where, strict=False):
        table.add_row(title, Text(str(path)))
    if card.words:
        table.add_row("told", Text(card.words))
    table.add_row("question", Text(asked.text))
    for pressed, answer in keys(asked).items():
        name = "I cannot tell" if answer == UNSURE else asked.choices[answer]
        table.add_row(Text(f"  [{pressed}]"), Text(name))
    table.add_row(Text("  [q]"), Text("quit" if asked.choices else "quit; or write the answer"))
    return table


def written(card: Card, shown: Shown, folder: Path) -> list[Path]:
    """The card's pictures as files."""
    paths = []
    for title, picture in zip(card.titles, shown(card), strict=False):
        path = folder / f"{card.number}-{title}.{picture.ending}"
        path.write_bytes(picture.data)
        paths.append(path)
    return paths
