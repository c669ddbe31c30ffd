"""The words of captions: what reads their objects, and what says which names mean the same."""

from .base import Reader, Same
from .nouns import ABSTRACT, PLACES, NounReader
from .sameness import same
from .taggers import Spacy

__all__ = ["describe", "reader", "same"]


def reader(tagger: str | None = None, *, places: bool = False) -> Reader:
    """Nouns, without abstract ones, by the spaCy model ``tagger``, or by the built-in tagger.

    ``places``: also those that say where the picture was taken, which REIC takes for objects
    like all others; but as no detector boxes a street, little can be said of them.
    """
    abstract = ABSTRACT if places else ABSTRACT | PLACES
    return NounReader(Spacy(tagger) if tagger else None, abstract=abstract)


def describe(part: Reader | Same) -> str:
    """What it goes by, for the journal."""
    return str(getattr(part, "describe", type(part).__name__))
