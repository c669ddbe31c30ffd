"""Labels by people: the figures, the files, both forms, and what they say of an audit."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from adaptive_vtt import QuestionSpace
from adaptive_vtt.captions.rules import ERROR_TYPES
from adaptive_vtt.cli.labelling import label as command
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.labelling import (
    NONE,
    Item,
    Label,
    fleiss_kappa,
    items,
    keep,
    majority,
    read_folder,
    read_labels,
    scores,
    summarise,
    to_label,
)
from adaptive_vtt.labelling.labels import COLUMNS, read_own, to_csv
from adaptive_vtt.labelling.page import write_page
from adaptive_vtt.labelling.pictures import Pictures
from adaptive_vtt.labelling.session import Session
from adaptive_vtt.labelling.terminal import run
from adaptive_vtt.pictures import png
from adaptive_vtt.rows import AnswerRow, CallRow, DrawRow
from adaptive_vtt.settings import describe_space
from adaptive_vtt.testing import tiny_dataset

GOLDEN = Path(__file__).parent / "golden"
NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)
NASTY = '</script><b>"cup", 1\'</b>'


def entry(name: str, rule: int | None = None, type: str | None = None, **over: Any) -> Any:
    """One object as the oracle journals it."""
    return {
        "name": name, "boxes": [[2, 3, 9, 8]], "visible": 0.97, "status": "retained",
        "said": rule is None, "rule": rule, "type": type, **over,
    }  # fmt: skip


def details(*objects: Any, **over: Any) -> dict[str, Any]:
    return {
        "source": "a dog on a table", "caption": "a table", "reduction": "crop 0,0,10,10",
        "size": [16, 16], "boxes": [["dog", 2, 3, 9, 8]], "objects": list(objects), **over,
    }  # fmt: skip


CASES = [
    details(entry("dog", 1, "2.2"), entry("table")),
    details(entry("dog"), entry("table", visible=0.5, status="ambiguous")),
    details(entry("dog", 2, "3"), entry("table", 1, None)),
    details(entry("dog"), entry("table", visible=None, status="unlocated", boxes=[])),
]


@pytest.fixture
def space() -> QuestionSpace:
    """4 images, as many as CASES, 1 concept, 5 follow-ups each."""
    return QuestionSpace(tiny_dataset(4, 1), ["brightness_up"])


def fill(journal: Journal, space: QuestionSpace, cases: list[Any] = CASES) -> Journal:
    """An audit of the first follow-up of each image; ``cases`` are the answers' details."""
    settings = {"seed": 3, "strategy": "random", "model": "test"}
    journal.set_facts(space=describe_space(space), settings=settings)
    step = len(space.variants)
    rows = [
        DrawRow(k, k * step, k * step, f"s{k}", k, 0.1, b"", {}, 0.0) for k in range(len(cases))
    ]
    journal.add_draws(rows)
    thumbnail = png(np.full((6, 8, 3), 7, np.uint8))
    for row, case in zip(rows, cases, strict=True):
        answer = AnswerRow(row.question, row.call, 1, 1.0, None, 0.5, None, "a table", case)
        pictures = (thumbnail, thumbnail) if row.draw == 0 else None
        journal.add_calls([CallRow(row.call, 1.0, 0.0, (answer,), pictures)])
    return journal


@pytest.fixture
def journal(space: QuestionSpace) -> Journal:
    return fill(MemoryJournal(), space)


@pytest.fixture
def found(journal: Journal) -> list[Item]:
    return items(journal)


@pytest.fixture
def folder(tmp_path: Path, space: QuestionSpace) -> Path:
    """An audit's folder with a journal."""
    journal = fill(SQLiteJournal(tmp_path / "journal.db"), space)
    journal.close()
    return tmp_path


def said(item: Item, inspector: str, type: str, minutes: int = 0) -> Label:
    return Label(item.question, item.object, inspector, type, NOON + timedelta(minutes=minutes))


def all_say(found: list[Item], types: dict[str, list[str]]) -> dict[str, dict[Any, Label]]:
    """Inspector -> labels, of the types each gives to the items in order ("" for none)."""
    return {
        name: {i.key: said(i, name, t) for i, t in zip(found, given_types, strict=True) if t}
        for name, given_types in types.items()
    }


