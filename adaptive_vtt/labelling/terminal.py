"""The form on a terminal: one object at a time, one key per answer."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..oracles.caption_rules import ERROR_TYPES
from .item_pictures import Pictures
from .items import NONE, Item
from .session import Session
from .wording import verdict, visibility, worded

KEYS = {"0": NONE} | {str(k): type for k, type in enumerate(ERROR_TYPES, 1)}
"""What each key answers; Enter confirms the pre-label."""


def run(session: Session, pictures: Pictures, key: Callable[[], str], console: Console) -> None:
    """Asks until everything is labelled or the inspector quits; ``key`` waits for one key."""
    with TemporaryDirectory(prefix="avtt-label-") as folder:
        while (item := session.item) is not None:
            console.print(_shown(item, session, _written(pictures, item, Path(folder))))
            if not _answered(session, item, key, console):
                break
    left = len(session.queue) - session.done
    console.print(
        f"{session.done} of {len(session.queue)} labelled; "
        + ("the same command goes on with the rest" if left else "nothing is left"),
        markup=False,
    )


def _answered(session: Session, item: Item, key: Callable[[], str], console: Console) -> bool:
    """Waits for a key that means something here, and does it; False for quitting."""
    while True:
        try:
            pressed = key().lower()
        except (KeyboardInterrupt, EOFError):
            return False
        if pressed == "q":
            return False
        if pressed in ("b", "s"):
            session.back() if pressed == "b" else session.skip()
            return True
        type = item.prelabel if pressed in ("\r", "\n") else KEYS.get(pressed)
        if type is not None:
            session.answer(type)
            console.print(f"  {worded(type)}", style="bold", markup=False)
            return True
        console.print("  no such answer here", style="red")


def _shown(item: Item, session: Session, where: str) -> Table:
    """The object, all that is known of it, and the keys."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        ("", f"--- {session.place + 1} of {len(session.queue)}, {session.done} labelled ---"),
        ("object", item.object),
        ("source", item.source),
        ("follow-up", item.caption),
        ("change", f"{item.change} of {item.sample}"),
        ("visible", visibility(item)),
        ("verdict", verdict(item)),
        ("pre-label", worded(item.prelabel) if item.prelabel else "none; choose"),
    ]
    if session.label is not None:
        rows.append(("you said", worded(session.label.type)))
    if where:
        rows.append(("pictures", where))
    for name, text in rows:
        shown = Text(text)
        if name in ("source", "follow-up"):
            shown.highlight_words([item.object], "bold reverse")
        table.add_row(name, shown)
    for pressed, type in KEYS.items():
        table.add_row(Text(f"  [{pressed}]"), Text(worded(type)))
    enter = "[Enter] confirm  " if item.prelabel else ""
    table.add_row("", Text(f"{enter}[b]ack  [s]kip  [q]uit"))
    return table


def _written(pictures: Pictures, item: Item, folder: Path) -> str:
    """Both pictures as files; their paths, or "" where there are none."""
    pair = pictures.of(item)
    if pair is None:
        return ""
    paths = []
    for name, picture in zip(("source", "follow-up"), pair, strict=True):
        path = folder / f"{item.question}-{name}.{picture.ending}"
        path.write_bytes(picture.data)
        paths.append(str(path))
    return "  ".join(paths)
