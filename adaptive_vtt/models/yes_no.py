"""Yes or No, read out of a reply in words, or out of the log-probabilities of its tokens.

Two things are an answer: a Yes or No where answers stand (`_PLACES`), and a sentence that says that
the concept asked about is, or is not, seen. Any other "no" is about something else. Where answers
disagree, or a reply doubts, refuses or got no image, there is none: no reading is better than a
wrong one. The words are in data/yes_no.toml.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple

from ..types import Unanswered, Value
from .reply_frames import answer_in

NEITHER, BOTH = "neither yes nor no", "both yes and no"
UNSURE, DECLINED = "is not sure", "declined to answer"
NO_IMAGE = "says that it got no image"

_WORDS: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("data", "yes_no.toml").read_text(encoding="utf-8")
)
_MEANING = {
    word: side
    for side in ("yes", "no")
    for words in (*_WORDS[side].values(), _WORDS["alone"][side])
    for word in words
}
"""Word -> yes or no."""


def _any(words: Iterable[str]) -> str:
    """The pattern of any of these words, longer ones first; a * stands for any ending."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.sub(r"(?<=\w)\*", r"\\w*", word) for word in ordered) + ")"


_ALONE = {word for words in _WORDS["alone"].values() for word in words}
_ONE = rf"(?<![\w-])(?<!\w')(?P<word>{_any(set(_MEANING) - _ALONE)})(?!'?\w)"
_BARE = rf"(?<![\w-])(?<!\w')(?P<word>{_any(_MEANING)})(?!'?\w)"
_CLOSES = r"[\"'*_)\]}]*"
_ENDS = rf"(?={_CLOSES}\s*(?:[.,;:!—–|、。，！)]|[^\S\n]-|\n|\Z))(?!\.?\s*\d)"
_FOLLOWS = (
    rf"(?:{_ENDS}|(?={_CLOSES}\s+(?:\(|{_any(_WORDS['after']['words'])}\b))|(?<=yes)(?=\s+\w))"
)
_LABEL = (
    rf"\b{_any(_WORDS['labels']['words'])}\b"
    r"[^\w?]{0,12}(?:(?:to|for)\b[^.:?!\n]{0,60}?\b(?=is\b|would\b|:))?[^\w?]{0,4}"
    r"(?:(?:is|was|would|will|should|be|has|to|then|therefore|thus|clearly|simply|an?|definite"
    r"|the|with|that|it)\b[^\w?]{0,6}){0,5}"
)
_PLACES = (
    rf"\A[^\w?]*{_ONE}{_FOLLOWS}",  # the beginning
    rf"(?:[.!;,—–\n]|\b(?:so|hence|thus|therefore|then|is|be|say|but)\b|\ban?(?:\s\w+)?\s)"
    rf"[^\w?]{{0,12}}{_ONE}[^\w?]*\Z",  # the end
    rf"{_LABEL}{_ONE}{_FOLLOWS}",
    rf"{_LABEL}{_BARE}[^\w?]*$",
    rf"^[^\w?\n]*(?:\d+[.)][^\w?\n]*)?{_BARE}[^\w?\n]*$",  # a line of its own
    rf"\*\*[^\w?\n]{{0,3}}{_ONE}{_FOLLOWS}",  # in bold
    rf"(?<=[.!\n])[^\w?\n]{{1,6}}{_ONE}{_ENDS}",  # the beginning of a sentence
)
"""Where a Yes or No is an answer."""
_PATTERNS = [re.compile(place, re.MULTILINE) for place in _PLACES]
_PAIR = re.compile(r"\b(?:yes|no)\s*(?:/|\||\bor\b|\band\b|\bnor\b)\s*(?:an?\s+)?(?:yes|no)\b")
_ASKED = re.compile(
    rf"(?P<question>[^.?!\n:]{{0,300}})\?[^\w?]{{0,12}}(?:(?:answer|a)\W+)?{_ONE}{_ENDS}"
)
_ABOUT_IT = re.compile(r"(?:\A\W*|.*\b(?:it|one|so|present|visible|there|here|answer)\W*)\Z")
_DENIED = re.compile(r"(?:n't|\bnot|\bnever|\bcannot|\bnor|\bneither)\s+(?:\w+\s+){0,3}\Z")
_PICTURE = _any(_WORDS["pictures"]["words"])
_DOUBT, _NOT_GOT, _SEND, _REFUSES, _UNABLE = (
    re.compile("|".join(_WORDS["replies"][name]).replace("{picture}", _PICTURE))
    for name in ("doubts", "no_image", "send", "refuses", "unable")
)


