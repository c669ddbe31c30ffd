"""Common parts of chat protocols: the question of a conversation, and the form of the answer."""

import base64
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from adaptive_vtt.types import Image

from .fake_models import Reply

_TILE, _PER_TILE, _PER_IMAGE = 512, 170, 85


@dataclass(frozen=True)
class Asked:
    """Text and image of the message to answer, and the tokens of all messages."""

    prompt: str
    image: Image | None
    tokens: int


def asked_in(messages: Any, image_in: Callable[[Any], str | None]) -> Asked:
    """Return the message to answer: the last one of a user with an image, or else the last one.

    Earlier messages are examples. A token is four characters of a prompt; an image has 85, and 170
    per tile of 512 x 512 pixels. ``image_in`` returns the base64 of a part's image.
    """
    tokens, prompt, shown = 0, "", None
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [part["text"] for part in parts if part["type"] == "text"]
        images = [_decoded(data) for part in parts if (data := image_in(part)) is not None]
        tokens += sum(math.ceil(len(text) / 4) for text in texts)
        for image in images:
            height, width = image.shape[:2]
            tokens += _PER_IMAGE + _PER_TILE * math.ceil(height / _TILE) * math.ceil(width / _TILE)
        if message["role"] == "user" and (images or shown is None):
            prompt, shown = "\n".join(texts), images[-1] if images else shown
    return Asked(prompt, shown, tokens)


def listed(replies: Sequence[Reply]) -> str:
    """Return the text of the replies; several replies are a line each, with the choice alone."""
    if len(replies) == 1:
        return replies[0].words
    return "\n".join(f"{n}: {reply.choice}" for n, reply in enumerate(replies, start=1))


def pieces(words: str) -> list[str]:
    """Return the tokens of an answer: one per word, with the space before it."""
    return re.findall(r"\s*\S+", words)


def filled(schema: Any, replies: Sequence[Reply]) -> dict[str, float]:
    """Return P(yes) for each property of a JSON schema; names of several are question numbers."""
    return {
        name: round(replies[int(name) - 1 if name.isdigit() else 0].yes, 6)
        for name in schema["properties"]
    }


def _decoded(data: str) -> Image:
    """Return the image (H x W x 3 RGB uint8) of a file in base64."""
    image = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
