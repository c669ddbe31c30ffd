"""Labels of what an audit of captions looked at: what comes first, and what labels come to."""

from typing import Any

import numpy as np
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.people.agreement import agreement, fleiss_kappa
from adaptive_vtt.people.captions import Item, items, summarise, to_label
from adaptive_vtt.people.cards import NONE, Pictures
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.labelled_audit import details, entry, fill, folder, found, journal, labels, space

__all__ = ["folder", "found", "journal", "space"]  # fixtures


def test_cards_are_the_objects_of_judged_answers(found: list[Item]) -> None:
    assert [item.key[1] for item in found] == ["dog", "table"] * 4
    assert len({item.key for item in found}) == 8
    card = found[0].card
    assert card.titles == ("source s0", "brightness_up (crop 0,0,10,10)")
    assert (card.captions, card.mark) == (("a dog on a table", "a table"), "dog")
    assert (card.boxes, card.size) == (((2, 3, 9, 8),), (16, 16))
    facts = dict(card.facts)
    assert facts["verdict"].startswith("breaks rule 1: ")
    assert facts["visible"] == "97 % (retained), not named"
    (asked,) = card.asked
    assert [*asked.choices] == [NONE, *ERROR_TYPES]
    suggested = [item.card.asked[0].suggested for item in found]
    assert suggested == ["2.2", NONE, NONE, NONE, "3", None, NONE, NONE]  # one of no known type


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (details({"name": "dog"}), r"question 0: expected what .* got something else \(KeyError"),
        (details(entry("dog", visible="x")), r"question 0: .*(Value|Type)Error"),
        (details(entry("dog", boxes=[[1, 2]])), "question 0: .*ValueError"),
        (details(entry("dog"), entry("dog")), "question 0: expected each object once"),
        (None, "expected an audit of captions, got another"),
    ],
)
def test_details_that_cannot_be_labelled(space: QuestionSpace, case: Any, message: str) -> None:
    with pytest.raises(JournalError, match=message):
        items(fill(MemoryJournal(), space, [case]))


@pytest.mark.parametrize("seed", range(5))
def test_violations_come_first_and_the_rest_from_random_follow_ups(
    found: list[Item], seed: int
) -> None:
    for sample in range(4):
        queue = to_label(found, sample, seed)
        assert all(item.reported for item in queue[:3])
        rest = queue[3:]
        assert not any(item.reported for item in rest)
        larger = to_label(found, sample + 1, seed)
        assert [item for item in larger if item in queue] == queue  # a larger sample holds it
        drawn = {item.card.id for item in rest}
        assert len(drawn) <= sample
        assert all(item in queue for item in found if item.card.id in drawn)
    assert sorted(i.key for i in to_label(found, None, seed)) == sorted(i.key for i in found)
    with pytest.raises(InputError, match="--sample: expected 0 or more follow-ups, got -1"):
        to_label(found, -1, seed)


# -- figures ---------------------------------------------------------------------------------------


def test_kappa_is_that_of_fleiss_own_table() -> None:
    """Psychological Bulletin 76, 1971: 30 patients, 6 psychiatrists each, 5 diagnoses."""
    text = (
        "00060 03003 01410 00006 03030 20040 00402 20310 20040 00006 10050 11004 03300 10050 "
        "02301 00500 00051 14100 10500 00600"
    )
    counts = np.array([[int(n) for n in row] for row in text.split()])
    even = counts[counts.sum(axis=1) == 6]
    alike = ((even**2).sum(axis=1) - 6) / 30
    chance = ((even.sum(axis=0) / even.sum()) ** 2).sum()
    assert fleiss_kappa(even) == pytest.approx((alike.mean() - chance) / (1 - chance))
    assert fleiss_kappa([[2, 0], [0, 2]]) == pytest.approx(1)
    assert fleiss_kappa([[1, 1], [1, 1]]) == pytest.approx(-1)
    for undefined in (np.zeros((0, 2)), [[1, 0], [0, 1]], [[2, 0], [2, 0]]):
        assert fleiss_kappa(undefined) is None
    # what not all answered is left out
    assert agreement([["a", "a"], ["b", "b"], ["a"]], 2) == (pytest.approx(1), 2)


def test_scores_are_of_all_and_labelled_parts_stand_for_the_rest(found: list[Item]) -> None:
    """3 reported, of which 2 are labelled and 1 right; 5 others, of which 2 are, 1 an error."""
    reported = [item for item in found if item.reported]
    others = [item for item in found if not item.reported]
    given = [(reported[0], "1.1"), (reported[1], NONE), (others[0], "3"), (others[1], NONE)]
    summary = summarise(found, labels(*((item, "ann", label) for item, label in given)))
    figures = summary.figures["objects"]
    assert [figures[name] for name in ("tp", "fp", "fn", "tn", "undecided")] == [1, 1, 1, 1, 0]
    assert figures["precision"] == 1 / 2
    assert figures["recall"] == pytest.approx(1.5 / (1.5 + 2.5))
    assert summary.figures["types"] == {"2.2": {"1.1": 1, NONE: 0}, "3": {"1.1": 0, NONE: 1}}
    assert summary.notes == ["4 of 8 objects are labelled, and stand for the rest"]
    alone = summarise(found, labels((reported[0], "ann", "2.2")))
    assert alone.figures["objects"]["recall"] is None


def test_divided_readers_decide_nothing_and_agree_less(found: list[Item]) -> None:
    first, second = found[0], found[4]
    summary = summarise(
        found,
        labels(
            (first, "ann", "2.2"), (first, "bo", NONE), (second, "ann", "3"), (second, "bo", "1.2")
        ),
    )
    assert summary.figures["objects"]["undecided"] == 1
    assert summary.figures["types"] == {"3": {"unknown": 1}}  # an error, of which type is open
    assert summary.figures["kappa"]["errors"] == (pytest.approx(-1 / 3), 2)
    assert summary.figures["kappa"]["types"][1] == 1


# -- pictures --------------------------------------------------------------------------------------


def test_pictures_are_made_from_the_data_and_else_come_from_the_journal(
    space: QuestionSpace, journal: Journal, found: list[Item]
) -> None:
    made = Pictures(journal, space).of(found[-1].card)
    assert [address[:15] for address in made.pictures] == ["data:image/png;"] * 2
    assert len(Pictures(journal).of(found[0].card).pictures) == 2
    assert Pictures(journal).of(found[-1].card).pictures == ()
    other = QuestionSpace(tiny_dataset(5, 1), ["brightness_up"])
    with pytest.raises(JournalError, match="belongs to another space"):
        Pictures(journal, other)
