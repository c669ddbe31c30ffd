"""Prompt templates, which phrase a call's questions and split a reply with several answers.

The built-in ones are in data/prompt_templates.toml:

- ``zero-shot`` asks and names the form of the answer.
- ``chain-of-thought`` asks for reasons before the answer. EndoBench, Table 6, reports such a
  variant without its words.
- ``few-shot`` shows two sets of sample answers first, in the order of the questions, as MedTest
  does (section 4.1.2).
- ``verbatim`` adds nothing, as judges need.
- ``endobench`` and ``medtest`` are those of the papers.

Words about the image come before the questions; neither paper prints their place. The adapter puts
the image first. Every template has a hash, which is journaled.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

from ...errors import InputError, check_known, unknown
from ...types import Ask, JsonObject, Prompt, Unanswered
from ...utils.files import data_of, near_file, text_in

PLACEHOLDERS = ("question", "options", "questions", "concept", "words", "examples")
"""Placeholders of a layout, the whole text of a prompt.

- "question": the question of a call that asks one.
- "options": its options, a line each, such as "A. polyp".
- "questions": all questions of a call, each with its options.
- "concept": the concept of a question.
- "words": text about the image, such as where to look.
- "examples": sample answers.

A line that is empty once they are filled is left out. Braces around anything but one word are text.
"""
MAX_LENGTH = 65_536
"""Most characters of a file with a prompt."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


MISSING = "no answer to this question in the reply"
_NUMBERED = re.compile(r"[*\s]*(\d+)\s*[:.)*]+\s*(.*)")
_QUOTED = re.compile(r'"[^"\n]*"(?:\s*,\s*"[^"\n]*")*')


