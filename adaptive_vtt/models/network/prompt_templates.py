"""Prompt templates: the words in which a call's questions are put to a model, and how several
answers are told apart.

``zero-shot`` asks and says in which form to answer. ``chain-of-thought`` asks for reasons
before the answer (EndoBench, Table 6, reports such a variant and not its words).
``few-shot`` shows two sets of sample answers first, as MedTest does (thesis LYU2308, CUHK 2024,
section 4.1.2), in the order of the questions. ``verbatim`` adds nothing, as
judges need. The words of these four are ours; ``endobench`` is
EndoBench's prompt for evaluation (appendix B.2) and ``medtest`` is MedTest's,
as printed. Neither paper prints where words about the image would go: here they come before the
questions. The image goes first and is the adapter's business. Every template has a hash, which
belongs into the journal: answers to other words are answers of another audit.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

from ...errors import InputError, unknown
from ...types import Ask, JsonObject, Prompt, Unanswered
from ...utils.files import near_file

# MedTest's prompt (thesis LYU2308, CUHK 2024, section 7.2.1): its 18 questions in its words, two
# sets of sample answers in their order. Choices of ours: where fewer questions are asked, samples
# of those alone are shown; a question that is not MedTest's is put as its data set has it.
MEDTEST_OPENING = (
    "I'm working on the Visual Question Answering tasks on medical endoscopic images. I will be "
    "sending you some endoscopic images, you need to answer all the questions I give you following "
    "the format of sample answer sets. You must not repeat the question or elaborate on your "
    "answer. From now on, answer all the questions below for the images that I send you."
)
MEDTEST_CLOSING = (
    "In case the question is not applicable to the image or you don't know, please answer "
    '"Not relevant". Please follow the format of the sample answers strictly.'
)
_NOT_RELEVANT = "Not relevant"

MEDTEST_QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        "abnormalities present": "What types of abnormalities are there in the image?",
        "landmarks present": "Are there any anatomical landmarks in the image?",
        "instruments present": "Are there any instruments in the image?",
        "polyps removed": "Have all polyps been removed?",
        "number of findings": "How many findings are present?",
        "number of instruments": "How many instruments are in the image?",
        "number of polyps": "How many polyps are in the image?",
        "box artefact": "Is there a green/black box artefact?",
        "text present": "Is there text?",
        "easy to detect": "Is this finding easy to detect?",
        "abnormality colour": "What color is the abnormality?",
        "landmark colour": "What color is the anatomical landmark?",
        "polyp size": "What is the size of the polyp?",
        "polyp type": "What type of polyp is present?",
        "procedure": "What type of procedure is the image taken from?",
        "abnormality position": "Where in the image is the abnormality?",
        "landmark position": "Where in the image is the anatomical landmark?",
        "instrument position": "Where in the image is the instrument?",
    }
)
"""Question -> MedTest's words; names as in ``datasets.vqa.medvqa_questions``."""
_MEDTEST_ANSWERS = (
    '"Polyp" | "No" | "Biopsy forceps" | "No" | "2" | "1" | "1" | "No" | "Yes" | "Yes" | '
    '"Red", "Pink" | "Not relevant" | ">20mm" | "Paris ip" | "Colonoscopy" | '
    '"Center-right", "Upper-left" | "Not relevant" | "Lower-right"',
    '"Polyp" | "No" | "No" | "No" | "1" | "0" | "1" | "Yes" | "Yes" | "No" | "Pink", '
    '"White" | "Not relevant" | "11-20mm" | "Paris iia" | "Colonoscopy" | "Center", '
    '"Lower-right" | "Not relevant" | "Not relevant"',
)
MEDTEST_SAMPLES = tuple(
    MappingProxyType(dict(zip(MEDTEST_QUESTIONS, answers.split(" | "), strict=True)))
    for answers in _MEDTEST_ANSWERS
)
"""The two sets of sample answers, each answer in quotation marks."""


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
MAX_BYTES = 65_536
"""A longer file is no prompt."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def placeholders(layout: str) -> set[str]:
    """The names in braces."""
    return set(_PLACEHOLDER.findall(layout))


def read_layout(path: Path) -> str:
    """The layout in a text file; raises InputError for one that cannot be read, is empty or too
    long, asks no question, or has a placeholder that is none."""
    layout = _text(path).strip("\n")
    for number, line in enumerate(layout.splitlines(), start=1):
        for name in sorted(placeholders(line).difference(PLACEHOLDERS)):
            raise unknown(
                "placeholder", name, PLACEHOLDERS, f"template {path.name!r}, line {number}"
            )
    if not placeholders(layout) & {"question", "questions", "concept"}:
        raise InputError(
            f"template {path.name!r}: expected {{question}}, {{questions}} or {{concept}} where "
            "the question goes, got none"
        )
    return layout


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        why = f"{error.strerror or error}{near_file(path)}"
        raise InputError(f"template {str(path)!r}: cannot be read: {why}") from None
    except UnicodeDecodeError:
        raise InputError(
            f"template {str(path)!r}: expected text in UTF-8, got other bytes"
        ) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"template {str(path)!r}: expected at most {MAX_BYTES:,} bytes, got more")
    return text


def filled(layout: str, values: Mapping[str, str]) -> str:
    """The text, each placeholder replaced by its value; nothing in a value is replaced again."""
    lines = []
    for line in layout.splitlines():
        text = _PLACEHOLDER.sub(lambda match: values[match[1]], line)
        if text.strip() or text == line:
            lines.append(text)
    return "\n".join(lines)


def check_fit(who: str, layout: str, asked: int, *, has_options: bool, has_words: bool) -> None:
    """Raises InputError where a layout would leave something out, or promise what there is not.

    ``asked``: questions of the call; ``has_options``: of any of them; ``has_words``: whether there
    is something to say of the image.
    """
    names = placeholders(layout)
    if asked > 1 and "questions" not in names:
        raise InputError(
            f"{who}: expected {{questions}}, as one call asks {asked} questions, got a template "
            'for one; set per_call = "one" in [model]'
        )
    if has_options and not names & {"options", "questions"}:
        raise InputError(f"{who}: expected {{options}}, as questions have options, got none")
    if not has_options and "options" in names:
        raise InputError(
            f"{who}: expected questions with options, where {{options}} stands, got one without; "
            "take another template"
        )
    if has_words and "words" not in names:
        raise InputError(f"{who}: expected {{words}}, as something is said of the image, got none")


MISSING = "no answer to this question in the reply"
_NUMBERED = re.compile(r"[*\s]*(\d+)\s*[:.)*]+\s*(.*)")
_QUOTED = re.compile(r'"[^"\n]*"(?:\s*,\s*"[^"\n]*")*')
_TITLE, _NUMBERED_TITLE = "Question: {text}", "Question {number}: {text}"
_LATER: Mapping[str, object] = {
    "layout": "",
    "title": _TITLE,
    "numbered_title": _NUMBERED_TITLE,
    "quoted": False,
    "wordings": {},
}
"""Fields that came later: in the hash unless they are these, so that older audits can go on."""


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
    title: str = _TITLE
    numbered_title: str = _NUMBERED_TITLE
    quoted: bool = False
    wordings: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_words(self) -> bool:
        """Whether ``Prompt.words`` reach the text."""
        return not self.layout or "words" in placeholders(self.layout)

    @property
    def hash(self) -> str:
        """A short hash of all words: other words, another hash."""
        given = [(f.name, getattr(self, f.name)) for f in fields(self)]
        parts = [(name, said) for name, said in given if said != _LATER.get(name, ...)]
        plain = [(name, _plain(said)) for name, said in parts]
        return hashlib.blake2b(repr(plain).encode(), digest_size=8).hexdigest()

    def protocol(self, options: Mapping[str, Any]) -> JsonObject:
        """What a model with this template and these options of its requests tells of them."""
        temperature = options.get("temperature")
        known = isinstance(temperature, int | float)
        return {"template": self.name, "temperature": temperature if known else None}

    def render(self, prompt: Prompt) -> str:
        """The user's text of a prompt: its questions, sample answers, and how to answer."""
        asks = self.asks(prompt)
        if self.layout:
            return self._laid_out(prompt, asks)
        questions = self._questions(asks)
        many = len(asks) > 1
        how = self.several if many else self._how(asks[0], not _has_words(prompt, 0))
        parts = [self.opening, *self._examples(prompt), prompt.words, *questions, how]
        return "\n".join(part for part in parts if part)

    def asks(self, prompt: Prompt) -> tuple[Ask, ...]:
        """The questions of a prompt, those about bare concepts put into words."""
        return tuple(self._ask(prompt, k) for k in range(len(prompt.concepts)))

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
        found = {int(m.group(1)): m.group(2).strip("* ") for m in reversed(numbered) if m}
        if not found and len(lines) == count:
            found = dict(enumerate(lines, start=1))
        return tuple(found.get(k) or Unanswered(MISSING) for k in range(1, count + 1))

    def _ask(self, prompt: Prompt, place: int) -> Ask:
        concept = prompt.concepts[place]
        if not _has_words(prompt, place):
            return Ask(self.ask_concept.format(concept=concept))
        ask = prompt.asks[place]
        return Ask(self.wordings.get(concept, ask.text), ask.options)

    def _questions(self, asks: tuple[Ask, ...]) -> list[str]:
        """Each question with its title and options."""
        title = self.title if len(asks) == 1 else self.numbered_title
        numbered = enumerate(asks, start=1)
        return [
            "\n".join([title.format(number=k, text=ask.text), *_listed(ask)]) for k, ask in numbered
        ]

    def _laid_out(self, prompt: Prompt, asks: tuple[Ask, ...]) -> str:
        """The layout, filled in; raises InputError where it does not fit the questions."""
        options = [_options(ask) for ask in asks]
        told = {"has_options": any(options), "has_words": bool(prompt.words)}
        check_fit(f"template {self.name!r}", self.layout, len(asks), **told)
        values = {
            "question": asks[0].text,
            "options": "\n".join(options[0]),
            "questions": "\n".join(self._questions(asks)),
            "concept": prompt.concepts[0],
            "words": prompt.words,
            "examples": "\n".join(self._examples(prompt)),
        }
        return filled(self.layout, values)

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
            title = self.example_title.format(number=number)
            answers = [example.get(concept, self.absent) for concept in prompt.concepts]
            if self.quoted:
                shown.append(f"{title} {' '.join(answers)}")
                continue
            shown.append(title)
            several = len(answers) > 1
            shown += [f"{k}: {a}" if several else a for k, a in enumerate(answers, start=1)]
        return shown


