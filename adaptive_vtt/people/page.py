"""The page for labelling: one HTML file that loads nothing else, for any browser."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from ..models.local.recorded import COLUMNS, MAX_WORDS, NO, UNSURE, YES
from ..results.report.frame import framed
from ..results.report.section import data
from ..types import JsonObject
from ..utils.files import write_text
from .cards import NONE, Card, Shown, Task

HERE = Path(__file__).parent


def write_page(
    path: Path, task: Task, cards: Sequence[Card], answers: pd.DataFrame, reader: str, audit: Any
) -> None:
    """Write the page of one reader.

    Args:
        path: The file.
        task: The kind of labelling.
        cards: The cards, in this order.
        answers: Earlier answers.
        reader: The reader's name.
        audit: JSON values that identify this audit. A browser keeps answers separately for each
            audit, kind of labelling and reader.
    """
    pictures: dict[str, str] = {}
    own = answers.loc[answers["reader"] == reader, ["card", "question", "answer", "time"]]
    whose = _digest(json.dumps([audit, task.title], sort_keys=True))
    content = {
        "store": f"avtt-answers/{whose}/{reader}",
        "person": reader,
        "columns": COLUMNS,
        "unsure": UNSURE,
        "none": NONE,
        "signs": {YES: "y", NO: "n", UNSURE: "u", NONE: "0"},
        "most_words": MAX_WORDS,
        "pictures": pictures,
        "cards": [_entry(card, task.show(card), pictures) for card in cards],
        "answers": own.to_numpy().tolist(),
    }
    html = framed(
        HERE / "cards.html",
        scripts=[HERE / "cards.js"],
        styles=[HERE / "cards.css"],
        data=data("form-data", content),
        title=f"{task.title}: {reader}",
        about=task.about,
        option=f"{task.option} " if task.option else "",
    )
    write_text(path, html)


def _entry(card: Card, shown: Shown, pictures: dict[str, str]) -> JsonObject:
    entry = asdict(card)
    del entry["question"], entry["call"]
    for one in entry["asked"]:
        one["choices"] = list(one["choices"].items())  # pairs: JavaScript would put "3" first
    names = [_digest(picture) for picture in shown.pictures]
    pictures.update(zip(names, shown.pictures, strict=True))  # each only once
    return entry | {"pictures": names, "words": shown.words}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
