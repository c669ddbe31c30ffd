"""The models behind the demo server: one knows the truth and errs at rates that are set; others
describe pictures, or judge replies.

Everything they say is a function of (seed, image, question), so the true loss of a whole audit can
be computed by asking ``DemoModel`` directly, without a server. It reads a prompt as a model would,
and recognises pictures that have been tampered with.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.experiments.reic.scene_plan import KINDS
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner, digest_of
from adaptive_vtt.oracles.choice_extraction import extract
from adaptive_vtt.types import Image, Indices
from adaptive_vtt.utils.random_streams import generator

# -- reading prompts -----------------------------------------------------------------------

_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s*(\S.*?)\s*$")
_NUMBERED = re.compile(r"^\s*(?:Question\s+)?(\d+)[.:)]\s+.*\?", re.IGNORECASE)
_QUESTION = re.compile(r"[^.?!\n]*\?")


@dataclass(frozen=True)
class Read:
    """What a prompt asks: ``subject`` is one of the known questions or concepts, or None.

    ``options``: letter -> text, empty where the answer is free.
    """

    subject: str | None
    options: dict[str, str]


def read(prompt: str, asks: Iterable[str], concepts: Iterable[str]) -> Read:
    """What ``prompt`` asks. Known questions (folded) come first, then concepts by name.

    Of several known questions the last one counts, and of several lists of options too:
    those before are examples. A concept counts where it stands in a sentence that ends
    with a question mark, the last such sentence first, or else anywhere.
    """
    folded = fold(prompt)
    found = [(folded.rfind(ask) + len(ask), len(ask), ask) for ask in asks if ask in folded]
    if found:
        return Read(max(found)[2], options(prompt))
    return Read(_concept(prompt, sorted(concepts, key=len, reverse=True)), options(prompt))


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


Floats = npt.NDArray[np.floating[Any]]

# -- recognising pictures ------------------------------------------------------------------

SIMILAR = 0.6
"""Correlation of grey thumbnails below which a picture is not taken for any of the gallery's."""

_KEY, _THUMB = 16, 32
_COLOUR_WEIGHT, _DETAIL_WEIGHT = 3.0, 0.5  # MedTest's strongest changes then reach about 0.8


@dataclass(frozen=True)
class Seen:
    """What a picture was taken for.

    ``index``: its place in the gallery, None where nothing is similar. ``strain``: how far it was
    changed, 0 (not at all) to 1.
    """

    index: int | None
    strain: float


class Gallery:
    """Fingerprints of H x W x 3 uint8 pictures, about 4 kB each.

    Pictures are matched by the correlation of grey 16 x 16 thumbnails, which neither the
    light nor something in front of a part changes much. Strain adds up the RMS difference
    of colour thumbnails and the change of fine detail, which a thumbnail cannot show.
    """

    def __init__(self, pictures: Iterable[Image]) -> None:
        prints = [(_key(p), _thumb(p), _detail(p)) for p in pictures]
        self._keys = np.stack([key for key, _, _ in prints])
        self._thumbs = np.stack([thumb for _, thumb, _ in prints])
        self._details = np.array([detail for _, _, detail in prints])

    def find(self, picture: Image, among: Indices | None = None) -> Seen:
        """The most similar picture, of all or of those at the places ``among`` (m,)."""
        places = np.arange(len(self._keys)) if among is None else among
        similarities = self._keys[places] @ _key(picture)
        best = int(np.argmax(similarities))
        if similarities[best] < SIMILAR:
            return Seen(None, 1.0)
        return Seen(int(places[best]), self._strain(picture, int(places[best])))

    def _strain(self, picture: Image, place: int) -> float:
        difference = (_thumb(picture).astype(np.float32) - self._thumbs[place]) / 255
        colour = float(np.sqrt(np.mean(np.square(difference))))
        detail = abs(float(np.log(_detail(picture) / self._details[place])))
        return min(1.0, _COLOUR_WEIGHT * colour + _DETAIL_WEIGHT * detail)


def _thumb(picture: Image) -> Image:
    return np.asarray(cv2.resize(picture, (_THUMB, _THUMB), interpolation=cv2.INTER_AREA), np.uint8)


