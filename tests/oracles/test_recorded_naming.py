"""REIC's follow-ups by captions that were recorded beforehand: fixed before anything is asked."""

import json
import shutil
from pathlib import Path
from random import Random

import cv2
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import QuestionSpace
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.oracles.captions.recorded import RecordedNaming, source_captions
from adaptive_vtt.relations import reic
from adaptive_vtt.types import Box, Received, Sample
from tests.helpers.captioned import SCENES, faulty
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
    found = by("There are two dogs in the street.", kind).candidates(sample(DOG, CAT))
    assert found == reic.Reduced(kind).candidates(sample(DOG))
    assert found != reic.Reduced(kind).candidates(sample(DOG, CAT))


@pytest.mark.parametrize("caption", ["A tree by a lake.", "It is not clear what to see here."])
def test_where_no_box_bears_a_name_all_that_was_detected_counts(caption: str) -> None:
    assert by(caption).candidates(sample(DOG, CAT)) == reic.Reduced("crop").candidates(
        sample(DOG, CAT)
    )


# -- fixed before the first draw -------------------------------------------------------

SAID = {SCENES.sample_id(k): faulty().caption(SCENES.sample(k).require_image()) for k in range(12)}


def space(said: dict[str, str] | None = None) -> QuestionSpace:
    naming = None if said is None else RecordedNaming(said)
    return QuestionSpace(
        SCENES, reic.relations(follow_ups=3, naming=naming), oracle=ReducedCaptions(occlusion=False)
    )


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 12 * 9 - 1), min_size=1, max_size=6), st.randoms())
def test_follow_ups_are_a_function_of_captions_sample_and_severity(
    asked: list[int], random: Random
) -> None:
    """Whatever else is asked about, in whatever order, and however the captions are ordered."""

    def followed(numbers: list[int], said: dict[str, str]) -> dict[int, str]:
        reic._chosen.cache_clear()
        of = space(said)
        return {number: str(of.follow_up(number).details["reduction"]) for number in numbers}

    shuffled, mixed = random.sample(asked, len(asked)), random.sample(list(SAID.items()), 12)
    assert followed(asked, SAID) == followed(shuffled, dict(mixed))


def test_other_captions_are_another_space_and_no_captions_the_old_one() -> None:
    first, *_ = SAID
    said, other = space(SAID).fingerprint, space({**SAID, first: "A dog."}).fingerprint
    assert said == space(dict(reversed(SAID.items()))).fingerprint
    assert len({said, other, space().fingerprint}) == 3
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
told = TemplateCaptioner(seed=1, omission=0.3)
def captions(images):
    return [told.caption(image) for image in images]
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
    images = [cv2.imread(str(plain / "images" / name))[:, :, ::-1] for name in table["file"]]
    table["caption"] = [faulty(seed=2).caption(np.ascontiguousarray(image)) for image in images]
    table.to_csv(plain / "answers.csv", index=False)
    return top


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "captions"))


@pytest.mark.slow
def test_an_audit_runs_is_verified_and_resumed_with_these_captions_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = str(folder / "SPEC.toml"), str(folder / "r")
    assert run("audit", spec, "--out", out, "--half-width", "0.01", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calls"] == 20
    assert {target["target"] for target in found["targets"]} >= {"relation reic/crop: label error"}
    assert run("verify", out) == 0
    assert run("resume", out, "--budget", "24") == 0
    table = folder / "plain" / "answers.csv"
    table.write_text(table.read_text().replace("A ", "An old ", 1))
    capsys.readouterr()
    assert run("resume", out, "--budget", "28") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "belongs to another space" in told
    assert "with 24: other images, truths, boxes, or options of relations" in told


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("sample,", "image,", "expected the columns sample, caption, got no 'sample'"),
        (
            "scene-0-00002,identity",
            "scene-0-00002,reic/crop",
            "expected a row with a caption of sample 'scene-0-00002', got none; 1 of 4 samples "
            "have none (in rows of relation 'identity')",
        ),
        (
            "scene-0-00002,identity",
            "scene-0-00001,identity",
            "row 3, sample: 'scene-0-00001' stands twice; leave one row",
        ),
    ],
)
def test_faulty_captions_are_refused_in_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    table = folder / "plain" / "answers.csv"
    assert old in table.read_text()
    table.write_text(table.read_text().replace(old, new, 1))
    refused(folder, capsys, sentence)


