"""Which objects a caption names.

REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE 2024,
section IV-A): the nouns of a caption, without those directly before "of", which say how
much of something there is or which part; nouns that follow each other are one object.
"""

from collections.abc import Collection
from importlib.resources import files

from .sameness import singular
from .taggers import BuiltIn, Tagger, Token


def listed(name: str) -> frozenset[str]:
    """The first column of a data file of this package, without its comments."""
    lines = files(__package__).joinpath("data", name).read_text(encoding="utf-8").splitlines()
    return frozenset(line.split("\t")[0] for line in lines if line and line[0] != "#")


ABSTRACT = listed("abstract.tsv")
"""Nouns that name no visible object ("view", "day"), each with its reason in the file."""
PLACES = listed("places.txt")
"""Nouns that say where a picture was taken. They can be seen, but no box is around them."""
COMPOUNDS = listed("compounds.txt")
"""Objects whose names hold an adjective or a participle: "hot dog", "cutting board"."""

DENIED_WORDS = 4
"""How far after "no" or "without" a noun may stand, in words, to be what is not there."""


class NounReader:
    """Reads the objects out of English captions; the tagger is built in unless one is given.

    ``abstract``: phrases, in the singular, that are no objects; ``compounds``: phrases, in
    the singular, that are one object whatever the tagger says of their words. What a caption
    says is not there ("no people or cars") is not named. With () for both it is REIC's plain
    rule. An object named in the singular and in the plural is named once. The phrase as a whole
    goes where its last noun stands before "of": "a coffee cup of tea" names tea.
    """

    def __init__(
        self,
        tagger: Tagger | None = None,
        *,
        abstract: Collection[str] = ABSTRACT,
        compounds: Collection[str] = COMPOUNDS,
    ) -> None:
        self.tagger = tagger or BuiltIn()
        self.describe = f"nouns by {self.tagger.describe}, without {len(abstract)} abstract ones"
        self._abstract = frozenset(abstract)
        self._compounds = frozenset(compounds)
        self._longest = max((len(name.split()) for name in compounds), default=1)
        self._known: dict[str, tuple[str, ...]] = {}

    def objects(self, caption: str) -> tuple[str, ...]:
        """Lower-case noun phrases, each once, in the order of the caption; () where none is."""
        if caption not in self._known:
            self._known[caption] = self._objects(caption)
        return self._known[caption]

    def _objects(self, caption: str) -> tuple[str, ...]:
        tokens = [(word.lower(), noun) for word, noun in self.tagger(caption)]
        found: dict[str, str] = {}
        tokens = self._joined(tokens)
        for phrase in _phrases(_without_denied(tokens) if self._abstract else tokens):
            name = singular(phrase)
            if name not in self._abstract:
                found.setdefault(name, phrase)
        return tuple(found.values())

    def _joined(self, tokens: list[Token]) -> list[Token]:
        """The tokens, with every word of a known compound made a noun."""
        words = [word for word, _ in tokens]
        nouns = [noun for _, noun in tokens]
        for start in range(len(words)):
            for stop in range(start + 2, min(start + self._longest, len(words)) + 1):
                if singular(" ".join(words[start:stop])) in self._compounds:
                    nouns[start:stop] = [True] * (stop - start)
        return list(zip(words, nouns, strict=True))


def _without_denied(tokens: list[Token]) -> list[Token]:
    """The tokens, with no noun among those of a phrase after "no", "without" or "not a", nor in
    those joined to it by "or"."""
    found, left, begun = [], 0, False
    for place, (word, noun) in enumerate(tokens):
        before = tokens[place - 1][0] if place else ""
        if word in {"no", "without"} or (before == "not" and word in {"a", "an", "any"}):
            left, begun = DENIED_WORDS, False
        elif word in {"or", "nor"}:
            left, begun = DENIED_WORDS * (left > 0), False
        elif begun and not noun:
            left = 0
        found.append((word, noun and not left))
        begun, left = begun or noun, max(0, left - 1)
    return found


def _phrases(tokens: list[Token]) -> list[str]:
    """Runs of nouns, joined by blanks, but for those directly before "of"."""
    phrases: list[str] = []
    run: list[str] = []
    for word, noun in [*tokens, (".", False)]:
        if noun:
            run.append(word)
            continue
        if run and word != "of":
            phrases.append(" ".join(run))
        run = []
    return phrases