def _key(picture: Image) -> Floats:
    """The grey thumbnail, flat, with mean 0 and length 1 (all 0 for a uniform picture)."""
    small = cv2.resize(picture, (_KEY, _KEY), interpolation=cv2.INTER_AREA)
    grey = small.astype(np.float32).mean(axis=2).ravel()
    grey -= grey.mean()
    return grey / max(float(np.linalg.norm(grey)), 1e-6)


def _detail(picture: Image) -> float:
    """How much fine detail there is; never 0."""
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_32F).std()) + 1.0


# -- answering -----------------------------------------------------------------------------

_UNCLEAR = "unclear"

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


@dataclass(frozen=True)
class _Known:
    """One question about one picture: what may be said, and which of it is right."""

    concept: str
    right: tuple[str, ...]
    options: tuple[str, ...] = ()


class DemoModel:
    """Answers questions about a dataset's pictures, also after perturbation.

    ``error``: the probability of a wrong answer on the picture itself, one number or one per
    concept; ``worse``: what is added to it under the strongest perturbation, in proportion
    to the strain. ``rambling``: the share of questions whose answer is buried in words;
    ``vague``: of those with options, whose answer names neither letter nor text of one.

    A picture of another dataset is taken for the most similar one of this, or, if none is
    similar, answered by guessing, as is a question in which no concept is recognised. Only
    the dataset's truth counts: an object that a perturbation adds is overlooked. All
    pictures are read once, when this is made.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        error: float | Mapping[str, float] = 0.1,
        worse: float = 0.3,
        rambling: float = 0.0,
        vague: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.concepts = dataset.concepts
        self.worse, self.rambling, self.vague, self.seed = worse, rambling, vague, seed
        self._errors = _per_concept(error, dataset.concepts)
        self._truths: list[Mapping[str, int]] = []
        self._asked: dict[str, dict[int, list[_Known]]] = {}
        self._gallery = Gallery(self._learn(dataset))
        self._vocabulary = self._learn_vocabulary()

    def error(self, concept: str, strain: float = 0.0) -> float:
        """The probability that an answer about ``concept`` is wrong at that strain."""
        return min(1.0, self._errors[concept] + self.worse * strain)

    def answer(self, image: Image | None, question: str) -> Reply:
        """The reply to a question: a concept's name, or a prompt in words.

        The same image (H x W x C uint8) and question always get the same reply; without an
        image it guesses.
        """
        return self._answers(image, [question])[0]

    def answers(self, image: Image | None, prompt: str) -> list[Reply]:
        """A reply to each question of a prompt, which may number several."""
        return self._answers(image, numbered(prompt))

    def _answers(self, image: Image | None, questions: Sequence[str]) -> list[Reply]:
        picture = None if image is None else _rgb(image)
        digest = "no image" if picture is None else digest_of(picture)
        seen = Seen(None, 1.0) if picture is None else self._gallery.find(picture)
        replies = []
        for question in questions:
            asked = self._read(question)
            noticed, known = self._recall(picture, seen, asked)
            topic = known.concept if known else asked.subject or fold(question)
            rng = generator(self.seed, f"demo answer/{digest}/{topic}")
            replies.append(self._reply(noticed, known, asked, rng))
        return replies

    def _read(self, question: str) -> Read:
        if question in self.concepts:
            return Read(question, {})
        return read(question, self._asked, self.concepts)

    def _learn(self, dataset: Dataset) -> Iterable[Image]:
        """Notes every sample's truth and questions on the way of its picture to the gallery."""
        for place in range(len(dataset)):
            sample = dataset.sample(place)
            assert sample.image is not None
            self._truths.append(sample.truth)
            for concept, ask in sample.asks.items():
                if concept not in sample.answers:
                    continue  # nobody labelled it, so nobody asks
                known = _Known(concept, _texts(sample.answers[concept], ask.options), ask.options)
                places = self._asked.setdefault(fold(ask.text), {})
                places.setdefault(place, []).append(known)
            yield _rgb(sample.image)

    def _learn_vocabulary(self) -> dict[str, list[str]]:
        """Per concept, everything that is right somewhere: what may be said in error."""
        found: dict[str, dict[str, None]] = {}
        for places in self._asked.values():
            for known in (known for listed in places.values() for known in listed):
                found.setdefault(known.concept, {}).update(dict.fromkeys(known.right))
        return {concept: [*texts] for concept, texts in found.items()}

    def _recall(self, picture: Image | None, seen: Seen, asked: Read) -> tuple[Seen, _Known | None]:
        """What is known of the question; a picture is sought among those it is asked of."""
        places = self._asked.get(asked.subject or "")
        if picture is None or not places:
            return seen, self._binary(seen.index, asked.subject)
        offered = {fold(text) for text in asked.options.values()}
        same = [
            place
            for place, listed in places.items()
            if any(offered == set(map(fold, known.options)) for known in listed)
        ]
        seen = self._gallery.find(picture, np.array(same or [*places]))
        if seen.index is None:
            return seen, None
        listed = places[seen.index]
        fitting = [k for k in listed if offered == set(map(fold, k.options))]
        return seen, (fitting or listed)[0]

    def _binary(self, place: int | None, concept: str | None) -> _Known | None:
        truth = None if place is None else self._truths[place].get(concept or "")
        if concept is None or truth not in (0, 1):
            return None
        return _Known(concept, ("Yes",) if truth else ("No",))

    def _choices(self, known: _Known | None, asked: Read) -> dict[str, str]:
        """What may be said -> what it means: letters where there are options."""
        if asked.options:
            return asked.options
        if known and known.options:
            return {letter(place): text for place, text in enumerate(known.options)}
        if known is None or known.concept not in self._vocabulary:
            return {"Yes": "Yes", "No": "No"}
        texts = dict.fromkeys([*known.right, *self._vocabulary[known.concept]])
        if len(texts) == len(set(known.right)):  # nothing else is ever right
            texts[_UNCLEAR] = None
        return {text: text for text in texts}

    def _reply(
        self, seen: Seen, known: _Known | None, asked: Read, rng: np.random.Generator
    ) -> Reply:
        # the fourth, which once said whether to refuse, keeps the others what they were
        wrong, pick, sure, _, ramble, style, vague = rng.random(7).tolist()
        choices = self._choices(known, asked)
        good, bad = _sides(choices, known)
        right = known and bool(good) and wrong >= self.error(known.concept, seen.strain)
        among = good if right else bad or good
        choice = among[int(pick * len(among))]
        reply = Reply(
            choice, choice, _likelihoods([*choices], choice, sure if known else 0.1 * sure)
        )
        place = [*choices].index(choice)
        if asked.options and vague < self.vague and place < len(ORDINALS):
            return replace(reply, words=_VAGUE.format(ordinal=ORDINALS[place]))
        if ramble < self.rambling:
            other = next((text for key, text in choices.items() if key != choice), "something else")
            words = _RAMBLES[int(style * len(_RAMBLES))].format(choice=choice, other=other)
            return replace(reply, words=words)
        return reply


