"""``avtt label --realism`` and ``--questions``: forms, files, summaries, and every mistake."""

import io
import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from rich.console import Console

from adaptive_vtt import QuestionSpace
from adaptive_vtt.cli.label import Wanted
from adaptive_vtt.cli.label import label_run as label
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.people import realism
from adaptive_vtt.people.answers import MAX_WORDS, Given, keep, later, read_own, to_csv
from adaptive_vtt.people.cards import Asked, Card, yes_or_no
from adaptive_vtt.people.sessions import Session, keys, write_page
from adaptive_vtt.people.sessions import run as run_on_terminal
from adaptive_vtt.results.report.beside_journal import Cell, Realism
from adaptive_vtt.results.report.people import realism_rows
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.command_line import run

NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of drawn shapes, begun on the command line."""
    folder = tmp_path_factory.mktemp("readers")
    assert run("init", str(folder / "start")) == 0
    spec = folder / "start" / "SPEC.toml"
    text = spec.read_text(encoding="utf-8")
    assert "[certify]\n" in text
    spec.write_text(text.replace("[certify]\n", "[certify]\nsurrogate = false\n"))
    options = ("--budget", "12", "--targets", "overall", "--half-width", "0.1", "--seed", "1")
    assert run("audit", str(spec), "--out", str(folder / "run"), *options) == 0
    return folder


@pytest.fixture
def audited(begun: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test, whose readers nobody else meets."""
    return Path(copytree(begun, tmp_path / "to read")) / "run"


