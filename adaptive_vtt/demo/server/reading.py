"""Reading a prompt as a model would: which question is it, and what may be chosen?"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

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
