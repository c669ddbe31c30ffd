"""The part of a reply that answers: without thinking, frames around the answer, or what follows it.

What is left out becomes new lines, so that every character keeps its place: log-probabilities
belong to the place of their token.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from ..types import Unanswered

NO_ANSWER = "no answer"
REFUSED = "refused: "
"""Before the words of a server's refusal."""
CUT_OFF = "cut off while thinking"
MORE = " [...]"
"""After a kept reply, or in the midst of it, where some of its words are missing."""
KEPT = 2000
"""Characters of a reply that are kept, at most."""


def read_table(name: str) -> Mapping[str, Any]:
    """Return the TOML file of this name in data/."""
    return tomllib.loads(files(__package__).joinpath("data", name).read_text(encoding="utf-8"))


def any_of(words: Iterable[str]) -> str:
    """Return the pattern of any of these words, longer ones first; a * stands for any ending."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.sub(r"(?<=\w)\*", r"\\w*", word) for word in ordered) + ")"


class Patterns:
    """The patterns of a ``table``: ``one`` compiled by name, ``several`` as lists of texts.

    ``lists``: words by name, which patterns may name, too.
    """

    def __init__(self, table: Mapping[str, Any], lists: Mapping[str, Iterable[str]]) -> None:
        self._pieces = {name: any_of(words) for name, words in lists.items()}
        for name, piece in table["pieces"].items():
            self._pieces[name] = self.filled(piece)
        self.one = {n: re.compile(self.filled(text)) for n, text in table["patterns"].items()}
        self.several = {n: [*map(self.filled, texts)] for n, texts in table["several"].items()}

    def filled(self, text: str) -> str:
        """Return a pattern with its pieces; a name in braces that is none of them stays."""
        return re.sub(r"\{([a-z_]+)\}", lambda match: self._pieces.get(match[1], match[0]), text)


_PATTERNS = Patterns(read_table("reply_frames.toml"), {})
_ONE = _PATTERNS.one
_FRAMES = [re.compile(frame) for frame in _PATTERNS.several["frames"]]


def answer_in(reply: str, names: Sequence[str] = ()) -> str | Unanswered:
    """Return the part of a reply that answers, as long as the reply; Unanswered where it ended
    inside its thinking, or says nothing after it.

    Args:
        reply: The words that came.
        names: Further keys of JSON, next to "answer" and the like, whose value is the answer.
    """
    text = without_thinking(reply)
    if isinstance(text, Unanswered):
        return text
    text = _first_answer(text)
    for frame in _FRAMES:
        text = _framed(text, [m.span("answer") for m in frame.finditer(text)])
    if "{" in text:
        text = _framed(text, list(_values(text, names)))
    text = _blank(text, (mark.span() for mark in _ONE["marks"].finditer(text)))
    return text if text.strip() else Unanswered(NO_ANSWER)


def kept(reply: str) -> str:
    """Return a reply as it is journaled: of a long one the beginning, and the end, which answers
    where reasons come first."""
    if len(reply) <= KEPT:
        return reply
    return f"{reply[: KEPT // 4]}{MORE} {reply[len(MORE) + 1 - KEPT * 3 // 4 :]}"


def without_thinking(reply: str) -> str | Unanswered:
    """Return a reply without its thinking, as long as before; Unanswered where it ends in it."""
    # full-width letters as plain ones, and each character in its place
    normal = ((char, unicodedata.normalize("NFKC", char)) for char in reply)
    reply = "".join(new if len(new) == 1 else old for old, new in normal)
    spans, opened, front = [], None, 0
    for tag in _ONE["tag"].finditer(reply):
        if not (tag["close"] or tag["shut"] or tag["final"]):
            opened = tag.start() if opened is None else opened
            continue
        if opened is None:  # it was opened before the reply: all so far is thinking
            opened, front = front, tag.end()
        spans.append((opened, tag.end()))
        opened = None
    if opened is not None:
        if not (last := _ONE["last_frame"].search(reply, opened)):
            return Unanswered(CUT_OFF)
        spans.append((opened, last.start()))
    return _blank(reply, spans)


def conclusion(reply: str) -> str:
    """Return what stands after the last "Final answer:", or the whole reply where there is none.

    For free answers after reasons, which may name the truth and its contrary alike.
    """
    *_, last = _ONE["final"].split(reply)
    return last if last == reply else last.strip("* \n")


def _first_answer(text: str) -> str:
    """The text up to where it asks another question; a question that it begins with is its own."""
    for match in _ONE["next"].finditer(text):
        if re.search(r"\w", text[: match.start()]):
            return _blank(text, [(match.start(), len(text))])
    return text


def _framed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without what stands outside the frames, where they all hold the same."""
    held = [(start, end) for start, end in spans if text[start:end].strip()]
    if len({text[start:end].strip() for start, end in held}) != 1:
        return text
    start, end = held[-1]
    return _blank(text, [(0, start), (end, len(text))])


def _values(text: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the values stand of those keys in JSON that promise an answer."""
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
