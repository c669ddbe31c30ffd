"""Prompt templates: the words in which a call's questions are put to a model, and how several
answers are told apart.

The built-in ones stand in data/prompt_templates.toml: ``zero-shot`` asks and says in which form to
answer; ``chain-of-thought`` asks for reasons before the answer (EndoBench, Table 6, reports such a
variant and not its words); ``few-shot`` shows two sets of sample answers first, as MedTest does
(section 4.1.2), in the order of the questions; ``verbatim`` adds nothing, as judges need;
``endobench`` and ``medtest`` are the papers' own. Neither paper prints where words about the image
would go: here they come before the questions. The image goes first and is the adapter's business.
Every template has a hash, which belongs into the journal.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

from ...errors import InputError, check_known, unknown
from ...types import Ask, JsonObject, Prompt, Unanswered
from ...utils.files import near_file, text_in

# Layouts: the whole text of a prompt, with placeholders where questions and options go. A line of
# which nothing is left once its placeholders are filled, such as {words} where there is nothing to
# say, is left out. Braces around anything but one word are text.
PLACEHOLDERS: Mapping[str, str] = {
    "question": "the question of a call that asks one",
    "options": "its options, a line each, such as A. polyp",
    "questions": "all questions of a call, each with its options",
    "concept": "the name of what a question is about",
    "words": "what to say of the image, such as where to look",
    "examples": "sample answers, where the template has some",
}
"""What may stand in a layout, and what it becomes."""
MAX_LENGTH = 65_536
"""A longer file is no prompt."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def placeholders(layout: str) -> set[str]:
    return set(_PLACEHOLDER.findall(layout))


def read_layout(path: Path) -> str:
    """The layout in a text file; raises InputError for one that cannot be read, is empty or too
    long, asks no question, or has a placeholder that is none."""
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
        for name in sorted(placeholders(line)):
            check_known("placeholder", name, PLACEHOLDERS, f"template {path.name!r}, line {number}")
    if not placeholders(text) & {"question", "questions", "concept"}:
        raise InputError(
            f"template {path.name!r}: expected {{question}}, {{questions}} or {{concept}} where "
            "the question goes, got none"
        )
    return text


MISSING = "no answer to this question in the reply"
_NUMBERED = re.compile(r"[*\s]*(\d+)\s*[:.)*]+\s*(.*)")
_QUOTED = re.compile(r'"[^"\n]*"(?:\s*,\s*"[^"\n]*")*')


