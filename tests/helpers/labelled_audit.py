"""A small audit of captions in a journal, and people's labels of its findings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.engine.settings import describe_space
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.journal.rows import AnswerRow, CallRow, DrawRow
from adaptive_vtt.models.local.recorded import COLUMNS
from adaptive_vtt.people.captions import Item, items
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.utils.image_codec import png

NOON = "2024-05-31T12:00:00Z"


def entry(name: str, rule: int | None = None, type: str | None = None, **over: Any) -> Any:
    """Return an object as the oracle journals it."""
    return {
        "name": name,
        "boxes": [[2, 3, 9, 8]],
        "visible": 0.97,
        "status": "retained",
        "named": rule is None,
        "rule": rule,
        "type": type,
        **over,
    }


def details(*objects: Any, **over: Any) -> dict[str, Any]:
    return {
        "source": "a dog on a table",
        "caption": "a table",
        "reduction": "crop 0,0,10,10",
        "size": [16, 16],
        "boxes": [["dog", 2, 3, 9, 8]],
        "objects": list(objects),
        **over,
    }


CASES = [
    details(entry("dog", 1, "2.2"), entry("table")),
    details(entry("dog"), entry("table", visible=0.5, status="ambiguous")),
    details(entry("dog", 2, "3"), entry("table", 1, None)),
    details(entry("dog"), entry("table", visible=None, status="unlocated", boxes=[])),
]


@pytest.fixture
def space() -> QuestionSpace:
    """Return a space of 4 images, as many as CASES, with 1 concept and 5 follow-ups each."""
    return QuestionSpace(tiny_dataset(4, 1), ["brightness_up"])


def fill(journal: Journal, space: QuestionSpace, cases: list[Any] = CASES) -> Journal:
    """Journal an audit of the first follow-up of each image; ``cases`` are the answers' details."""
    settings = {
        "seed": 3,
        "strategy": "random",
        "model": "test",
        "exploration": 0.0,
        "candidates": 1,
        "answers": "one",
    }
    journal.set_facts(space=describe_space(space), settings=settings, key="k")
    step = len(space.variants)
    rows = [
        DrawRow(k, k * step, k * step, f"s{k}", k, 0.1, b"", {}, 0.0) for k in range(len(cases))
    ]
    journal.add(rows)
    thumbnail = png(np.full((6, 8, 3), 7, np.uint8))
    for row, case in zip(rows, cases, strict=True):
        answer = AnswerRow(row.question, row.call, 1, 1.0, None, 0.5, None, "a table", case)
        pictures = (thumbnail, thumbnail) if row.draw == 0 else None
        journal.add([CallRow(row.call, 1.0, 0.0, (answer,), pictures)])
    return journal


@pytest.fixture
def journal(space: QuestionSpace) -> Journal:
    return fill(MemoryJournal(), space)


@pytest.fixture
def found(journal: Journal) -> list[Item]:
    return items(journal)


@pytest.fixture
def folder(tmp_path: Path, space: QuestionSpace) -> Path:
    """Return an audit's folder with a journal."""
    journal = fill(SQLiteJournal(tmp_path / "journal.db"), space)
    journal.close()
    return tmp_path


def answers(rows: Sequence[tuple[str, ...]]) -> pd.DataFrame:
    """Return a table of card, question, reader, answer and time (default: NOON)."""
    return pd.DataFrame([(*row, NOON)[: len(COLUMNS)] for row in rows], columns=[*COLUMNS])


def labels(*rows: tuple[Item, str, str]) -> pd.DataFrame:
    """Return a table of readers' labels of objects: item, reader, label."""
    return answers([(*item.key, reader, label) for item, reader, label in rows])
