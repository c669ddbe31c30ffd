"""``avtt label``: pages, files, summaries, one sentence for every mistake, and a phone."""

import json
import re
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from adaptive_vtt.journal import read_journal
from adaptive_vtt.models.local.recorded import read_answers
from adaptive_vtt.people.captions import Item
from adaptive_vtt.people.cards import NONE, Asked, Card, Shown, Task, keep
from adaptive_vtt.people.page import write_page
from adaptive_vtt.people.reading import summarise
from adaptive_vtt.utils.tables import csv_text
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.command_line import plain_start, refused, run, shown
from tests.helpers.endobench_rows import row, write
from tests.helpers.labelled_audit import answers, folder, found, journal, labels, space

__all__ = ["folder", "found", "journal", "space"]  # fixtures

NOTHING = Shown()
NASTY = '</script><b>"cup"</b>'


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of drawn shapes, begun on the command line."""
    folder = tmp_path_factory.mktemp("readers")
    spec = plain_start(folder / "start")
    options = ("--budget", "12", "--targets", "overall", "--half-width", "0.1", "--seed", "1")
    assert run("audit", str(spec), "--out", str(folder / "run"), *options) == 0
    return folder


@pytest.fixture
def audited(begun: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test, whose readers nobody else meets."""
    return Path(copytree(begun, tmp_path / "to read")) / "run"


