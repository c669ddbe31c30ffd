"""The same object by a short list of everyday things, which needs nothing installed."""

from functools import cache
from importlib.resources import files

from .sameness import Matcher, singular


class Thesaurus(Matcher):
    """Synonyms, or one a kind of the other, among the classes of COCO and PASCAL VOC and what
    people call them (``data/kinds.txt``). A phrase that is not there goes by its end."""

    describe = "everyday synonyms and kinds"

    def compare(self, one: str, other: str) -> bool:
        pairs = _pairs()
        return any((a, b) in pairs for a in _ends(one) for b in _ends(other))


def _ends(phrase: str) -> tuple[str, ...]:
    """The longest end of a phrase, in the singular, that the list knows; () where none is."""
    words = singular(phrase).split()
    ends = (" ".join(words[start:]) for start in range(len(words)))
    return next(((end,) for end in ends if end in _words()), ())


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    """All pairs of words that mean the same, both ways round, equal words included."""
    found = {(word, word) for word in _words()}
    below: dict[str, set[str]] = {}
    for names, kinds in _lines():
        found |= {(a, b) for a in names for b in names}
        for name in names:
            below.setdefault(name, set()).update(kinds)
    for name in below:
        for kind in _all_below(name, below):
            found |= {(name, kind), (kind, name)}
    return frozenset(found)


def _all_below(name: str, below: dict[str, set[str]]) -> set[str]:
    """Kinds of kinds are kinds, too."""
    found: set[str] = set()
    rest = [name]
    while rest:
        new = below.get(rest.pop(), set()) - found
        found |= new
        rest.extend(new)
    return found


@cache
def _words() -> frozenset[str]:
    return frozenset(word for names, kinds in _lines() for word in (*names, *kinds))


@cache
def _lines() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Of each line the word with its synonyms, and the kinds."""
    text = files(__package__).joinpath("data", "kinds.txt").read_text(encoding="utf-8")
    found = []
    for line in text.splitlines():
        if line and line[0] != "#":
            names, _, kinds = line.replace("=", ",").partition(">")
            found.append((_split(names), _split(kinds)))
    return tuple(found)


def _split(part: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in part.split(",") if word.strip())