# -- agreement ----------------------------------------------------------------------------

WORKED = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
"""10 subjects, 14 raters, 5 categories: the example most often worked through; .210."""
FLEISS = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 "
    "00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)
"""Fleiss (1971), Table 1: 30 patients, 6 psychiatrists, 5 diagnoses, one digit each; .430."""


def test_kappa_of_two_published_tables() -> None:
    assert fleiss_kappa(WORKED) == pytest.approx(0.210, abs=0.0005)
    table = [[int(digit) for digit in row] for row in FLEISS.split()]
    assert fleiss_kappa(table) == pytest.approx(0.430, abs=0.0005)


def test_kappa_of_full_agreement_is_1_and_of_none_between_two_is_minus_1() -> None:
    assert fleiss_kappa([[3, 0], [0, 3], [3, 0]]) == 1
    assert fleiss_kappa([[1, 1], [1, 1]]) == -1


@pytest.mark.parametrize(
    "counts", [np.empty((0, 2)), [[1, 0], [0, 1]], [[3, 0], [3, 0]], [[2], [2]]]
)
def test_kappa_is_undefined_without_subjects_raters_or_choice(counts: Any) -> None:
    assert fleiss_kappa(counts) is None


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[2, 0], [2, 1]], "as many raters for every subject, got 2 to 3"),
        ([1, 2], r"an array of shape \(2,\)"),
        ([[1.5, 0.5]], "expected counts of subjects x categories"),
        ([[3, -1]], "expected counts of subjects x categories"),
    ],
)
def test_kappa_wants_counts(counts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fleiss_kappa(counts)


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=8))
def test_kappa_depends_on_no_order_and_is_at_most_1(ratings: list[list[int]]) -> None:
    table = np.array([np.bincount(row, minlength=4) for row in ratings])
    kappa = fleiss_kappa(table)
    turned = fleiss_kappa(table[::-1, ::-1])
    if kappa is None or turned is None:
        assert kappa is turned
    else:
        assert turned == pytest.approx(kappa)
        assert kappa <= 1 + 1e-12


def test_scores_are_those_of_all_60_rows_of_table_1() -> None:
    table = pd.read_csv(GOLDEN / "reic_table1.csv")
    assert len(table) == 60
    for row in table.to_dict("records"):
        got = scores(row["tp"], row["fp"], row["fn"], row["tn"])
        for name in ("accuracy", "precision", "recall", "f1"):
            assert 100 * getattr(got, name) == pytest.approx(row[name], abs=0.0501), row


def test_scores_of_nothing_are_none() -> None:
    assert vars(scores(0, 0, 0, 0)) == dict.fromkeys(("accuracy", "precision", "recall", "f1"))
    missed = scores(0, 0, 3, 1)
    assert (missed.precision, missed.recall, missed.f1) == (None, 0, 0)
    unknown = scores(3, 1, np.nan, np.nan)
    assert (unknown.precision, unknown.recall, unknown.f1) == (0.75, None, None)


@pytest.mark.parametrize(
    ("choices", "most"),
    [("aab", "a"), ("ab", None), ("", None), ("abbcb", "b"), ("aabbc", None), ("a", "a")],
)
def test_majority_is_the_most_frequent_and_ties_are_undecided(choices: str, most: Any) -> None:
    assert majority(choices) == most


# -- files --------------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=9)
labels = st.builds(
    Label, st.integers(0, 10**12), names, st.just("ann"), st.sampled_from([*ERROR_TYPES, NONE]),
    st.integers(0, 10**9).map(lambda ms: NOON + timedelta(milliseconds=ms)),
)  # fmt: skip


@given(st.lists(labels, max_size=5))
def test_labels_read_back_as_they_were_written(given_labels: list[Label]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "ann.csv"
        path.write_text(to_csv(given_labels), encoding="utf-8", newline="")
        assert read_labels(path) == given_labels


def test_a_new_label_replaces_the_old_and_leaves_those_of_others(
    tmp_path: Path, found: list[Item]
) -> None:
    first, second = found[:2]
    keep(tmp_path, [said(first, "ann", "2.2"), said(second, "ann", NONE), said(first, "bo", "3")])
    keep(tmp_path, [said(first, "ann", "1.2", minutes=-9)])
    kept = read_folder(tmp_path)
    assert {name: [own[i.key].type for i in found[:2] if i.key in own] for name, own in
            kept.items()} == {"ann": ["1.2", NONE], "bo": ["3"]}  # fmt: skip


def test_a_crash_while_writing_loses_no_label(
    tmp_path: Path, found: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, [said(found[0], "ann", "2.2")])
    before = (tmp_path / "ann.csv").read_bytes()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path, [said(found[1], "ann", "3")])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


