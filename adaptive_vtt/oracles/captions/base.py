"""The parts a caption audit is put together from; each can be exchanged."""

from typing import Protocol

from ...types import Box, Image
from ...types import Filler as Filler


class Reader(Protocol):
    """Finds the objects a caption names."""

    def objects(self, caption: str) -> tuple[str, ...]:
        """Lower-case noun phrases, each once, in the order of the caption."""


class Same(Protocol):
    """Decides whether two words (or phrases) mean the same object."""

    def __call__(self, one: str, other: str) -> bool:
        """Symmetric; True for equal words."""


class Detector(Protocol):
    """Finds things in images."""

    def detect(self, image: Image) -> tuple[Box, ...]:
        """What is in H x W x C uint8, surest first; label "" where the kind is not known."""
