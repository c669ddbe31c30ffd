"""The models behind the demo server: one answers at random, others describe pictures, or judge
replies.

All that they say is a function of (seed, image, question), so that a test which asks ``DemoModel``
directly knows what a server says.
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
    """The questions of a prompt that numbers them from 1, each with the lines that follow it.

    Lines with a number count where they hold a question mark, "Question 2: ...?" or
    "2. ...?". A prompt without at least two such lines is one question.
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
    """The last list of lines "A. text", "B. text" ... in a prompt (or "A)", "(A)", "A:")."""
    found: dict[str, str] = {}
    for line in prompt.splitlines():
        match = _OPTION.match(line)
        if match and match[1] == "A":
            found = {}
        if match and match[1] == letter(len(found)):
            found[match[1]] = match[2]
    return found if len(found) > 1 else {}


def letter(place: int) -> str:
    """What the option at ``place`` is called: A, B ..."""
    return chr(ord("A") + place)


def fold(text: str) -> str:
    """Lower case, all white space one blank: how texts are compared."""
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
"""A reply that says which option is meant, and names neither its letter nor its text."""

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
    """What the model says of one question.

    ``words``: all it says. ``choice``: the bare answer in it, a letter where there are
    options. ``likelihoods``: the choices it weighs, which sum to 1.
    """

    words: str
    choice: str
    likelihoods: Mapping[str, float]

    @property
    def yes(self) -> float:
        """P(yes): of "Yes", or of what was chosen if the answers are others."""
        return self.likelihoods.get("Yes", self.likelihoods[self.choice])


class FakeModel(Protocol):
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


class DemoModel:
    """Answers a question by the letter of one of its options, or Yes or No, drawn anew for each
    image and question.

    ``concepts``: what is recognised in a question. ``rambling``: the share of questions whose
    answer is buried in words; ``vague``: of those with options, whose answer names neither letter
    nor text of one.
    """

    def __init__(
        self, concepts: Sequence[str], *, rambling: float = 0.0, vague: float = 0.0, seed: int = 0
    ) -> None:
        self.concepts = tuple(concepts)
        self.rambling, self.vague, self.seed = rambling, vague, seed

    def answer(self, image: Image | None, question: str) -> Reply:
        """The reply to a question: a concept's name, or a prompt in words."""
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
        """A reply to each question of a prompt, which may number several."""
        return [self.answer(image, question) for question in numbered(prompt)]


# -- other fake models --------------------------------------------------------------------------


NO_IMAGE = "There is no image to describe."


class FakeCaptioner:
    """Answers with ``captioner``'s caption, whatever is asked of an image."""

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
    """Reads replies where it is asked to, and is ``fake`` where it is asked anything else.

    What it reads are the prompts of ``oracles.judge_models``: words without an image in which a
    reply stands between two marks. It knows the letters and texts of options and which of a list
    is meant ("the second one"); it does as no reply says.
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
        said = _read(prompt[: marked.start()], marked[2])
        return [Reply(said, said, {said: 1.0})]


def _read(asked: str, reply: str) -> str:
    """The letter of the option that the reply means, or whether it agrees with the truth."""
    truth = _TRUTH.search(asked)
    if truth is not None:
        return "Yes" if fold(truth[1]) in fold(reply) else "No"
    listed = [*options(asked).values()]
    found = [k for k, word in enumerate(ORDINALS[: len(listed)]) if f"the {word} one" in reply]
    return letter(found[0]) if len(found) == 1 else extract(reply, listed).letter or UNCLEAR
