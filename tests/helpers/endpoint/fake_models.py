"""Models behind the demo server: one answers at random, others describe pictures or judge replies.

All replies are a function of (seed, image, question), so a test can ask ``DemoModel`` directly for
the replies of a server.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from adaptive_vtt.experiments.reic.scene_plan import KINDS
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles.choice_extraction import extract
from adaptive_vtt.types import Image
from adaptive_vtt.utils.random_streams import generator

# -- reading prompts -----------------------------------------------------------------------

_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s*(\S.*?)\s*$")
_NUMBERED = re.compile(r"^\s*(?:Question\s+)?(\d+)[.:)]\s+.*\?", re.IGNORECASE)
_QUESTION = re.compile(r"[^.?!\n]*\?")


def numbered(prompt: str) -> list[str]:
    """Return the questions of a prompt that numbers them from 1, each with its further lines.

    A question begins with a number and has a question mark: "Question 2: ...?" or "2. ...?". A
    prompt with fewer than two such lines is one question.
    """
    blocks: list[str] = []
    for line in prompt.splitlines():
        match = _NUMBERED.match(line)
        if match and int(match[1]) == 1:
            blocks = []
        if match and int(match[1]) == len(blocks) + 1:
            blocks.append(line)
        elif blocks:
            blocks[-1] += "\n" + line
    return blocks if len(blocks) > 1 else [prompt]


def options(prompt: str) -> dict[str, str]:
    """Return the last list of lines "A. text", "B. text" ... in a prompt (or "A)", "(A)", "A:")."""
    texts: dict[str, str] = {}
    for line in prompt.splitlines():
        match = _OPTION.match(line)
        if match and match[1] == "A":
            texts = {}
        if match and match[1] == letter(len(texts)):
            texts[match[1]] = match[2]
    return texts if len(texts) > 1 else {}


def letter(place: int) -> str:
    """Return the letter of the option at ``place``: A, B ..."""
    return chr(ord("A") + place)


def fold(text: str) -> str:
    """Return a text for comparisons: in lower case, with single spaces."""
    return " ".join(text.lower().split())


def _concept(prompt: str, concepts: list[str]) -> str | None:
    for part in (*reversed(_QUESTION.findall(prompt)), prompt):
        words = fold(part.replace("_", " "))
        for concept in concepts:
            if re.search(rf"\b{re.escape(fold(concept.replace('_', ' ')))}s?\b", words):
                return concept
    return None


# -- answering -----------------------------------------------------------------------------

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_VAGUE = "Of those that you list it is the {ordinal} one, as far as can be seen."
"""A reply that identifies an option without its letter and its text."""

_RAMBLES = (
    "Let me look at this step by step. The view is of the colon and the mucosa is mostly well "
    "lit. One could think of {other} at first, but what is seen does not support it.\n\n"
    "Therefore, the answer is {choice}.",
    "First I consider the light, then the shape of the folds. A trained eye would weigh "
    "{other} too; on balance it is less likely.\n\nFinal answer: {choice}",
    "This is not easy to say from one frame. Parts of it are in shadow and {other} cannot be "
    "excluded outright. Having gone through all the signs, I conclude that the answer is "
    "{choice}.",
)


@dataclass(frozen=True)
class Reply:
    """The reply to one question.

    Attributes:
        words: The whole text.
        choice: The answer in it: Yes, No, or the letter of an option.
        likelihoods: Choice -> its probability; they sum to 1.
    """

    words: str
    choice: str
    likelihoods: Mapping[str, float]

    @property
    def yes(self) -> float:
        """P(yes), or the probability of the choice if the answers are not Yes and No."""
        return self.likelihoods.get("Yes", self.likelihoods[self.choice])


class FakeModel(Protocol):
    """Model that answers questions about images (H x W x 3 uint8), always in the same way."""

    @property
    def concepts(self) -> tuple[str, ...]:
        """Concepts that it recognises in a question."""

    def answer(self, image: Image | None, question: str) -> Reply:
        """The reply to one question: a concept's name, or a prompt in words."""

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        """A reply to each question of a prompt, which may number several."""


