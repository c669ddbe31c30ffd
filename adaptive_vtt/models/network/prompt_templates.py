"""Prompt templates: the words in which a call's questions are put to a model, and how several
answers are told apart.

``zero-shot`` asks and says in which form to answer. ``chain-of-thought`` asks for reasons
before the answer (EndoBench, Table 6, reports such a variant and not its words).
``few-shot`` shows two sets of sample answers first, as MedTest does (thesis LYU2308, CUHK 2024,
section 4.1.2), in the order of the questions. ``verbatim`` adds nothing, as judges need. All
words are ours. The image goes first and is the adapter's business. Every template has a hash,
which belongs into the journal: answers to other words are answers of another audit.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from string import ascii_uppercase
from types import MappingProxyType

from ...errors import unknown
from ...types import Ask, Prompt, Unanswered

MISSING = "no answer to this question in the reply"


@dataclass(frozen=True)
class Template:
    """How prompts are worded.

    ``system``: a text for the system role, "" for none. ``opening``: before the questions.
    ``letter``, ``words``, ``yes_no``: how to answer one question with options, without, and
    about a concept that has no words (``ask_concept`` with {concept} are its words then).
    ``several``: how to answer when there are several. ``examples``: sets of sample answers,
    concept -> answer; concepts without one show ``absent``.
    """

    name: str
    system: str = ""
    opening: str = ""
    letter: str = "Reply with the letter of the right option alone."
    words: str = "Reply with the answer alone, in as few words as possible."
    yes_no: str = "Reply with Yes or No alone."
    ask_concept: str = "Does the image show this: {concept}?"
    several: str = (
        "Answer every question on a line of its own that begins with the question's number, "
        "like this: 1: answer. Where options are given, the answer is a letter. Add nothing else."
    )
    examples: tuple[Mapping[str, str], ...] = ()
    absent: str = ""
    example_title: str = "Sample answers {number}:"

    @property
    def hash(self) -> str:
        """A short hash of all words: other words, another hash."""
        parts = [(f.name, getattr(self, f.name)) for f in fields(self)]
        plain = [(n, [sorted(e.items()) for e in v] if n == "examples" else v) for n, v in parts]
        return hashlib.blake2b(repr(plain).encode(), digest_size=8).hexdigest()

    def render(self, prompt: Prompt) -> str:
        """The user's text of a prompt: its questions, sample answers, and how to answer."""
        asks = self.asks(prompt)
        parts = [self.opening, *self._examples(prompt)]
        if len(asks) == 1:
            parts += [_worded(asks[0]), self._how(asks[0], not _has_words(prompt, 0))]
        else:
            parts += [_worded(ask, number) for number, ask in enumerate(asks, start=1)]
            parts.append(self.several)
        return "\n".join(part for part in parts if part)

    def asks(self, prompt: Prompt) -> tuple[Ask, ...]:
        """The questions of a prompt, those about bare concepts put into words."""
        return tuple(
            prompt.asks[k]
            if _has_words(prompt, k)
            else Ask(self.ask_concept.format(concept=concept))
            for k, concept in enumerate(prompt.concepts)
        )

    def split(self, reply: str, count: int) -> tuple[str | Unanswered, ...]:
        """The answers to ``count`` questions in one reply, by their numbers.

        Where no line has a number, lines answer in order if there are as many as questions.
        """
        if count == 1:
            return (reply.strip(),)
        lines = [line.strip() for line in reply.splitlines() if line.strip()]
        numbered = [re.match(r"[*\s]*(\d+)\s*[:.)*]+\s*(.*)", line) for line in lines]
        found = {int(m.group(1)): m.group(2).strip("* ") for m in reversed(numbered) if m}
        if not found and len(lines) == count:
            found = dict(enumerate(lines, start=1))
        return tuple(found.get(k) or Unanswered(MISSING) for k in range(1, count + 1))

    def _how(self, ask: Ask, bare: bool) -> str:
        if bare:
            return self.yes_no
        return self.letter if ask.options else self.words

    def _examples(self, prompt: Prompt) -> list[str]:
        known = [c for c in prompt.concepts if any(c in example for example in self.examples)]
        if not known:
            return []
        shown = []
        for number, example in enumerate(self.examples, start=1):
            shown.append(self.example_title.format(number=number))
            answers = [example.get(concept, self.absent) for concept in prompt.concepts]
            several = len(answers) > 1
            shown += [f"{k}: {a}" if several else a for k, a in enumerate(answers, start=1)]
        return shown


