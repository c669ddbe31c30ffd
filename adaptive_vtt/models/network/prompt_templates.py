"""Prompt templates: the text of a call's questions, and how a reply with several answers is split.

The built-in templates are in data/prompt_templates.toml:

- ``zero-shot`` asks the question and requests the form of the answer.
- ``chain-of-thought`` requests reasons before the answer. EndoBench, Table 6, reports such a
  variant, but not its text.
- ``few-shot`` begins with two sets of sample answers, in the order of the questions, as in MedTest
  (section 4.1.2).
- ``verbatim`` adds no text, for judge models.
- ``endobench`` and ``medtest`` are those of the papers.

``Prompt.words``, a text about the image, comes before the questions; the papers do not print its
place. The image precedes the text. The hash of the template is journaled.
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
"""Placeholders of a layout, which is the whole text of a prompt.

- "question": the question, if the call asks one.
- "options": its options, one per line, such as "A. polyp".
- "questions": all questions of the call, each with its options.
- "concept": the concept of the question.
- "words": text about the image, such as where to look.
- "examples": sample answers.

A line whose placeholders are all empty is left out. Braces around other text are kept.
"""
MAX_LENGTH = 65_536
"""Maximum number of characters in a template file."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")

MISSING = "no answer to this question in the reply"
_NUMBERED = re.compile(r"[*\s]*(\d+)\s*[:.)*]+\s*(.*)")
_QUOTED = re.compile(r'"[^"\n]*"(?:\s*,\s*"[^"\n]*")*')


@dataclass(frozen=True)
class Template:
    """The text around the questions of a prompt.

    Attributes:
        name: Name in journals and reports.
        system: Text for the system role, "" for none.
        opening: Text before the questions.
        letter: Instruction for the answer to one question with options.
        words: Instruction for the answer to one question without options.
        yes_no: Instruction for the answer about a concept without a question.
        ask_concept: Question about such a concept, with the placeholder {concept}.
        several: Instruction for the answers to several questions.
        examples: Sets of sample answers, concept -> answer.
        absent: Sample answer for concepts that a set lacks.
        example_title: Title of a set of sample answers, with {number}.
        layout: The whole text with PLACEHOLDERS, including its own instruction. With "" the text is
            opening, examples, words about the image, questions and instruction, in this order.
        title: Line of a single question, with {text}.
        numbered_title: Line of one of several questions, with {number} and {text}.
        quoted: Whether answers stand in one line, in quotation marks, in examples and replies.
        wordings: Concept -> its question, in place of the dataset's.
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
        """Return whether the text contains ``Prompt.words``."""
        return not self.layout or "words" in _placeholders(self.layout)

    @property
    def hash(self) -> str:
        """A short hash of all texts of the template."""
        texts = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(texts.encode(), digest_size=8).hexdigest()

    def protocol(self, options: Mapping[str, Any]) -> JsonObject:
        """Return ``ModelDefaults.protocol`` of a model with these options of its requests."""
        temperature = options.get("temperature")
        known = isinstance(temperature, int | float)
        return {"template": self.name, "temperature": temperature if known else None}

    def render(self, prompt: Prompt) -> str:
        """Return the text for the user role: examples, questions, and an instruction.

        Raises:
            InputError: The layout does not fit the questions.
        """
        asks = []
        for place, concept in enumerate(prompt.concepts):
            if ask := _ask(prompt, place):
                asks.append(Ask(self.wordings.get(concept, ask.text), ask.options))
            else:
                asks.append(Ask(self.ask_concept.format(concept=concept)))
        examples = self._examples(prompt)
        title = self.title if len(asks) == 1 else self.numbered_title
        questions = []
        for number, ask in enumerate(asks, start=1):
            options = ["Options:", *_options(ask)] if ask.options else []
            questions.append("\n".join([title.format(number=number, text=ask.text), *options]))
        if not self.layout:
            if len(asks) > 1:
                instruction = self.several
            elif not _ask(prompt, 0):
                instruction = self.yes_no
            else:
                instruction = self.letter if asks[0].options else self.words
            parts = [self.opening, *examples, prompt.words, *questions, instruction]
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
            # one pass, so that a placeholder within a value is not replaced
            text = _PLACEHOLDER.sub(lambda match: values[match[1]], line)
            if text.strip() or text == line:
                lines.append(text)
        return "\n".join(lines)

    def split(self, reply: str, count: int) -> tuple[str | Unanswered, ...]:
        """Split a reply into the answers to ``count`` questions.

        Answers have the numbers of their questions. A reply without any number answers in order if
        it has as many lines as questions, or, for a ``quoted`` template, as many quoted answers.
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
        """Raise InputError if the layout lacks a placeholder that the prompt needs, or has one of
        options for a question without any."""
        names, options = _placeholders(self.layout), any(ask.options for ask in asks)
        expected = None
        if len(asks) > 1 and "questions" not in names:
            got = f"as one call asks {len(asks)} questions, got a template for one"
            expected = f'{{questions}}, {got}; set per_call = "one" in [model]'
        elif options and not names & {"options", "questions"}:
            expected = "{options}, as questions have options, got none"
        elif not options and "options" in names:
            expected = "questions with options, where {options} stands, got one without options"
        elif prompt.words and "words" not in names:
            expected = "{words}, as there is something to say of the image, got none"
        if expected is not None:
            raise InputError(f"template {self.name!r}: expected {expected}")

    def _examples(self, prompt: Prompt) -> list[str]:
        """Return the lines of all sets of sample answers; [] if they have none of the concepts."""
        if not any(c in example for c in prompt.concepts for example in self.examples):
            return []
        lines: list[str] = []
        for number, example in enumerate(self.examples, start=1):
            title = self.example_title.format(number=number)
            answers = [example.get(concept, self.absent) for concept in prompt.concepts]
            if self.quoted:
                lines.append(f"{title} {' '.join(answers)}")
            elif len(answers) == 1:
                lines += [title, *answers]
            else:
                lines += [title, *(f"{k}: {a}" for k, a in enumerate(answers, start=1))]
        return lines


def _ask(prompt: Prompt, place: int) -> Ask | None:
    """Return the question in words about the concept at a place, None if there is none."""
    return prompt.asks[place] if prompt.asks and prompt.asks[place].text else None


def _options(ask: Ask) -> list[str]:
    """Return the lines of a question's options, such as "A. polyp"."""
    pairs = zip(ascii_uppercase, ask.options, strict=False)
    return [f"{letter}. {option}" for letter, option in pairs]


def _placeholders(layout: str) -> set[str]:
    return set(_PLACEHOLDER.findall(layout))


def _read_layout(path: Path) -> str:
    """Return the layout in a text file.

    Raises:
        InputError: The file cannot be read, is too long, has no placeholder of a question, or has
            an unknown one.
    """
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
    """Return a built-in template, or that of a text file.

    Args:
        name: Name of a built-in template, or a file such as "my.txt".
        base: Folder of relative paths. Default None: the working folder.

    Raises:
        InputError: No template has the name, or the file is no layout.
    """
    if name in TEMPLATES:
        return TEMPLATES[name]
    path = Path(name)
    if not path.suffix and len(path.parts) < 2:
        raise unknown("template", name, [*TEMPLATES, "a file such as my.txt"])
    return Template(path.name, layout=_read_layout((base or Path()) / path))