def content(page: Path) -> Any:
    found = re.search(r'id="form-data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return json.loads(found[1])


def filled(form: Any, reader: str, answer: str = "yes") -> str:
    """The file that the form saves where every question is answered so."""
    return to_csv(
        Given(card["number"], one["id"], reader, answer, NOON)
        for card in form["cards"]
        for one in card["asked"]
    )


@pytest.mark.slow
def test_pairs_are_judged_taken_and_told(audited: Path, capsys: pytest.CaptureFixture[str]):
    folder = str(audited)
    assert run("label", folder, "--realism", "--reader", "ann", "--sample", "4", "--html") == 0
    form = content(audited / "realism" / "ann.html")
    assert f"'avtt label '{folder}' --realism --take FILE' takes" in capsys.readouterr().out
    assert len(form["cards"]) == 4
    assert {len(card["pictures"]) for card in form["cards"]} == {2}
    file = audited.parent / "saved.csv"
    file.write_text(filled(form, "ann"))
    capsys.readouterr()
    assert run("label", folder, "--realism", "--take", str(file)) == 0
    assert "took 8 new of 8 answers by ann" in capsys.readouterr().out
    assert run("label", folder, "--realism", "--summary", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["readers"] == {"ann": 4}
    assert sum(cell["realistic"][1] for cell in told["cells"]) == 4
    assert run("label", folder, "--realism", "--summary") == 0
    told = capsys.readouterr().out
    assert "judged pairs: ann (4)" in told
    assert "'I cannot tell', and a tie, do not count as yes" in told
    assert "kappa" not in told  # it takes two
    assert 'id="realism"' in (audited / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_questions_are_answered_certified_and_compared(
    audited: Path, capsys: pytest.CaptureFixture[str]
):
    folder = str(audited)
    assert run("label", folder, "--questions", "--inspector", "bob", "--html") == 0
    page = audited / "readers" / "bob.html"
    form = content(page)
    with closing(read_journal(audited / "journal.db")) as journal:
        draws = journal.draws(proposals=False)
    assert [card["number"] for card in form["cards"]] == [draw.call for draw in draws]
    for draw in draws:
        assert draw.sample not in page.read_text(encoding="utf-8")  # names may tell the class
    file = audited.parent / "saved.csv"
    file.write_text(filled(form, "bob"))
    assert run("label", folder, "--questions", "--take", str(file)) == 0
    capsys.readouterr()
    assert run("label", folder, "--questions", "--summary") == 0
    told = capsys.readouterr().out
    assert "bob: 12 answered, 12 count" in told
    assert "overall error" in told
    assert run("verify", str(audited / "readers" / "bob")) == 0
    assert run("verify", str(audited / "readers" / "bob" / "versus")) == 0
    assert "People beside the model" in (audited / "report.html").read_text(encoding="utf-8")
    assert (audited / "readers" / "bob" / "report.html").is_file()


@pytest.mark.slow
def test_a_narrow_terminal_cuts_no_name_of_a_target(
    audited: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run("label", str(audited), "--questions", "--reader", "ida", "--html") == 0
    file = audited.parent / "ida.csv"
    file.write_text(filled(content(audited / "readers" / "ida.html"), "ida"))
    assert run("label", str(audited), "--questions", "--take", str(file)) == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "40")
    assert run("label", str(audited), "--questions", "--summary") == 0
    assert "…" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["--realism", "--questions"])
def test_answers_are_taken_without_making_a_picture(
    audited: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run("label", str(audited), kind, "--reader", "fay", "--html") == 0
    folder = "realism" if kind == "--realism" else "readers"
    file = audited.parent / "fay.csv"
    file.write_text(filled(content(audited / folder / "fay.html"), "fay"))
    for owner, name in ((QuestionSpace, "pair"), (TableDataset, "sample")):
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("a picture was made"))
    assert run("label", str(audited), kind, "--take", str(file)) == 0
    assert "answers by fay" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "kinds", "message"),
    [
        ({}, "rq", "expected --realism or --questions, got both"),
        ({"everything": True}, "q", "--all: goes with --realism"),
        ({}, "r", "--reader: expected the name of whoever reads, got nothing"),
        ({}, "q", "--reader: expected the name of whoever reads, got nothing"),
        ({"reader": "a/b", "html": True}, "r", "expected a name of up to 60 letters"),
        ({"reader": "ann", "sample": 0, "html": True}, "r", "expected 1 or more pairs, got 0"),
        ({"reader": "ann", "sample": 0, "html": True}, "q", "expected 1 or more questions, got 0"),
        ({"reader": "ann", "as_json": True}, "r", "--json: goes with --summary"),
        ({"reader": "ann"}, "r", "expected a terminal to label on, got none"),
    ],
)
def test_mistakes_are_one_sentence(
    audited: Path,
    options: dict[str, Any],
    kinds: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(InputError, match=re.escape(message)):
        label(audited, Wanted(**options), realism="r" in kinds, questions="q" in kinds)


def test_nobody_has_answered_yet(audited: Path, tmp_path: Path):
    (tmp_path / "journal.db").write_bytes((audited / "journal.db").read_bytes())
    for kind in ("realism", "questions"):
        with pytest.raises(InputError, match="expected answers of readers, got none; --html"):
            label(
                tmp_path,
                Wanted(summary=True),
                realism=kind == "realism",
                questions=kind == "questions",
            )


def test_pairs_are_of_what_was_asked(audited: Path):
    with closing(read_journal(audited / "journal.db")) as journal:
        asked = {draw.call for draw in journal.draws(proposals=False)}
        assert {card.call for card in realism.cards(journal)} <= asked


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("kind", ["realism", "questions"])
def test_a_form_is_clicked_through(audited: Path, tmp_path: Path, kind: str):
    """By buttons and by keys in turn, from a phone's width; what it saves is taken."""
    assert run("label", str(audited), f"--{kind}", "--reader", "eve", "--html") == 0
    folder = audited / {"realism": "realism", "questions": "readers"}[kind]
    with Browser(tmp_path / "profile", 390, 844) as browser:
        browser.open((folder / "eve.html").resolve().as_uri())
        browser.until("document.querySelectorAll('#pictures img').length > 0")
        assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
        seen = "getComputedStyle(document.querySelector('#pictures img')).backgroundColor"
        assert browser.value(seen) == "rgba(0, 0, 0, 0)"  # no bands beside the picture
        steps = browser.value("form.cards.reduce((sum, card) => sum + card.asked.length, 0)")
        for step in range(steps):
            if step % 2:
                browser.value("document.querySelector('fieldset:not(.idle) .choice').click()")
            else:
                press = "new KeyboardEvent('keydown', {key: 'n', bubbles: true})"
                browser.value(f"document.body.dispatchEvent({press})")
        assert browser.value("document.getElementById('end-title').textContent") == (
            "Everything is answered"
        )
        assert browser.value("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        browser.value("HTMLAnchorElement.prototype.click = function () { saved = this.download; }")
        browser.value("document.getElementById('save').click()")
        assert browser.value("saved") == "eve.csv"
        (tmp_path / "eve.csv").write_text(browser.value("csv()"))
        assert not browser.complaints
    assert run("label", str(audited), f"--{kind}", "--take", str(tmp_path / "eve.csv")) == 0


WORDS = Card(2, 2, 2, (), (Asked("why", "Why?", {}), yes_or_no("c0", "Is it there?")))


@pytest.mark.slow
@needs_chromium
def test_words_are_kept_as_they_are_written_and_no_button_goes_away(tmp_path: Path):
    """Else the click on an answer that ends the writing is lost with its button."""
    session = Session([WORDS], "ann", {}, "Questions", "", "--questions")
    write_page(tmp_path / "p.html", session, lambda card: [], [])
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "p.html").as_uri())
        browser.until("document.querySelectorAll('textarea').length")
        browser.value("yes = document.querySelectorAll('fieldset')[1].querySelector('.choice')")
        assert not browser.value("yes.closest('fieldset').matches(':not(.idle)')")
        for name in ("input", "change"):
            browser.value(
                "words = document.querySelector('textarea'); words.value = 'a tool';"
                f"words.dispatchEvent(new Event('{name}', {{bubbles: true}}))"
            )
        assert browser.value("yes.isConnected")
        assert browser.value("yes.closest('fieldset').matches(':not(.idle)')")
        assert ",a tool," in browser.value("csv()")
        browser.value("yes.click()")
        assert browser.value("at('count').textContent") == "1 of 1 answered"
        assert not browser.complaints


