"""Decide whether two words mean the same object.

In REIC (TSE 2024, section IV-A) two words mean the same if their vectors are similar or one is a
hyponym of the other, as in `experiments.reic.wordnet`. The matchers here need no further package:
equal words (REIC's ablation "Group-3"), singular and plural, and a list of everyday objects.
"""

from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

VOC = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv"}
WHOLE = frozenset(("hot dog", "teddy bear", "stuffed animal", "stuffed bear", "ice cream"))
"""Phrases, in the singular, that are no kind of their last word: a "hot dog" is no dog."""


class Matcher:
    """Base of matchers, for which case, spaces and order do not matter, and equal phrases match.

    Each pair is compared only once, as an audit has the same few hundred words many times.

    Attributes:
        fingerprint: Its name in journals.
    """

    fingerprint = "nothing"

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, one: str, other: str) -> bool:
        """Return whether both mean the same, in either order."""
        first, second = sorted((tidy(one), tidy(other)))
        if first == second:
            return True
        if (first, second) not in self._known:
            self._known[first, second] = bool(first) and self.compare(first, second)
        return self._known[first, second]

    def compare(self, one: str, other: str) -> bool:
        """Return whether two different phrases, tidied and in order, mean the same."""
        raise TypeError(f"{type(self).__name__} defines no compare")


class Literal(Matcher):
    """Matcher of equal words only, as in REIC's ablation."""

    fingerprint = "equal words"

    def compare(self, one: str, other: str) -> bool:
        return False


class Folding(Matcher):
    """Matcher of singular and plural, and of a phrase and its last words.

    Args:
        heads: Whether a phrase matches its last words: a "dining table" is a table.
        whole: Phrases, in the singular, that do not match their last words: a "hot dog" is no dog.
    """

    def __init__(self, heads: bool = True, whole: Collection[str] = WHOLE) -> None:
        super().__init__()
        self.heads, self.whole = heads, frozenset(whole)
        self.fingerprint = "number and last words" if heads else "number"

    def compare(self, one: str, other: str) -> bool:
        short, long = sorted((singular(one), singular(other)), key=len)
        if short == long:
            return True
        return self.heads and long not in self.whole and long.endswith(f" {short}")


class AnyOf(Matcher):
    """Matcher of phrases that any of several matchers accepts; fast ones should come first."""

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        super().__init__()
        self.matchers = tuple(matchers)
        self.fingerprint = "; ".join(matcher.fingerprint for matcher in matchers)

    def compare(self, one: str, other: str) -> bool:
        return any(matcher(one, other) for matcher in self.matchers)


def tidy(phrase: str) -> str:
    """Return a phrase in lower case with single spaces, and VOC's names in their usual form."""
    words = " ".join(phrase.casefold().replace("_", " ").split())
    return VOC.get(words, words)


def data_lines(name: str) -> list[str]:
    """Return the lines of a file in ``data``, without comments and empty lines."""
    lines = files(__package__).joinpath("data", name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] != "#"]


FORMS = dict(line.split() for line in data_lines("plurals.txt"))
"""Word -> singular, for irregular plurals and singular words that end like plurals."""
ENDINGS = (
    *(("men", "man"), ("ies", "y"), ("ouses", "ouse"), ("uses", "us"), ("sses", "ss")),
    *(("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zzes", "zz"), ("oes", "o")),
    *(("ss", "ss"), ("us", "us"), ("s", "")),
)
"""Plural ending -> singular ending; the first that matches is replaced."""


@cache
def singular(phrase: str) -> str:
    """Return a phrase in lower case with its last word, a noun, in the singular."""
    front, space, last = phrase.rpartition(" ")
    if last in FORMS or len(last) < 3:
        return front + space + FORMS.get(last, last)
    for plural, ending in ENDINGS:
        if last.endswith(plural):
            return front + space + last.removesuffix(plural) + ending
    return phrase


# -- a short list of everyday objects --------------------------------------------------------------


class Thesaurus(Matcher):
    """Matcher of synonyms, and of a word with a kind of it.

    The words are the classes of COCO and PASCAL VOC, and usual names of these (``data/kinds.txt``).
    Phrases are compared by the longest of their last words that are in the list.
    """

    fingerprint = "everyday synonyms and kinds"

    def compare(self, one: str, other: str) -> bool:
        pairs = _pairs()
        return any((a, b) in pairs for a in _ends(one) for b in _ends(other))


def _ends(phrase: str) -> tuple[str, ...]:
    """Return the longest end of a phrase, in the singular, that is in the list; () without one."""
    words = singular(phrase).split()
    ends = (" ".join(words[start:]) for start in range(len(words)))
    return next(((end,) for end in ends if end in _words()), ())


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    """Return all pairs of words that match, in both orders, with pairs of equal words."""
    pairs = {(word, word) for word in _words()}
    below: dict[str, set[str]] = {}
    for names, kinds in _lines():
        pairs |= {(a, b) for a in names for b in names}
        for name in names:
            below.setdefault(name, set()).update(kinds)
    for name, direct in below.items():
        all_kinds, waiting = set[str](), [*direct]
        while waiting:  # a kind of a kind is a kind, too
            kind = waiting.pop()
            waiting += below.get(kind, set()) - all_kinds - {kind}
            all_kinds.add(kind)
        pairs |= {pair for kind in all_kinds for pair in ((name, kind), (kind, name))}
    return frozenset(pairs)


@cache
def _words() -> frozenset[str]:
    return frozenset(word for names, kinds in _lines() for word in (*names, *kinds))


@cache
def _lines() -> tuple[list[list[str]], ...]:
    """Return, for each line of the list, the synonyms, and the kinds to which they belong."""
    parts = [line.replace("=", ",").split(">") for line in data_lines("kinds.txt")]
    return tuple(
        [[w.strip() for w in part.split(",") if w.strip()] for part in (*line, "")[:2]]
        for line in parts
    )
