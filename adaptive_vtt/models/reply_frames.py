"""The part of a reply that answers, without thinking, frames around it, or text after it.

Text that is left out becomes new lines, so that every character keeps its place: log-probabilities
belong to the place of their token.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..types import Unanswered
from ..utils.files import data_of

NO_ANSWER = "no answer"
REFUSED = "refused: "
"""Prefix of the words of a server's refusal."""
CUT_OFF = "cut off while thinking"
MORE = " [...]"
"""Mark of missing words in a kept reply."""
KEPT = 2000
"""Most characters of a reply that are kept."""


class Patterns:
    """Patterns of a table, which may refer to pieces and to lists of words by name.

    Attributes:
        one: Name -> compiled pattern.
        several: Name -> list of patterns as texts.
    """

    def __init__(self, table: Mapping[str, Any], lists: Mapping[str, Iterable[str]]) -> None:
        self._pieces = {}
        for name, words in lists.items():  # longer words first; a * stands for any ending
            ordered = sorted(words, key=len, reverse=True)
            patterns = (re.sub(r"(?<=\w)\*", r"\\w*", word) for word in ordered)
            self._pieces[name] = f"(?:{'|'.join(patterns)})"
        for name, piece in table["pieces"].items():
            self._pieces[name] = self.filled(piece)
        self.one = {n: re.compile(self.filled(text)) for n, text in table["patterns"].items()}
        self.several = {n: [*map(self.filled, texts)] for n, texts in table["several"].items()}

    def filled(self, text: str) -> str:
        """Return a pattern with its pieces filled in; other names in braces are kept."""
        return re.sub(r"\{([a-z_]+)\}", lambda match: self._pieces.get(match[1], match[0]), text)


_PATTERNS = Patterns(data_of(__package__, "reply_frames.toml"), {})
_ONE = _PATTERNS.one
_FRAMES = [re.compile(frame) for frame in _PATTERNS.several["frames"]]


def answer_in(reply: str, names: Sequence[str] = ()) -> str | Unanswered:
    """Return the part of a reply that answers.

    Args:
        reply: The reply.
        names: Further keys of JSON, next to "answer" and the like, whose value is the answer.

    Returns:
        A text of the reply's length, or Unanswered for a reply that ends inside its thinking, or
        right after it.
    """
    text = without_thinking(reply)
    if isinstance(text, Unanswered):
        return text
    for question in _ONE["next"].finditer(text):
        # a question at the beginning is the one that was asked; from the next one on text is cut
        if re.search(r"\w", text[: question.start()]):
            text = _blank(text, [(question.start(), len(text))])
            break
    for frame in _FRAMES:
        text = _framed(text, [m.span("answer") for m in frame.finditer(text)])
    if "{" in text:
        text = _framed(text, list(_values(text, names)))
    text = _blank(text, (mark.span() for mark in _ONE["marks"].finditer(text)))
    return text if text.strip() else Unanswered(NO_ANSWER)


def kept(reply: str) -> str:
    """Return a reply as it is journaled; a long one without its middle.

    The end is kept, as it has the answer if reasons come first.
    """
    if len(reply) <= KEPT:
        return reply
    return f"{reply[: KEPT // 4]}{MORE} {reply[len(MORE) + 1 - KEPT * 3 // 4 :]}"


def without_thinking(reply: str) -> str | Unanswered:
    """Return a reply of the same length without its thinking; Unanswered if it ends inside."""
    normal = ((char, unicodedata.normalize("NFKC", char)) for char in reply)
    # full-width letters as plain ones, each character in its place
    reply = "".join(new if len(new) == 1 else old for old, new in normal)
    spans, opened, front = [], None, 0
    for tag in _ONE["tag"].finditer(reply):
        if not (tag["close"] or tag["shut"] or tag["final"]):
            opened = tag.start() if opened is None else opened
            continue
        if opened is None:  # it was opened before the reply, so all text so far is thinking
            opened, front = front, tag.end()
        spans.append((opened, tag.end()))
        opened = None
    if opened is not None:
        if not (last := _ONE["last_frame"].search(reply, opened)):
            return Unanswered(CUT_OFF)
        spans.append((opened, last.start()))
    return _blank(reply, spans)


def conclusion(reply: str) -> str:
    """Return the text after the last "Final answer:", or the whole reply if there is none.

    It is for free answers after reasons, which may name both the truth and its contrary.
    """
    *_, last = _ONE["final"].split(reply)
    return last if last == reply else last.strip("* \n")


def _framed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text inside frames if all of them contain the same; else the text unchanged."""
    filled = [(start, end) for start, end in spans if text[start:end].strip()]
    if len({text[start:end].strip() for start, end in filled}) != 1:
        return text
    start, end = filled[-1]
    return _blank(text, [(0, start), (end, len(text))])


def _values(text: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values of JSON keys that promise an answer."""
    wanted = [_words(name) for name in names if name]
    for pair in _ONE["pair"].finditer(text):
        key = _words(pair["key"])
        named = any(
            re.fullmatch(rf"{re.escape(n)}(?: {_ONE['keys'].pattern})?", key) for n in wanted
        )
        if named or _ONE["keys"].fullmatch(key):
            yield pair.span(next(g for g in ("answer", "quoted", "bare") if pair[g] is not None))


def _words(key: str) -> str:
    return re.sub(r"[\W_]+", " ", key).strip().lower()


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    characters = list(text)
    for start, end in spans:
        characters[start:end] = "\n" * (end - start)
    return "".join(characters)