def _has_words(prompt: Prompt, place: int) -> bool:
    return bool(prompt.asks) and bool(prompt.asks[place].text)


def _worded(ask: Ask, number: int | None = None) -> str:
    """A question and its options, one per line."""
    title = "Question" if number is None else f"Question {number}"
    lines = [f"{title}: {ask.text}"]
    if ask.options:
        pairs = zip(ascii_uppercase, ask.options, strict=False)
        lines += ["Options:", *(f"{letter}. {option}" for letter, option in pairs)]
    return "\n".join(lines)


_REASONS = "First describe what the image shows that bears on the question, step by step. "

_POLYP: Mapping[str, str] = MappingProxyType(
    {
        "abnormalities present": "Polyp",
        "landmarks present": "No",
        "instruments present": "Polyp snare",
        "polyps removed": "No",
        "number of findings": "2",
        "number of instruments": "1",
        "number of polyps": "1",
        "box artefact": "Yes",
        "text present": "No",
        "easy to detect": "Yes",
        "abnormality colour": "Pink, Red",
        "polyp size": "11-20mm",
        "polyp type": "Paris is",
        "procedure": "Colonoscopy",
        "abnormality position": "Center, Center-left",
        "instrument position": "Lower-right",
    }
)
_INFLAMED: Mapping[str, str] = MappingProxyType(
    {
        "abnormalities present": "Oesophagitis",
        "landmarks present": "Z-line",
        "instruments present": "No",
        "number of findings": "1",
        "number of instruments": "0",
        "number of polyps": "0",
        "box artefact": "No",
        "text present": "Yes",
        "easy to detect": "No",
        "abnormality colour": "Red",
        "landmark colour": "Pink",
        "procedure": "Gastroscopy",
        "abnormality position": "Lower-center",
        "landmark position": "Center",
    }
)


class _Verbatim(Template):
    """The words of the questions and nothing else: they say how to answer themselves."""

    def render(self, prompt: Prompt) -> str:
        return "\n".join(ask.text for ask in prompt.asks)


_BUILT_IN = (
    Template("zero-shot"),
    Template(
        "chain-of-thought",
        letter=_REASONS + "Then end with a line 'Final answer: X', X being the letter.",
        words=_REASONS + "Then end with a line 'Final answer: ' and the answer in few words.",
        yes_no=_REASONS + "Then end with a line 'Final answer: Yes' or 'Final answer: No'.",
        several=_REASONS + "Then answer every question on a line of its own that begins with "
        "the question's number, like this: 1: answer.",
    ),
    Template(
        "few-shot",
        opening="You are shown an image from an endoscopy. Answer in the form of the sample "
        "answers, without repeating a question and without explaining. Where a question "
        "does not apply to the image, or you do not know, answer: Not relevant.",
        examples=(_POLYP, _INFLAMED),
        absent="Not relevant",
    ),
    _Verbatim("verbatim"),
)
TEMPLATES: Mapping[str, Template] = MappingProxyType({each.name: each for each in _BUILT_IN})
"""The built-in templates, by name."""


def template(name: str) -> Template:
    """The built-in template called ``name``; raises InputError for another."""
    if name not in TEMPLATES:
        raise unknown("template", name, TEMPLATES)
    return TEMPLATES[name]
