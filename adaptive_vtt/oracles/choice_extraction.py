"""Which option a reply chooses.

``extract`` reads a reply in two ways. The faithful one does what the public scoring code of
EndoBench (a fork of VLMEvalKit) does, edge cases included: the one option letter that stands
alone, else the one option whose text occurs. The usual one looks for a stated answer first,
does not take the article "A" or the pronoun "I" for a letter, passes over options that are denied
(``denials``), matches whole words, and knows more refusals. Neither ever guesses: what names no
option is no answer, nor is a letter beside another option's text, where the public code takes a
random letter after its judge has failed.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from ..models.replies import NO_ANSWER, PUBLIC_REFUSALS, REFUSED, refused
from .denials import without_denied

_SPACED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
"""What the public rule takes for white space."""

_FAILED = "Failed to obtain answer via API"

_VERBS = "is|was|as|because|since|seems|fits|matches|best|or|and|but|would|looks|with"
"""After these an "A" is the letter: "A is right", and not "A polyp"."""

_OPEN, _SHUT = r"[\s\"'“‘`(\[{<*_$:]{0,9}", r"(?![A-Za-z0-9])"
"""What may stand around a letter; bounded, as replies may be rambling."""

_STATED = (
    r"\\boxed\{{\s*(?:\\text\{{\s*)?{letter}",
    r"<answer>{open}{letter}",
    r"(?i:final\s+answer){said}{letter}",
    r"(?i:(?:correct|right|best)\s+(?:answer|option|choice)){said}{letter}",
    r"(?i:answer|choice){said}{letter}",
    r"(?i:option|choose|select|pick|go(?:ing)?\s+with|opt\s+for){open}(?i:option)?{open}{letter}",
)
"""How answers are stated, the plainest first; the last one of a kind counts."""

_SAID = (
    rf"{_OPEN}(?i:is|was|would be|should be|=|:|-)?{_OPEN}(?i:the\s+)?(?i:option|letter)?{_OPEN}"
)


@dataclass(frozen=True)
class Extraction:
    """``letter``, or None and ``reason``: "no answer" or "refused: ...".

    ``how``: "stated", "letter" or "text", "" where there is none. ``open``: a judge may still
    be asked what was meant.
    """

    letter: str | None
    how: str = ""
    reason: str | None = None
    open: bool = False


def extract(reply: str, options: Sequence[str], *, faithful: bool = False) -> Extraction:
    """Which of ``options`` (A, B ...) the reply chooses."""
    if faithful:
        return _faithful(reply, options)
    reply, *options = (unicodedata.normalize("NFKC", text) for text in (reply, *options))
    left = without_denied(_without_articles(reply), options)
    lone = _lone_letters(left, options)
    letter = _stated(left, options)
    how = "stated" if letter else "letter"
    if letter is None and len(lone) == 1:  # "I cannot see any lesion, so D" is no refusal
        letter = next(iter(lone))
    if letter is not None and not _contradicted(left, letter, options):
        return Extraction(letter, how)
    refusal = refused(reply)
    if refusal and letter is None:
        return Extraction(None, reason=REFUSED + refusal)
    found = [] if lone or letter else _first_word(left, options) or _whole_words(left, options)
    if len(found) == 1:
        return Extraction(found[0], "text")
    return Extraction(None, reason=NO_ANSWER, open=bool(reply.strip()))


def _faithful(reply: str, options: Sequence[str]) -> Extraction:
    if _FAILED in reply:
        return Extraction(None, reason=NO_ANSWER)
    refusal = PUBLIC_REFUSALS.search(reply)
    if refusal:
        return Extraction(None, reason=REFUSED + refusal.group())
    lone = _lone_letters(reply, options)
    if len(lone) == 1:
        return Extraction(lone.pop(), "letter")
    if not lone and "Z" in reply.translate(_SPACED).split():
        return Extraction(None, reason=NO_ANSWER)
    lower = reply.lower()
    found = [c for c, text in _lettered(options) if text.lower() in lower]
    if len(found) == 1:
        return Extraction(found[0], "text")
    return Extraction(None, reason=NO_ANSWER, open=True)


def _lettered(options: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(ascii_uppercase, options, strict=False))


def _lone_letters(reply: str, options: Sequence[str]) -> set[str]:
    """The option letters that stand alone, in capitals."""
    tokens = set(reply.translate(_SPACED).split())
    return {letter for letter, _ in _lettered(options)} & tokens


def _stated(reply: str, options: Sequence[str]) -> str | None:
    """The letter of the last stated answer, or on a line of its own at the end."""
    letters = "".join(letter for letter, _ in _lettered(options))
    # a small letter has to be all that is said: "answer: b", but not "answer: a polyp"
    one = rf"(?:([{letters}]){_SHUT}|([{letters.lower()}])(?=[\s\"'”’)\]}}>*.]*(?:\n|<|$)))"
    for pattern in _STATED:
        full = pattern.format(letter=one, open=_OPEN, said=_SAID)
        matches = [m for m in re.finditer(full, reply) if not _hedged(reply[m.end() :], letters)]
        if matches:
            return _letter(matches[-1])
    lines = [line for line in reply.splitlines() if line.strip()]
    alone = re.fullmatch(rf"{_OPEN}(?:option\s+)?{one}[^A-Za-z0-9]*", lines[-1]) if lines else None
    return _letter(alone) if alone else None


def _letter(match: re.Match[str]) -> str:
    return str(next(group for group in match.groups() if group)).upper()


def _hedged(rest: str, letters: str) -> bool:
    """Whether what follows a letter names another one: "B or C"."""
    return bool(re.match(rf"[\s\"')*]*(?:or|and|/|,|&)\s*[\"'(*]*[{letters}]{_SHUT}", rest))


def _contradicted(reply: str, letter: str, options: Sequence[str]) -> bool:
    """Whether the text of another option, and not the letter's own, stands beside the letter."""
    beside = rf"(?<!\w){letter}[\s.:)\](\"'*_-]{{1,6}}"
    named = {c: rf"{beside}(?i:{re.escape(text.strip())})(?!\w)" for c, text in _lettered(options)}
    found = {c for c, pattern in named.items() if re.search(pattern, reply)}
    return bool(found) and letter not in found


def _without_articles(reply: str) -> str:
    """Every "A" that stands before a word, and is no letter therefore, as "a"; so with "I"."""
    reply = re.sub(r"(?<!\w)I(?=['’]|\s+(?!(?:is|was)\b)[a-z])", "i", reply)
    return re.sub(rf"(?<![\w\\])A(?=\s+(?!(?:{_VERBS})\b)[a-z])", "a", reply)


def _first_word(reply: str, options: Sequence[str]) -> list[str]:
    """The option of a reply that begins with Yes or No, where those are options."""
    word = re.match(r"[\s*\"']*(yes|no)\b(?=[\s*\"']*(?:[.,;:!\n]|$))", reply.lower())
    return [c for c, text in _lettered(options) if word and text.strip().lower() == word.group(1)]


def _whole_words(reply: str, options: Sequence[str]) -> list[str]:
    """Options whose text occurs as whole words, and not only within a longer option's."""
    rest, found = reply.lower(), []
    for letter, text in sorted(_lettered(options), key=lambda pair: -len(pair[1])):
        words = rf"(?<!\w){re.escape(text.lower().strip())}(?!\w)"
        if text.strip() and re.search(words, rest):
            found.append(letter)
            rest = re.sub(words, "\0", rest)
    return sorted(found)
