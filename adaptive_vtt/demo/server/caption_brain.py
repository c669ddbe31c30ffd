"""The model behind the demo server when it describes pictures."""

from collections.abc import Sequence

from ...errors import unknown
from ...types import Image
from ..scenery.kinds import KINDS
from ..template_captioner import TemplateCaptioner, Told
from .demo_brain import Reply

NO_IMAGE = "There is no image to describe."


class CaptionBrain:
    """Answers with ``captioner``'s caption, whatever is asked of an image.

    ``probabilities`` are 1 for kinds (``scenery.kinds``) that the caption names, whatever
    stands behind the name, else 0.
    """

    concepts = tuple(KINDS)

    def __init__(self, captioner: TemplateCaptioner) -> None:
        self.captioner = captioner

    def answer(self, image: Image | None, question: str) -> Reply:
        words = NO_IMAGE if image is None else self.captioner.caption(image)
        return Reply(words, words, {words: 1.0}, None, None, None, 0.0)

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        return [self.answer(image, prompt)]

    def probabilities(self, image: Image, concepts: Sequence[str]) -> list[float]:
        for concept in concepts:
            if concept not in self.concepts:
                raise unknown("concept", concept, self.concepts)
        claimed = _claimed(self.captioner.explain(image))
        return [float(concept in claimed) for concept in concepts]


def _claimed(told: Told) -> set[str]:
    """The kinds that a caption says are there."""
    right = {kind for _, kind in told.named if kind is not None} - set(told.misclassified)
    return right | set(told.misclassified.values()) | set(told.fabricated)