class DemoModel:
    """Model that answers by a random letter of the options, or by Yes or No.

    Args:
        concepts: Concepts that it recognises in a question.
        rambling: Share of answers that are buried in words.
        vague: Share of answers about options that name neither letter nor text.
        seed: Seed of the answers.
    """

    def __init__(
        self, concepts: Sequence[str], *, rambling: float = 0.0, vague: float = 0.0, seed: int = 0
    ) -> None:
        self.concepts = tuple(concepts)
        self.rambling, self.vague, self.seed = rambling, vague, seed

    def answer(self, image: Image | None, question: str) -> Reply:
        """Return the reply to a question: a concept's name, or a prompt in words."""
        pixels = b"" if image is None else image.tobytes()
        digest = hashlib.blake2b(pixels, digest_size=8).hexdigest()
        topic = _concept(question, sorted(self.concepts, key=len, reverse=True)) or fold(question)
        rng = generator(self.seed, f"demo answer/{digest}/{topic}")
        pick, sure, ramble, style, vague = rng.random(5).tolist()
        listed = options(question)
        choices = [*listed] or ["Yes", "No"]
        place = int(pick * len(choices))
        choice, rest = choices[place], (1 - sure) / len(choices)
        likelihoods = dict.fromkeys(choices, rest) | {choice: rest + sure}
        reply = Reply(choice, choice, likelihoods)
        if listed and vague < self.vague and place < len(ORDINALS):
            return replace(reply, words=_VAGUE.format(ordinal=ORDINALS[place]))
        if ramble < self.rambling:
            words = _RAMBLES[int(style * len(_RAMBLES))]
            other = next(name for name in choices if name != choice)
            return replace(reply, words=words.format(choice=choice, other=listed.get(other, other)))
        return reply

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        """Return a reply to each question of a prompt, which may number several."""
        return [self.answer(image, question) for question in numbered(prompt)]


# -- other fake models --------------------------------------------------------------------------


NO_IMAGE = "There is no image to describe."


class FakeCaptioner:
    """Model that answers every question about an image by the captioner's caption."""

    concepts = tuple(KINDS)

    def __init__(self, captioner: TemplateCaptioner) -> None:
        self.captioner = captioner

    def answer(self, image: Image | None, question: str) -> Reply:
        words = NO_IMAGE if image is None else self.captioner.caption(image)
        return Reply(words, words, {words: 1.0})

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        return [self.answer(image, prompt)]


UNCLEAR = "Z"
_MARKED = re.compile(r"\n(={3}[0-9a-f]{12}={3})\n(.*)\n\1\n", re.DOTALL)
_TRUTH = re.compile(r"^Right answer: (.*)$", re.MULTILINE)


class FakeJudge:
    """Model that judges replies, and answers other questions as ``fake`` does.

    It recognises prompts of ``oracles.judge_models``: texts without an image, with a reply between
    two marks. It understands letters, texts and places ("the second one") of options, and follows
    no instruction in a reply.
    """

    def __init__(self, fake: FakeModel) -> None:
        self.fake = fake

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.fake.concepts

    def answer(self, image: Image | None, question: str) -> Reply:
        return self.answers(image, question)[0]

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        marked = _MARKED.search(prompt) if image is None else None
        if marked is None:
            return self.fake.answers(image, prompt)
        verdict = _read(prompt[: marked.start()], marked[2])
        return [Reply(verdict, verdict, {verdict: 1.0})]


def _read(asked: str, reply: str) -> str:
    """Return the letter of the reply's option, or Yes or No for agreement with the truth."""
    truth = _TRUTH.search(asked)
    if truth is not None:
        return "Yes" if fold(truth[1]) in fold(reply) else "No"
    listed = [*options(asked).values()]
    named = [k for k, word in enumerate(ORDINALS[: len(listed)]) if f"the {word} one" in reply]
    return letter(named[0]) if len(named) == 1 else extract(reply, listed).letter or UNCLEAR
