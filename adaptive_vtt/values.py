"""What a model said, as JSON: how answers to source images stand in the journal."""

import base64
import zlib
from typing import Any

import numpy as np

from .models.base import Unanswered, Value


def to_json(value: Value) -> Any:
    """Numbers and words as they are; a mask as packed bits; what is unanswered as its reason."""
    if isinstance(value, Unanswered):
        return {"unanswered": value.reason}
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, np.ndarray):
        bits = zlib.compress(np.packbits(value).tobytes())
        return {"mask": base64.b64encode(bits).decode(), "shape": list(value.shape)}
    return float(value)


def writable(text: str) -> str:
    """The text without what no file can hold (halves of characters)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def from_json(said: Any) -> Value:
    """The value that ``to_json`` made this of."""
    if isinstance(said, str):
        return said
    if not isinstance(said, dict):
        return float(said)
    if "unanswered" in said:
        return Unanswered(said["unanswered"])
    height, width = said["shape"]
    bits = np.frombuffer(zlib.decompress(base64.b64decode(said["mask"])), np.uint8)
    return np.unpackbits(bits, count=height * width).astype(bool).reshape(height, width)
