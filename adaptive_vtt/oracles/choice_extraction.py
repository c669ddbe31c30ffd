"""Find the option that a reply chooses.

``extract`` has two rules. The faithful rule follows the public scoring code of EndoBench (a fork of
VLMEvalKit), including its edge cases: it takes the only option letter that stands alone, else the
only option whose text occurs. The default rule first looks for a stated answer, does not take the
article "A" or the pronoun "I" for a letter, ignores denied options (``without_denied``), matches
whole words, and knows more refusals.

Neither rule guesses: a reply that names no option is no answer, and neither is a letter next to the
text of another option. The public code chooses a random letter in these cases.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from ..models.reply_frames import NO_ANSWER, REFUSED, answer_in
from ..models.yes_no import NO_IMAGE, declines, without_image
from ..types import Unanswered

PUBLIC_REFUSALS = re.compile(
    r"can(?:no|')t help with images of people|can(?:no|')t process this file"
    r"|sorry, but without the image provided|[Cc]annot determine the answer"
)
"""The four refusals that the public rule knows."""

_SPACED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
"""Characters that the public rule replaces by spaces."""

# -- patterns of stated answers --------------------------------------------------------------------

_VERBS = "is|was|as|because|since|seems|fits|matches|best|or|and|but|would|looks|with"
"""Words before which "A" is a letter, as in "A is right", and not the article, as in "A polyp"."""

_OPEN = r"[\s\"'“‘`(\[{<*_$:]{0,9}"
"""Marks before a letter, as in "**(B"; their number is bounded for speed."""
_SHUT = r"(?![A-Za-z0-9])"
"""End of a letter that stands alone."""
_IS = rf"{_OPEN}(?i:is|was|would be|should be|=|:|-)?{_OPEN}(?i:the\s+)?(?i:option|letter)?{_OPEN}"
"""Text that may stand between "answer" and the letter, as in "answer is the option (B"."""

_STATED = (
    r"(?i:final\s+answer){is_}{letter}",  # "Final answer: B"
    r"(?i:(?:correct|right|best)\s+(?:answer|option|choice)){is_}{letter}",  # "best choice is B"
    r"(?i:answer|choice){is_}{letter}",  # "Answer: (b)"
    # "I would go with option B"
    r"(?i:option|choose|select|pick|go(?:ing)?\s+with|opt\s+for){open}(?i:option)?{open}{letter}",
    r"(?:答案|回答|答え|选择?|選)(?:是|为|は)?{open}{letter}",  # written without spaces
)
"""Patterns of stated answers, the clearest first; the last match of a pattern counts."""


@dataclass(frozen=True)
class Extraction:
    """The option that a reply chooses.

    Attributes:
        letter: Its letter; None: the reply chooses none.
        how: The form in which the reply names it: "stated", "letter" or "text"; "" without one.
        reason: The reason why there is none, such as "no answer" or "declined to answer".
        open: True if a judge model may be asked for the meaning of the reply.
    """

    letter: str | None
    how: str = ""
    reason: str | None = None
    open: bool = False


def extract(reply: str, options: Sequence[str], *, faithful: bool = False) -> Extraction:
    """Return the option that a reply chooses.

    Args:
        reply: The reply.
        options: Texts of the options A, B ...
        faithful: Whether to follow EndoBench's public code.
    """
    if faithful:
        return _faithful(reply, options)
    part = answer_in(reply)
    if isinstance(part, str) and without_image(part):
        part = Unanswered(NO_IMAGE)
    if isinstance(part, Unanswered):
        return Extraction(None, reason=part.reason)
    reply, *options = (unicodedata.normalize("NFKC", text) for text in (part, *options))
    # the pronoun "I" and the article "A" become small letters, which name no option
    lowered = re.sub(r"(?<!\w)I(?=['’]|\s+(?!(?:is|was)\b)[a-z])", "i", reply)
    lowered = re.sub(rf"(?<![\w\\])A(?=\s+(?!(?:{_VERBS})\b)[a-z])", "a", lowered)
    text = without_denied(lowered, options)
    lone = _lone_letters(text, options)
    letter = _stated(text, options)
    how = "stated" if letter else "letter"
    if letter is None and len(lone) == 1:  # "I cannot see any lesion, so D" is no refusal
        letter = next(iter(lone))
    if letter is not None and not _contradicted(text, letter, options):
        return Extraction(letter, how)
    if (refusal := declines(reply)) and letter is None:
        return Extraction(None, reason=refusal)
    matching = [] if lone or letter else _first_word(text, options) or _whole_words(text, options)
    if len(matching) == 1:
        return Extraction(matching[0], "text")
    return Extraction(None, reason=NO_ANSWER, open=bool(reply.strip()))


def _faithful(reply: str, options: Sequence[str]) -> Extraction:
    """Return the option by EndoBench's public code, without its random choice."""
    if "Failed to obtain answer via API" in reply:
        return Extraction(None, reason=NO_ANSWER)
    if refusal := PUBLIC_REFUSALS.search(reply):
        return Extraction(None, reason=REFUSED + refusal.group())
    lone = _lone_letters(reply, options)
    if len(lone) == 1:
        return Extraction(lone.pop(), "letter")
    if not lone and "Z" in reply.translate(_SPACED).split():
        return Extraction(None, reason=NO_ANSWER)
    lower = reply.lower()
    matching = [c for c, text in _lettered(options) if text.lower() in lower]
    if len(matching) == 1:
        return Extraction(matching[0], "text")
    return Extraction(None, reason=NO_ANSWER, open=True)


