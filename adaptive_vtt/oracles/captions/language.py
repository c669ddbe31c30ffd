"""The words of captions: what reads their objects, and what says which names mean the same."""

from pathlib import Path
from typing import Literal as OneOf

from ...errors import unknown
from .base import Reader
from .embeddings import THRESHOLD, EmbeddingSame, MiniLM, WordVectors
from .nouns import ABSTRACT, PLACES, NounReader
from .sameness import AnyOf, Folding, Literal, Matcher
from .taggers import Spacy
from .thesaurus import Thesaurus
from .wordnet import WordNetSame, wordnet_folder

WORDS = ("alike", "literal")


def reader(tagger: str | None = None, *, places: bool = False) -> Reader:
    """Nouns, without abstract ones, by the spaCy model ``tagger``, or by the built-in tagger.

    ``places``: also those that say where the picture was taken, which REIC takes for objects
    like all others; but as no detector boxes a street, little can be said of them.
    """
    abstract = ABSTRACT if places else ABSTRACT | PLACES
    return NounReader(Spacy(tagger) if tagger else None, abstract=abstract)


def same(
    words: OneOf["alike", "literal"] = "alike",
    wordnet: Path | None = None,
    vectors: Path | None = None,
    threshold: float | None = None,
) -> Matcher:
    """Number and last words, everyday synonyms and kinds, WordNet where it is found, and
    vectors where there are any.

    ``words``: "literal" for equal words alone. ``wordnet``: folder of the database (default:
    $WNSEARCHDIR, and none where that is not set); ``vectors``: file of word vectors
    (default: MiniLM, and none where that is not installed), with the least similarity
    ``threshold`` (default for MiniLM: calibrated). What it came to stands in ``describe``.
    Raises InputError for folders and files that cannot be used.
    """
    if words not in WORDS:
        raise unknown("value of words", words, WORDS)
    if words == "literal":
        return Literal()
    ways: list[Matcher] = [Folding(), Thesaurus()]
    if wordnet or wordnet_folder():
        ways.append(WordNetSame(wordnet))
    if vectors:
        ways.append(EmbeddingSame(WordVectors(vectors), threshold))
    elif MiniLM.installed():
        ways.append(EmbeddingSame(MiniLM(), THRESHOLD if threshold is None else threshold))
    return AnyOf(ways)
