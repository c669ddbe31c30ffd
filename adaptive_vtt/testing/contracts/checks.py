"""Checks that the contract suites share; they need no test library."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AvttError
from ...types import Image


class Contract:
    """Base class of contract suites; users define ``make``, which returns the part to test."""

    def make(self) -> Any:
        raise TypeError(f"{type(self).__name__} defines no make")


def error_of(kind: type[AvttError], action: Callable[[], Any]) -> str:
    """Return the one-line message of the error that an action raises.

    Raises:
        AssertionError: The action raises no error of ``kind``, or a message of several lines.
    """
    try:
        action()
    except kind as error:
        assert_line(str(error))
        return str(error)
    raise AssertionError(f"expected {kind.__name__}, got no error")


def assert_line(text: object) -> None:
    """Check that ``text`` is a single line that is not empty."""
    assert isinstance(text, str), f"expected a text, got {type(text).__name__}"
    assert text.strip(), "expected a text, got an empty one"
    assert text.splitlines() == [text], f"expected one line, got {text!r}"


def assert_image(image: Image) -> None:
    """Check that an image is H x W x C of uint8 and has pixels."""
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.size > 0


def assert_json(value: object) -> None:
    """Check that JSON represents a value exactly: it has no NaN, array or tuple."""
    assert json.loads(json.dumps(value, allow_nan=False)) == value
