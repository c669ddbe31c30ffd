"""Rows of EndoBench's files, and a model to ask about them."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.datasets.vqa.taxonomy import SCENES, TASKS
from adaptive_vtt.models import Answer, Prompt

COLUMNS = [
    "index", "image", "image_path", "question", "category", "task", "subtask", "scene", "answer",
    "dataset", "gt", *"ABCDEF",
]  # fmt: skip


def picture(seed: int, side: int = 40) -> str:
    """Return a JPEG of ``side`` pixels in base64."""
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return base64.b64encode(cv2.imencode(".jpg", pixels)[1].tobytes()).decode()


def row(number: int, **cells: str) -> dict[str, str]:
    task = TASKS[number % 3]
    plain = {
        "index": str(number),
        "image": picture(number),
        "image_path": f"image_{number}.jpg",
        "question": f"What is this ({number})?",
        "category": task.category,
        "task": task.name,
        "subtask": task.name,
        "scene": list(SCENES)[number % 2],
        "answer": "B",
        "dataset": "Kid",
        "gt": "two",
        "A": "one",
        "B": "two",
        "C": "three",
        "D": "four",
        "E": "",
        "F": "",
    }
    return plain | cells


def write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, sep="\t", index=False)
    return path


class Clever:
    """Model that is right about the first task, wrong about the second, and refuses the third."""

    answers = "one"
    name = "clever"

    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        replies = {TASKS[0].name: "(B) two", TASKS[1].name: "C"}
        refusal = "I'm sorry, but I can't assist with that."
        assert all(prompt.asks[0].options for prompt in prompts)
        return [Answer((replies.get(p.concepts[0], refusal),), 1.0) for p in prompts]
