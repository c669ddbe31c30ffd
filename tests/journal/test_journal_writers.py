"""One writer at a time, readers at any time, and a journal that is deleted while it is written."""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import SQLiteJournal, read_journal
from adaptive_vtt.journal.files import holder
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.audits import content, finished

# -- the lock ------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from adaptive_vtt.journal.files import Lock
lock = Lock(Path({path!r}))
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_process_is_told_who_writes_and_may_once_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    SQLiteJournal(path).close()
    root = str(Path(__file__).parents[2])
    code = HOLD.format(root=root, path=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(JournalError, match=rf"is being written by process {other.pid}: wait"):
            SQLiteJournal(path)
        other.kill()
    with closing(SQLiteJournal(path)) as journal:
        journal.set_facts(a=1)


def test_within_one_process_one_writes_and_says_so(space: QuestionSpace, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with (
        Audit(space, ScriptedModel(), journal=path),
        pytest.raises(JournalError, match="is being written by this process already: close"),
    ):
        Audit(space, ScriptedModel(), journal=path)
    with pytest.raises(JournalError, match="begun with seed"):  # which lets go of it, too
        Audit(space, ScriptedModel(), journal=path, seed=77)
    Audit(space, ScriptedModel(), journal=path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    journal = SQLiteJournal(tmp_path / "journal.db")
    child = os.fork()
    if child == 0:
        os.read(os.pipe()[0], 1)  # until it is killed
    try:
        journal.close()
        SQLiteJournal(tmp_path / "journal.db").close()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


@pytest.mark.parametrize("kind", ["link", "dangling", "hard link", "notes", "folder", "pipe"])
def test_what_no_lock_is_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "journal.db", tmp_path / "precious"
    lock = tmp_path / "journal.db.lock"
    other.write_text("" if kind == "hard link" else "my notes")
    if kind == "link":
        lock.symlink_to(other)
    elif kind == "dangling":
        lock.symlink_to(tmp_path / "nowhere")
    elif kind == "hard link":
        lock.hardlink_to(other)
    elif kind == "notes":
        lock.write_text("my notes")
    elif kind == "folder":
        lock.mkdir()
    else:
        os.mkfifo(lock)
    before = other.read_text()
    with pytest.raises(JournalError, match=r"journal\.db\.lock: expected a lock of adaptive-vtt"):
        SQLiteJournal(path)
    assert holder(path) is None
    assert other.read_text() == before
    assert not (tmp_path / "nowhere").exists()
    if kind == "notes":
        assert lock.read_text() == "my notes"


def test_a_journal_of_two_names_is_written_by_neither_and_by_links_as_one(tmp_path: Path) -> None:
    path, link, hard = (tmp_path / name for name in ("journal.db", "link.db", "hard.db"))
    link.symlink_to(path)
    with closing(SQLiteJournal(path)) as journal:
        journal.set_facts(a=1)
        with pytest.raises(JournalError, match="is being written by this process already"):
            SQLiteJournal(link)
        hard.hardlink_to(path)
        with pytest.raises(JournalError, match=r"hard\.db'.* expected a file of one name, got"):
            SQLiteJournal(hard)
    with closing(SQLiteJournal(hard, read_only=True)) as reader:
        assert reader.facts() == {"a": 1}
    hard.unlink()
    SQLiteJournal(path).close()


def test_reading_sees_one_moment_of_a_running_audit(space: QuestionSpace, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Audit(space, ScriptedModel(), journal=path, half_width=0.1, targets=["overall"]) as audit:
        audit.tell(audit.ask()[0], [0.5, 0.5])
        with closing(read_journal(path)) as reader:
            before = content(reader)
            audit.tell(audit.ask()[0], [0.5, 0.5])
            assert content(reader) == before
            assert len(before[1]) == 1
            verify(reader)
            with pytest.raises(JournalError, match=r"cannot be written: .*readonly"):
                reader.set_facts(a=1)
        with closing(read_journal(path)) as reader:
            assert len(reader.calls()) == 2
            verify(reader)
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["journal.db", "journal.db.lock"]
    data = path.read_bytes()
    with closing(read_journal(path)) as reader:
        verify(reader)
    assert path.read_bytes() == data
    assert sorted(p.name for p in tmp_path.iterdir()) == left


# -- deleted while it is written -----------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "folder", "replaced"])
def test_a_journal_deleted_under_way_is_saved_beside(
    space: QuestionSpace, tmp_path: Path, how: str
) -> None:
    path, model = tmp_path / "run" / "journal.db", ScriptedModel()
    audit = Audit(space, model, budget=20, journal=path, batch=2)

    def delete(_: object) -> None:
        if len(model.asked) == 6:
            shutil.rmtree(path.parent) if how == "folder" else path.unlink()
            if how == "replaced":
                path.write_bytes(b"")

    with pytest.raises(JournalError, match=r"deleted or replaced .* 6 answers, was saved as") as e:
        audit.run(delete)
    assert len(model.asked) == 6  # nothing was spent after that
    audit.close()
    rescued = path.with_name("journal-rescued.db")
    assert str(rescued) in str(e.value)
    for left in path.parent.glob("journal.db*"):
        left.unlink()
    rescued.rename(path)
    with Audit(space, model, budget=20, journal=path, batch=2) as resumed:
        resumed.run()
        verify(resumed.journal)
        assert content(resumed.journal) == content(finished(space, budget=20, batch=2).journal)
    assert len(model.asked) == 20


def test_answers_after_the_deletion_are_saved_too(space: QuestionSpace, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Audit(space, ScriptedModel(), journal=path) as audit:
        first, second = audit.ask(2)
        path.unlink()
        audit.tell(first, [0.5, 0.5])
        with pytest.raises(JournalError, match="was deleted or replaced"):
            audit.ask()
        audit.tell(second, [0.5, 0.5])
    with closing(read_journal(tmp_path / "journal-rescued.db")) as journal:
        assert len(journal.calls()) == 2
        verify(journal)
