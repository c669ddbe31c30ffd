"""Language and localisation: what captions name, and where it is in the picture."""

from inspect import isclass
from pathlib import Path
from typing import Any, Protocol

from ...errors import InputError
from ...types import Box, Image
from ...utils.other_code import load_object
from ...utils.registry import Registry

TAGGERS = Registry("tagger", "taggers", ("objects",), {})
"""Readers of captions from packages; spaCy's models are not among them."""

DETECTORS = Registry(
    "detector",
    "detectors",
    ("detect", "fingerprint"),
    {"onnx": f"{__name__}.detectors:OnnxDetector", "regions": f"{__name__}.regions:Regions"},
)
"""Every kind of detector that a SPEC.toml may name."""


class Reader(Protocol):
    """Finds the objects a caption names."""

    def objects(self, caption: str) -> tuple[str, ...]:
        """Return the objects as lower-case noun phrases, each once, in the caption's order."""


class Same(Protocol):
    """Decides whether two words (or phrases) mean the same object."""

    def __call__(self, one: str, other: str) -> bool:
        """Return whether they do, in any order; True for equal words."""


class Detector(Protocol):
    """Finds things in images."""

    def detect(self, image: Image) -> tuple[Box, ...]:
        """Return boxes around things in an image (H x W x C uint8), surest first.

        The label of a thing of unknown kind is "".
        """

    @property
    def fingerprint(self) -> str:
        """Equal for detectors that find the same boxes: kind, file content, options."""


def callable_of(target: str, base: Path, field: str) -> Any:
    """Return the function that a SPEC.toml in the folder ``base`` names, or an object of the class.

    Raises:
        InputError: It cannot be imported or called. The message names ``field``.
    """
    made = load_object(target, base, field)
    made = made() if isclass(made) else made
    if not callable(made):
        raise InputError(f"{field}: expected {target!r} to be a function, got {made!r:.80}")
    return made
