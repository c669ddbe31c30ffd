"""Both forms to label on, the terminal's and the browser's, and the pictures they show."""

import io
import json
from datetime import timedelta
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from adaptive_vtt import QuestionSpace
from adaptive_vtt.cli.label import Wanted
from adaptive_vtt.cli.label import label_run as label
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.people.answers import Answers, keep, read_own
from adaptive_vtt.people.captions import Item, card_of, items
from adaptive_vtt.people.cards import NONE, Pictures
from adaptive_vtt.people.sessions import Session, run, write_page
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.labelled_audit import (
    CASES,
    NOON,
    details,
    entry,
    fill,
    folder,
    found,
    journal,
    said,
    space,
)

__all__ = ["folder", "found", "journal", "space"]  # fixtures

NASTY = '</script><b>"cup", 1\'</b>'


# -- on the terminal ----------------------------------------------------------------------


def session(queue: list[Item], mine: Answers, reader: str = "ann") -> Session:
    return Session([card_of(item) for item in queue], reader, mine, "Labels", "", "")


def press(folder: Path, queue: list[Item], journal: Journal, keys: str) -> str:
    """Presses keys on the terminal form; what was shown."""
    shown = Console(file=io.StringIO(), width=100)
    waiting, minutes = iter(keys), count(1)

    def key() -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None  # as where the terminal is closed

    run(
        session(queue, read_own(folder, "ann")),
        lambda card: Pictures(journal).of(card) or (),
        lambda given: keep(folder, [given]),
        key,
        shown,
        input,
        lambda: NOON + timedelta(minutes=next(minutes)),
    )
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def types_of(folder: Path, queue: list[Item]) -> list[str]:
    mine = read_own(folder, "ann")
    return [mine[item.key].answer if item.key in mine else "" for item in queue]


def test_keys_confirm_correct_skip_go_back_and_quit(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    queue = found[:5]  # pre-labels: 2.2, none, none, none, 3
    text = press(tmp_path, queue, journal, "\r1s?0bb4q")
    # Enter, 1.1, skip, nonsense, none; back twice to the skipped one, which is 2.2
    assert types_of(tmp_path, queue) == ["2.2", "1.1", "2.2", NONE, ""]
    assert "no such answer here" in text
    assert "4 of 5 answered; the same command goes on" in text
    text = press(tmp_path, queue, journal, "5")  # goes on where it stopped
    assert types_of(tmp_path, queue) == ["2.2", "1.1", "2.2", NONE, "3"]
    assert "5 of 5 answered; nothing is left" in text


def test_going_back_shows_what_was_said_and_takes_another_answer(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    text = press(tmp_path, found[:2], journal, "1b0")
    assert "you said" in text
    assert types_of(tmp_path, found[:2]) == [NONE, ""]


def test_a_violation_without_pre_label_cannot_be_confirmed(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    queue = [found[5]]
    text = press(tmp_path, queue, journal, "\rq")
    assert types_of(tmp_path, queue) == [""]
    assert "Enter" not in text


def test_the_terminal_shows_captions_rule_visibility_and_where_pictures_are(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    text = press(tmp_path, found[:1], journal, "q")
    for part in (
        "a dog on a table",
        "97 % (retained), not named",
        "breaks rule 1",
        "2.2",
        "first.png",
        "source s0",
    ):
        assert part in text


# -- in the browser -----------------------------------------------------------------------


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
    shown = Pictures(journal, space)
    write_page(tmp_path / "a.html", session(queue, mine), lambda c: shown.of(c) or (), ["audit"])
    data, addresses = page(tmp_path / "a.html")
    assert addresses == []  # nothing is loaded
    card = data["cards"][0]
    assert (card["mark"], card["captions"][0]) == (NASTY, f"a {NASTY}")
    assert [choice[0] for choice in card["asked"][0]["choices"]] == [NONE, *ERROR_TYPES]
    assert card["boxes"] == [[2, 3, 9, 8]]
    assert data["answers"] == [[*queue[1].key, "1.1", NOON.isoformat()]]
    assert len(data["pictures"]) == 8  # source and follow-up of four images, each once
    for card in data["cards"]:
        for name in card["pictures"]:
            assert data["pictures"][name].startswith("data:image/jpeg;base64,")


def test_answers_in_the_browser_are_kept_apart_by_audit_and_inspector(
    tmp_path: Path, journal: Journal, found: list[Item]
) -> None:
    stores = set()
    for audit, who in (([1], "ann"), ([2], "ann"), ([1], "bo")):
        write_page(tmp_path / "a.html", session(found, {}, who), lambda card: (), audit)
        stores.add(page(tmp_path / "a.html")[0]["store"])
    assert len(stores) == 3


def test_the_page_is_written_beside_the_labels(
    folder: Path, found: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder / "labels", [said(found[0], "ann", "2.2")])
    label(folder, Wanted("ann", html=True, everything=True))
    told = capsys.readouterr()
    assert "ann.html: 8 cards" in told.out
    assert "only the journal's small pictures: journal: was not begun by 'avtt audit'" in told.err
    data, _ = page(folder / "labels" / "ann.html")
    assert [row[2] for row in data["answers"]] == ["2.2"]
    verdicts = [dict(card["told"])["verdict"] for card in data["cards"]]
    assert [text == "no violation" for text in verdicts] == [False] * 3 + [True] * 5


@pytest.mark.slow
@needs_chromium
def test_the_page_is_clicked_through_from_a_phone(folder: Path, tmp_path: Path) -> None:
    """By buttons and by keys in turn; back from the end is one back; what it saves is taken."""
    label(folder, Wanted("ann", html=True, everything=True))
    with Browser(tmp_path / "profile", 390, 844) as browser:

        def press(key: str) -> None:
            event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
            browser.value(f"document.body.dispatchEvent({event})")

        browser.open((folder / "labels" / "ann.html").resolve().as_uri())
        browser.until("document.querySelectorAll('.choice').length === 6")
        assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
        for k in range(8):
            browser.value("document.querySelector('.choice').click()") if k % 2 else press("4")
        assert browser.value("document.getElementById('end-title').textContent") == (
            "Everything is answered"
        )
        press("ArrowLeft")
        assert browser.value("place") == 7
        (tmp_path / "ann.csv").write_text(browser.value("csv()"))
        assert not browser.complaints
    label(folder, Wanted(take=tmp_path / "ann.csv"))
    kept = read_own(folder / "labels", "ann")
    assert [given.answer for given in kept.values()] == ["2.2", NONE] * 4


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
