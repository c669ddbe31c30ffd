"""Checks that several suites share; they need no test library."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AvttError
from ...types import Image


def error_of(kind: type[AvttError], action: Callable[[], Any]) -> str:
    """What an action says that is to be refused; fails where it is not, or not in one line."""
    try:
        action()
    except kind as error:
        said = str(error)
    else:
        raise AssertionError(f"expected {kind.__name__}, got no error")
    assert_line(said)
    return said


def assert_line(text: object) -> None:
    """A text of one line that says something."""
    assert isinstance(text, str), f"expected a text, got {type(text).__name__}"
    assert text.strip(), "expected a text that says something, got an empty one"
    assert "\n" not in text, f"expected one line, got {text!r}"


def assert_image(image: Image) -> None:
    """Check that an image is H x W x C of uint8, and not empty."""
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.size > 0


def assert_json(value: object) -> None:
    """What JSON gives back as it was: no NaN, no array, no tuple."""
    assert json.loads(json.dumps(value, allow_nan=False)) == value