def _lettered(options: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(ascii_uppercase, options, strict=False))


def _lone_letters(reply: str, options: Sequence[str]) -> set[str]:
    """Return the option letters that stand alone in a reply."""
    tokens = set(reply.translate(_SPACED).split())
    return {letter for letter, _ in _lettered(options)} & tokens


def _stated(reply: str, options: Sequence[str]) -> str | None:
    """Return the letter of the last stated answer, or of a last line that is only a letter."""
    letters = "".join(letter for letter, _ in _lettered(options))
    # a small letter must end the answer: "answer: b", but not "answer: a polyp"
    one = rf"(?:([{letters}]){_SHUT}|([{letters.lower()}])(?=[\s\"'”’)\]}}>*.]*(?:\n|<|$)))"
    for pattern in _STATED:
        full = pattern.format(letter=one, open=_OPEN, is_=_IS)
        matches = [m for m in re.finditer(full, reply) if not _hedged(reply[m.end() :], letters)]
        if matches:
            return _letter(matches[-1])
    lines = [line for line in reply.splitlines() if line.strip()]
    alone = [re.fullmatch(rf"{_OPEN}(?:option\s+)?{one}[^A-Za-z0-9]*", line) for line in lines]
    named = {_letter(match) for match in alone if match}
    return named.pop() if alone and alone[-1] and len(named) == 1 else None


def _letter(match: re.Match[str]) -> str:
    return str(next(group for group in match.groups() if group)).upper()


def _hedged(following: str, letters: str) -> bool:
    """Return whether the text after a letter names another one: "B or C"."""
    join = "or|and|或|和|、|/|,|&"
    return bool(re.match(rf"[\s\"')*]*(?:{join})\s*[\"'(*]*[{letters}]{_SHUT}", following))


def _contradicted(reply: str, letter: str, options: Sequence[str]) -> bool:
    """Return whether the text of another option follows the letter, and its own never does."""
    before = rf"(?<!\w){letter}[\s.:)\](\"'*_-]{{1,6}}"
    named = {c: rf"{before}(?i:{re.escape(text.strip())})(?!\w)" for c, text in _lettered(options)}
    letters = {c for c, pattern in named.items() if re.search(pattern, reply)}
    return bool(letters) and letter not in letters


def _first_word(reply: str, options: Sequence[str]) -> list[str]:
    """Return the option of a reply that begins with Yes or No, if these are options."""
    word = re.match(r"[\s*\"']*(yes|no)\b(?=[\s*\"']*(?:[.,;:!\n]|$))", reply.lower())
    return [c for c, text in _lettered(options) if word and text.strip().lower() == word.group(1)]


def _whole_words(reply: str, options: Sequence[str]) -> list[str]:
    """Return options whose text occurs as whole words, and not only within a longer option."""
    unread, letters = reply.lower(), []
    for letter, text in sorted(_lettered(options), key=lambda pair: -len(pair[1])):
        words = rf"(?<!\w){re.escape(text.lower().strip())}(?!\w)"
        if text.strip() and re.search(words, unread):
            letters.append(letter)
            unread = re.sub(words, "\0", unread)
    return sorted(letters)


# -- options that a reply denies -------------------------------------------------------------------
# Examples are "not an ulcer", "A is incorrect", "B rather than C". Denied options are removed
# before the reply is read. If no option is left, the reply has none: an option is never chosen
# because all others are denied. A denial covers the next few words without punctuation. In doubt an
# option is removed, which may turn a reply into "no answer", but not into another option.


