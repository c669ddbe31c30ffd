"""Answers of a model as JSON, the form in which the journal keeps answers to source images."""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import one_line
from ..types import Mask, PairedAnswer, Unanswered, Value
from ..utils.image_files import MAX_PIXELS
from .rows import damaged


def to_json(value: Value) -> Any:
    """Return an answer as JSON: numbers and words unchanged, others as an object.

    A mask becomes packed bits, an unanswered question its reason, a paired answer both answers.
    """
    if isinstance(value, Unanswered):
        return {"unanswered": value.reason}
    if isinstance(value, PairedAnswer):
        return {"a": to_json(value.a), "b": to_json(value.b)}
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, np.ndarray):
        bits = zlib.compress(np.packbits(value).tobytes())
        return {"mask": base64.b64encode(bits).decode(), "shape": list(value.shape)}
    return float(value)


def writable(text: str) -> str:
    """Return the text with a "?" for each lone surrogate, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def from_json(encoded: Any, where: str = "journal") -> Value:
    """Return the answer that ``to_json`` encoded.

    Args:
        encoded: The JSON value.
        where: The row that it comes from, for the message.

    Raises:
        JournalError: ``to_json`` cannot have written the value. Sizes are checked before
            anything is unpacked.
    """
    if isinstance(encoded, str):
        return encoded
    try:
        if not isinstance(encoded, dict):
            return float(encoded)
        if "unanswered" in encoded:
            return Unanswered(str(encoded["unanswered"]))
        if "a" in encoded:
            return PairedAnswer(from_json(encoded["a"], where), from_json(encoded["b"], where))
        return _mask(encoded)
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise damaged(where, "an answer", f"something else ({one_line(error)})") from None


def _mask(encoded: Mapping[str, Any]) -> Mask:
    """Return a mask (H, W) of bool; raise ValueError if its shape and bits do not fit."""
    shape = encoded["shape"]
    if not isinstance(shape, list) or [type(side) for side in shape] != [int, int]:
        raise ValueError("the shape of a mask is two whole numbers")
    height, width = shape
    if min(shape) < 0 or height * width > MAX_PIXELS:
        raise ValueError(f"a mask of {height} x {width} pixels")
    expected = (height * width + 7) // 8
    unpacking = zlib.decompressobj()
    packed = base64.b64decode(encoded["mask"], validate=True)
    bits = unpacking.decompress(packed, expected + 1)  # never more, whatever the bytes say
    if len(bits) != expected or not unpacking.eof:
        raise ValueError(f"a mask of {height} x {width} pixels with other bits")
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=height * width)
    return flags.astype(bool).reshape(height, width)


def parsed(text: Any, where: str, kind: type = object) -> Any:
    """Return the JSON in a field of the journal.

    Args:
        text: Content of the field.
        where: Table, row and field, for the message.
        kind: The expected type, list or dict.

    Raises:
        JournalError: The field holds anything else.
    """
    try:
        value = json.loads(text)
        if not isinstance(value, kind):
            raise ValueError(f"a {type(value).__name__} is no {kind.__name__}")
        return value
    except (TypeError, ValueError, RecursionError) as error:
        got = f"something else ({one_line(error)[:80]})"
        raise damaged(f"journal: {where}", "JSON", got) from None
