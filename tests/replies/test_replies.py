"""Replies in words are read as their tables say; what holds no answer is never read."""

import time
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adaptive_vtt.models.reply_frames import CUT_OFF, NO_ANSWER, answer_in
from adaptive_vtt.models.yes_no import BOTH, DECLINED, NEITHER, NO_IMAGE, UNSURE, p_yes, yes_or_no
from adaptive_vtt.oracles.choice_extraction import extract
from adaptive_vtt.types import Unanswered

OPTIONS = ("polyp", "ulcer", "normal mucosa", "bleeding")
SIDES = {1.0: "yes", 0.0: "no"}
NAMES = ("think", "thinking", "reasoning", "thought", "reflection")
TAGS = [(f"<{name}>", f"</{name}>") for name in NAMES] + [
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("", "</think>"),
]


def rows(name):
    """Return a table's rows: reply, right value, concept or options, style."""
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()
    table = [line.split("\t") for line in lines if not line.startswith("#")]
    return [[t.replace("\\n", "\n").replace("\\\\", "\\"), *rest] for t, *rest in table]


YES_NO, CHOICES = rows("yes_no.tsv"), rows("choice.tsv")


def read(reply, concept="polyp"):
    value = yes_or_no(reply, concept)
    return "-" if isinstance(value, Unanswered) else SIDES[value]


def test_yes_and_no_are_read():
    readings = [(reply, style, right, read(reply, of)) for reply, right, of, style in YES_NO]
    assert [row for row in readings if row[2] != row[3]] == []
    assert len(readings) > 200


def test_choices_are_read():
    readings = [
        (reply, style, right, extract(reply, options.split("|")).letter or "-")
        for reply, right, options, style in CHOICES
    ]
    assert [row for row in readings if row[2] != row[3]] == []
    assert len(readings) > 100


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", NO_ANSWER),
        ("<think>yes</think>", NO_ANSWER),
        ("<think>it might be a fold, so yes", CUT_OFF),
        ("The mucosa is pink.", NEITHER),
        ("yes, no", BOTH),
        ("It could be a polyp.", UNSURE),
        ("No picture came with your message.", NO_IMAGE),
        ("I'm sorry, I can't help with that.", DECLINED),
    ],
)
def test_a_reply_that_is_not_read_has_a_reason(reply, reason):
    assert yes_or_no(reply, "polyp") == Unanswered(reason)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<think>option D seems", CUT_OFF),
        ("I am unable to view the image.", NO_IMAGE),
        ("I must decline to answer.", DECLINED),
    ],
)
def test_a_choice_that_is_not_read_has_a_reason(reply, reason):
    assert extract(reply, OPTIONS).reason == reason


# -- properties ------------------------------------------------------------------------------------

WORDS = "the wall is smooth and pink blood fold image clear not never without a visible see 7 . , ;"


@settings(max_examples=40)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=20).map(" ".join))
def test_without_yes_no_or_the_concept_nothing_is_read(reply):
    assert read(reply) == "-"


@settings(max_examples=30)
@given(st.sampled_from([row for row in YES_NO if row[1] == "yes" and "\n" not in row[0]]))
def test_a_clean_view_never_turns_a_yes(row):
    reply, _, concept, _ = row
    assume(reply[-1].isalpha() or reply[-1] == ".")
    more = f"{reply.rstrip('.')}. There are no artifacts."
    assert read(more, concept) != "no"
    if reply.lower().startswith("yes") or f" {concept} " in reply:
        assert read(more, concept) == "yes"


@settings(max_examples=30)
@given(
    st.sampled_from([row for row in YES_NO if row[3] != "thinking"]),
    st.sampled_from(TAGS),
    st.sampled_from(["", "yes", "no", "Is it a polyp? No polyp, so no.", "Answer: B"]),
)
def test_thinking_changes_nothing(row, tags, thought):
    reply, _, concept, _ = row
    assert read(f"{tags[0]}{thought}{tags[1]}{reply}", concept) == read(reply, concept)


@settings(max_examples=30)
@given(
    st.sampled_from([row for row in CHOICES if row[3] != "thinking"]),
    st.sampled_from(TAGS),
    st.sampled_from(["", "B", "not A", "ulcer", "Answer: D"]),
)
def test_thinking_changes_no_choice(row, tags, thought):
    reply, options = row[0], row[2].split("|")
    wrapped = extract(f"{tags[0]}{thought}{tags[1]}{reply}", options)
    assert wrapped.letter == extract(reply, options).letter


@settings(max_examples=50)
@given(st.text(alphabet="<>/thinkansweryes no.{}[]|\\:\"'\n", max_size=80))
def test_every_character_keeps_its_place(reply):
    part = answer_in(reply)
    assert isinstance(part, Unanswered) or (
        len(part) == len(reply)
        and all(new in (old, "\n") for old, new in zip(reply, part, strict=True))
    )


def test_rambling_replies_take_no_time():
    units = [
        *("no ", "no, ", "<think>", "</think>", "{", "\\boxed{", "yes or ", "not a polyp or "),
        *("a polyp, ", "?", "answer ", "**", "polyp is not ", '"a": "', "no ulcer or ", "\n", " "),
    ]
    for unit in units:
        start = time.process_time()
        yes_or_no(unit * (3_000 // len(unit)), "polyp")
        assert time.process_time() - start < 1, unit


# -- log-probabilities -----------------------------------------------------------------------------


def token(text, logprob=0.0, **listed):
    others = [{"token": name, "logprob": number} for name, number in listed.items()]
    return {"token": text, "logprob": logprob, "top_logprobs": others}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([token("▁No", -0.7, Yes=-0.7)], 0.5),
        ([token("ĠYes", -0.7, ĠNo=-0.7), token(","), token(" no")], 0.5),
        ([token("No"), token(" artifacts"), token("."), token(" Yes", -0.7, No=-0.7)], 0.5),
        ([token("<think>"), token("no"), token("</think>"), token("Yes", -0.7, No=-0.7)], 0.5),
        ([token("Yes", None, No=-0.7)], None),
        ([token("Yes", -9999.0, No=-0.7)], None),
        ([token("Yes", -0.7, No=None)], 1.0),
        ([token("Maybe", -0.7, Yes=-0.7)], None),
        ([token("No"), token(" image"), token(" came"), token(".")], None),
        ([token("<think>"), token("yes")], None),
    ],
)
def test_p_yes_is_read_at_the_first_token_that_answers(tokens, expected):
    value = p_yes(tokens, "polyp")
    assert value == (None if expected is None else pytest.approx(expected))
