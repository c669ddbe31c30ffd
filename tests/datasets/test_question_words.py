"""Words of questions: roles, tasks, more wordings by a chat model, and sizes that tell nothing."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.vqa.paraphrasing import fault, kept_words, paraphrased
from adaptive_vtt.datasets.vqa.question_making import choose, distractors
from adaptive_vtt.datasets.vqa.taxonomy import (
    _ROLE_WORDS,
    GRANULARITIES,
    ROLES,
    TASKS,
    WORDS,
    granularity,
    named,
    role_of,
)


def test_the_size_of_a_box_does_not_tell_that_it_is_right():
    """Of four boxes the right one is smallest, second, third or largest equally often."""
    image = np.full((800, 800, 1), 200, np.uint8)
    ranks: Counter[int] = Counter()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        wrong = distractors(image, (300, 300, 420, 420), rng)
        assert wrong is not None
        widths = [x2 - x1 for x1, _, x2, _ in wrong]
        assert all(96 <= width <= 150 for width in widths)
        ranks[sum(width < 120 for width in widths)] += 1
    assert all(30 < ranks[k] < 70 for k in range(4)), ranks  # 50 of each, but for chance


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("text", "artefact"),
        ("poor preparation", "preparation"),
        ("ClipApplier", "instrument"),
        ("CalotTriangleDissection", "phase"),
        ("ulcerative-colitis-grade-2", "grade"),
        ("retroflex-rectum", "landmark"),
        ("z-line", "landmark"),
        ("colon polyp", "lesion"),
        ("esophagitis", "lesion"),  # no oesophagus: words are whole ones
        ("texture", "lesion"),
    ],
)
def test_words_tell_of_a_role(name, role):
    assert role_of(name) == role


def test_every_role_of_the_words_is_one_that_there_is():
    assert {*_ROLE_WORDS} <= {*ROLES}


def test_nothing_is_asked_about_artefacts_unless_they_are_said_to_be_more():
    images = [np.full((16, 16, 3), 40 * k, np.uint8) for k in range(4)]
    labels = pd.DataFrame({"text": [1, 0, 1, 0], "polyp": [0, 1, 0, 1]})
    dataset = from_table(images, labels)
    chosen = choose(dataset, ["presence", "type"])
    assert chosen.roles == {"text": "artefact", "polyp": "lesion"}
    assert {about for _, _, about in chosen.places} == {"polyp, answer Yes", "polyp, answer No"}
    chosen = choose(dataset, ["presence", "type"], roles={"text": "lesion"})
    assert {kind for _, kind, about in chosen.places if about == "text"} == {"type"}
    named = choose(dataset, ["presence"], words={"polyp": "poor preparation"})
    assert named.roles["polyp"] == "preparation"  # what a question calls it tells more
    assert not named.places


@pytest.mark.parametrize(
    ("subtask", "question", "level"),
    [
        ("Mul", "What is in the {} box?", "multi-box"),
        ("Mul", "What do the {} contours delimit?", "multi-contour"),
        ("Mul", "Which finding is marked in {}?", "multi-region"),
        ("Mul", "Is it the {} box or the {} contour?", "multi-region"),
        ("Box", "What is in the {} bounding box?", "box"),
        ("Coor", "What is in the box [1, 2, 3, 4]?", "image-level"),
    ],
)
def test_granularities_tell_what_is_drawn(subtask, question, level):
    message = question.replace("{}", "green")
    assert granularity("Region Recognition", named(subtask), message) == level


def test_five_granularities_and_four_columns_have_the_same_questions():
    """Each task and column falls into levels, and counts that are known are sums of theirs."""
    result: dict[str, int] = {}
    for task in TASKS:
        for name, short, count in task.subtasks or ((task.name, task.short, task.questions),):
            level = "several" if short == "Mul" else granularity(task.name, name, "")
            result[level] = result.get(level, 0) + count
    several = result.pop("several") + result.pop("multi-box")
    assert result == {level: count for level, count in GRANULARITIES.items() if count}
    assert several == 263 + 433
    assert sum(result.values()) + several == 6832
    names = ["image-level", "box", "contour", "multi-box", "multi-contour"]  # the text's
    assert list(GRANULARITIES) == names


GOOD = "Do you see any {subject} in this image?"
PRICE = 0.25


def reply(words, asked):
    def say(text):
        asked.append(text)
        return words, PRICE / 2

    return say


def test_our_own_wordings_have_no_fault_but_that_they_are_known():
    for kind, wordings in WORDS.items():
        assert kept_words(kind)
        for words in wordings:
            assert fault(kind, words, ()) is None
            assert fault(kind, words, wordings) is not None


@pytest.mark.parametrize(
    ("kind", "words", "wrong"),
    [
        ("presence", "Do you see any polyp in this image?", "it loses '{subject}'"),
        ("presence", "In the image, is {subject} there, {subject}?", "braces that nothing fills"),
        ("presence", WORDS["presence"][0].upper().replace("SUBJECT", "subject"), "known already"),
        ("grounding", "Which box holds the {subject}, in pixels?", "it loses '[x1, y1, x2, y2]'"),
        ("multi", "In which box is the {colour} {mark}?", "whether boxes or outlines are drawn"),
    ],
)
def test_what_asks_something_else_is_no_wording(kind, words, wrong):
    assert wrong in str(fault(kind, words, WORDS[kind]))


def test_a_reply_is_read_line_by_line_and_its_faults_are_told():
    asked: list[str] = []
    message = f'1. "{GOOD}"\n\n- Is it there?\n* {GOOD.lower()}'
    result = paraphrased(["presence"], reply(message, asked), PRICE, math.inf)
    assert result.wordings == {"presence": (GOOD,)}
    assert [each.rpartition(": ")[2] for each in result.refused] == [
        "it loses '{subject}'",
        "it is known already",
    ]
    assert result.together()["presence"] == (*WORDS["presence"], GOOD)
    assert result.together()["box"] == WORDS["box"]
    assert WORDS["presence"][0] in asked[0]
    assert "Write three more" in asked[0]
    assert "{subject}, image" in asked[0]


def test_no_call_is_made_that_could_pass_the_cap():
    asked: list[str] = []
    result = paraphrased(["presence", "box", "contour"], reply(GOOD, asked), PRICE, 0.4)
    assert len(asked) == 2  # .125 each; .25 more could pass the cap
    assert result.refused[-1] == "contour: not asked, as --max-cost is reached"
