"""Kept replies read anew: which answers change, and which stay."""

import numpy as np
import pytest

from adaptive_vtt.audit.rereading import Rereading
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.network.prompt_templates import TEMPLATES
from adaptive_vtt.models.reply_frames import KEPT, MORE, kept
from adaptive_vtt.types import Ask, Prompt, Unanswered, Value

IMAGE = np.zeros((4, 4, 3), np.uint8)
ONE = Prompt(IMAGE, ("lesion",), "a", "identity", 0)
TWO = Prompt(IMAGE, ("lesion", "scar"), "a", "identity", 0)
CHOICE = Prompt(IMAGE, ("organ",), "a", "identity", 0, (Ask("Which?", ("colon", "liver")),))
NEITHER = Unanswered("neither yes nor no")


@pytest.mark.parametrize(
    ("reply", "before", "after"),
    [
        ("No.", 1.0, 0.0),
        ("A lesion is visible.", NEITHER, 1.0),
        ("<think>A?</think> B", "A", "B"),
        ("", NEITHER, NEITHER),
        (f"Yes, since{MORE}", NEITHER, NEITHER),
        ("No.", Unanswered("refused: no"), Unanswered("refused: no")),
        ("<html>No.</html>", Unanswered("malformed reply"), Unanswered("malformed reply")),
        ("No service.", Unanswered("http 503"), Unanswered("http 503")),
    ],
)
def test_a_whole_reply_is_read_again(reply: str, before: Value, after: Value) -> None:
    prompt = CHOICE if isinstance(before, str) else ONE
    assert Rereading(numbers=True).values(reply, prompt, (before,)) == (after,)


def test_numbers_of_other_sources_stay_unless_a_function_reads() -> None:
    assert Rereading().values("No", ONE, (0.8,)) == (0.8,)
    assert Rereading(rule=lambda reply, concept: "No" in reply).values("No", ONE, (0.8,)) == (1.0,)
    assert Rereading(rule=lambda *_: None).values("No", ONE, (0.8,)) == (Unanswered("no answer"),)
    with pytest.raises(InputError, match=r"expected True, False, .* got 3"):
        Rereading(rule=lambda *_: 3).values("No", ONE, (0.8,))


def test_a_template_splits_a_reply_to_several_questions() -> None:
    quoted = Rereading(TEMPLATES["medtest"], numbers=True)
    assert quoted.values('"Yes" "No"', TWO, (NEITHER, NEITHER)) == (1.0, 0.0)
    plain = Rereading(numbers=True).values('"Yes" "No"', TWO, (NEITHER, NEITHER))
    assert all(isinstance(value, Unanswered) for value in plain)


def test_a_long_reply_keeps_its_beginning_and_its_end() -> None:
    reply = "Reasons first. " * 500 + "Answer: No"
    assert len(kept(reply)) == KEPT
    assert kept(reply).startswith("Reasons first.")
    assert kept(reply).endswith("Answer: No")
    assert kept("No") == "No"
