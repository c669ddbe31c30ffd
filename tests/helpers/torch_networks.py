"""Images and prompts for networks of torch's libraries."""

from typing import Any

import cv2
import numpy as np
import pytest

from adaptive_vtt.types import Answer, Ask, Prompt

DRAWS = np.random.default_rng(0)
SHOWN = [
    DRAWS.integers(0, 256, (40, 48, 3)).astype(np.uint8),
    np.full((30, 36, 1), 90, np.uint8),
    cv2.resize(DRAWS.integers(0, 256, (9, 9, 3)).astype(np.uint8), (64, 64)),
]
PLAIN = {"mean": [0.0], "std": [1.0]}


def prompts(*concepts: str, shown: list[Any] = SHOWN, ask: Ask | None = None) -> list[Prompt]:
    asks = () if ask is None else (ask,)
    return [Prompt(im, concepts, f"s{k}", "identity", 0, asks) for k, im in enumerate(shown)]


def answered(model: Any, asked: list[Prompt]) -> list[Any]:
    answers = [answer.values for answer in model.ask(asked) if isinstance(answer, Answer)]
    return [values[0] if len(values) == 1 else values for values in answers]


def needs(library: str) -> Any:
    """Return a library. Skip the test if it is missing, or built for another torch."""
    try:
        return pytest.importorskip(library)
    except RuntimeError as error:
        pytest.skip(f"{library}: {error}")
