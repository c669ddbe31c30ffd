"""REIC's follow-ups by captions that were recorded beforehand: fixed before anything is asked."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.oracles.captions.recorded import RecordedNaming, source_captions
from adaptive_vtt.relations import reic
from adaptive_vtt.types import Box, Received, Sample
from tests.helpers.captioned import SCENES, faulty, write_captions
from tests.helpers.command_line import run

DOG, CAT = Box("dog", 5, 5, 25, 25), Box("cat", 10, 0, 120, 60)
"""On 80 x 120 pixels: a small one, and one that takes up 69 % of them."""


def sample(*boxes: Box, name: str = "a") -> Sample:
    return Sample(name, np.zeros((80, 120, 3), np.uint8), {}, boxes=boxes)


def by(caption: str, kind: str = "crop") -> reic.Reduced:
    return reic.Reduced(kind, naming=RecordedNaming({"a": caption}))


# -- which objects count ---------------------------------------------------------------


@pytest.mark.parametrize("kind", reic.KINDS)
def test_follow_ups_are_those_of_an_image_that_holds_what_is_named_alone(kind: str) -> None:
    result = by("There are two dogs in the street.", kind).candidates(sample(DOG, CAT))
    assert result == reic.Reduced(kind).candidates(sample(DOG))
    assert result != reic.Reduced(kind).candidates(sample(DOG, CAT))


@pytest.mark.parametrize("caption", ["A tree by a lake.", "It is not clear what to see here."])
def test_where_no_box_bears_a_name_all_that_was_detected_counts(caption: str) -> None:
    assert by(caption).candidates(sample(DOG, CAT)) == reic.Reduced("crop").candidates(
        sample(DOG, CAT)
    )


# -- fixed before the first draw -------------------------------------------------------

SAID = {SCENES.sample_id(k): faulty().caption(SCENES.sample(k).require_image()) for k in range(12)}


def space(text: dict[str, str] | None = None) -> QuestionSpace:
    naming = None if text is None else RecordedNaming(text)
    return QuestionSpace(
        SCENES, reic.relations(follow_ups=3, naming=naming), oracle=ReducedCaptions(occlusion=False)
    )


def test_other_captions_are_another_space_and_no_captions_the_old_one() -> None:
    first, *_ = SAID
    text, other = space(SAID).fingerprint, space({**SAID, first: "A dog."}).fingerprint
    assert text == space(dict(reversed(SAID.items()))).fingerprint
    assert len({text, other, space().fingerprint}) == 3
    assert reic.Reduced("crop").fingerprint == (
        "Reduced(kind='crop', follow_ups=12, by_ambiguity=True, by_diversity=True)"
    )


# -- from a specification --------------------------------------------------------------

SPEC = """
[dataset]
kind = "adaptive_vtt.experiments.reic.drawn_scenes:scenes"
[dataset.options]
count = 4
[model]
target = "model.py:captions"
[space]
relations = ["reic"]
follow_ups = 2
captions = "plain/answers.csv"
[oracle]
kind = "captions"
occlusion = false
[audit]
budget = 20
"""
MODEL = """
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
captioner = TemplateCaptioner(seed=1, omission=0.3)
def captions(images):
    return [captioner.caption(image) for image in images]
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A specification, and the captions that its [space] names, recorded."""
    top = tmp_path_factory.mktemp("captions")
    (top / "SPEC.toml").write_text(SPEC)
    (top / "model.py").write_text(MODEL)
    plain = top / "plain"
    spec = str(top / "SPEC.toml")
    assert run("export", "--questions", spec, "--sources", "--out", str(plain)) == 0
    table = pd.read_csv(plain / "answers.csv", dtype=str)
    assert set(table["relation"]) == {"identity"}
    write_captions(plain, seed=2)
    return top


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "captions"))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("sample,", "image,", "expected the columns sample, caption, got no 'sample'"),
        (
            "scene-0-00002,identity",
            "scene-0-00002,reic/crop",
            "expected a row with a caption of 'scene-0-00002', got none; 1 of 4 samples "
            "have none (in rows of relation 'identity')",
        ),
        (
            "scene-0-00002,identity",
            "scene-0-00001,identity",
            "row 3, sample: 'scene-0-00001' stands twice; leave one row",
        ),
        ("", "hidden", "boxes hidden, got one with box 99; record them with these boxes"),
    ],
)
def test_faulty_captions_are_refused_in_a_sentence_before_anything_is_asked(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    table = folder / "plain" / "answers.csv"
    text = table.read_text()
    assert old in text
    if new == "hidden":  # a caption of a box that is not there
        more = pd.read_csv(table, dtype=str).assign(relation="hidden/blur", severity="99").tail(1)
        table.write_text(text + more.to_csv(index=False, header=False))
    else:
        table.write_text(text.replace(old, new, 1))
    capsys.readouterr()
    assert run("audit", str(folder / "SPEC.toml"), "--out", str(folder / "r")) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert sentence in output
    assert "answers.csv" in output or new == "hidden"
    assert not (folder / "r" / "journal.db").exists()


# -- captions of hidden boxes ----------------------------------------------------------------


def test_what_no_box_bears_the_name_of_is_where_hiding_takes_its_name_away() -> None:
    """A zebra that no box is called, named in all captions but those without the first box."""
    boxes = (Box("thing", 0, 0, 10, 10), CAT)
    text = "A zebra and a cat."
    versions = {place: text if place >= 3 else "A cat." for place in range(6)}
    plain, whole = RecordedNaming({"a": text}), RecordedNaming({"a": Received(text, versions)})
    assert plain.objects("a", boxes) == ((boxes[1],),)
    assert whole.objects("a", boxes) == ((boxes[0],), (boxes[1],))
    assert plain.fingerprint != whole.fingerprint
    with pytest.raises(InputError, match="one of its 1 boxes hidden, got one with box 2; record"):
        whole.objects("a", boxes[:1])


def test_hidden_rows_of_a_table_are_read(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    rows = ["a,identity,0,A dog.", "a,hidden/black,2,A cat.", "a,hidden/blur,1,", "a,reic/crop,1,x"]
    path.write_text("\n".join(["sample,relation,severity,caption", *rows]))
    assert source_captions(path, ["a"]) == {"a": Received("A dog.", {4: "A cat."})}
    for old, new, message in (
        (
            "hidden/black",
            "hidden/fog",
            "row 2, relation: expected hidden/ and one of blur, black, inp",
        ),
        (
            "black,2",
            "black,two",
            "row 2, severity: expected the number of the hidden box, got 'two'",
        ),
    ):
        path.write_text("\n".join(["sample,relation,severity,caption", *rows]).replace(old, new))
        with pytest.raises(InputError, match=message):
            source_captions(path, ["a"])