def content(page: Path) -> Any:
    form = re.search(r'id="form-data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert form is not None
    return json.loads(form[1])


def filled(page: Path, reader: str, file: Path, answer: str = "yes") -> str:
    """The file that the page saves where every question is answered so."""
    cards = content(page)["cards"]
    rows = [(card["id"], one["id"], reader, answer) for card in cards for one in card["asked"]]
    file.write_text(csv_text(answers(rows)))
    return str(file)


def test_labels_are_taken_and_summed_up(folder: Path, found: list[Item]) -> None:
    keep(folder / "labels", labels((found[0], "ann", "2.2")))
    assert "ann.html: 8 cards" in shown("label", str(folder), "--reader", "ann", "--all")
    form = content(folder / "labels" / "ann.html")
    assert [given[2] for given in form["answers"]] == ["2.2"]
    assert [dict(card["facts"])["verdict"] == "no violation" for card in form["cards"]] == (
        [False] * 3 + [True] * 5
    )
    file = folder / "download.csv"
    file.write_text(csv_text(labels((found[0], "ann", "1.1"), (found[4], "bo", NONE))))
    assert "took 2 new of 2 answers by ann, bo" in shown("label", str(folder), "--take", str(file))
    figures = json.loads(shown("label", str(folder), "--summary", "--json"))
    assert (figures["objects"]["tp"], figures["objects"]["fp"]) == (1, 1)
    assert figures["readers"] == {"ann": 1, "bo": 1}
    assert "Fleiss' kappa of errors: –, of 0" in shown("label", str(folder), "--summary")


@pytest.mark.slow
def test_pairs_are_judged_taken_and_summed_up(audited: Path):
    given = ("label", str(audited), "--realism")
    printed = shown(*given, "--reader", "ann", "--sample", "4")
    assert f"'avtt label '{audited}' --realism --take FILE' takes" in printed
    page = audited / "realism" / "ann.html"
    assert [len(card["pictures"]) for card in content(page)["cards"]] == [2] * 4
    assert run(*given, "--take", filled(page, "ann", audited.parent / "saved.csv")) == 0
    summary = json.loads(shown(*given, "--summary", "--json"))
    assert summary["readers"] == {"ann": 4}
    assert sum(cell["realistic"][1] for cell in summary["cells"]) == 4
    assert 'id="realism"' in (audited / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reader_is_compared_with_the_model_on_the_same_draws(audited: Path, tmp_path: Path):
    given = ("label", str(audited), "--questions")
    assert run(*given, "--reader", "bob") == 0
    page = audited / "readers" / "bob.html"
    for name in ("shape-0", "gaussian", "rotation"):
        assert name not in page.read_text(encoding="utf-8")  # names may tell the class
    assert run(*given, "--take", filled(page, "bob", tmp_path / "saved.csv")) == 0
    spec = audited.parent / "start" / "SPEC.toml"
    reader = spec.with_name("reader.toml")
    recorded = 'kind = "recorded"\nanswers = "../run/readers/bob.csv"'
    reader.write_text(spec.read_text().replace('target = "model.py:predict"', recorded))
    same_draws = ("--journal-a", str(audited), "--use", "replay", "--budget", "13", "--json")
    out = ("--targets", "overall", "--at-least", "0", "--out", str(tmp_path / "versus"))
    assert run("versus", str(spec), str(reader), *same_draws, *out) == 0
    with closing(read_journal(tmp_path / "versus" / "journal.db")) as journal:
        losses = [row.loss for call in journal.calls() for row in call.answers]
    assert len(losses) == 24  # 12 questions about two concepts, and none that was not read
    assert run("verify", str(tmp_path / "versus")) == 0


def test_questions_are_reviewed_and_what_was_accepted_is_written(tmp_path: Path):
    table = write(tmp_path / "questions.tsv", [row(k) for k in range(6)])  # right is B
    assert run("label", str(tmp_path), "--reader", "ann") == 0
    form = content(tmp_path / "review" / "ann.html")
    (one,) = form["cards"][0]["asked"]
    assert [choice[0] for choice in one["choices"]] == [*"ABCD", "reject"]
    assert one["suggested"] == "B"
    by_reader = {"ann": ["B", "C", "reject", "A"], "bo": ["B", "C", "reject", "B"]}
    files = []
    for reader, letters in by_reader.items():
        rows = [
            (card["id"], one["id"], reader, letter)
            for card, letter in zip(form["cards"], letters, strict=False)
        ]
        files += ["--take", str(tmp_path / f"{reader} saved.csv")]
        Path(files[-1]).write_text(csv_text(answers(rows)))
    text = shown("label", str(table), *files)
    assert "took 4 new of 4 answers by bo" in text
    assert re.search(r"ann, bo +4 +75.0 %", text)  # three of the four letters
    figures = json.loads(shown("label", str(tmp_path), "--summary", "--json"))
    names = ("accepted", "corrected", "rejected", "left")
    assert [figures[name] for name in names] == [1, 1, 2, 2]  # a tie is no acceptance
    assert figures["kappa"]["verdicts"][1] == 4
    assert figures["pairs"] == [{"readers": "ann, bo", "both answered": 4, "same": 0.75}]
    assert run("label", str(tmp_path), "--out", str(tmp_path / "reviewed")) == 0
    lines = (tmp_path / "reviewed" / "questions.tsv").read_text().splitlines()
    before = table.read_text().splitlines()
    assert lines[:2] == before[:2]  # to the byte
    assert len(lines) == 3
    cells = dict(zip(lines[0].split("\t"), lines[2].split("\t"), strict=True))
    assert (cells["answer"], cells["gt"]) == ("C", cells["C"])
    assert (tmp_path / "reviewed" / "SPEC.toml").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected one of --reader NAME, --take FILE, --summary and, of questions, --out"),
        (["--reader", "a/b"], "--reader: expected a name of up to 60 letters"),
        (["--reader", "ann", "--summary"], "got --reader and --summary"),
        (["--reader", "ann", "--json"], "--json: expected --summary with it"),
        (["--reader", "ann", "--sample", "1", "--all"], "and one of --all and --sample"),
        (["--reader", "ann", "--realism", "--questions"], "one of --realism and --questions"),
        (["--summary", "--sample", "1"], "--sample and --all: expected --reader NAME with them"),
        (["--out", "x"], "--out: expected a folder of build-vqa or a TSV, got"),
        (["--reader", "ann", "--realism", "--sample", "0"], "expected 1 or more pairs, got 0"),
        (["--summary"], "labels: expected answers, got none; --reader NAME writes a page"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, options: list[str], message: str) -> None:
    assert message in refused("label", str(folder), *options)


def test_answers_of_another_audit_keep_all_of_them_out(folder: Path, found: list[Item]) -> None:
    fine, other = folder / "fine.csv", folder / "other.csv"
    fine.write_text(csv_text(labels((found[0], "ann", NONE))))
    theirs = answers([("no card", "cup", "bo", NONE)])
    other.write_text(csv_text(theirs))
    sentence = refused("label", str(folder), "--take", str(fine), "--take", str(other))
    assert "other.csv: expected answers to this page's questions" in sentence
    assert not (folder / "labels").exists()
    keep(folder / "labels", theirs)  # they were there before
    sentence = refused("label", str(folder), "--take", str(fine))
    assert "labels: expected answers to this page's questions" in sentence
    assert not (folder / "labels" / "ann.csv").exists()


# -- the page --------------------------------------------------------------------------------------


def task_of(cards: list[Card], shown: Shown = NOTHING) -> Task:
    return Task("x", "Questions", "", lambda: cards, cards, lambda card: shown, summarise)


def test_the_page_holds_everything_and_gives_nothing_away(tmp_path: Path):
    card = Card("7", 5, 6, ("picture",), (Asked("task", NASTY, {"B": "polyp", "A": "ulcer"}),))
    shown = Shown(("data:image/png;base64,abc",), "a green box")
    stores = set()
    for audit, reader in (([1], "ann"), ([2], "ann"), ([1], "bo")):
        given = answers([("7", "task", reader, "B")])
        write_page(tmp_path / "p.html", task_of([card], shown), [card, card], given, reader, audit)
        stores.add(content(tmp_path / "p.html")["store"])
    assert len(stores) == 3  # what a browser keeps of them is kept apart
    html = (tmp_path / "p.html").read_text()
    assert NASTY not in html
    assert html.count("base64,abc") == 1  # each picture once
    assert not re.search(r'(src|href)="', html)  # nothing is loaded
    form = content(tmp_path / "p.html")
    (one,) = form["cards"][0]["asked"]
    assert (one["text"], one["choices"]) == (NASTY, [["B", "polyp"], ["A", "ulcer"]])
    assert form["answers"] == [["7", "task", "B", "2024-05-31T12:00:00Z"]]
    filled = {name for name, value in form["cards"][0].items() if value}
    assert filled == {"id", "titles", "pictures", "asked", "size", "words"}


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("kind", ["realism", "questions"])
def test_a_page_is_clicked_through_from_a_phone(audited: Path, tmp_path: Path, kind: str):
    """By buttons and by keys in turn; back from the end is one back; what it saves is taken."""
    assert run("label", str(audited), f"--{kind}", "--reader", "eve") == 0
    folder = audited / {"realism": "realism", "questions": "readers"}[kind]
    with Browser(tmp_path / "profile", 390, 844) as browser:

        def press(key: str) -> None:
            event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
            browser.value(f"document.body.dispatchEvent({event})")

        browser.open((folder / "eve.html").resolve().as_uri())
        browser.until("document.querySelectorAll('#pictures img').length > 0")
        assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
        steps = browser.value("form.cards.reduce((sum, card) => sum + card.asked.length, 0)")
        for step in range(steps):
            if step % 2:
                browser.value("document.querySelector('fieldset:not(.idle) .choice').click()")
            else:
                press("n")
        assert browser.value("at('end-title').textContent") == "Everything is answered"
        press("ArrowLeft")
        assert browser.value("place === form.cards.length - 1")
        browser.value("HTMLAnchorElement.prototype.click = function () { saved = this.download; }")
        browser.value("at('save').click()")
        assert browser.value("saved") == "eve.csv"
        (tmp_path / "eve.csv").write_text(browser.value("csv()"))
        assert not browser.complaints
    assert len(read_answers(tmp_path / "eve.csv")) == steps
    assert run("label", str(audited), f"--{kind}", "--take", str(tmp_path / "eve.csv")) == 0