def test_more_words_than_a_file_takes_are_not_taken(tmp_path: Path):
    lines, pressed = iter(["x" * (MAX_WORDS + 1), "a tool"]), iter("y")
    console = Console(file=io.StringIO(), width=80)
    session = Session([WORDS], "ann", {}, "", "", "")
    run_on_terminal(
        session,
        lambda card: [],
        lambda given: keep(tmp_path, [given]),
        lambda: next(pressed),
        console,
        lambda: next(lines),
    )
    assert [one.answer for one in read_own(tmp_path, "ann").values()] == ["a tool", "yes"]


def test_every_answer_has_a_key_of_its_own():
    for letters in ("tuv", "pqr", "aA"):
        found = keys(Asked("letter", "", dict.fromkeys(letters, "")))
        assert found == {**dict(zip("123", letters, strict=False)), "u": "unsure"}


def test_of_two_answers_in_one_file_the_later_counts(tmp_path: Path):
    late, early = (
        Given(1, "c0", "ann", said, NOON.replace(hour=h)) for said, h in (("b", 9), ("a", 3))
    )
    keep(tmp_path, later(tmp_path, [late, early]))
    assert read_own(tmp_path, "ann") == {late.key: late}


def test_the_least_realistic_stand_first_and_those_nobody_judged_last():
    shares = {"blur": (9, 10), "crop": (0, 0), "noise": (1, 10)}
    cells = [Cell(relation=r, severity=1, realistic=s, same=(1, 1)) for r, s in shares.items()]
    found = realism_rows(Realism(audit="", readers={}, cells=cells, kappa={}))
    assert [row.name for row in found] == ["noise", "blur", "crop", "all"]
    assert found[2].realistic == "–"
