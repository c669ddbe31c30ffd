"""Read Yes or No from a reply in words, or from the log-probabilities of its tokens.

Two forms count as an answer: a Yes or No where an answer is expected (`places`), and a sentence
which states that the concept is visible or not. Any other "no" is about something else. A reply is
unanswered if its answers disagree, or if it is unsure, refuses or got no image: no reading is
better than a wrong one. The words and patterns are in data/yes_no.toml.
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
"""Patterns of a Yes or No where an answer is expected."""
_DOUBT, _NOT_GOT, _SEND, _REFUSES, _UNABLE = (
    re.compile(_PATTERNS.filled("|".join(_DATA["replies"][name])))
    for name in ("doubts", "no_image", "send", "refuses", "unable")
)
_LONGEST = 300
"""Maximum length in characters of a clause that is read; longer ones are ignored."""


class Reading(NamedTuple):
    """The ``value`` of a reply, and the position of the Yes or No that answers, -1 if none does."""

    value: Value
    start: int = -1


def yes_or_no(reply: str, concept: str = "") -> Value:
    """Return 1.0 for Yes, 0.0 for No, or Unanswered with the reason.

    Args:
        reply: The raw reply, with its reasoning and framing.
        concept: Name of the concept that was asked about; "" if it has none.
    """
    return read(reply, concept).value


def read(reply: str, concept: str = "") -> Reading:
    """Return the answer of a reply, and its position."""
    answer = answer_in(reply, [concept])
    if isinstance(answer, Unanswered):
        return Reading(answer)
    # every step keeps the length, so that positions are those of the reply
    text = "".join(c.lower() if len(c.lower()) == 1 else c for c in answer)
    text = text.translate(str.maketrans("’‘“”", "''\"\"")).replace("__", "**")
    for no_answer in (_ONE["pair"], _ONE["offer"]):
        text = no_answer.sub(lambda match: " " * len(match.group()), text)
    name = _name_pattern(concept)
    words = sorted(_explicit(text, name))
    start = words[0][0] if words else -1
    stated, hedge = _in_sentences(text, name)
    sides = {_MEANING[word] for _, word in words} | stated
    if without_image(text) or (_SEND.search(text) and not sides):
        return Reading(Unanswered(NO_IMAGE))
    refusal = _REFUSES.search(text)
    if refusal:
        # a refusal counts where nothing answers, or in the sentence of an answer
        ends = (sorted((refusal.start(), position)) for position, _ in words)
        same_sentence = any(not re.search(r"[.!?;\n]", text[first:last]) for first, last in ends)
        if same_sentence or not sides:
            return Reading(Unanswered(DECLINED))
    if hedge == "strong" or _DOUBT.search(text) or (hedge and not sides):
        return Reading(Unanswered(UNSURE))
    if len(sides) != 1:
        return Reading(Unanswered(BOTH if sides else NEITHER), start)
    return Reading(float(sides == {"yes"}), start)


def p_yes(tokens: Iterable[Mapping[str, Any]], concept: str = "") -> float | None:
    """Return P(yes) / (P(yes) + P(no)) at the token that answers.

    Args:
        tokens: Tokens of the reply, each with ``token``, ``logprob``, ``top_logprobs``. The first
            one that is an answer counts.
        concept: Name of the concept that was asked about.

    Returns:
        A number in [0, 1]; None for a reply without an answer, or without its log-probability.
    """
    tokens = list(tokens)
    texts = [_unmarked(token["token"]) for token in tokens]
    start = read("".join(texts), concept).start
    if start < 0:
        return None
    ends = accumulate(map(len, texts))
    answer = next(token for token, end in zip(tokens, ends, strict=True) if start < end)
    # by token, as a server may list the answer itself among the likeliest, too
    alternatives = (*(answer.get("top_logprobs") or ()), answer)
    logprobs = {token["token"]: token.get("logprob") for token in alternatives}
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in logprobs.items():
        side = _MEANING.get(_bare(token))
        if side and _is_logprob(logprob):
            mass[side] += math.exp(logprob)
    known = _bare(answer["token"]) in _MEANING and _is_logprob(answer.get("logprob"))
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


# -- a Yes or No where an answer is expected -------------------------------------------------------


def _explicit(text: str, name: str) -> set[tuple[int, str]]:
    """Return the position and the word of every Yes or No that answers.

    Args:
        text: The reply in lower case.
        name: A pattern of the concept's name, "" if it has none.
    """
    answers = set()
    for asked in _ONE["asked"].finditer(text):
        question = asked["question"]
        about_it = re.search(rf"\b{name}\b", question) if name else True
        if (about_it or _ONE["about_it"].match(question)) and not _ONE["negated"].search(question):
            answers.add((asked.start("word"), asked["word"]))
        else:  # it answers another question
            start, end = asked.span("word")
            text = text[:start] + " " * (end - start) + text[end:]
    patterns = _PLACES
    if name:
        label = rf"\b{name}\b\W{{0,3}}(?:present|visible|detected|seen|found|presence|status)?"
        field = _PATTERNS.filled(r"\W{0,8}[:=–—-]\W{0,4}{bare}{ends}")
        patterns = [*patterns, re.compile(label + field)]
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _ONE["denied"].search(text, max(0, match.start() - 40), match.start()):
                answers.add((match.start("word"), match["word"]))
    return answers


# -- a sentence about the concept ------------------------------------------------------------------


def _in_sentences(text: str, name: str) -> tuple[set[str], str]:
    """Return what sentences state about the concept.

    Args:
        text: The reply in lower case.
        name: A pattern of the concept's name, "" if it has none.

    Returns:
        "yes" if a sentence states that the concept is visible, "no" if one states that it is not;
        and the strongest hedge of any: "strong", "weak" or "".
    """
    sides: set[str] = set()
    hedge = ""
    if not name:
        return sides, hedge
    visible, absent = (
        [re.compile(pattern.replace("{named}", name)) for pattern in patterns]
        for patterns in (_SEVERAL["seen"], _SEVERAL["not_seen"])
    )
    for clause in _clauses(text):
        if not re.search(rf"\b{name}\b", clause):
            continue
        negations = [n for n in _ONE["negated"].finditer(clause) if n.group() != "nor"]
        if _ONE["strong_hedge"].search(clause):
            hedge = "strong"
        elif _ONE["weak_hedge"].search(clause) and not (
            negations and re.search("look like|appear|seem", clause)
        ):
            hedge = hedge or "weak"
        elif not negations and "nor " not in clause:
            sides |= {"yes"} if any(p.search(clause) for p in visible) else set()
        elif len(negations) <= 1 and not _ONE["half"].search(clause):
            sides |= {"no"} if any(p.search(clause) for p in absent) else set()
    return sides, hedge


def _clauses(text: str) -> Iterator[str]:
    """Yield the clauses of a text without questions, markup and contractions."""
    text = re.sub(r"[*_`\"#]", " ", _ONE["field"].sub("\n", text))
    text = re.sub(r"[^.?!\n;]{0,400}\?", "\n", re.sub(r"can't|cannot", "can not", text))
    text = re.sub(r"n't\b", " not", re.sub(r"\b(there|it|that|this|here)'s\b", r"\1 is", text))
    for clause in _ONE["clause"].split(_ONE["neutral"].sub("", text)):
        if len(plain := " ".join(clause.split())) <= _LONGEST:
            yield plain


def _name_pattern(concept: str) -> str:
    """Return a pattern of a concept's name in singular and plural.

    The pattern is "" for a name that contains a negation, as "no finding": sentences about it
    cannot be read.
    """
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
    """Return a token's text, in which tokenizers write spaces and newlines as special marks."""
    return token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n")


def _bare(token: str) -> str:
    """Return a token in lower case without the punctuation around it."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", _unmarked(token)).lower()


def _is_logprob(logprob: object) -> bool:
    """Return whether a log-probability is known; servers write -9999 for unknown ones."""
    return isinstance(logprob, int | float) and -1000 < logprob <= 1e-6