GOOD = "3,dog,ann,yes,2.2,2024-05-31T12:00:00Z"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("3,dog,ann,yes,2.2", r"row 3: expected 6 fields, got 5"),
        ("x,dog,ann,yes,2.2,T", r"row 3: question: expected its number, got 'x'"),
        ("3,,ann,yes,2.2,T", r"row 3: object: expected its name, got nothing"),
        ("3,cat,../ann,yes,2.2,T", r"row 3: inspector: expected a name"),
        ("3,cat,ann,maybe,2.2,T", r"row 3: error: expected yes or no, got 'maybe'"),
        ("3,cat,ann,yes,2.3,T", r"row 3: type: expected 1.1 or .* where error is yes, got '2.3'"),
        ("3,cat,ann,yes,none,T", r"row 3: type: expected .* where error is yes, got 'none'"),
        ("3,cat,ann,no,3,T", r"row 3: type: expected none where error is no, got '3'"),
        ("3,cat,ann,no,none,noon", r"row 3: time: expected one as .*, got 'noon'"),
        ("3,cat,ann,no,none,2024-05-31T12:00", r"row 3: time: .* with its zone"),
        (GOOD, r"row 3: object: 'dog' of question 3 stands there twice"),
        (GOOD.replace("ann", "bo"), r"row 3: inspector: expected 'ann', as the file is called"),
    ],
)
def test_bad_rows_are_named_by_file_row_and_field(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "ann.csv").write_text(f"{','.join(COLUMNS)}\n{GOOD}\n{row}\n")
    with pytest.raises(InputError, match=r"ann\.csv, " + message):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"row 1: expected question,object,.*, got an empty file"),
        (b"a,b\n", r"row 1: expected question,object,.*, got a,b"),
        (b"\xff\xfe", r"expected a CSV file in UTF-8"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_labels(tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["", "../ann", ".ann", "a/b", "ann ", "a" * 61, "ann\n"])
def test_inspectors_are_called_what_a_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--inspector: expected a name"):
        read_own(tmp_path, name)


# -- what there is to label ---------------------------------------------------------------


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


def plain_item(question: int, name: str, reported: bool) -> Item:
    rule = 1 if reported else None
    return Item(question, 0, "", "", "", "", "", name, (1, 1), (), None, "", True, rule, None)


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


# -- the forms ----------------------------------------------------------------------------


def clock() -> Iterator[datetime]:
    minute = 0
    while True:
        minute += 1
        yield NOON + timedelta(minutes=minute)


def begin(folder: Path, queue: list[Item]) -> Session:
    times = clock()
    mine = read_own(folder, "ann")
    return Session(queue, "ann", mine, lambda given: keep(folder, [given]), lambda: next(times))


def press(session: Session, journal: Journal, keys: str) -> str:
    """Presses keys on the terminal form; what was shown."""
    shown = Console(file=io.StringIO(), width=100)
    waiting = iter(keys)

    def key() -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None  # as where the terminal is closed

    run(session, Pictures(journal), key, shown)
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def types_of(folder: Path, queue: list[Item]) -> list[str]:
    mine = read_own(folder, "ann")
    return [mine[item.key].type if item.key in mine else "" for item in queue]


def test_keys_confirm_correct_skip_go_back_and_quit(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    queue = found[:5]  # pre-labels: 2.2, none, none, none, 3
    text = press(begin(tmp_path, queue), journal, "\r1s?0bb4q")
    # Enter, 1.1, skip, nonsense, none; back twice to the skipped one, which is 2.2
    assert types_of(tmp_path, queue) == ["2.2", "1.1", "2.2", NONE, ""]
    assert "no such answer here" in text
    assert "4 of 5 labelled; the same command goes on" in text
    text = press(begin(tmp_path, queue), journal, "5")  # goes on where it stopped
    assert types_of(tmp_path, queue) == ["2.2", "1.1", "2.2", NONE, "3"]
    assert "5 of 5 labelled; nothing is left" in text


def test_going_back_shows_what_was_said_and_takes_another_answer(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    text = press(begin(tmp_path, found[:2]), journal, "1b0")
    assert "you said" in text
    assert types_of(tmp_path, found[:2]) == [NONE, ""]


def test_a_violation_without_pre_label_cannot_be_confirmed(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    queue = [found[5]]
    text = press(begin(tmp_path, queue), journal, "\rq")
    assert types_of(tmp_path, queue) == [""]
    assert "[Enter]" not in text


def test_the_terminal_shows_captions_rule_visibility_and_where_pictures_are(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    text = press(begin(tmp_path, found[:1]), journal, "q")
    for part in (
        "a dog on a table",
        "97 % (retained), not named",
        "breaks rule 1",
        "2.2",
        "source.png",
        "of s0",
    ):
        assert part in text


class Reader(HTMLParser):
    """Collects a page's form data and every address outside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.data = ""
        self.addresses: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = dict(attrs).get("id") == "form-data"
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.data += data if self._inside else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def page(path: Path) -> tuple[dict[str, Any], list[str]]:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return json.loads(reader.data), reader.addresses


def test_the_page_holds_everything_and_no_caption_breaks_out(
    tmp_path: Path, space: QuestionSpace
) -> None:
    case = details(entry(NASTY, 1, "2.2"), source=f"a {NASTY}")
    journal = fill(MemoryJournal(), space, [case, *CASES[1:]])
    queue = items(journal)
    mine = {queue[1].key: said(queue[1], "ann", "1.1")}
    write_page(tmp_path / "a.html", queue, "ann", mine, Pictures(journal, space), ["audit"])
    data, addresses = page(tmp_path / "a.html")
    assert addresses == []  # nothing is loaded
    assert (data["items"][0]["object"], data["items"][0]["source"]) == (NASTY, f"a {NASTY}")
    assert [choice[0] for choice in data["choices"]] == [NONE, *ERROR_TYPES]
    assert data["labels"] == [[*queue[1].key, "1.1", NOON.isoformat()]]
    assert len(data["pictures"]) == 8  # source and follow-up of four images, each once
    for shown in data["items"]:
        for name in shown["pictures"]:
            assert data["pictures"][name].startswith("data:image/jpeg;base64,")


def test_answers_in_the_browser_are_kept_apart_by_audit_and_inspector(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    stores = set()
    for audit, who in (([1], "ann"), ([2], "ann"), ([1], "bo")):
        write_page(tmp_path / "a.html", found, who, {}, Pictures(journal), audit)
        stores.add(page(tmp_path / "a.html")[0]["store"])
    assert len(stores) == 3


# -- pictures -----------------------------------------------------------------------------


def test_pictures_are_made_from_the_data_and_else_come_from_the_journal(
    space: QuestionSpace, journal: Journal, found: list[Item]
) -> None:
    made = Pictures(journal, space).of(found[-1])
    assert made is not None
    assert [p.ending for p in made] == ["jpeg"] * 2
    kept = Pictures(journal).of(found[0])
    assert kept is not None
    assert [p.ending for p in kept] == ["png"] * 2
    assert Pictures(journal).of(found[-1]) is None


def test_pictures_of_another_space_are_refused(journal: Journal) -> None:
    other = QuestionSpace(tiny_dataset(5, 1), ["brightness_up"])
    with pytest.raises(JournalError, match="belongs to another space"):
        Pictures(journal, other)


# -- figures ------------------------------------------------------------------------------

# CASES in order: reported are (0, dog), (2, dog), (2, table); the other five are not.


def test_figures_where_one_inspector_labelled_everything(found: list[Item]) -> None:
    truth = ["2.2", NONE, NONE, "2.1", NONE, "1.2", NONE, NONE]
    figures = summarise(found, all_say(found, {"ann": truth}))
    objects, cases = figures.objects, figures.cases
    assert (objects.tp, objects.fp, objects.fn, objects.tn) == (2, 1, 1, 4)
    assert objects.scores == scores(2, 1, 1, 4)
    # follow-ups 0 and 2 are reported, and right; 1 hides an error, 3 does not
    assert (cases.tp, cases.fp, cases.fn, cases.tn) == (2, 0, 1, 1)
    assert cases.scores == scores(2, 0, 1, 1)
    assert figures.types == {"1.1": 0, "1.2": 1, "2.1": 0, "2.2": 1, "3": 0, "unknown": 0}
    assert {k: {t: n for t, n in row.items() if n} for k, row in figures.confusion.items()} == {
        "2.2": {"2.2": 1}, "3": {NONE: 1}, "unknown": {"1.2": 1},
    }  # fmt: skip
    assert figures.notes == ["no kappa: it takes the labels of two inspectors or more"]
    assert figures.errors.kappa is None


def test_without_labels_of_the_rest_there_is_precision_only(found: list[Item]) -> None:
    some = ["2.2", "", "", "", NONE, "1.2", "", ""]
    figures = summarise(found, all_say(found, {"ann": some}))
    assert figures.objects.scores.precision == pytest.approx(2 / 3)
    assert (figures.objects.scores.recall, figures.objects.scores.f1) == (None, None)
    assert figures.cases.scores.precision == 1
    assert any("no accuracy, recall and F1 until" in note for note in figures.notes)


def test_a_labelled_part_stands_for_the_rest(found: list[Item]) -> None:
    # follow-up 1 of the two without violation: one error in two objects
    some = ["2.2", "", NONE, "2.1", NONE, "1.2", "", ""]
    objects = summarise(found, all_say(found, {"ann": some})).objects
    assert (objects.fn, objects.tn, objects.others) == (1, 1, 5)
    assert objects.scores == scores(2, 1, 2.5, 2.5)


def test_estimates_from_samples_are_right_on_average(found: list[Item]) -> None:
    rng = np.random.default_rng(0)
    many = [plain_item(q, name, q % 4 == 0) for q in range(200) for name in "ab"]
    truth = {item.key: item.reported != (rng.random() < 0.2) for item in many}
    exact = scores(*_counts(many, truth)).recall
    estimates = []
    for seed in range(40):
        labels_ = {i.key: said(i, "x", "2.2" if truth[i.key] else NONE) for i in
                   to_label(many, 60, seed)}  # fmt: skip
        estimates.append(summarise(many, {"x": labels_}).objects.scores.recall)
    # one deviates by .045, the mean of 40 by .007: off by .03 once in 50,000 seeds
    assert np.mean(estimates) == pytest.approx(exact, abs=0.03)


def _counts(many: list[Item], truth: dict[Any, bool]) -> tuple[int, int, int, int]:
    pairs = [(item.reported, truth[item.key]) for item in many]
    true_positive, false_positive = pairs.count((True, True)), pairs.count((True, False))
    return true_positive, false_positive, pairs.count((False, True)), pairs.count((False, False))


def test_three_inspectors_are_outvoted_undecided_and_agree_as_fleiss_says(
    found: list[Item],
) -> None:
    told = {
        "ann": ["2.2", NONE, NONE, NONE, "3", "1.2", NONE, NONE],
        "bo": ["2.2", NONE, NONE, NONE, "3", "1.2", NONE, NONE],
        "cy": ["2.1", NONE, NONE, NONE, NONE, "1.2", NONE, ""],
    }
    figures = summarise(found, all_say(found, told))
    assert figures.labelled == {"ann": 8, "bo": 8, "cy": 7}
    assert (figures.objects.tp, figures.objects.fp, figures.objects.tn) == (3, 0, 5)
    assert figures.types["2.2"] == figures.types["3"] == figures.types["1.2"] == 1
    # seven objects have three labels each; no / yes
    errors = [[0, 3], [3, 0], [3, 0], [3, 0], [1, 2], [0, 3], [3, 0]]
    assert figures.errors.count == 7
    assert figures.errors.kappa == pytest.approx(fleiss_kappa(errors))
    # two of them all call an error: 1.2, 2.1, 2.2
    assert figures.kinds.count == 2
    assert figures.kinds.kappa == pytest.approx(fleiss_kappa([[0, 1, 2], [3, 0, 0]]))


def test_ties_are_undecided_and_count_for_neither_side(found: list[Item]) -> None:
    told = {"ann": ["2.2"] + [""] * 7, "bo": [NONE] + [""] * 7}
    figures = summarise(found, all_say(found, told))
    assert (figures.objects.undecided, figures.objects.tp, figures.objects.fp) == (1, 0, 0)
    assert figures.objects.scores.precision is None
    types = {"ann": ["2.2"] + [""] * 7, "bo": ["1.2"] + [""] * 7}
    assert summarise(found, all_say(found, types)).types["unknown"] == 1


# -- the command --------------------------------------------------------------------------


def test_a_downloaded_file_is_taken_and_summed_up(
    folder: Path, found: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "download.csv"
    file.write_text(to_csv([said(found[0], "ann", "2.2"), said(found[4], "ann", NONE)]))
    command(folder, take=file)
    assert "took 2 new of 2 labels by ann" in capsys.readouterr().out
    older = said(found[0], "ann", "1.1", minutes=-5)
    file.write_text(to_csv([older, said(found[4], "ann", "3", minutes=5)]))
    command(folder, take=file)
    assert "took 1 new of 2" in capsys.readouterr().out
    command(folder, summary=True, as_json=True)
    figures = json.loads(capsys.readouterr().out)
    assert (figures["objects"]["tp"], figures["labelled"]) == (2, {"ann": 2})
    assert figures["objects"]["scores"]["recall"] is None
    command(folder, summary=True)
    text = capsys.readouterr().out
    assert "100.0 %" in text
    assert "note: no kappa" in text


def test_labels_of_another_audit_are_refused(folder: Path, found: list[Item]) -> None:
    stranger = Label(3, "zebra", "ann", "3", NOON)
    (folder / "x.csv").write_text(to_csv([stranger]))
    with pytest.raises(InputError, match=r"x\.csv: question 3 .* has no object 'zebra'"):
        command(folder, take=folder / "x.csv")
    assert not (folder / "labels").exists()
    keep(folder / "labels", [stranger])
    with pytest.raises(InputError, match=r"ann\.csv: question 3 .* has no object 'zebra'"):
        command(folder, summary=True)


def test_the_page_is_written_beside_the_labels(
    folder: Path, found: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder / "labels", [said(found[0], "ann", "2.2")])
    command(folder, inspector="ann", html=True, everything=True)
    told = capsys.readouterr()
    assert "ann.html: 8 objects" in told.out
    assert "only the journal's small pictures: the audit was not begun by" in told.err
    data, _ = page(folder / "labels" / "ann.html")
    assert [row[2] for row in data["labels"]] == ["2.2"]
    assert [row["reported"] for row in data["items"]] == [True] * 3 + [False] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--inspector: expected the name of whoever labels"),
        ({"inspector": "a/b"}, "--inspector: expected a name"),
        ({"html": True, "summary": True}, "one of --html, --take and --summary, got several"),
        ({"inspector": "ann", "as_json": True}, "--json: goes with --summary"),
        ({"inspector": "ann", "sample": 1, "everything": True}, "--sample or --all, got both"),
        ({"inspector": "ann", "summary": True}, "expected no --inspector, --sample or --all"),
        ({"inspector": "ann"}, "expected a terminal to label on, got none"),
        ({"inspector": "ann", "sample": -2}, "expected 0 or more follow-ups, got -2"),
    ],
)
def test_mistakes_are_one_sentence(
    folder: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(InputError, match=re.escape(message)):
        command(folder, **options)


def test_nothing_to_label(tmp_path: Path, space: QuestionSpace) -> None:
    fill(SQLiteJournal(tmp_path / "journal.db"), space, [CASES[1]]).close()
    with pytest.raises(InputError, match="nothing to label: no violation was found"):
        command(tmp_path, inspector="ann")
    with pytest.raises(JournalError, match="does not exist"):
        command(tmp_path / "none", summary=True)


def test_written_files_are_plain_csv(tmp_path: Path, found: list[Item]) -> None:
    keep(tmp_path, [said(found[0], "ann", "2.2")])
    rows = list(csv.DictReader((tmp_path / "ann.csv").open(encoding="utf-8")))
    assert rows == [
        {"question": "0", "object": "dog", "inspector": "ann", "error": "yes", "type": "2.2",
         "time": "2024-05-31T12:00:00.000+00:00"}
    ]  # fmt: skip
