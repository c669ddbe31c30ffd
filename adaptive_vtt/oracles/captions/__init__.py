"""Captions: read the objects that they name, and locate these objects in the image."""

from inspect import isclass
from pathlib import Path
from typing import Any, Protocol

from ...errors import InputError
from ...types import Box, Image
from ...utils.other_code import load_object
from ...utils.registry import Registry

TAGGERS = Registry("tagger", "taggers", ("objects",), {})
"""Readers of captions that other packages provide."""

DETECTORS = Registry(
    "detector",
    "detectors",
    ("detect", "fingerprint"),
    {"onnx": f"{__name__}.detectors:OnnxDetector", "regions": f"{__name__}.regions:Regions"},
)
"""Every kind of detector that a SPEC.toml may name."""


class Reader(Protocol):
    """Reader of the objects that a caption names."""

    def objects(self, caption: str) -> tuple[str, ...]:
        """Return the objects as noun phrases in lower case, without repetition, in their order."""


class Same(Protocol):
    """Function that decides whether two words (or phrases) mean the same object."""

    def __call__(self, one: str, other: str) -> bool:
        """Return whether they do, in any order; True for equal words."""


class Detector(Protocol):
    """Detector of objects in images."""

    def detect(self, image: Image) -> tuple[Box, ...]:
        """Return boxes around objects in an image, H x W x C of uint8, by decreasing score.

        The label of an object of unknown kind is "".
        """

    @property
    def fingerprint(self) -> str:
        """A text that identifies the detector: its kind, file content and options."""


def callable_of(target: str, base: Path, field: str) -> Any:
    """Return a function that a SPEC.toml names, or an object of a class that it names.

    Args:
        target: The name, "file.py:name" or "package.module:name".
        base: The folder of SPEC.toml.
        field: The option, for errors.

    Raises:
        InputError: The object cannot be imported or called.
    """
    function = load_object(target, base, field)
    function = function() if isclass(function) else function
    if not callable(function):
        raise InputError(f"{field}: expected {target!r} to be a function, got {function!r:.80}")
    return function