def _plain(said: object) -> object:
    """A field for hashing: mappings as sorted pairs."""
    if isinstance(said, Mapping):
        return sorted(said.items())
    return [_plain(each) for each in said] if isinstance(said, tuple) else said


def _has_words(prompt: Prompt, place: int) -> bool:
    return bool(prompt.asks) and bool(prompt.asks[place].text)


def _options(ask: Ask) -> list[str]:
    """A line per option."""
    pairs = zip(ascii_uppercase, ask.options, strict=False)
    return [f"{letter}. {option}" for letter, option in pairs]


def _listed(ask: Ask) -> list[str]:
    """The options under their title; nothing where there are none."""
    return ["Options:", *_options(ask)] if ask.options else []


_REASONS = "First describe what the image shows that bears on the question, step by step. "

_POLYP: Mapping[str, str] = {
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
_INFLAMED: Mapping[str, str] = {
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
    Template(
        "endobench",
        layout="{words}\n{question}:\n{options}\nPlease select the correct answer from the options "
        "above.",
    ),
    Template(
        "medtest",
        layout="\n".join(
            [MEDTEST_OPENING, "{words}", "{questions}", "{examples}", MEDTEST_CLOSING]
        ),
        title='"Question": "{text}"',
        numbered_title='"Question": "{text}"',
        examples=MEDTEST_SAMPLES,
        absent=f'"{_NOT_RELEVANT}"',
        example_title="Sample answers set{number}:",
        quoted=True,
        wordings=MEDTEST_QUESTIONS,
    ),
    Template("verbatim", layout="{question}"),
)
TEMPLATES: Mapping[str, Template] = MappingProxyType({each.name: each for each in _BUILT_IN})
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
