"""Which words of captions mean the same object: by number, last words, a list, and by default."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.embeddings import MiniLM
from adaptive_vtt.oracles.captions.language import reader, same
from adaptive_vtt.oracles.captions.sameness import (
    AnyOf,
    Folding,
    Literal,
    Matcher,
    Thesaurus,
    singular,
)
from adaptive_vtt.oracles.captions.wordnet import FOLDER_VARIABLE
from tests.helpers.small_lexicons import folder, glove

__all__ = ["folder", "glove"]  # fixtures

WORDS = ["dog", "Dogs", "puppy", "cat", "hot dog", "dining table", "table", "people", "", "x y z"]
phrases = st.sampled_from(WORDS) | st.text("abs ", max_size=5)


# --- Number and last words ---


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("cats", "cat"), ("knives", "knife"), ("people", "person"), ("men", "man"),
        ("policewomen", "policewoman"), ("children", "child"), ("puppies", "puppy"),
        ("cookies", "cookie"), ("boxes", "box"), ("buses", "bus"), ("horses", "horse"),
        ("houses", "house"), ("glasses", "glass"), ("dishes", "dish"), ("benches", "bench"),
        ("potatoes", "potato"), ("shoes", "shoe"), ("wolves", "wolf"), ("gloves", "glove"),
        ("mice", "mouse"), ("teeth", "tooth"), ("skis", "ski"), ("keys", "key"),
        ("hot dogs", "hot dog"), ("wine glasses", "wine glass"), ("skies", "sky"),
    ],
)  # fmt: skip
def test_singular(many: str, one: str) -> None:
    assert singular(many) == one
    assert singular(one) == one


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Dog", "dog", True),
        ("dogs", "dog", True),
        ("dining table", "tables", True),
        ("diningtable", "dining tables", True),  # as PASCAL VOC writes it
        ("hot dog", "dog", False),
        ("teddy bears", "bear", False),
        ("table", "table lamp", False),
        ("dog", "cat", False),
        ("ox", "box", False),
        ("", "dog", False),
    ],
)
def test_folding(one: str, other: str, expected: bool) -> None:
    assert Folding()(one, other) is expected


@pytest.mark.parametrize("matcher", [Literal(), Folding(), AnyOf([Literal(), Folding()])])
@given(one=phrases, other=phrases)
def test_order_does_not_matter_and_equal_words_are_the_same(
    matcher: Matcher, one: str, other: str
) -> None:
    assert matcher(one, other) is matcher(other, one)
    assert matcher(one, one)


# --- The list of everyday things ---


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("bike", "bicycle", True),
        ("man", "person", True),
        ("two puppies", "animal", True),
        ("pickup", "vehicle", True),
        ("kitchen table", "table", True),
        ("man", "woman", False),
        ("dog", "cat", False),
        ("car", "truck", False),
        ("unicorn", "horse", False),
    ],
)
def test_everyday_things_go_by_a_list(one: str, other: str, alike: bool) -> None:
    matcher = AnyOf([Folding(), Thesaurus()])
    assert matcher(one, other) is matcher(other, one) is alike


# --- What is used by default ---


def test_default_uses_what_is_there(
    folder: Path, glove: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MiniLM, "installed", classmethod(lambda cls: False))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert same().fingerprint == "number and last words; everyday synonyms and kinds"
    assert same("literal").fingerprint == "equal words"
    whole = same(wordnet=folder, vectors=glove, threshold=0.75)
    assert whole.fingerprint == (
        "number and last words; everyday synonyms and kinds; WordNet (senses: 3, least depth: 4); "
        "word vectors glove.txt (similarity of 0.75 or more)"
    )
    assert whole("dog", "puppy")
    with pytest.raises(InputError, match=r"expected a threshold in \[-1, 1\], got None"):
        same(vectors=glove)
    with pytest.raises(InputError, match=r"unknown value of words 'literaly'.*'literal'"):
        same("literaly")  # type: ignore[arg-type]


@pytest.mark.parametrize("has_wordnet", [True, False])
def test_minilm_is_used_where_it_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, has_wordnet: bool
) -> None:
    monkeypatch.setattr(MiniLM, "installed", classmethod(lambda cls: True))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    matcher = same(wordnet=folder if has_wordnet else None)
    assert matcher.fingerprint.endswith("all-MiniLM-L6-v2 (similarity of 0.83 or more)")
    assert ("WordNet" in matcher.fingerprint) == has_wordnet


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("There are no people on the street, just a dog", ("dog",)),
        ("a cat, not a dog", ("cat",)),
        ("no people or cars on a beach with a kite", ("kite",)),
        ("a man without a hat holds a cup", ("man", "cup")),
        ("a man and a dog or a cat", ("man", "dog", "cat")),
    ],
)
def test_what_a_caption_says_is_not_there_is_not_named(
    caption: str, objects: tuple[str, ...]
) -> None:
    assert reader().objects(caption) == objects