@dataclass(frozen=True)
class Template:
    """A way to phrase prompts.

    Attributes:
        name: Its name in journals and reports.
        system: Text for the system role, "" for none.
        opening: Text before the questions.
        letter: How to answer one question with options.
        words: How to answer one question without options.
        yes_no: How to answer about a concept without a question.
        ask_concept: That concept's question, with {concept}.
        several: How to answer several questions.
        examples: Sets of sample answers, concept -> answer.
        absent: Text for concepts without a sample answer.
        example_title: Title of a set of sample answers.
        layout: The whole text with placeholders, which then defines how to answer. With "" it is
            opening, examples, words, questions and how to answer, in this order.
        title: Title of a question, with {text}.
        numbered_title: Title of one of several questions.
        quoted: Whether sample answers are in one line, in quotation marks, as a reply should be.
        wordings: Concept -> its question, in place of the data set's.
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
    layout: str = ""
    title: str = "Question: {text}"
    numbered_title: str = "Question {number}: {text}"
    quoted: bool = False
    wordings: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_words(self) -> bool:
        """Return whether ``Prompt.words`` reach the text."""
        return not self.layout or "words" in _placeholders(self.layout)

    @property
    def hash(self) -> str:
        """A short hash of all words: other words, another hash."""
        words = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(words.encode(), digest_size=8).hexdigest()

    def protocol(self, options: Mapping[str, Any]) -> JsonObject:
        """Return ``ModelDefaults.protocol`` of a model with these options of its requests."""
        temperature = options.get("temperature")
        known = isinstance(temperature, int | float)
        return {"template": self.name, "temperature": temperature if known else None}

    def render(self, prompt: Prompt) -> str:
        """Return the user's text of a prompt: its questions, sample answers, and how to answer.

        Raises InputError if the layout does not fit the questions.
        """
        asks = [
            Ask(self.wordings.get(concept, ask.text), ask.options)
            if (ask := _ask(prompt, place))
            else Ask(self.ask_concept.format(concept=concept))
            for place, concept in enumerate(prompt.concepts)
        ]
        examples = self._examples(prompt)
        title = self.title if len(asks) == 1 else self.numbered_title
        questions = []
        for number, ask in enumerate(asks, start=1):
            options = ["Options:", *_options(ask)] if ask.options else []
            questions.append("\n".join([title.format(number=number, text=ask.text), *options]))
        if not self.layout:
            how = self.letter if asks[0].options else self.words
            how = self.several if len(asks) > 1 else how if _ask(prompt, 0) else self.yes_no
            parts = [self.opening, *examples, prompt.words, *questions, how]
            return "\n".join(part for part in parts if part)
        self._check_fit(asks, prompt)
        values = {
            "question": asks[0].text,
            "options": "\n".join(_options(asks[0])),
            "questions": "\n".join(questions),
            "concept": prompt.concepts[0],
            "words": prompt.words,
            "examples": "\n".join(examples),
        }
        lines = []
        for line in self.layout.splitlines():
            # nothing in a value is replaced again
            text = _PLACEHOLDER.sub(lambda match: values[match[1]], line)
            if text.strip() or text == line:
                lines.append(text)
        return "\n".join(lines)

    def split(self, reply: str, count: int) -> tuple[str | Unanswered, ...]:
        """Return the answers to ``count`` questions in one reply, by their numbers.

        Where no line has a number, lines answer in order if there are as many as questions; of a
        ``quoted`` template, so do answers in quotation marks.
        """
        if count == 1:
            return (reply.strip(),)
        if self.quoted and len(quoted := _QUOTED.findall(reply)) == count:
            return tuple(answer.replace('"', "") or Unanswered(MISSING) for answer in quoted)
        lines = [line.strip() for line in reply.splitlines() if line.strip()]
        numbered = [_NUMBERED.match(line) for line in lines]
        answers = {int(m.group(1)): m.group(2).strip("* ") for m in reversed(numbered) if m}
        if not answers and len(lines) == count:
            answers = dict(enumerate(lines, start=1))
        return tuple(answers.get(k) or Unanswered(MISSING) for k in range(1, count + 1))

    def _check_fit(self, asks: Sequence[Ask], prompt: Prompt) -> None:
        """Raise InputError if the layout leaves out, or promises, what it should not."""
        names, options = _placeholders(self.layout), any(ask.options for ask in asks)
        alone = (
            f"{{questions}}, as one call asks {len(asks)} questions, got a template for one; set "
            'per_call = "one" in [model]'
        )
        needless = "questions with options, where {options} stands, got one without options"
        checks = {
            alone: len(asks) > 1 and "questions" not in names,
            "{options}, as questions have options, got none": options
            and not names & {"options", "questions"},
            needless: not options and "options" in names,
            "{words}, as there is something to say of the image, got none": prompt.words
            and "words" not in names,
        }
        for expected, wrong in checks.items():
            if wrong:
                raise InputError(f"template {self.name!r}: expected {expected}")

    def _examples(self, prompt: Prompt) -> list[str]:
        if not any(c in example for c in prompt.concepts for example in self.examples):
            return []
        shown: list[str] = []
        for number, example in enumerate(self.examples, start=1):
            title = self.example_title.format(number=number)
            answers = [example.get(concept, self.absent) for concept in prompt.concepts]
            if self.quoted:
                shown.append(f"{title} {' '.join(answers)}")
            elif len(answers) == 1:
                shown += [title, *answers]
            else:
                shown += [title, *(f"{k}: {a}" for k, a in enumerate(answers, start=1))]
        return shown


def _ask(prompt: Prompt, place: int) -> Ask | None:
    """Return the question in words about a concept, None if there is none."""
    return prompt.asks[place] if prompt.asks and prompt.asks[place].text else None


def _options(ask: Ask) -> list[str]:
    pairs = zip(ascii_uppercase, ask.options, strict=False)
    return [f"{letter}. {option}" for letter, option in pairs]


def _placeholders(layout: str) -> set[str]:
    return set(_PLACEHOLDER.findall(layout))


def _read_layout(path: Path) -> str:
    """Return the layout in a text file; raise InputError for one that cannot be read, is empty or
    too long, asks no question, or has an unknown placeholder."""
    where = f"template {str(path)!r}"
    try:
        text = text_in(path, "utf-8-sig").strip("\n")
    except OSError as error:
        why = f"{error.strerror or error}{near_file(path)}"
        raise InputError(f"{where}: cannot be read: {why}") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: expected text in UTF-8, got other bytes") from None
    if len(text) > MAX_LENGTH:
        raise InputError(f"{where}: expected at most {MAX_LENGTH:,} characters, got {len(text):,}")
    for number, line in enumerate(text.splitlines(), start=1):
        for name in sorted(_placeholders(line)):
            check_known("placeholder", name, PLACEHOLDERS, f"template {path.name!r}, line {number}")
    if not _placeholders(text) & {"question", "questions", "concept"}:
        expected = "expected {question}, {questions} or {concept} where the question goes"
        raise InputError(f"template {path.name!r}: {expected}, got none")
    return text


TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        name: Template(name, **{**words, "examples": tuple(words.get("examples", ()))})
        for name, words in data_of(__package__, "prompt_templates.toml").items()
    }
)
"""The built-in templates, by name."""


def template(name: str, base: Path | None = None) -> Template:
    """Return the built-in template called ``name``, or that of a text file in ``base``, such as
    "my.txt". Raise InputError for another name, and for a file that is no layout."""
    if name in TEMPLATES:
        return TEMPLATES[name]
    path = Path(name)
    if not path.suffix and len(path.parts) < 2:
        raise unknown("template", name, [*TEMPLATES, "a file such as my.txt"])
    return Template(path.name, layout=_read_layout((base or Path()) / path))
