"""Find the answer within a chat model's reply: remove reasoning, framing and trailing text.

Removed text is replaced by newlines of the same length, so that every character keeps its position:
`yes_no.py` looks up the log-probability of a token by its position in the reply.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..types import Unanswered
from ..utils.files import data_of

NO_ANSWER = "no answer"
REFUSED = "refused: "
"""Prefix of a refusal, before the server's own words."""
CUT_OFF = "cut off while thinking"
MORE = " [...]"
"""Mark of the text that is missing from a shortened reply."""
KEPT = 2000
"""Maximum length in characters of a reply in the journal."""


class Patterns:
    """Regular expressions of a TOML table, in which {name} stands for a piece or a list of words.

    Attributes:
        one: Name -> compiled pattern.
        several: Name -> list of patterns as texts.
    """

    def __init__(self, table: Mapping[str, Any], lists: Mapping[str, Iterable[str]]) -> None:
        self._pieces = {}
        for name, words in lists.items():
            # a regular expression takes the first alternative that matches: longer words first
            longest_first = sorted(words, key=len, reverse=True)
            patterns = (re.sub(r"(?<=\w)\*", r"\\w*", word) for word in longest_first)
            self._pieces[name] = f"(?:{'|'.join(patterns)})"
        for name, piece in table["pieces"].items():
            self._pieces[name] = self.filled(piece)
        self.one = {n: re.compile(self.filled(text)) for n, text in table["patterns"].items()}
        self.several = {n: [*map(self.filled, texts)] for n, texts in table["several"].items()}

    def filled(self, text: str) -> str:
        """Return a pattern in which each {name} of a piece is replaced; others are kept."""
        return re.sub(r"\{([a-z_]+)\}", lambda match: self._pieces.get(match[1], match[0]), text)


_PATTERNS = Patterns(data_of(__package__, "reply_frames.toml"), {})
_ONE = _PATTERNS.one
_FRAMES = [re.compile(frame) for frame in _PATTERNS.several["frames"]]


def answer_in(reply: str, names: Sequence[str] = ()) -> str | Unanswered:
    """Return a reply with everything but its answer blanked.

    Args:
        reply: The reply.
        names: JSON keys whose value counts as the answer, in addition to "answer" and the like.

    Returns:
        A text of the reply's length, or Unanswered for a reply that ends inside its reasoning, or
        right after it.
    """
    text = without_thinking(reply)
    if isinstance(text, Unanswered):
        return text
    for question in _ONE["next"].finditer(text):
        # A question at the very beginning repeats the prompt. Text from a later question on belongs
        # to a conversation that the model invents.
        if re.search(r"\w", text[: question.start()]):
            text = _blank(text, [(question.start(), len(text))])
            break
    for frame in _FRAMES:
        text = _framed(text, [m.span("answer") for m in frame.finditer(text)])
    if "{" in text:
        text = _framed(text, list(_json_answers(text, names)))
    text = _blank(text, (mark.span() for mark in _ONE["marks"].finditer(text)))
    return text if text.strip() else Unanswered(NO_ANSWER)


def kept(reply: str) -> str:
    """Return a reply as it is journaled: a long one loses its middle.

    Three quarters of the kept characters are from the end, where the answer is if reasons come
    first.
    """
    if len(reply) <= KEPT:
        return reply
    return f"{reply[: KEPT // 4]}{MORE} {reply[len(MORE) + 1 - KEPT * 3 // 4 :]}"


def without_thinking(reply: str) -> str | Unanswered:
    """Return a reply with its reasoning blanked; Unanswered if it ends inside the reasoning."""
    # Full-width letters become plain ones where that keeps every character's position.
    normal = ((char, unicodedata.normalize("NFKC", char)) for char in reply)
    reply = "".join(new if len(new) == 1 else old for old, new in normal)
    thinking, opened, unopened = [], None, 0
    for tag in _ONE["tag"].finditer(reply):
        if not (tag["close"] or tag["shut"] or tag["final"]):
            opened = tag.start() if opened is None else opened
            continue
        if opened is None:  # the reasoning began before the reply: all text so far belongs to it
            opened, unopened = unopened, tag.end()
        thinking.append((opened, tag.end()))
        opened = None
    if opened is not None:
        if not (last := _ONE["last_frame"].search(reply, opened)):
            return Unanswered(CUT_OFF)
        thinking.append((opened, last.start()))
    return _blank(reply, thinking)


def conclusion(reply: str) -> str:
    """Return the text after the last "Final answer:", or the whole reply if there is none.

    Free answers need it, as the reasons before may name both the truth and its contrary.
    """
    *_, last = _ONE["final"].split(reply)
    return last if last == reply else last.strip("* \n")


def _framed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Blank all but the last of these spans if all contain the same; else return the text."""
    filled = [(start, end) for start, end in spans if text[start:end].strip()]
    if len({text[start:end].strip() for start, end in filled}) != 1:
        return text
    start, end = filled[-1]
    return _blank(text, [(0, start), (end, len(text))])


def _json_answers(text: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of JSON values whose key announces an answer, or is one of ``names``."""
    answer_key = _ONE["keys"].pattern
    named = [rf"{re.escape(_words(name))}(?: {answer_key})?" for name in names if name]
    for pair in _ONE["pair"].finditer(text):
        key = _words(pair["key"])
        if any(re.fullmatch(pattern, key) for pattern in (*named, answer_key)):
            yield pair.span(next(g for g in ("answer", "quoted", "bare") if pair[g] is not None))


def _words(key: str) -> str:
    return re.sub(r"[\W_]+", " ", key).strip().lower()


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace spans of a text by newlines of the same length."""
    characters = list(text)
    for start, end in spans:
        characters[start:end] = "\n" * (end - start)
    return "".join(characters)
