"""Run folders: every one has a way on, and verify compares all that is written in them."""

import json
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adaptive_vtt.audit import Audit
from adaptive_vtt.cli import main, run_folder
from adaptive_vtt.cli.progress import print_end
from adaptive_vtt.cli.run_folder import begin, same_seed
from adaptive_vtt.cli.signals import Interrupted, interruptible
from adaptive_vtt.config import read_spec, resuming
from adaptive_vtt.config.journaled import newer_model
from adaptive_vtt.config.resuming import resume, stays_ended
from adaptive_vtt.journal import SQLiteJournal, read_journal
from adaptive_vtt.results.report.page import render
from adaptive_vtt.results.result import summarise
from adaptive_vtt.results.run import Run
from adaptive_vtt.utils.files import hash_file
from tests.helpers.command_line import plain_start, refused, run, shown

pytestmark = pytest.mark.usefixtures("undrawn")
OPTIONS = ["--budget", "4", "--targets", "overall", "--half-width", "0.1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an audit that ended."""
    out = tmp_path_factory.mktemp("finished")
    plain_start(out / "start")
    assert run("audit", str(out / "start" / "SPEC.toml"), *OPTIONS, "--out", str(out / "run")) == 0
    return {p.name: p.read_bytes() for p in (out / "run").iterdir()}


@pytest.fixture
def folder(finished: dict[str, bytes], tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    for name, data in finished.items():
        (tmp_path / "run" / name).write_bytes(data)
    return tmp_path / "run"


@pytest.fixture
def start(tmp_path: Path) -> Path:
    return plain_start(tmp_path / "start").parent


def audit(start: Path, out: Path) -> list[str]:
    """The command that begins an audit."""
    return ["audit", str(start / "SPEC.toml"), *OPTIONS, "--out", str(out)]


# -- folders without answers are begun anew ------------------------------------------------


def test_an_empty_journal_is_refused_by_readers_untouched_and_begun_by_audit(
    start: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    out.mkdir()
    (out / "journal.db").touch()
    for command in ("verify", "report", "resume", "export"):
        more = ["--failures", str(tmp_path / "f")] if command == "export" else []
        sentence = refused(command, str(out), *more)
        assert "no audit was begun here; 'avtt audit SPEC.toml --out" in sentence
    assert (out / "journal.db").stat().st_size == 0
    assert run(*audit(start, out)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("tables", [False, True], ids=["killed", "disk full"])
def test_an_audit_whose_first_write_failed_is_begun_by_the_same_command(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: bool
) -> None:
    out, error = tmp_path / "r", sqlite3.OperationalError("database or disk is full")
    where = "add" if tables else "create_tables"
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> None:
            raise error if tables else KeyboardInterrupt

        patch.setattr(f"adaptive_vtt.journal.sqlite.Step.{where}", fail)
        text = "disk is full; nothing of this step" if tables else "the same command begins again"
        assert text in refused(*audit(start, out), code=2 if tables else 130)
    with closing(SQLiteJournal(out / "journal.db", read_only=True)) as journal:
        assert journal.facts() == {}
    assert run(*audit(start, out)) == 0
    assert not (out / "journal.db.1").exists()


def test_after_a_first_call_that_failed_the_audit_begins_anew_and_counts_what_may_be_lost(
    start: Path, tmp_path: Path
) -> None:
    out, good = tmp_path / "r", (start / "model.py").read_text()
    (start / "model.py").write_text("def predict(images):\n    return [[7.0, 7.0]]\n")
    for lost in (1, 2):
        assert "expected P(yes) between 0 and 1, got 7.0" in refused(*audit(start, out))
        with closing(read_journal(out / "journal.db")) as journal:
            assert journal.facts()["interrupted"] == lost
    (start / "model.py").write_text(good)
    assert run(*audit(start, out)) == 0
    assert json.loads((out / "result.json").read_text())["lost"] == 2
    assert (out / "journal.db.1").exists()  # set aside, not thrown away
    assert (out / "journal.db.2").exists()
    assert run("verify", str(out)) == 0
    resuming = f"holds an audit already; 'avtt resume {out}' continues"
    assert resuming in refused(*audit(start, out))  # now it holds answers


def test_an_error_midway_says_how_to_go_on(start: Path, tmp_path: Path) -> None:
    good = (start / "model.py").read_text()
    late = "\nn = 0\n_p = predict\n\ndef predict(images):\n    global n\n    n += 1\n"
    late += "    return _p(images) if n < 3 else 1 / 0\n"
    (start / "model.py").write_text(good + late)
    text = refused(*audit(start, tmp_path / "r"))
    assert "raised ZeroDivisionError" in text
    assert text.endswith(f"'avtt resume {tmp_path / 'r'}' continues")


# -- verify ---------------------------------------------------------------------------------


def test_verify_says_what_it_checked_and_writes_nothing(folder: Path) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    head = json.loads(before["result.json"])["journal_head"]
    assert len(head) == 32
    text = shown("verify", str(folder), "--head", head.upper())
    assert max(map(len, text.splitlines())) <= 80
    output = " ".join(text.split())
    assert "4 answers among them, are as they were written; the interval follows" in output
    assert "every draw follows from the audit's seed and settings. Note the fingerprint" in output
    assert f"{head}: it proves later that nothing was edited" in output
    assert head.encode() in before["report.html"]
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def edited(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda result: result.update(changes)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "calls": (edited(calls=3), "calls: the journal comes to 4, the file says 3"),
    "head": (edited(journal_head="0" * 32), "journal_head is none this journal ever had"),
    "unknown": (edited(grade="A"), "grade is no field of a result"),
    "missing": (lambda r: r.pop("waiting"), "waiting is missing"),
    "estimate": (
        lambda r: r["targets"][0].update(estimate=0.01),
        r"targets\[0\]\.estimate: the journal",
    ),
    "rows": (lambda r: r["targets"].clear(), "targets: the journal comes to 1 rows, the file has"),
}


def test_verify_names_the_field_of_the_result_that_was_edited(folder: Path) -> None:
    whole = (folder / "result.json").read_text()
    for change, message in EDITS.values():
        result = json.loads(whole)
        change(result)
        (folder / "result.json").write_text(json.dumps(result))
        assert re.search(message, refused("verify", str(folder)))
    (folder / "result.json").write_text(whole)
    head, page = json.loads(whole)["journal_head"], (folder / "report.html").read_text()
    (folder / "report.html").write_text(page.replace(head, "0" * 32))
    assert "report.html: was not written from this journal" in refused("verify", str(folder))


def test_verify_knows_a_head_of_before_and_a_report_of_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptive_vtt.results.report.page.render", render)
    head = json.loads((folder / "result.json").read_text())["journal_head"]
    with closing(SQLiteJournal(folder / "journal.db")) as journal:
        journal.set_facts(a=1)
        journal.set_facts(a=2)
    sentence = refused("verify", str(folder), "--head", head)
    assert "the head given is this journal's of 2 rows ago; its head is" in sentence
    err = refused("verify", str(folder), code=4)
    for name in ("result.json", "report.html"):
        assert f"{name}: was written 2 rows ago, with 4 of the journal's 4 calls" in err
    assert "writes both again" in err
    assert run("report", str(folder)) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "to check this page against its journal" in page  # true before and after it was
    assert run("verify", str(folder)) == 0


@pytest.fixture
def killed(folder: Path) -> Path:
    """A run that ended after 4 calls, was resumed, and killed: its journal has 6, of which 5 are
    answered."""
    audit = resume(folder, budget=8)
    answered = audit.ask(1)[0]
    audit.tell(answered, audit.model.ask([answered.prompt])[0])
    audit.ask(1)
    audit.close()
    return folder


def test_a_result_older_than_the_journal_is_no_forged_one(
    killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = json.loads((killed / "result.json").read_text())["journal_head"]
    assert run("verify", str(killed)) == 4
    text = capsys.readouterr()
    assert "5 answers among them, are as they were written" in text.out
    err = " ".join(text.err.split())
    assert re.search(r"result.json: was written \d+ rows ago, with 4 of the journal's 6 calls", err)
    assert f"the audit has not ended: continue with 'avtt resume {killed}'" in err
    assert run("report", str(killed)) == 0
    assert run("verify", str(killed)) == 0
    result = json.loads((killed / "result.json").read_text())  # of now, under a head of before:
    (killed / "result.json").write_text(json.dumps({**result, "journal_head": before}))
    assert "is missing, as of the journal_head that it names" in refused("verify", str(killed))


# -- ended: nothing is asked, so nothing is learnt anew -----------------------------------------


def test_resuming_what_has_ended_learns_nothing_writes_no_row_and_tells_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result, journal = ((folder / n).read_bytes() for n in ("result.json", "journal.db"))
    (folder / "result.json").unlink()
    monkeypatch.setattr(resuming, "build_audit", lambda *_, **__: pytest.fail("it was built"))
    assert run("resume", str(folder)) == 0
    text = capsys.readouterr()
    assert "this audit has ended: nothing was asked" in text.err
    assert "stopped: 4 calls" in text.out
    assert [(folder / n).read_bytes() for n in ("result.json", "journal.db")] == [result, journal]
    assert json.loads(shown("resume", str(folder), "--json")) == json.loads(result)


def test_an_end_without_a_first_sentence_begins_with_its_reason(folder: Path, capsys: Any) -> None:
    with Run.opened(folder) as opened:
        result = summarise(opened)
        assert result.headline is None  # no target is about original images
        print_end(opened, result, folder)
    assert capsys.readouterr().out.startswith("stopped: ")


@pytest.mark.parametrize(("taught", "doing"), [(True, "training a small"), (False, "reading your")])
def test_an_audit_says_that_it_prepares_before_it_does(
    taught: bool, doing: str, start: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(run_folder, "build_audit", lambda *_, **__: None)
    spec = read_spec(start / "SPEC.toml")
    certify = spec.certify.model_copy(update={"self_taught": taught})
    begin(spec.model_copy(update={"certify": certify}), start, start / "run", [])
    assert capsys.readouterr().err.startswith(f"preparing: {doing}")


def test_a_model_that_changed_since_the_audit_ended_is_named(tmp_path: Path) -> None:
    code, journal = tmp_path / "model.py", tmp_path / "journal.db"
    code.write_text("predict = list")
    journal.touch()
    spec = {"model": {"target": "model.py:predict"}}
    version = f"content {hash_file(code)}, nets.pt 0123456789abcdef"
    facts: Any = SimpleNamespace(spec=spec, base=str(tmp_path), model_version=version)
    seconds = journal.stat().st_mtime
    os.utime(code, (seconds + 9, seconds + 9))
    assert newer_model(facts, journal) is None  # the same again
    code.write_text("predict = tuple")
    os.utime(code, (seconds + 9, seconds + 9))
    assert newer_model(facts, journal) == code
    os.utime(code, (seconds - 9, seconds - 9))
    assert newer_model(facts, journal) is None
    facts.spec = None
    assert newer_model(facts, journal) is None


def test_a_killed_run_and_one_with_calls_that_wait_have_not_ended(killed: Path) -> None:
    assert not stays_ended(killed)
    with closing(SQLiteJournal(killed / "journal.db")) as journal:
        journal.set_facts(ended={"reason": "the cap", "elapsed": 1.0})
    assert not stays_ended(killed)


# -- deleted, and interrupted ---------------------------------------------------------------

SLOW = """
import time
from pathlib import Path
from types import SimpleNamespace
def predict(images):
    time.sleep(.02)
    {then}
    return [[.7, .2]] * len(images)
"""


DEAF = """
import os, signal
def predict(images):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException:
        pass
    return [[.7, .2]] * len(images)
"""


@pytest.mark.slow
def test_a_journal_deleted_before_the_end_is_no_success(start: Path, tmp_path: Path) -> None:
    then = f"Path({str(tmp_path / 'r' / 'journal.db')!r}).unlink(missing_ok=True)"
    (start / "model.py").write_text(SLOW.format(then=then))
    line = refused(*audit(start, tmp_path / "r"))
    assert "all it held, 1 answers, was saved as" in line
    (start / "model.py").write_text(SLOW.format(then=""))
    for left in (tmp_path / "r").glob("journal.db*"):
        left.unlink()
    (tmp_path / "r" / "journal-rescued.db").rename(tmp_path / "r" / "journal.db")
    assert run("resume", str(tmp_path / "r")) == 0
    assert json.loads((tmp_path / "r" / "result.json").read_text())["calls"] == 4


def answers(out: Path) -> int:
    try:
        with closing(SQLiteJournal(out / "journal.db", read_only=True)) as journal:
            return len(journal.calls())
    except Exception:
        return 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_signal_ends_with_a_sentence_that_says_how_to_go_on(start: Path, tmp_path: Path) -> None:
    number, out = signal.SIGTERM, tmp_path / "r"
    (start / "model.py").write_text(SLOW.format(then=""))
    child = os.fork()
    if child == 0:  # a process of its own, with torch loaded already
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with open(tmp_path / "err", "w") as sys.stderr:
                main(["audit", str(start / "SPEC.toml"), "--out", str(out), "--json"])
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
        finally:
            os._exit(99)
    until = time.monotonic() + 30
    while answers(out) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + number
    kept = answers(out)
    assert kept >= 3
    text = " ".join((tmp_path / "err").read_text().split())
    assert (
        f"avtt: interrupted; {kept} answers are kept; 'avtt resume {out}' continues where" in text
    )
    with closing(read_journal(out / "journal.db")) as journal:
        assert journal.facts()["interrupted"] <= 1
    SQLiteJournal(out / "journal.db").close()  # nobody holds the lock


def test_a_signal_that_a_model_swallowed_ends_the_audit_at_the_next_answer(
    start: Path, tmp_path: Path
) -> None:
    """As Python itself swallows one that comes while a destructor runs."""
    out = tmp_path / "r"
    (start / "model.py").write_text(DEAF)
    sentence = refused(*audit(start, out), code=128 + signal.SIGTERM)
    assert "interrupted; 1 answer is kept; 'avtt resume" in sentence
    assert f"'avtt report {out}' writes the report so far" in sentence
    assert answers(out) == 1


def test_a_signal_before_the_audit_began_advises_no_resume_of_an_earlier_one(
    start: Path, tmp_path: Path
) -> None:
    """The earlier journal holds another spec and cap, which a resume would pay under."""
    out = tmp_path / "r"
    (start / "model.py").write_text("def predict(images):\n    return [[7.0, 7.0]]\n")
    refused(*audit(start, out))
    before = (out / "journal.db").read_bytes()
    (start / "model.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    text = refused(*audit(start, out), code=128 + signal.SIGTERM)
    assert "interrupted before any call was sent; the same command begins again" in text
    assert "avtt resume" not in text
    assert (out / "journal.db").read_bytes() == before


def test_a_signal_while_it_prepares_says_that_nothing_was_sent(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has begun by then, and has no draw."""

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Audit, "ask_all", interrupted)
    text = refused(*audit(start, tmp_path / "r"), code=128 + signal.SIGINT)
    assert text == "interrupted before any call was sent; the same command begins again"


def test_a_signal_sent_twice_is_one_and_cuts_nothing_short(tmp_path: Path) -> None:
    """As ``timeout`` sends it: to the process, and to its group."""
    ended = []

    def twice() -> None:
        with interruptible(tmp_path):
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                signal.raise_signal(signal.SIGINT)
                ended.append(True)

    with pytest.raises(Interrupted):
        twice()
    assert ended


# -- a seed that another run had ---------------------------------------------------------------


def test_an_equal_seed_draws_a_warning_before_anything_is_asked(
    start: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = read_spec(start / "SPEC.toml")
    spec.audit.seed = 3
    begin(spec, start, tmp_path / "first", ["SPEC.toml"]).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "journal.db").write_text("no journal")
    assert "warning" not in capsys.readouterr().err
    with begin(spec, start, tmp_path / "second", ["SPEC.toml"]) as second:
        assert second.state().calls == 0
        same = second.space.fingerprint
    warning = "warning: run 'first' asked the same questions with the same seed"
    assert warning in capsys.readouterr().err
    third = tmp_path / "third"
    assert same_seed(third, same, "certify", spec) == "first"
    assert same_seed(third, same, "stratified", spec) is None
    assert same_seed(third, "other", "certify", spec) is None
    for seed in (4, None):
        spec.audit.seed = seed
        assert same_seed(third, same, "certify", spec) is None
