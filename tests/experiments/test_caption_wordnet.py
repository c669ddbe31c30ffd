"""WordNet: synonyms and kinds are the same object, and files that cannot be right are named."""

from pathlib import Path

import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.calibration import pairs, quality
from adaptive_vtt.experiments.reic.wordnet import (
    FILES,
    FOLDER_VARIABLE,
    WordNetSame,
    wordnet_folder,
)
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding
from tests.helpers.small_lexicons import folder

__all__ = ["folder"]  # a fixture


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("cat", "true cat", True),  # synonyms
        ("tabby", "cat", True),
        ("animals", "tabby", True),  # however far
        ("felix", "cat", True),  # an instance
        ("cat", "dog", False),
        ("kitchen table", "furniture", True),  # not in WordNet: by its end
        ("hot dog", "dog", False),  # in WordNet as a whole
        ("geese", "animal", True),
        ("cat", "person", False),  # said of people, but no word for them
        ("lad", "guy", False),
        ("mouse", "pointer", True),  # the second sense
        ("tabby", "whole", False),  # too general
        ("unheard of", "cat", False),
    ],
)
def test_wordnet(folder: Path, one: str, other: str, expected: bool) -> None:
    matcher = WordNetSame(folder, least_depth=3)
    assert matcher(one, other) is expected
    assert matcher(other, one) is expected


def test_wordnet_folder_comes_from_its_own_variable(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert WordNetSame(least_depth=3)("tabby", "cat")
    monkeypatch.delenv(FOLDER_VARIABLE)
    with pytest.raises(InputError, match=r"folder .* in \$WNSEARCHDIR; Debian: apt install"):
        WordNetSame()


@pytest.mark.parametrize("missing", FILES)
def test_incomplete_wordnet_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(InputError, match=rf"folder '.*' has no file {missing}; Debian"):
        WordNetSame(folder)


@pytest.mark.skipif(wordnet_folder() is None, reason="needs WordNet: $WNSEARCHDIR is not set")
def test_wordnet_itself_is_as_good_as_stated() -> None:
    matcher = AnyOf([Folding(), WordNetSame()])
    precision, recall = quality(matcher, [pair for pair in pairs() if pair.held_out])
    assert (round(precision, 2), round(recall, 2)) == (0.96, 0.76)
