"""More wordings by a chat model: what is kept, what is refused, what is paid."""

import json
from pathlib import Path

import pytest

from adaptive_vtt.datasets.vqa.paraphrasing import Paraphrases, Say, fault, kept_words, paraphrased
from adaptive_vtt.datasets.vqa.wordings import WORDS
from adaptive_vtt.errors import InputError, ModelError

GOOD = "Do you see any {subject} in this image?"
PRICE = 0.25


def reply(words: str | None, asked: list[str]) -> Say:
    def say(text: str) -> tuple[str | None, str, float]:
        asked.append(text)
        return words, "refused", PRICE / 2

    return say


def ask(
    journal: Path, say: Say, kinds: tuple[str, ...] = ("presence",), **more: float
) -> Paraphrases:
    options = {"count": 2, "most": PRICE, "max_cost": None, **more}
    return paraphrased(kinds, say, journal, by="words-1", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", WORDS)
def test_our_own_wordings_have_no_fault_but_that_they_are_known(kind: str) -> None:
    assert kept_words(kind)
    for words in WORDS[kind]:
        assert fault(kind, words, ()) is None
        assert fault(kind, words, WORDS[kind]) is not None


@pytest.mark.parametrize(
    ("kind", "words", "wrong"),
    [
        ("presence", "Do you see any polyp in this image?", "it loses '{subject}'"),
        ("presence", "In the image, is {subject} there, {subject}?", "braces that nothing fills"),
        ("presence", "Does this image of {organ} show {subject}?", "braces that nothing fills"),
        ("presence", "Does this image show {subject!r}? {subject}", "braces that nothing fills"),
        ("presence", GOOD + " " * 300 + "x", "more than 300 characters"),
        ("presence", WORDS["presence"][0].upper().replace("SUBJECT", "subject"), "known already"),
        ("type/landmark", "Which landmark is in the image?", "it loses 'anatomical'"),
        ("grounding", "Which box holds the {subject}, in pixels?", "it loses '[x1, y1, x2, y2]'"),
        ("contour", "What does the {colour} box hold?", "it loses 'outline'"),
        ("multi", "In which box is the {colour} {mark}?", "whether boxes or outlines are drawn"),
    ],
)
def test_what_asks_something_else_is_no_wording(kind: str, words: str, wrong: str) -> None:
    assert wrong in str(fault(kind, words, WORDS[kind]))


def test_a_reply_is_read_line_by_line_and_its_faults_are_told(tmp_path: Path) -> None:
    asked: list[str] = []
    said = f'1. "{GOOD}"\n\n- Is it there?\n* {GOOD.lower()}'
    found = ask(tmp_path / "p.jsonl", reply(said, asked))
    assert found.wordings == {"presence": (GOOD,)}
    assert [each.rpartition(": ")[2] for each in found.refused] == [
        "it loses '{subject}'",
        "it is known already",
    ]
    assert found.together()["presence"] == (*WORDS["presence"], GOOD)
    assert found.together()["box"] == WORDS["box"]
    assert WORDS["presence"][0] in asked[0]
    assert "Write 2 more" in asked[0]
    assert "{subject}, image" in asked[0]


def test_nothing_is_paid_for_twice_and_other_questions_are(tmp_path: Path) -> None:
    asked: list[str] = []
    journal = tmp_path / "p.jsonl"
    first = ask(journal, reply(GOOD, asked))
    again = ask(journal, reply("another", asked))
    assert (first.wordings, first.cost) == (again.wordings, PRICE / 2)
    assert (again.cost, len(asked)) == (0, 1)
    assert ask(journal, reply(None, asked), count=3).refused == ["presence: no reply: refused"]
    assert ask(journal, reply(GOOD, asked), count=3).wordings == {}  # a refusal was paid for, too
    assert len(asked) == 2
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [row["reply"] for row in rows] == [GOOD, None]
    assert [row["cost"] for row in rows] == [PRICE / 2] * 2
    assert rows[0]["prompt"] == asked[0]


def test_the_cap_holds_over_all_runs(tmp_path: Path) -> None:
    asked: list[str] = []
    journal, kinds = tmp_path / "p.jsonl", ("presence", "box", "contour")
    found = ask(journal, reply("", asked), kinds, max_cost=0.4)
    assert (len(asked), found.left) == (
        2,
        ["contour"],
    )  # .125 + .125 are spent; .25 more may not be
    found = ask(journal, reply("", asked), kinds, max_cost=0.5)
    assert (len(asked), found.left) == (3, [])


def test_a_call_that_was_cut_off_stays_booked_and_is_made_again(tmp_path: Path) -> None:
    def broken(text: str) -> tuple[str | None, str, float]:
        raise ModelError("gone")

    journal = tmp_path / "p.jsonl"
    with pytest.raises(ModelError, match="gone"):
        ask(journal, broken)
    asked: list[str] = []
    assert ask(journal, reply(GOOD, asked), max_cost=0.4).left == ["presence"]
    assert ask(journal, reply(GOOD, asked), max_cost=0.5).wordings == {"presence": (GOOD,)}
    assert json.loads(journal.read_text())["cost"] == PRICE + PRICE / 2


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"model": "a"}\n')
    with pytest.raises(InputError, match=r"p\.jsonl: expected what --paraphrase wrote"):
        ask(tmp_path / "p.jsonl", reply(GOOD, []))
