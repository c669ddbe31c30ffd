"""Which words of captions mean the same object: by number, last words, a list, and by default."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.language import reader, same
from adaptive_vtt.oracles.captions.sameness import (
    AnyOf,
    Folding,
    Literal,
    Matcher,
    Thesaurus,
    singular,
)
from adaptive_vtt.utils.options import arguments

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
        ("dogs", "dog", True),
        ("dining table", "tables", True),
        ("diningtable", "dining tables", True),  # as PASCAL VOC writes it
        ("hot dog", "dog", False),
        ("table", "table lamp", False),
        ("ox", "box", False),
        ("", "dog", False),
    ],
)
def test_folding(one: str, other: str, expected: bool) -> None:
    assert Folding()(one, other) is expected


@pytest.mark.parametrize("matcher", [Literal(), Folding(), AnyOf([Literal(), Folding()])])
@settings(max_examples=20)
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
        ("kitchen table", "table", True),
        ("man", "woman", False),
        ("car", "truck", False),
        ("unicorn", "horse", False),
    ],
)
def test_everyday_things_go_by_a_list(one: str, other: str, alike: bool) -> None:
    matcher = AnyOf([Folding(), Thesaurus()])
    assert matcher(one, other) is matcher(other, one) is alike


# --- What is used by default ---


def test_default_needs_nothing_installed(tmp_path: Path) -> None:
    assert same().fingerprint == "number and last words; everyday synonyms and kinds"
    assert same("literal").fingerprint == "equal words"
    with pytest.raises(InputError, match=r"unknown value of words 'literaly'.*'literal'"):
        same("literaly")
    (tmp_path / "mine.py").write_text("def same(one, other):\n    return one[0] == other[0]\n")
    mine = arguments(same, {"words": "mine.py:same"}, tmp_path)
    assert same(**mine)("dog", "donkey")
    with pytest.raises(InputError, match=r"oracle.words: expected 'mine.py:__name__' to be a func"):
        arguments(same, {"words": "mine.py:__name__"}, tmp_path)


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
