"""Checks that several suites share; they need no test library."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AvttError
from ...types import Image


class Contract:
    """A suite: its subclasses say what they ``make``."""

    def make(self) -> Any:
        raise TypeError(f"{type(self).__name__} defines no make")


def error_of(kind: type[AvttError], action: Callable[[], Any]) -> str:
    """Return the one line with which an action is refused. Raise AssertionError where it is not."""
    try:
        action()
    except kind as error:
        assert_line(str(error))
        return str(error)
    raise AssertionError(f"expected {kind.__name__}, got no error")


def assert_line(text: object) -> None:
    """Check that a text is one line that is not empty."""
    assert isinstance(text, str), f"expected a text, got {type(text).__name__}"
    assert text.strip(), "expected a text, got an empty one"
    assert text.splitlines() == [text], f"expected one line, got {text!r}"


def assert_image(image: Image) -> None:
    """Check that an image is H x W x C of uint8, and not empty."""
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.size > 0


def assert_json(value: object) -> None:
    """Check that JSON returns a value unchanged: it has no NaN, no array, no tuple."""
    assert json.loads(json.dumps(value, allow_nan=False)) == value
