"""Which options a reply denies: "not an ulcer", "A is incorrect", "B rather than C".

What is denied is struck out before a reply is read for the option it chooses. Where that leaves
nothing the reply names no option: what is left over is never taken for what was meant. Rules of
English, by clauses: a denial reaches over a few words and no punctuation. They err towards
striking out, which makes "no answer" of a reply, and never another option.
"""

import re
from collections.abc import Sequence
from string import ascii_uppercase

STRUCK = "\0"
"""What stands in the place of a denied option."""

_MENTION = "\ue000"  # a private character in place of each option that is named
_QUOTES = r"[\s\"'“”‘’`()\[\]*_]{0,6}"
_ONE = rf"{_QUOTES}(?:\b(?:the|an?|any|even|options?|choices?|answers?|letters?)\b{_QUOTES}){{0,2}}"
_JOINED = rf"{_ONE}{_MENTION}(?:{_QUOTES}(?:/|&|\b(?:or|and|nor)\b){_ONE}{_MENTION}){{0,25}}"
_LISTED = rf"{_JOINED}(?:{_QUOTES},\s*(?:\b(?:or|and|nor)\b)?{_JOINED}){{0,25}}"
_FEW_WORDS = r"(?:[ \t]+(?!(?:but|so|then|instead|rather|because|as|since)\b)[\w'’-]+){0,6}?"

_COMPARED = r"rather than|instead of|other than|unlike|as opposed to|away from|except(?: for)?"
_BEFORE = (
    r"not|\w+n['’]t|can['’]t|cannot|no|never|nothing|neither|nor|without|hardly|scarcely|doubts?"
    r"|anything but|used to be|discard(?:s|ed|ing)?|dismiss(?:es|ed|ing)?|false|absent"
    r"|lacks?|lacking|absence of|free of|less likely"
    r"|rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)|eliminat(?:e|es|ed|ing)|reject(?:s|ed|ing)?"
    r"|den(?:y|ies|ied)|mistaken for|tempting to \w+|(?:has|have) left"
    r"|(?:some|one|others) (?:would|might|may|could) (?:say|think|choose|pick|answer)"
)
_AFTER = (
    r"(?:(?:is|are|was|were|seems?|looks?|appears?|can|could|would|may|might|has|have)\b"
    r"(?:[ \t]+[\w'’-]+){0,2}?[ \t]+(?:not|incorrect|wrong|unlikely|improbable|implausible|false"
    r"|absent|less|inconsistent|excluded|eliminated|rejected|ruled out|out)"
    r"|(?:is|are|was|were|do|does|did|could|would)n['’]t|can['’]t|(?:does|do|did|can) not|cannot"
    r"|seems? unlikely|lacks?)\b"
)
_DENIED = (
    re.compile(rf"\b(?:{_COMPARED})\b{_FEW_WORDS}{_JOINED}", re.IGNORECASE),
    re.compile(rf"\b(?:{_BEFORE})\b:?{_FEW_WORDS}{_LISTED}", re.IGNORECASE),
    re.compile(rf"{_LISTED}{_QUOTES}[ \t]*\b{_AFTER}", re.IGNORECASE),
)
_SURE = re.compile(
    r"\b(?:(?:without|no|beyond)(?: an?| any)? (?:doubt|question)|not (?:only|to mention)"
    r"|(?:not|n['’]t be|cannot be|never)(?: \w+)? (?:sure|certain))\b",
    re.IGNORECASE,
)
"""Words that deny nothing, though they look like it."""
_SENTENCE = re.compile(r"[^.?!\n]+[.?!]?")
_SUPPOSED = (re.compile(r"\bif\b", re.IGNORECASE), re.compile(r"\bwould\b", re.IGNORECASE))


_TAKEN_BACK = re.compile(
    r"\b(?:disagree|(?:not|n['’]t) agree|mistake|(?:that|this|it) (?:would be|is) wrong)\b",
    re.IGNORECASE,
)


def without_denied(reply: str, options: Sequence[str]) -> str:
    """The reply with every option that it denies, doubts in a question or only supposes, by letter
    or by text, struck out."""
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        found.append(match.group())
        return _MENTION

    marked = _mentions(options).sub(mark, _SURE.sub("", reply.replace(_MENTION, "")))
    struck = {place for start, end in _spans(marked) for place in range(start, end)}
    words = iter(found)
    return "".join(
        char if char != _MENTION else _kept(next(words), place in struck)
        for place, char in enumerate(marked)
    )


def _kept(words: str, denied: bool) -> str:
    return STRUCK if denied else words


def _mentions(options: Sequence[str]) -> re.Pattern[str]:
    """Finds options by their texts, longer ones first, and by capital letters that stand alone."""
    texts = sorted({o.strip() for o in options if o.strip()}, key=len, reverse=True)
    letters = ascii_uppercase[: len(options)]
    named = [rf"(?i:(?<!\w){re.escape(text)}(?!\w))" for text in texts]
    return re.compile("|".join([*named, rf"(?<![\w'’])[{letters}](?![\w'’])"]))


def _spans(marked: str) -> list[tuple[int, int]]:
    """Where options are denied, doubted or supposed: places in the text."""
    found = [match.span() for pattern in _DENIED for match in pattern.finditer(marked)]
    sentences = list(_SENTENCE.finditer(marked))
    for sentence in sentences:
        text = sentence.group()
        asked = text.endswith("?") and len(sentences) > 1 and len(text.split()) > 2
        if asked or _TAKEN_BACK.search(text) or all(word.search(text) for word in _SUPPOSED):
            found.append(sentence.span())
    return found
