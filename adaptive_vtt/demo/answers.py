"""Answers of the demo's server: the bundled classifier's predictions, in words.

The classifier knows the 14 concepts of the bundled pictures of clothes. A question about anything
else, or with options to choose from, gets a guess, which is the same whenever it is asked again.
"""

import hashlib
import re
from collections.abc import Mapping

import cv2

from ..datasets.formats.fashion_mnist import CONCEPT_NAMES
from ..errors import InputError
from ..types import Image
from ..utils.random_streams import generator

Reply = Mapping[str, float]
"""The possible replies to one question -> how likely each is; they sum to 1."""

_NUMBERED = re.compile(r"^\s*(?:Question\s+)?(\d+)[.:)]\s+.*\?", re.IGNORECASE)
_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s+\S", re.MULTILINE)
_LONGEST_FIRST = sorted(CONCEPT_NAMES, key=len, reverse=True)  # "t-shirt" before "shirt"


class Classifier:
    """Bundled classifier that answers questions about pictures of clothes.

    Args:
        error_rate: Share of its answers that are reversed, from 0 to 1.
        seed: Seed that chooses these answers, and of all guesses.

    Raises:
        InputError: The share is below 0 or above 1.
    """

    name = "demo-classifier"

    def __init__(self, error_rate: float = 0.0, seed: int = 0) -> None:
        if not 0 <= error_rate <= 1:
            raise InputError(f"error_rate: expected a share between 0 and 1, got {error_rate}")
        self._error_rate, self._seed = error_rate, seed

    def replies(self, image: Image | None, prompt: str) -> list[Reply]:
        """Return a reply to each question of a prompt.

        Args:
            image: H x W x 3 of uint8; None if none was sent.
            prompt: A question that names a concept, or several, numbered from 1, a line each.
        """
        return [self._reply(image, question) for question in _questions(prompt)]

    def _reply(self, image: Image | None, question: str) -> Reply:
        concept, options = _concept(question), _OPTION.findall(question)
        pixels = b"" if image is None else image.tobytes()
        key = hashlib.blake2b(pixels + (concept or question).encode(), digest_size=16).hexdigest()
        guess, reversal = generator(self._seed, f"demo answer/{key}").random(2).tolist()
        if len(options) > 1:
            chosen = options[int(guess * len(options))]
            rest = dict.fromkeys(options, 0.5 / len(options))
            return rest | {chosen: rest[chosen] + 0.5}
        yes = guess
        if image is not None and concept is not None:
            from .fashion_cnn import SIDE, predict  # torch, which --help does without

            small = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
            yes = float(predict([small])[0, CONCEPT_NAMES.index(concept)])
            yes = 1 - yes if reversal < self._error_rate else yes
        return {"Yes": yes, "No": 1 - yes}


def _questions(prompt: str) -> list[str]:
    """Return the numbered questions of a prompt, each with its further lines, or the prompt."""
    blocks: list[str] = []
    for line in prompt.splitlines():
        match = _NUMBERED.match(line)
        if match and int(match[1]) == len(blocks) + 1:
            blocks.append(line)
        elif blocks:
            blocks[-1] += "\n" + line
    return blocks if len(blocks) > 1 else [prompt]


def _concept(question: str) -> str | None:
    """Return the concept that a question names, None if it names none."""
    for concept in _LONGEST_FIRST:
        if re.search(rf"\b{re.escape(concept)}s?\b", question, re.IGNORECASE):
            return concept
    return None
