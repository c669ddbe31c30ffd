"""The models behind the demo server when it describes pictures, or judges replies."""

import re
from collections.abc import Sequence

from ...errors import unknown
from ...oracles.choice_extraction import extract
from ...types import Image
from ..scene_plan import KINDS
from ..template_captioner import TemplateCaptioner, Told
from .demo_brain import ORDINALS, Brain, Reply, fold, letter, options

NO_IMAGE = "There is no image to describe."


class CaptionBrain:
    """Answers with ``captioner``'s caption, whatever is asked of an image.

    ``probabilities`` are 1 for kinds (``scene_plan.KINDS``) that the caption names, whatever
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


UNCLEAR = "Z"
_MARKED = re.compile(r"\n(={3}[0-9a-f]{12}={3})\n(.*)\n\1\n", re.DOTALL)
_TRUTH = re.compile(r"^Right answer: (.*)$", re.MULTILINE)


class JudgeBrain:
    """Reads replies where it is asked to, and is ``brain`` where it is asked anything else.

    What it reads are the prompts of ``oracles.judge_models``: words without an image in which a
    reply stands between two marks. It knows the letters and texts of options and which of a list
    is meant ("the second one"); it does as no reply says.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.brain.concepts

    def answer(self, image: Image | None, question: str) -> Reply:
        return self.answers(image, question)[0]

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        marked = _MARKED.search(prompt) if image is None else None
        if marked is None:
            return self.brain.answers(image, prompt)
        said = _read(prompt[: marked.start()], marked[2])
        return [Reply(said, said, {said: 1.0}, None, None, None, 0.0)]

    def probabilities(self, image: Image, concepts: Sequence[str]) -> list[float]:
        return self.brain.probabilities(image, concepts)


def _read(asked: str, reply: str) -> str:
    """The letter of the option that the reply means, or whether it agrees with the truth."""
    truth = _TRUTH.search(asked)
    if truth is not None:
        return "Yes" if fold(truth[1]) in fold(reply) else "No"
    listed = [*options(asked).values()]
    found = [k for k, word in enumerate(ORDINALS[: len(listed)]) if f"the {word} one" in reply]
    return letter(found[0]) if len(found) == 1 else extract(reply, listed).letter or UNCLEAR
