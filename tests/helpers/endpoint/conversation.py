"""What chat protocols have in common: which question is asked, and what it is answered in."""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from adaptive_vtt.types import Image, JsonObject
from adaptive_vtt.utils.http_server import Rejected
from adaptive_vtt.utils.image_codec import declared_size

from .fake_models import FakeModel, Reply, fold

MAX_PIXELS = 4096 * 4096


def decoded(text: str, most_pixels: int = MAX_PIXELS) -> Image:
    """Base64 of an image file, as a data URI or bare, as H x W x 3 RGB uint8.

    Raises Rejected: 400 for what is no image, 413 for one above ``most_pixels``, and 400
    for another address, as nothing is fetched.
    """
    if text.startswith(("http:", "https:", "file:")):
        raise Rejected(400, "expected an image as a data URI; none is fetched from elsewhere")
    encoded = text.partition(",")[2] if text.startswith("data:") else text
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Rejected(400, "expected an image in base64") from None
    size = declared_size(data)
    if size is None:
        raise Rejected(400, "expected an image file: PNG, JPEG, GIF, BMP, TIFF or WebP")
    if size[0] * size[1] > most_pixels:
        raise Rejected(
            413, f"expected at most {most_pixels} pixels, got an image of {size[0]} x {size[1]}"
        )
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise Rejected(400, "the image cannot be decoded")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


_TILE, _PER_TILE, _PER_IMAGE = 512, 170, 85


@dataclass(frozen=True)
class Asked:
    """The words of the message that is answered, its image, and the tokens of all messages."""

    prompt: str
    image: Image | None
    tokens: int


Parts = Callable[[Any], tuple[list[str], list[str]]]
"""From a message's content to its texts, and its images in base64."""


def asked_in(messages: Any, parts: Parts, most_pixels: int) -> Asked:
    """The last user message that has an image, or the last one: those before are examples.

    Tokens are counted by this server's own rule: four characters each in a prompt, and 85 + 170
    per tile of 512 x 512 pixels for an image. Raises Rejected for what are no messages.
    """
    if not isinstance(messages, list) or not messages:
        raise Rejected(400, "expected messages, a list that is not empty", param="messages")
    tokens, prompt, shown = 0, "", None
    for message in messages:
        if not isinstance(message, dict):
            raise Rejected(400, "expected each message as an object", param="messages")
        texts, sources = parts(message.get("content"))
        images = [decoded(source, most_pixels) for source in sources]
        tokens += sum(math.ceil(len(text) / 4) for text in texts)
        tokens += sum(_image_tokens(image) for image in images)
        if message.get("role") == "user" and (images or shown is None):
            prompt, shown = "\n".join(texts), images[-1] if images else shown
    return Asked(prompt, shown, tokens)


def listed(replies: Sequence[Reply]) -> str:
    """What is said in plain words: of several questions a line each, without rambling."""
    if len(replies) == 1:
        return replies[0].words
    return "\n".join(f"{n}: {reply.choice}" for n, reply in enumerate(replies, start=1))


def pieces(words: str) -> list[str]:
    """The tokens of an answer: one per word, with the space before it."""
    return re.findall(r"\s*\S+", words)


def filled(
    schema: Any, replies: Sequence[Reply], fake: FakeModel, image: Image | None, name: str = ""
) -> Any:
    """What stands in a JSON schema's place ``name``: its properties are filled by name (a concept,
    or a question's number) and type. Raises Rejected for what is no schema."""
    if not isinstance(schema, dict):
        raise Rejected(400, "expected a JSON schema as an object", param="response_format")
    if schema.get("type") == "object":
        inner = schema.get("properties") or {}
        return {key: filled(inner[key], replies, fake, image, key) for key in inner}
    concepts = {_folded(concept): concept for concept in fake.concepts}
    if _folded(name) in concepts:
        return _value(schema, fake.answer(image, concepts[_folded(name)]))
    if name.isascii() and name.isdigit() and 1 <= int(name) <= len(replies):
        return _value(schema, replies[int(name) - 1])
    return _value(schema, replies[0])


def whole(asked: Mapping[str, Any], name: str, default: int) -> int:
    """A field that is a whole number above 0; raises Rejected for another."""
    value = asked.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or value < 1:
        raise Rejected(400, f"expected {name} as a whole number above 0, got {value!r}", param=name)
    return value


def content_parts(content: Any) -> list[JsonObject]:
    """The parts of a message's content, a text being one. Raises Rejected for others."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise Rejected(400, "expected content as text or a list of parts", param="messages")
    return content


def texts_of(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts among the parts of a message."""
    return [str(part.get("text", "")) for part in parts if part.get("type") == "text"]


def _folded(name: str) -> str:
    return fold(name.replace("_", " "))


def _value(schema: Mapping[str, Any], reply: Reply) -> Any:
    """One value of a schema: its type says what is wanted."""
    if "enum" in schema:
        same = [each for each in schema["enum"] if fold(str(each)) == fold(reply.choice)]
        return (same or schema["enum"])[0]
    plain = {
        "number": round(reply.yes, 6),
        "integer": int(reply.yes > 0.5),
        "boolean": reply.yes > 0.5,
        "array": [],
        "null": None,
    }
    return plain.get(schema.get("type", "string"), reply.choice)


def _image_tokens(image: Image) -> int:
    tiles = math.ceil(image.shape[0] / _TILE) * math.ceil(image.shape[1] / _TILE)
    return _PER_IMAGE + _PER_TILE * tiles