def _sides(choices: Mapping[str, str], known: _Known | None) -> tuple[list[str], list[str]]:
    """Which choices are right and which are wrong; all are wrong where nothing is known."""
    right = {fold(text) for text in known.right} if known else set()
    good = [key for key, text in choices.items() if fold(text) in right]
    return good, [key for key in choices if key not in good]


def _likelihoods(choices: Sequence[str], choice: str, sure: float) -> dict[str, float]:
    """The choice stands out by ``sure`` (0..1); of two it has (1 + sure) / 2. They sum to 1."""
    rest = (1 - sure) / len(choices)
    found = dict.fromkeys(choices, rest)
    found[choice] = rest + sure
    return found


def _texts(answers: Iterable[str], options: Sequence[str]) -> tuple[str, ...]:
    """Right answers as texts: letters stand for their options."""
    by_letter = {letter(place): text for place, text in enumerate(options)}
    return tuple(by_letter.get(answer, answer) for answer in answers)


def _per_concept(error: float | Mapping[str, float], concepts: Sequence[str]) -> dict[str, float]:
    if not isinstance(error, Mapping):
        return dict.fromkeys(concepts, float(error))
    return {concept: float(error.get(concept, 0.0)) for concept in concepts}


def _rgb(image: Image) -> Image:
    colour = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if image.shape[2] == 1 else image
    return np.ascontiguousarray(colour, np.uint8)


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
