"""The form as one page with everything inside, to be opened in any browser."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..oracles.caption_rules import ERROR_TYPES
from ..utils.files import write_text
from .item_pictures import Picture, Pictures
from .items import NONE, Item
from .labels import COLUMNS, Labels
from .wording import verdict, visibility

HERE = Path(__file__).parent
STYLE = HERE.parent / "report" / "page.css"


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
    html = environment.get_template("form.html").render(
        inspector=inspector,
        data=data("form-data", _content(queue, inspector, mine, pictures, audit)),
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup((HERE / "form.js").read_text(encoding="utf-8")),
    )
    write_text(path, html)


def _content(
    queue: Sequence[Item], inspector: str, mine: Labels, pictures: Pictures, audit: Any
) -> dict[str, Any]:
    """What form.js works on."""
    shown: dict[str, str] = {}
    by_question: dict[int, list[str]] = {}
    for item in queue:
        if item.question not in by_question:
            pair = pictures.of(item) or ()
            by_question[item.question] = [_kept(picture, shown) for picture in pair]
    digest = hashlib.blake2b(json.dumps(audit, sort_keys=True).encode(), digest_size=8)
    return {
        "store": f"avtt-labels/{digest.hexdigest()}/{inspector}",
        "inspector": inspector,
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


def _kept(picture: Picture, shown: dict[str, str]) -> str:
    """Adds a picture, each only once; its name."""
    name = hashlib.blake2b(picture.data, digest_size=8).hexdigest()
    shown.setdefault(name, picture.address)
    return name


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