class Reading(NamedTuple):
    """``value``, and where the first Yes or No that answers begins; -1: none does."""

    value: Value
    start: int = -1


def yes_or_no(reply: str, concept: str = "") -> Value:
    """Return 1.0 for Yes, 0.0 for No, or Unanswered with the reason.

    Args:
        reply: The words that came, thinking and frames included.
        concept: The name of what was asked about; "" where it has none.
    """
    return read(reply, concept).value


def read(reply: str, concept: str = "") -> Reading:
    """Return what a reply answers, and where in it."""
    part = answer_in(reply, [concept])
    if isinstance(part, Unanswered):
        return Reading(part)
    low = "".join(c.lower() if len(c.lower()) == 1 else c for c in part)
    text = _PAIR.sub(_spaces, low.translate(str.maketrans("’‘“”", "''\"\"")).replace("__", "**"))
    named = _named(concept)
    words = sorted(_explicit(text, named))
    sides = {_MEANING[word] for _, word in words}
    seen, hedged = _said_of(text, named)
    start = words[0][0] if words else -1
    if without_image(text) or (_SEND.search(text) and not sides | seen):
        return Reading(Unanswered(NO_IMAGE))
    refusal = _REFUSES.search(text)
    if refusal and (not sides | seen or any(_together(text, refusal, at) for at, _ in words)):
        return Reading(Unanswered(DECLINED))
    if hedged == "strong" or _DOUBT.search(text) or (hedged and not sides | seen):
        return Reading(Unanswered(UNSURE))
    if len(sides | seen) != 1:
        return Reading(Unanswered(BOTH if sides or seen else NEITHER), start)
    return Reading(float((sides | seen) == {"yes"}), start)


def p_yes(tokens: Iterable[Mapping[str, Any]], concept: str = "") -> float | None:
    """Return P(yes) where a reply says Yes or No: their probabilities, normalised over the two.

    Args:
        tokens: Those of the reply, each with ``token``, ``logprob``, ``top_logprobs``. The first
            that is an answer counts.
        concept: The name of what was asked about.

    Returns:
        None for a reply without an answer, or where its number is missing.
    """
    tokens = list(tokens)
    texts = [_unmarked(token["token"]) for token in tokens]
    start = read("".join(texts), concept).start
    if start < 0:
        return None
    place = next(k for k, end in enumerate(accumulate(map(len, texts))) if start < end)
    token = tokens[place]
    # the token itself is among the likeliest too, where the server lists as many
    listed = (*(token.get("top_logprobs") or ()), token)
    numbers = {one["token"]: one.get("logprob") for one in listed}
    mass = {"yes": 0.0, "no": 0.0}
    for name, logprob in numbers.items():
        side = _MEANING.get(_bare(name))
        if side and _is_number(logprob):
            mass[side] += math.exp(logprob)
    known = _bare(token["token"]) in _MEANING and _is_number(token.get("logprob"))
    return mass["yes"] / sum(mass.values()) if known and sum(mass.values()) > 0 else None


def declines(reply: str) -> str | None:
    """Return the reason where a reply got no image or refuses, else None."""
    text = reply.lower().replace("’", "'")
    if without_image(text) or _SEND.search(text):
        return NO_IMAGE
    return DECLINED if _REFUSES.search(text) or _UNABLE.search(text) else None


def without_image(reply: str) -> bool:
    """Return whether a reply says that no image came with the question."""
    return bool(_NOT_GOT.search(reply.lower().replace("’", "'")))


# -- a Yes or No where answers stand ---------------------------------------------------------------


