"""MEDVQA-GI: its file, MedTest's rules for its answers, and its tables."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from adaptive_vtt.datasets.formats.medvqa import from_medvqa
from adaptive_vtt.datasets.vqa.medvqa_questions import NAMES, QUESTIONS, recognised
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Unanswered
from adaptive_vtt.oracles import ContainsTruth, Outcome
from adaptive_vtt.oracles.contains_truth import changed
from adaptive_vtt.relations import FollowUp, get
from adaptive_vtt.space import Question

# As MEDVQA-GI words them, typos and all, in MedTest's order.
QUESTIONS_FILE = Path(__file__).with_name("medvqa_questions.txt")
WORDINGS = tuple(QUESTIONS_FILE.read_text(encoding="utf-8").splitlines())
ANSWERS: dict[int, list[str]] = {
    2: ["Z-line"],
    3: ["Polyp snare"],
    6: ["1"],
    9: ["No"],
    10: ["Yes"],
    11: ["Pink", "Red"],
    13: [""],
    15: ["Colonoscopy"],
    18: ["Lower-rigth"],
}


def label(number, answer):
    return {"Question": WORDINGS[number - 1], "AnswerType": "x", "Answer": answer}


@pytest.fixture
def folder(tmp_path):
    """Four images with the same answers."""
    (tmp_path / "images").mkdir()
    entries = []
    for k in range(4):
        pixels = np.random.default_rng(k).integers(60, 200, (80, 96, 3), dtype=np.uint8)
        cv2.imwrite(str(tmp_path / "images" / f"im{k}.jpg"), pixels)
        entries.append({"ImageID": f"im{k}", "Labels": [label(*a) for a in ANSWERS.items()]})
    (tmp_path / "gt.json").write_text(json.dumps(entries))
    return tmp_path


def test_the_eighteen_are_recognised_in_any_wording():
    assert [q.number for q in QUESTIONS] == list(range(1, 19))
    assert sorted(q.id for q in QUESTIONS) == list(range(18))
    assert tuple(recognised(wording) for wording in WORDINGS) == NAMES
    assert tuple(recognised(q.text) for q in QUESTIONS) == NAMES
    assert recognised("What is the weather like?") is None
    assert [q.number for q in QUESTIONS if q.vague] == [2, 10, 12, 17]


def test_concepts_are_questions_in_the_thesis_order(folder):
    dataset = from_medvqa(folder)
    assert dataset.concepts == tuple(q.name for q in QUESTIONS if not q.vague)
    sample = dataset.sample(0)
    assert set(sample.asks) == set(dataset.concepts)
    assert sample.answers["text present"] == ("No",)
    assert sample.answers["abnormality colour"] == ("Pink, Red",)
    assert "polyp size" not in sample.truth  # its answer is empty
    assert from_medvqa(folder, several="any").sample(0).answers["abnormality colour"] == (
        "Pink",
        "Red",
    )
    assert from_medvqa(folder, questions=[9, "easy to detect"]).concepts == (
        "text present",
        "easy to detect",
    )
    assert from_medvqa(folder, questions=[2]).fingerprint != dataset.fingerprint


def test_masks_are_found(folder):
    entries = json.loads((folder / "gt.json").read_text())
    where = {"Question": "Where exactly is the polyp?", "AnswerType": "segmentation"}
    entries[0]["Labels"].append({**where, "Answer": ["polyp0.png"]})
    entries[1]["Labels"].append({**where, "Answer": [""]})
    (folder / "gt.json").write_text(json.dumps(entries))
    (folder / "masks").mkdir()
    for name in ("polyp0", "im1"):
        cv2.imwrite(str(folder / "masks" / f"{name}.png"), np.full((80, 96), 255, np.uint8))
    dataset = from_medvqa(folder)
    assert [bool(dataset.sample(k).masks) for k in range(3)] == [True, True, False]
    assert dataset.sample(0).masks["polyp type"].all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.append(e[0]), "entry 4: the ImageID 'im0' is empty or repeated"),
        (lambda e: e[1].pop("Labels"), "entry 1: expected an ImageID and a list of Labels"),
        (lambda e: e[1].update(ImageID="im9"), "sample 'im9': image file .* does not exist"),
        (lambda e: e[0]["Labels"][0].update(Question="Why?"), "'im0': expected one of .* 'Why"),
    ],
)
def test_bad_files_are_refused(folder, change, message):
    entries = json.loads((folder / "gt.json").read_text())
    change(entries)
    (folder / "gt.json").write_text(json.dumps(entries))
    with pytest.raises(InputError, match=message):
        from_medvqa(folder)


def test_bad_arguments_are_refused(folder):
    with pytest.raises(InputError, match="unknown question '19'"):
        from_medvqa(folder, questions=[19])
    with pytest.raises(InputError, match="unknown value of several 'both'"):
        from_medvqa(folder, several="both")
    (folder / "gt.json").write_text("[")
    with pytest.raises(InputError, match=r"gt\.json: cannot read answers"):
        from_medvqa(folder)
    with pytest.raises(InputError, match="unknown value of accept 'maybe'"):
        ContainsTruth(accept="maybe")


# -- what relations change --------------------------------------------------------------

TOOL = FollowUp(None, {"adds": "instrument", "object": "biopsy forceps"})
TEXT = FollowUp(None, {"adds": "text"})


@pytest.mark.parametrize(
    ("truth", "concept", "follow_up", "accept", "accepted"),
    [
        ("No", "text present", TEXT, "either", ("Yes",)),
        ("No", "instruments present", TOOL, "either", ("Yes", "biopsy forceps")),
        ("No", "instruments present", TOOL, "yes", ("Yes",)),
        ("Polyp snare", "instruments present", TOOL, "name", ("biopsy forceps", "Polyp snare")),
        ("2", "number of instruments", TOOL, "either", ("3",)),
        ("zero", "number of instruments", TOOL, "either", ("1",)),
        ("No", "text present", FollowUp(None, {"adds": ""}), "either", ("No",)),  # nothing fitted
    ],
)
def test_truths_follow_what_was_put_in(truth, concept, follow_up, accept, accepted):
    result = changed((truth,), concept, follow_up, accept)
    assert (result.right, result.spoilt) == (accepted, "")


def test_where_an_added_instrument_is_does_not_count():
    oracle, concept = ContainsTruth(), "instrument position"
    assert not oracle.applies(get("medtest/instrument"), concept)
    assert oracle.applies(get("medtest/text"), concept)
    assert oracle.applies(get("medtest/instrument"), "number of instruments")
    question = Question(0, "s", "medtest/instrument", 1, concept, 1)
    outcome = oracle.judge(question, "Center", changed(("Center",), concept, TOOL))
    assert outcome.excluded


def test_replies_are_judged():
    oracle, question = ContainsTruth(), Question(0, "s", "identity", 0, "text present", 1)
    expected = changed(("No",), "text present", TEXT)
    assert oracle.judge(question, "Yes, a date.", expected) == Outcome(0.0, 1.0, 1.0)
    assert oracle.judge(question, "None", expected) == Outcome(1.0, 0.5, 0.0)
    assert oracle.judge(question, 1.0, expected).loss == 0
    assert oracle.judge(question, Unanswered("timeout"), expected) == Outcome(1.0)
    assert oracle.judge(question, " ", expected).unanswered == "no answer"
    refusal = oracle.judge(question, "I'm sorry, I can't help with that.", expected)
    assert refusal.unanswered == "declined to answer"


# -- audits and tables ------------------------------------------------------------------
