"""What the demo server needs to know of whatever answers for it."""

from collections.abc import Sequence
from typing import Protocol

from ...types import Image
from .demo_brain import Reply


class Brain(Protocol):
    """Answers questions about images (H x W x 3 uint8); the same ones always alike.

    ``concepts``: what can be asked about by name.
    """

    @property
    def concepts(self) -> tuple[str, ...]:
        """What it tells the presence of."""

    def answer(self, image: Image | None, question: str) -> Reply:
        """The reply to one question: a concept's name, or a prompt in words."""

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        """A reply to each question of a prompt, which may number several."""

    def probabilities(self, image: Image, concepts: Sequence[str]) -> list[float]:
        """P(yes) of each concept; raises InputError for one it does not know."""