@dataclass(frozen=True)
class Template:
    """How prompts are worded.

    ``system``: a text for the system role, "" for none. ``opening``: before the questions.
    ``letter``, ``words``, ``yes_no``: how to answer one question with options, without, and
    about a concept that has no words (``ask_concept`` with {concept} are its words then).
    ``several``: how to answer when there are several. ``examples``: sets of sample answers,
    concept -> answer; concepts without one show ``absent``; ``quoted``: they stand in one line,
    in quotation marks, and so should a reply. ``title``, ``numbered_title``: of a question
    ({text}), and of one among several. ``wordings``: concept -> what it is asked in, whatever the
    data set says. ``layout``: the whole text with placeholders, which then says by
    itself how to answer; "": opening, examples, words, questions and how to answer, in this order.
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
        """Whether ``Prompt.words`` reach the text."""
        return not self.layout or "words" in placeholders(self.layout)

    @property
    def hash(self) -> str:
        """A short hash of all words: other words, another hash."""
        words = json.dumps(asdict(self), sort_keys=True)
        return hashlib.blake2b(words.encode(), digest_size=8).hexdigest()

    def protocol(self, options: Mapping[str, Any]) -> JsonObject:
        """What a model with this template and these options of its requests tells of them."""
        temperature = options.get("temperature")
        known = isinstance(temperature, int | float)
        return {"template": self.name, "temperature": temperature if known else None}

    def render(self, prompt: Prompt) -> str:
        """The user's text of a prompt: its questions, sample answers, and how to answer. Raises
        InputError where the layout does not fit the questions."""
        asks = self.asks(prompt)
        examples = self._examples(prompt)
        title = self.title if len(asks) == 1 else self.numbered_title
        questions = [
            "\n".join(
                [
                    title.format(number=k, text=ask.text),
                    *(["Options:", *_options(ask)] if ask.options else []),
                ]
            )
            for k, ask in enumerate(asks, start=1)
        ]
        if not self.layout:
            how = self.letter if asks[0].options else self.words
            how = how if _has_words(prompt, 0) else self.yes_no
            how = self.several if len(asks) > 1 else how
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

    def asks(self, prompt: Prompt) -> tuple[Ask, ...]:
        """The questions of a prompt, those about bare concepts put into words."""
        asks = []
        for place, concept in enumerate(prompt.concepts):
            if _has_words(prompt, place):
                ask = prompt.asks[place]
                asks.append(Ask(self.wordings.get(concept, ask.text), ask.options))
            else:
                asks.append(Ask(self.ask_concept.format(concept=concept)))
        return tuple(asks)

    def split(self, reply: str, count: int) -> tuple[str | Unanswered, ...]:
        """The answers to ``count`` questions in one reply, by their numbers.

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
        """Raises InputError where the layout leaves out, or promises, what it should not."""
        names, who = placeholders(self.layout), f"template {self.name!r}"
        has_options = any(ask.options for ask in asks)
        if len(asks) > 1 and "questions" not in names:
            raise InputError(
                f"{who}: expected {{questions}}, as one call asks {len(asks)} questions, got a "
                'template for one; set per_call = "one" in [model]'
            )
        if has_options and not names & {"options", "questions"}:
            raise InputError(f"{who}: expected {{options}}, as questions have options, got none")
        if not has_options and "options" in names:
            raise InputError(
                f"{who}: expected questions with options, where {{options}} stands, got one "
                "without; take another template"
            )
        if prompt.words and "words" not in names:
            raise InputError(
                f"{who}: expected {{words}}, as something is said of the image, got none"
            )

    def _examples(self, prompt: Prompt) -> list[str]:
        if not any(c in example for c in prompt.concepts for example in self.examples):
            return []
        shown: list[str] = []
        for number, example in enumerate(self.examples, start=1):
            title = self.example_title.format(number=number)
            answers = [example.get(concept, self.absent) for concept in prompt.concepts]
            if self.quoted:
                shown.append(f"{title} {' '.join(answers)}")
                continue
            shown.append(title)
            several = len(answers) > 1
            shown += [f"{k}: {a}" if several else a for k, a in enumerate(answers, start=1)]
        return shown


def _has_words(prompt: Prompt, place: int) -> bool:
    return bool(prompt.asks) and bool(prompt.asks[place].text)


def _options(ask: Ask) -> list[str]:
    pairs = zip(ascii_uppercase, ask.options, strict=False)
    return [f"{letter}. {option}" for letter, option in pairs]


def _built_in() -> Iterator[tuple[str, Template]]:
    text = files(__package__).joinpath("data", "prompt_templates.toml").read_text(encoding="utf-8")
    for name, words in tomllib.loads(text).items():
        examples = tuple(words.pop("examples", ()))
        yield name, Template(name, examples=examples, **words)


TEMPLATES: Mapping[str, Template] = MappingProxyType(dict(_built_in()))
"""The built-in templates, by name."""


def template(name: str, base: Path | None = None) -> Template:
    """The built-in template called ``name``, or that of a text file, such as "my.txt", which is
    looked for in ``base``; raises InputError for another name, and for a file that is no layout
    (``read_layout``)."""
    if name in TEMPLATES:
        return TEMPLATES[name]
    path = Path(name)
    if not path.suffix and len(path.parts) < 2:
        raise unknown("template", name, [*TEMPLATES, "a file such as my.txt"])
    return Template(path.name, layout=read_layout((base or Path()) / path))