def _explicit(text: str, named: str) -> set[tuple[int, str]]:
    """The answers that are a Yes or No: where they begin, and the word."""
    answers = set()
    for asked in _ASKED.finditer(text):
        question = asked["question"]
        about_it = re.search(rf"\b{named}\b", question) if named else True
        if (about_it or _ABOUT_IT.match(question)) and not _NEGATED.search(question):
            answers.add((asked.start("word"), asked["word"]))
        else:  # it answers another question
            start, end = asked.span("word")
            text = text[:start] + " " * (end - start) + text[end:]
    patterns = _PATTERNS
    if named:
        label = rf"\b{named}\b\W{{0,3}}(?:present|visible|detected|seen|found|presence|status)?"
        patterns = [*patterns, re.compile(rf"{label}\W{{0,8}}[:=–—-]\W{{0,4}}{_BARE}{_ENDS}")]
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _DENIED.search(text, max(0, match.start() - 40), match.start()):
                answers.add((match.start("word"), match["word"]))
    return answers


def _spaces(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _together(text: str, refusal: re.Match[str], place: int) -> bool:
    """Whether a refusal and an answer stand in one sentence."""
    first, last = sorted((refusal.start(), place))
    return not re.search(r"[.!?;\n]", text[first:last])


# -- a sentence about the concept ------------------------------------------------------------------

_S = {name: _any(words) for name, words in _WORDS["sentences"].items()}
_NEGATED = re.compile(rf"\b{_S['negations']}\b|n't")
_NEUTRAL = re.compile(rf"\b{_S['neutral']}\b")
_STRONG, _WEAK = (re.compile(rf"\b{_S[name]}(?!\w)") for name in ("strong_hedges", "weak_hedges"))
_CLAUSE = re.compile(
    r"[.!;\n]|[—–:]|\b(?:but|although|though|while|whereas|however|because|since|so)\b"
    r"|(?:,|\band\b|,\s*and\b)\s*(?=(?:an?|one|the|this|that|there|i|it|we|no|two|which|with|without"
    r"|possibly|probably|likely|perhaps|maybe|measuring)\b)"
)
_ITEM = r"(?:[\w-]+\s+){1,3}?(?:,\s*(?:or|nor)?|or|nor|/)|[\w-]+\s*,\s*(?:or\b|nor\b)?"
_ADVERBS = rf"(?:{_S['adverbs']}\s+){{0,2}}"
_THING = (
    r"(?:(?:an?|one|the|two|three|four|five|several|multiple|many|some|few|\d+)\s+)?"
    rf"(?:(?!{_S['blocked']}\b)(?!\w+ing\b)[\w-]+\s+){{0,4}}?{{named}}(?=\s*(?:\Z|[,)\"(])|\s+{_S['after']}\b)"
)
_SEEN = (
    rf"\bthere\s+(?:is|are|was|were)\s+{_ADVERBS}{_THING}",
    rf"\b(?:i|we|you|one)\s+(?:can\s+|do\s+|could\s+)?{_ADVERBS}{_S['see']}\s+{_THING}",
    rf"\b{_S['subjects']}\s+{_ADVERBS}{_S['shows']}\s+{_ADVERBS}{_THING}",
    rf"\b{{named}}\s+(?:(?:is|are|was|were|can be|has been|have been)\s+)?{_ADVERBS}{_S['seen']}\b"
    r"(?!\s+(?:when|if|by|during|among|as)\b|\s+in\s+(?!the (?:upper|lower|left|right|cent|middle"
    r"|image|picture|photo|frame|view|scan|top|bottom|field|fore|back)|this|view|it\b))",
)
_NOT_SEEN = (
    rf"\b{_S['negations']}\s+(?:{_S['fillers']}\s+)*(?:(?:{_ITEM})\s*)*(?:{_S['fillers']}\s+)*{{named}}"
    rf"(?=\s*(?:\Z|[,)\"(])|\s+{_S['after']}\b)",
    rf"\b{{named}}\s+(?:is|are|was|were|can|could|has|have)\s+not\s+(?:be\s+|been\s+|\w+ly\s+){{0,2}}"
    rf"{_S['seen']}\b",
    r"\b{named}\s+(?:(?:is|are|was|were|has been|have been|can be)\s+)?(?:\w+ly\s+)?"
    r"(?:absent|excluded|ruled out|missing|nowhere)\b",
    rf"\b{{named}}\s+not\s+{_S['seen']}\b",
)
_LONGEST = 300
"""Characters of a clause that is read; a longer one rambles."""
_FIELD = re.compile(rf"[^.,;:=\n]{{0,60}}[:=][\s\"'*]{{0,9}}{_BARE}(?!\s+\w)")
"""A label with its Yes or No: "polyp present: no"."""
_HALF = re.compile(
    r"\b(?:in|on|at)\s+the\s+(?:upper|lower|left|right|top|bottom|middle|cent|first|fore|back|other|rest)"
)


def _said_of(text: str, named: str) -> tuple[set[str], str]:
    """What sentences say of the concept, and whether they hedge, "strong" or "weak"."""
    sides: set[str] = set()
    hedges = ""
    if not named:
        return sides, hedges
    seen, not_seen = (
        [re.compile(pattern.replace("{named}", named)) for pattern in patterns]
        for patterns in (_SEEN, _NOT_SEEN)
    )
    for clause in _clauses(text):
        if not re.search(rf"\b{named}\b", clause):
            continue
        negations = [n for n in _NEGATED.finditer(clause) if n.group() != "nor"]
        if _STRONG.search(clause):
            hedges = "strong"
        elif _WEAK.search(clause) and not (
            negations and re.search("look like|appear|seem", clause)
        ):
            hedges = hedges or "weak"
        elif not negations and "nor " not in clause:
            sides |= {"yes"} if any(p.search(clause) for p in seen) else set()
        elif len(negations) <= 1 and not _HALF.search(clause):
            sides |= {"no"} if any(p.search(clause) for p in not_seen) else set()
    return sides, hedges


def _clauses(text: str) -> Iterator[str]:
    """The clauses of a text that ask nothing, in plain words."""
    text = re.sub(r"[*_`\"#]", " ", _FIELD.sub("\n", text))
    text = re.sub(r"[^.?!\n;]{0,400}\?", "\n", re.sub(r"can't|cannot", "can not", text))
    text = re.sub(r"n't\b", " not", re.sub(r"\b(there|it|that|this|here)'s\b", r"\1 is", text))
    for clause in _CLAUSE.split(_NEUTRAL.sub("", text)):
        if len(plain := " ".join(clause.split())) <= _LONGEST:
            yield plain


def _named(concept: str) -> str:
    """The pattern of a concept's name, its plural and its singular; "" for a name that denies."""
    words = re.findall(r"[^\W_]+", concept.lower())
    if not words or _NEGATED.search(" ".join(words)):
        return ""
    *first, last = words
    forms = {last, *(re.sub(old, new, last) for old, new in _PLURALS)}
    return r"[\s_/-]+".join(
        [*map(re.escape, first), f"(?:{'|'.join(sorted(forms, reverse=True))})"]
    )


_PLURALS = (
    (r"$", "s"), (r"$", "es"), (r"y$", "ies"), (r"ies$", "y"), (r"um$", "a"), (r"us$", "i"),
    (r"is$", "es"), (r"fe?$", "ves"), (r"man$", "men"), (r"(?<=\w\w[a-hj-rtv-z])s$", ""),
    (r"(?<=\w\w\w[sxh])es$", ""),
)  # fmt: skip


# -- tokens ----------------------------------------------------------------------------------------


def _unmarked(token: str) -> str:
    """A token's text; tokenizers write the space before a word as a mark."""
    return token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")


def _bare(token: str) -> str:
    return re.sub(r"^[\W_]+|[\W_]+$", "", _unmarked(token)).lower()


def _is_number(logprob: object) -> bool:
    """Whether a log-probability is one: servers write -9999 where they know none."""
    return isinstance(logprob, int | float) and -1000 < logprob <= 1e-6
