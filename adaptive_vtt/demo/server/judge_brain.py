"""The demo server as a judge: it reads replies of the demo brain, vague ones too.

What it reads are the prompts of ``oracles.judge_models``: words without an image in which a reply
stands between two marks. It knows the letters and texts of options and which of a list is meant
("the second one"); it does as no reply says.
"""

import re
from collections.abc import Sequence

from ...oracles.choice_extraction import extract
from ...types import Image
from .brain import Brain
from .demo_brain import ORDINALS, Reply
from .reading import fold, letter, options

UNCLEAR = "Z"
_MARKED = re.compile(r"\n(={3}[0-9a-f]{12}={3})\n(.*)\n\1\n", re.DOTALL)
_TRUTH = re.compile(r"^Right answer: (.*)$", re.MULTILINE)


class JudgeBrain:
    """Reads replies where it is asked to, and is ``brain`` where it is asked anything else."""

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