STRUCK = "\0"
"""Stands in place of a denied option."""

_MENTION = "\ue000"
"""A private character that stands in place of each option."""
_QUOTES = r"[\s\"'“”‘’`()\[\]*_]{0,6}"
_ONE = rf"{_QUOTES}(?:\b(?:the|an?|any|even|options?|choices?|answers?|letters?)\b{_QUOTES}){{0,2}}"
"""Text that may stand before an option, as in "the option (A"."""
_JOINED = rf"{_ONE}{_MENTION}(?:{_QUOTES}(?:/|&|\b(?:or|and|nor)\b){_ONE}{_MENTION}){{0,25}}"
"""Options as in "A or B"."""
_LISTED = rf"{_JOINED}(?:{_QUOTES},\s*(?:\b(?:or|and|nor)\b)?{_JOINED}){{0,25}}"
"""Options as in "A, B or C"."""
_FEW_WORDS = r"(?:[ \t]+(?!(?:but|so|then|instead|rather|because|as|since)\b)[\w'’-]+){0,6}?"
"""Up to six words between a denial and its option, without those that begin another clause."""

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
    r"|seems? unlikely|lacks?|(?:excluded|eliminated|rejected|ruled out|absent))\b"
)
_DENIED = (
    re.compile(rf"\b(?:{_COMPARED})\b{_FEW_WORDS}{_JOINED}", re.IGNORECASE),  # "rather than A"
    re.compile(rf"\b(?:{_BEFORE})\b:?{_FEW_WORDS}{_LISTED}", re.IGNORECASE),  # "not A, B or C"
    re.compile(rf"{_LISTED}{_QUOTES}[ \t:]*\b{_AFTER}", re.IGNORECASE),  # "A and B are wrong"
)
_SURE = re.compile(
    r"\b(?:(?:without|no|beyond)(?: an?| any)? (?:doubt|question)|not (?:only|to mention)"
    r"|(?:not|n['’]t be|cannot be|never)(?: \w+)? (?:sure|certain))\b",
    re.IGNORECASE,
)
"""Phrases that deny nothing, although they contain a negation."""
_SENTENCE = re.compile(r"[^.?!\n]+[.?!]?")
_SUPPOSED = (re.compile(r"\bif\b", re.IGNORECASE), re.compile(r"\bwould\b", re.IGNORECASE))
"""Words that together make a sentence a supposition: "It would be A if it were larger"."""
_CONDITION = re.compile(r"\s*(?:if|unless)\b(?!\s+(?:i|you|forced|pressed|asked)\b)", re.IGNORECASE)
"""Beginning of a condition, but not of "If I had to choose"."""
_TAKEN_BACK = re.compile(
    r"\b(?:disagree|(?:not|n['’]t) agree|mistake|(?:that|this|it) (?:would be|is) wrong)\b",
    re.IGNORECASE,
)


def without_denied(reply: str, options: Sequence[str]) -> str:
    """Return a reply in which ``STRUCK`` replaces each option, by letter or by text, that the reply
    denies, asks about, or only supposes."""
    # options by text, longer ones first, and by lone capital letters
    texts = sorted({o.strip() for o in options if o.strip()}, key=len, reverse=True)
    patterns = [rf"(?i:(?<!\w){re.escape(text)}(?!\w))" for text in texts]
    patterns.append(rf"(?<![\w'’])[{ascii_uppercase[: len(options)]}](?![\w'’])")
    pattern, plain = re.compile("|".join(patterns)), _SURE.sub("", reply.replace(_MENTION, ""))
    mentions, marked = pattern.findall(plain), pattern.sub(_MENTION, plain)
    denied = {place for start, end in _spans(marked) for place in range(start, end)}
    places = [match.start() for match in re.finditer(_MENTION, marked)]
    kept = iter(STRUCK if p in denied else m for p, m in zip(places, mentions, strict=True))
    return re.sub(_MENTION, lambda _: next(kept), marked)


def _spans(marked: str) -> list[tuple[int, int]]:
    """Return the spans of a text in which options are denied, asked about or supposed."""
    spans = [match.span() for pattern in _DENIED for match in pattern.finditer(marked)]
    sentences = list(_SENTENCE.finditer(marked))
    for sentence in sentences:
        text = sentence.group()
        asked = text.endswith("?") and len(sentences) > 1 and len(text.split()) > 2
        supposed = _CONDITION.match(text) or all(word.search(text) for word in _SUPPOSED)
        if asked or supposed or _TAKEN_BACK.search(text):
            spans.append(sentence.span())
    return spans
