"""Yes or No, read from a reply in words, or from the log-probabilities of its tokens.

There are two kinds of answers: a Yes or No in the place of an answer (`places`), and a sentence
that the concept is, or is not, seen. Any other "no" is about something else. If answers disagree,
or a reply doubts, refuses or got no image, there is none: no reading is better than a wrong one.
The words and patterns are in data/yes_no.toml.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from ..types import Unanswered, Value
from ..utils.files import data_of
from .reply_frames import Patterns, answer_in

NEITHER, BOTH = "neither yes nor no", "both yes and no"
UNSURE, DECLINED = "is not sure", "declined to answer"
NO_IMAGE = "says that it got no image"

_DATA = data_of(__package__, "yes_no.toml")
_MEANING = {
    word: side
    for side in ("yes", "no")
    for words in (*_DATA[side].values(), _DATA["alone"][side])
    for word in words
}
"""Word -> yes or no."""
_ALONE = {word for words in _DATA["alone"].values() for word in words}
_LISTS = {**_DATA["words"], "answers": set(_MEANING) - _ALONE, "all_answers": _MEANING}
_PATTERNS = Patterns(_DATA, _LISTS)
_ONE, _SEVERAL = _PATTERNS.one, _PATTERNS.several
_PLACES = [re.compile(place) for place in _SEVERAL["places"]]
"""Patterns of a Yes or No in the place of an answer."""
_DOUBT, _NOT_GOT, _SEND, _REFUSES, _UNABLE = (
    re.compile(_PATTERNS.filled("|".join(_DATA["replies"][name])))
    for name in ("doubts", "no_image", "send", "refuses", "unable")
)
_LONGEST = 300
"""Most characters of a clause that is read; a longer one rambles."""


class Reading(NamedTuple):
    """The ``value`` of a reply, and the ``start`` of its first Yes or No that answers, or -1."""

    value: Value
    start: int = -1


def yes_or_no(reply: str, concept: str = "") -> Value:
    """Return 1.0 for Yes, 0.0 for No, or Unanswered with the reason.

    Args:
        reply: The reply, thinking and frames included.
        concept: Name of the concept that was asked about; "" if it has none.
    """
    return read(reply, concept).value


def read(reply: str, concept: str = "") -> Reading:
    """Return the answer of a reply, and its place."""
    part = answer_in(reply, [concept])
    if isinstance(part, Unanswered):
        return Reading(part)
    low = "".join(c.lower() if len(c.lower()) == 1 else c for c in part)
    low = low.translate(str.maketrans("’‘“”", "''\"\"")).replace("__", "**")
    text = low
    for no_answer in (_ONE["pair"], _ONE["offer"]):
        text = no_answer.sub(lambda match: " " * len(match.group()), text)
    named = _named(concept)
    words = sorted(_explicit(text, named))
    sides = {_MEANING[word] for _, word in words}
    seen, hedged = _in_sentences(text, named)
    start = words[0][0] if words else -1
    if without_image(text) or (_SEND.search(text) and not sides | seen):
        return Reading(Unanswered(NO_IMAGE))
    refusal = _REFUSES.search(text)
    if refusal:
        # a refusal counts if there is no answer, or if it is in one sentence with one
        ends = (sorted((refusal.start(), place)) for place, _ in words)
        same_sentence = any(not re.search(r"[.!?;\n]", text[first:last]) for first, last in ends)
        if same_sentence or not sides | seen:
            return Reading(Unanswered(DECLINED))
    if hedged == "strong" or _DOUBT.search(text) or (hedged and not sides | seen):
        return Reading(Unanswered(UNSURE))
    if len(sides | seen) != 1:
        return Reading(Unanswered(BOTH if sides or seen else NEITHER), start)
    return Reading(float((sides | seen) == {"yes"}), start)


def p_yes(tokens: Iterable[Mapping[str, Any]], concept: str = "") -> float | None:
    """Return P(yes) of a reply with Yes or No, normalised over the two.

    Args:
        tokens: Tokens of the reply, each with ``token``, ``logprob``, ``top_logprobs``. The first
            that is an answer counts.
        concept: Name of the concept that was asked about.

    Returns:
        A number in [0, 1]; None for a reply without an answer, or without its number.
    """
    tokens = list(tokens)
    texts = [_unmarked(token["token"]) for token in tokens]
    start = read("".join(texts), concept).start
    if start < 0:
        return None
    place = next(k for k, end in enumerate(accumulate(map(len, texts))) if start < end)
    token = tokens[place]
    # a server that lists many tokens includes this one among the likeliest
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
    """Return the reason if a reply got no image or refuses, else None."""
    text = reply.lower().replace("’", "'")
    if without_image(text) or _SEND.search(text):
        return NO_IMAGE
    return DECLINED if _REFUSES.search(text) or _UNABLE.search(text) else None


def without_image(reply: str) -> bool:
    """Return whether a reply says that no image came with the question."""
    return bool(_NOT_GOT.search(reply.lower().replace("’", "'")))


# -- a Yes or No in the place of an answer ---------------------------------------------------------


def _explicit(text: str, named: str) -> set[tuple[int, str]]:
    """Return the answers that are a Yes or No: their start, and the word."""
    answers = set()
    for asked in _ONE["asked"].finditer(text):
        question = asked["question"]
        about_it = re.search(rf"\b{named}\b", question) if named else True
        if (about_it or _ONE["about_it"].match(question)) and not _ONE["negated"].search(question):
            answers.add((asked.start("word"), asked["word"]))
        else:  # it answers another question
            start, end = asked.span("word")
            text = text[:start] + " " * (end - start) + text[end:]
    patterns = _PLACES
    if named:
        label = rf"\b{named}\b\W{{0,3}}(?:present|visible|detected|seen|found|presence|status)?"
        field = _PATTERNS.filled(r"\W{0,8}[:=–—-]\W{0,4}{bare}{ends}")
        patterns = [*patterns, re.compile(label + field)]
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _ONE["denied"].search(text, max(0, match.start() - 40), match.start()):
                answers.add((match.start("word"), match["word"]))
    return answers


# -- a sentence about the concept ------------------------------------------------------------------


def _in_sentences(text: str, named: str) -> tuple[set[str], str]:
    """Return the sides that sentences take on the concept, and how they hedge: "strong", "weak" or
    ""."""
    sides: set[str] = set()
    hedges = ""
    if not named:
        return sides, hedges
    seen, not_seen = (
        [re.compile(pattern.replace("{named}", named)) for pattern in patterns]
        for patterns in (_SEVERAL["seen"], _SEVERAL["not_seen"])
    )
    for clause in _clauses(text):
        if not re.search(rf"\b{named}\b", clause):
            continue
        negations = [n for n in _ONE["negated"].finditer(clause) if n.group() != "nor"]
        if _ONE["strong_hedge"].search(clause):
            hedges = "strong"
        elif _ONE["weak_hedge"].search(clause) and not (
            negations and re.search("look like|appear|seem", clause)
        ):
            hedges = hedges or "weak"
        elif not negations and "nor " not in clause:
            sides |= {"yes"} if any(p.search(clause) for p in seen) else set()
        elif len(negations) <= 1 and not _ONE["half"].search(clause):
            sides |= {"no"} if any(p.search(clause) for p in not_seen) else set()
    return sides, hedges


def _clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a text, without questions and markup."""
    text = re.sub(r"[*_`\"#]", " ", _ONE["field"].sub("\n", text))
    text = re.sub(r"[^.?!\n;]{0,400}\?", "\n", re.sub(r"can't|cannot", "can not", text))
    text = re.sub(r"n't\b", " not", re.sub(r"\b(there|it|that|this|here)'s\b", r"\1 is", text))
    for clause in _ONE["clause"].split(_ONE["neutral"].sub("", text)):
        if len(plain := " ".join(clause.split())) <= _LONGEST:
            yield plain


def _named(concept: str) -> str:
    """Return a pattern of a concept's name in plural and singular, "" for a name with a denial."""
    words = re.findall(r"[^\W_]+", concept.lower())
    if not words or _ONE["negated"].search(" ".join(words)):
        return ""
    *first, last = words
    forms = {last, *(re.sub(old, new, last) for old, new in _DATA["plurals"])}
    return r"[\s_/-]+".join(
        [*map(re.escape, first), f"(?:{'|'.join(sorted(forms, reverse=True))})"]
    )


# -- tokens ----------------------------------------------------------------------------------------


def _unmarked(token: str) -> str:
    """Return a token's text; tokenizers write the space before a word as a mark."""
    return token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")


def _bare(token: str) -> str:
    return re.sub(r"^[\W_]+|[\W_]+$", "", _unmarked(token)).lower()


def _is_number(logprob: object) -> bool:
    """Return whether a log-probability is a real one; servers write -9999 for unknown ones."""
    return isinstance(logprob, int | float) and -1000 < logprob <= 1e-6
