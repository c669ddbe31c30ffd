"""Layouts: the whole text of a prompt, with placeholders where questions and options go.

A line of which nothing is left once its placeholders are filled, such as {words} where there is
nothing to say, is left out. Braces around anything but one word are text.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from ...errors import InputError, unknown
from ...utils.files import near_file

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
