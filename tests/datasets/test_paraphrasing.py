"""More wordings by a chat model: what is kept, what is refused, what is paid."""

import math

import pytest

from adaptive_vtt.datasets.vqa.paraphrasing import fault, kept_words, paraphrased
from adaptive_vtt.datasets.vqa.taxonomy import WORDS

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
