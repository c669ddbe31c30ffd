"""The form as one page with everything inside, to be opened in any browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..oracles.caption_rules import ERROR_TYPES
from .item_pictures import Pictures
from .items import NONE, Item
from .labels import COLUMNS, Labels
from .shared_form import add_picture, store, write_form
from .wording import verdict, visibility

TEMPLATE = Path(__file__).parent / "form.html"


def write_page(
    path: Path,
    queue: Sequence[Item],
    inspector: str,
    mine: Labels,
    pictures: Pictures,
    audit: Any,
) -> None:
    """Writes the form for ``queue``; ``mine`` are the inspector's labels so far.

    ``audit``: JSON values that tell this audit from others; what a browser keeps of answers
    is kept apart by them.
    """
    content = _content(queue, inspector, mine, pictures, audit)
    title = f"Labels by {inspector}"
    write_form(path, TEMPLATE, content, title=title, things="labels", option="")


def _content(
    queue: Sequence[Item], inspector: str, mine: Labels, pictures: Pictures, audit: Any
) -> dict[str, Any]:
    """What shared_form.js and form.js work on."""
    shown: dict[str, str] = {}
    by_question: dict[int, list[str]] = {}
    for item in queue:
        if item.question not in by_question:
            pair = pictures.of(item) or ()
            by_question[item.question] = [add_picture(picture, shown) for picture in pair]
    return {
        "store": store("avtt-labels", audit, inspector),
        "person": inspector,
        "columns": COLUMNS,
        "choices": [(NONE, ""), *ERROR_TYPES.items()],  # pairs: JavaScript would put "3" first
        "none": NONE,
        "pictures": shown,
        "items": [_entry(item, by_question[item.question]) for item in queue],
        "labels": [
            [label.question, label.object, label.type, label.time.isoformat()]
            for label in mine.values()
        ],
    }


def _entry(item: Item, pictures: Sequence[str]) -> dict[str, Any]:
    return {
        "question": item.question,
        "object": item.object,
        "sample": item.sample,
        "change": item.change,
        "source": item.source,
        "caption": item.caption,
        "size": item.size,
        "boxes": item.boxes,
        "visible": visibility(item),
        "verdict": verdict(item),
        "reported": item.reported,
        "prelabel": item.prelabel,
        "pictures": pictures,
    }
