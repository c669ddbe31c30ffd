"""Classes in captions, the rules of MetaIC and ROME, and the oracle that applies them."""

from collections.abc import Mapping
from typing import Any

import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.experiments.reic.caption_classes import (
    COCO,
    CaptionClasses,
    after_insertion,
    after_removal,
    classes_named,
)
from adaptive_vtt.experiments.reic.metaic_rome import ROME
from adaptive_vtt.oracles import Premise
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Box, FollowUp, Outcome, Question, Unanswered
from tests.helpers.audits import counted
from tests.helpers.pasted import CAT, DOG, METAIC, noise, sample

# -- classes in captions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caption", "counts"),
    [
        ("A dog and two cats sit on a couch.", {"dog": 1, "cat": 2, "couch": 1}),
        ("a dog next to another dog", {"dog": 2}),
        ("A HOT-DOG on a plate", {"hot dog": 1}),
        ("teddy bears and one bear", {"teddy bear": 2, "bear": 1}),
        ("a small white sheep", {"sheep": 1}),
        ("a herd of sheep", {"sheep": 2}),
        ("doghouse, category, catsup", {}),
        ("", {}),
    ],
)
def test_classes_are_read_as_whole_words_longer_names_first(
    caption: str, counts: dict[str, int]
) -> None:
    assert classes_named([caption], COCO) == [counts]


# -- rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "follow_up", "broken"),
    [
        ({"dog": 1}, {"dog": 1, "kite": 1}, {}),
        ({"dog": 2}, {"dog": 3, "kite": 1}, {}),  # singular or plural is all that counts
        ({"kite": 1}, {"kite": 2}, {}),  # one more of a kind
        ({"dog": 1}, {"dog": 1}, {"kite": 1}),
        ({"dog": 1}, {"kite": 1}, {"dog": 1}),
        ({"dog": 1}, {"dog": 1, "kite": 1, "cat": 1}, {"cat": 1}),
        ({"kite": 1}, {"kite": 1}, {"kite": 2}),
    ],
)
def test_rules_after_a_kite_was_inserted(
    source: dict[str, int], follow_up: dict[str, int], broken: dict[str, int]
) -> None:
    assert after_insertion(source, follow_up, "kite") == broken


@pytest.mark.parametrize(
    ("source", "follow_up", "broken"),
    [
        ({"dog": 1, "cat": 1}, {"cat": 1}, {}),
        ({"dog": 2, "cat": 1}, {"dog": 1, "cat": 1}, {}),  # one of several dogs
        ({"cat": 1}, {"cat": 2}, {}),  # the dog had not been named; numbers do not matter
        ({"dog": 1, "cat": 1}, {"dog": 1, "cat": 1}, {"dog": 2}),
        ({"dog": 1, "cat": 1}, {}, {"cat": 1}),
    ],
)
def test_rules_after_a_dog_was_removed(
    source: dict[str, int], follow_up: dict[str, int], broken: dict[str, int]
) -> None:
    assert after_removal(source, follow_up, {"dog"}) == broken


# -- the oracle ----------------------------------------------------------------------------

INSERTED = {"inserted": "kite", "box": Box("kite", 1, 2, 30, 40), "overlap": 0.125}


def judged(
    details: Mapping[str, Any], source: Any, answer: Any, oracle: CaptionClasses | None = None
) -> Outcome:
    relation = METAIC if "inserted" in details else ROME()
    oracle = CaptionClasses() if oracle is None else oracle
    question = Question(0, "s", relation.name, 1, "caption", 1)
    made = FollowUp(noise(), details)
    expected = oracle.expect(Premise(relation, made, sample(DOG, CAT), question, source))
    return oracle.judge(question, answer, expected, source)


def test_a_caption_that_keeps_the_rules_has_no_loss() -> None:
    outcome = judged(INSERTED, "a dog and a cat", "A cat, a dog and a kite.")
    assert (outcome.loss, outcome.coordinate, outcome.score) == (0, 1, 1)
    assert outcome.details is not None
    assert outcome.details["reduction"] == "insert kite 1,2,30,40 over 12%"
    assert [each["status"] for each in outcome.details["objects"]] == [
        "retained",
        "retained",
        "inserted",
    ]
    assert not any(each["rule"] or each["type"] for each in outcome.details["objects"])


def test_what_cannot_be_judged_is_excluded_or_breaks_no_rule() -> None:
    silent = judged(INSERTED, Unanswered("refused"), "a dog")
    assert (silent.loss, silent.excluded) == (0, "the source image was not captioned")
    assert judged(INSERTED, "a dog", Unanswered("refused")).loss == 1
    assert judged(INSERTED, "a dog", Unanswered("refused")).coordinate is None
    assert judged(INSERTED, "I'm sorry, but I can't help with that.", "a dog").excluded
    assert judged(INSERTED, "a dog", " ").unanswered == "no answer"
    assert judged(INSERTED, "a dog", " ").loss == 1
    unchanged = judged({"not eligible": "no annotated object"}, "a dog", "a horse")
    assert (unchanged.loss, unchanged.excluded) == (0, None)
    assert unchanged.details is not None
    assert unchanged.details["reduction"] == "none: no annotated object"


def test_a_space_asks_for_captions_of_insertions_and_removals_alone() -> None:
    chosen = [METAIC, ROME(), "rotation", "identity"]
    space = QuestionSpace(tiny_dataset(3, 2), chosen, oracle=CaptionClasses())
    assert space.concepts == ("caption",)
    assert space.size == 3 * (4 + 3)
    assert counted(space, relation="metaic") == 12
    source, made = space.pair(0)
    assert source.asks["caption"].text == "Describe the image in one sentence."
    assert made.details == {"not eligible": "no annotated object"}