def refused(folder: Path, capsys: pytest.CaptureFixture[str], sentence: str) -> None:
    capsys.readouterr()
    assert run("audit", str(folder / "SPEC.toml"), "--out", str(folder / "r")) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert sentence in told
    assert "answers.csv" in told
    assert not (folder / "r" / "journal.db").exists()


# -- captions of hidden boxes ----------------------------------------------------------------


def test_what_no_box_bears_the_name_of_is_where_hiding_takes_its_name_away() -> None:
    """A zebra that no box is called, named in all captions but those without the first box."""
    boxes = (Box("thing", 0, 0, 10, 10), CAT)
    said = "A zebra and a cat."
    versions = {place: said if place >= 3 else "A cat." for place in range(6)}
    plain, whole = RecordedNaming({"a": said}), RecordedNaming({"a": Received(said, versions)})
    assert plain.objects("a", boxes) == ((boxes[1],),)
    assert whole.objects("a", boxes) == ((boxes[0],), (boxes[1],))
    assert plain.fingerprint != whole.fingerprint
    with pytest.raises(InputError, match="one of its 1 boxes hidden, got one with box 2; record"):
        whole.objects("a", boxes[:1])


def test_hidden_rows_of_a_table_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, spec = folder / "whole", str(folder / "SPEC.toml")
    assert run("export", "--questions", spec, "--sources", "--hidden", "--out", str(out)) == 2
    assert "--hidden: [oracle] hides no boxes" in capsys.readouterr().err
    (folder / "SPEC.toml").write_text(SPEC.replace("occlusion = false", ""))
    assert run("export", "--questions", spec, "--sources", "--hidden", "--out", str(out)) == 0
    table = pd.read_csv(out / "answers.csv", dtype=str)
    assert set(table["relation"]) == {"identity", "hidden/blur", "hidden/black", "hidden/inpaint"}
    table["caption"] = table["sample"] + " " + table["relation"] + " " + table["severity"]
    table.to_csv(out / "answers.csv", index=False)
    samples = list(dict.fromkeys(table["sample"]))
    received = source_captions(out / "answers.csv", samples)[samples[0]]
    assert received.answer == f"{samples[0]} identity 0"
    assert received.versions[4] == f"{samples[0]} hidden/black 2"
    assert len(received.versions) == (table["sample"] == samples[0]).sum() - 1
    for column, old, new, sentence in (
        ("relation", "hidden/blur", "hidden/fog", "expected hidden/ and one of blur, black, inp"),
        ("severity", "2", "two", "expected the number of the box hidden, from 1, got 'two'"),
    ):
        table.replace({column: {old: new}}).to_csv(out / "bad.csv", index=False)
        with pytest.raises(InputError, match=f"row [0-9]+, {column}: {sentence}"):
            source_captions(out / "bad.csv", samples)
    capsys.readouterr()
    assert run("export", "--questions", spec, "--hidden", "--out", str(folder / "other")) == 2
    assert "--hidden: expected --sources with it" in capsys.readouterr().err


def test_captions_of_boxes_that_are_not_there_are_refused_before_anything_is_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = folder / "plain" / "answers.csv"
    hidden = pd.read_csv(table, dtype=str).assign(relation="hidden/blur", severity="99").tail(1)
    table.write_text(table.read_text() + hidden.to_csv(index=False, header=False))
    assert run("audit", str(folder / "SPEC.toml"), "--out", str(folder / "r")) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "boxes hidden, got one with box 99; record them with these boxes" in told
    assert not (folder / "r" / "journal.db").exists()
