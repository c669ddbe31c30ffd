"""What there is to label in an audit, and which of it comes first."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt import QuestionSpace
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal
from adaptive_vtt.people.captions import Item, items, to_label
from adaptive_vtt.people.cards import NONE
from tests.helpers.labelled_audit import (
    details,
    entry,
    fill,
    folder,
    found,
    journal,
    plain_item,
    space,
)

__all__ = ["folder", "found", "journal", "space"]  # fixtures


def test_items_are_the_objects_of_judged_answers(folder: Path, found: list[Item]) -> None:
    journal = SQLiteJournal(folder / "journal.db")
    assert items(journal) == found
    journal.close()
    assert [item.key for item in found[:3]] == [(0, "dog"), (0, "table"), (5, "dog")]
    dog, table = found[0], found[1]
    assert (dog.rule, dog.guess, dog.prelabel, dog.visible) == (1, "2.2", "2.2", 0.97)
    assert (table.rule, table.prelabel, table.reported) == (None, NONE, False)
    assert dog.boxes == ((2, 3, 9, 8),)
    assert dog.change == "brightness_up (crop 0,0,10,10)"
    assert found[5].prelabel is None  # a violation of no known type


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (details({"name": "dog"}), r"question 0: expected what .* got something else \(KeyError"),
        (details(entry("dog", visible="x")), "question 0: .*ValueError"),
        (details(entry("dog", boxes=[[1, 2]])), "question 0: .*ValueError"),
        (details(entry("dog"), entry("dog")), "question 0: an object stands there twice"),
        (None, "no answer in this journal names objects"),
    ],
)
def test_details_that_cannot_be_labelled(space: QuestionSpace, case: Any, message: str) -> None:
    with pytest.raises(JournalError, match=message):
        items(fill(MemoryJournal(), space, [case]))


def test_no_audit() -> None:
    with pytest.raises(JournalError, match="no audit was begun"):
        items(MemoryJournal())


@given(st.integers(0, 50), st.integers(0, 12), st.lists(st.booleans(), min_size=10, max_size=10))
def test_violations_come_first_and_the_rest_from_random_follow_ups(
    seed: int, sample: int, broken: list[bool]
) -> None:
    found = [plain_item(k // 2, "ab"[k % 2], b) for k, b in enumerate(broken)]
    queue = to_label(found, sample, seed)
    count = sum(broken)
    assert all(item.reported for item in queue[:count])
    rest = queue[count:]
    assert not any(item.reported for item in rest)
    larger = to_label(found, sample + 1, seed)
    assert [item for item in larger if item in queue] == queue  # a larger sample holds it
    drawn = {item.question for item in rest}
    assert len(drawn) <= sample
    for item in found:  # of a follow-up drawn, everything
        assert item in queue or item.question not in drawn
    everything = to_label(found, None, seed)
    assert sorted(i.key for i in everything) == [i.key for i in found]


def test_a_sample_is_no_negative_number(found: list[Item]) -> None:
    with pytest.raises(InputError, match="sample: expected 0 or more follow-ups, got -1"):
        to_label(found, -1, 0)
