"""Decide whether two words mean the same object: literally, up to number, or in several ways.

REIC (TSE 2024, section IV-A) takes two words for the same object where their vectors are
similar or one is a hyponym of the other, as `experiments.reic.wordnet` does. What is here needs
nothing installed: equal words (its ablation "Group-3"), number folding, a list of everyday things.
"""

from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

VOC = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv"}
WHOLE = frozenset(("hot dog", "teddy bear", "stuffed animal", "stuffed bear", "ice cream"))
"""Phrases, in the singular, that do not mean what their last word means: a "hot dog" is no dog."""


class Matcher:
    """Base: case, blanks and order do not matter, equal phrases are the same, and each pair is
    compared once, as an audit meets the same few hundred words again and again.

    ``fingerprint``: its name in journals.
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
    """Equal words only: REIC's ablation."""

    fingerprint = "equal words"

    def compare(self, one: str, other: str) -> bool:
        return False


class Folding(Matcher):
    """Singular and plural are the same, and a phrase is the same as its own end.

    A "dining table" is a table, but a "hot dog" is no dog: phrases in ``whole`` (singular)
    have no ends. ``heads=False``: number only.
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
    """The same by any of several matchers; the quick ones should come first."""

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        super().__init__()
        self.matchers = tuple(matchers)
        self.fingerprint = "; ".join(matcher.fingerprint for matcher in matchers)

    def compare(self, one: str, other: str) -> bool:
        return any(matcher(one, other) for matcher in self.matchers)


def tidy(phrase: str) -> str:
    """Return a phrase in small letters with single blanks, and VOC's names in their usual form."""
    words = " ".join(phrase.casefold().replace("_", " ").split())
    return VOC.get(words, words)


def data_lines(name: str) -> list[str]:
    """Return the lines of a file in ``data``, but for comments and empty ones."""
    lines = files(__package__).joinpath("data", name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and line[0] != "#"]


FORMS = dict(line.split() for line in data_lines("plurals.txt"))
"""Irregular plurals, and words in the singular that end like plurals."""
ENDINGS = (
    *(("men", "man"), ("ies", "y"), ("ouses", "ouse"), ("uses", "us"), ("sses", "ss")),
    *(("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zzes", "zz"), ("oes", "o")),
    *(("ss", "ss"), ("us", "us"), ("s", "")),
)
"""Plural ending -> singular ending; the first that fits is replaced."""


@cache
def singular(phrase: str) -> str:
    """Return a lower-case phrase with its last word in the singular; for the nouns of captions."""
    front, blank, last = phrase.rpartition(" ")
    if last in FORMS or len(last) < 3:
        return front + blank + FORMS.get(last, last)
    for ending, put in ENDINGS:
        if last.endswith(ending):
            return front + blank + last.removesuffix(ending) + put
    return phrase


# -- a short list of everyday things, which needs nothing installed --------------------------------


class Thesaurus(Matcher):
    """Synonyms, or one a kind of the other, among the classes of COCO and PASCAL VOC and what
    people call them (``data/kinds.txt``). Other phrases are compared by their end."""

    fingerprint = "everyday synonyms and kinds"

    def compare(self, one: str, other: str) -> bool:
        pairs = _pairs()
        return any((a, b) in pairs for a in _ends(one) for b in _ends(other))


def _ends(phrase: str) -> tuple[str, ...]:
    """Return the longest end of a phrase, in the singular, that the list knows; () if none
    is."""
    words = singular(phrase).split()
    ends = (" ".join(words[start:]) for start in range(len(words)))
    return next(((end,) for end in ends if end in _words()), ())


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    """Return all pairs of words that mean the same, both ways round, equal words included."""
    pairs = {(word, word) for word in _words()}
    below: dict[str, set[str]] = {}
    for names, kinds in _lines():
        pairs |= {(a, b) for a in names for b in names}
        for name in names:
            below.setdefault(name, set()).update(kinds)
    for name, direct in below.items():
        kinds_of, waiting = set[str](), [*direct]
        while waiting:  # kinds of kinds are kinds, too
            kind = waiting.pop()
            waiting += below.get(kind, set()) - kinds_of - {kind}
            kinds_of.add(kind)
        pairs |= {pair for kind in kinds_of for pair in ((name, kind), (kind, name))}
    return frozenset(pairs)


@cache
def _words() -> frozenset[str]:
    return frozenset(word for names, kinds in _lines() for word in (*names, *kinds))


@cache
def _lines() -> tuple[list[list[str]], ...]:
    """Return the words of each line with their synonyms, and the kinds."""
    parts = [line.replace("=", ",").split(">") for line in data_lines("kinds.txt")]
    return tuple(
        [[w.strip() for w in part.split(",") if w.strip()] for part in (*line, "")[:2]]
        for line in parts
    )
