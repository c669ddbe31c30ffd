"""One chain over all that a journal holds: whatever was changed afterwards is found."""

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import (
    Journal,
    MemoryJournal,
    SQLiteJournal,
    as_of,
    check_chain,
    read_journal,
)
from adaptive_vtt.journal.chain import Chain
from adaptive_vtt.journal.rows import CallRow, DrawRow, FactRow
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import JsonObject
from tests.helpers.judged import Reader, audit
from tests.helpers.source_spaces import space

FLIPS = 40


def test_seals_are_those_of_every_version() -> None:
    """Another length or another way to seal would refuse all journals written before."""
    chain = Chain()
    assert chain.add(FactRow(0, "key", '"k"')).seal == "319f12a48ab0d08ce4e1e36a2f4af307"
    assert chain.add(FactRow(1, "interrupted", "0")).seal == "69055b828e99ac833c50f12745632308"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed journal with facts, draws, answers, answers about sources, and pictures."""
    path = tmp_path_factory.mktemp("written") / "journal.db"
    space = QuestionSpace(
        tiny_dataset(4, 2), ["identity", "gaussian_noise"], oracle=Consistency(), severities=[1, 2]
    )
    options: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "budget": 11, "seed": 3}
    with Audit(space, ScriptedModel(refuse=0.2), journal=path, **options) as audit:
        audit.run()
        assert audit.journal.sources()
        assert audit.journal.pictures()
    assert sorted(p.name for p in path.parent.iterdir()) == ["journal.db", "journal.db.lock"]
    return path.read_bytes()


@pytest.fixture
def path(written: bytes, tmp_path: Path) -> Path:
    (tmp_path / "journal.db").write_bytes(written)
    return tmp_path / "journal.db"


def everything(journal: Journal) -> tuple[Any, ...]:
    return (
        journal.facts(),
        journal.fact_rows(),
        journal.draws(),
        journal.calls(),
        journal.sources(),
        journal.beliefs(),
        journal.pictures(),
        journal.links(),
        journal.head,
    )


def checked(path: Path) -> tuple[Any, ...]:
    """What a journal says, once ``verify`` has found nothing wrong with it."""
    with closing(read_journal(path)) as journal:
        verify(journal)
        return everything(journal)


FORGERIES = {
    "confidence": (
        """UPDATE facts SET value = replace(value, '"confidence": 0.95', '"confidence": 0.05')""",
        "the fact 'certificate' was altered",
    ),
    "intervals removed": ("DELETE FROM facts WHERE name = 'intervals'", r"fact \d+ is missing"),
    "stop reason": (
        "INSERT INTO facts VALUES (99, 'ended', '{}')",
        "the fact 'ended' is not in the chain: it was added by hand",
    ),
    "picture edited": (
        "UPDATE pictures SET follow_up = source",
        r"an answer, the cost or a picture of call \d+ was altered",
    ),
    "reason blanked": (
        "UPDATE answers SET unanswered = '' WHERE unanswered IS NOT NULL",
        r"an answer, .* of call \d+ was altered",
    ),
    "cost": ("UPDATE calls SET cost = 0 WHERE position = 3", r"the cost .* of call \d+ was"),
    "why": ("""UPDATE draws SET why = '{}' WHERE draw = 2""", "draw 2 was altered"),
    "order of answers": (
        "UPDATE calls SET position = 99 WHERE position = 1",
        "the calls are not in the order of their commit",
    ),
    "answer about a source": (
        "UPDATE sources SET answers = '[1.0, 1.0]'",
        r"the answer of source \d+ was altered",
    ),
    "last answer, with its link": (
        "DELETE FROM chain WHERE kind = 'call' AND row = (SELECT call FROM calls ORDER BY position"
        " DESC LIMIT 1); DELETE FROM answers WHERE call = (SELECT call FROM calls ORDER BY"
        " position DESC LIMIT 1); DELETE FROM pictures WHERE call = (SELECT call FROM calls ORDER"
        " BY position DESC LIMIT 1); DELETE FROM calls WHERE position = (SELECT max(position)"
        " FROM calls)",
        r"what was believed after \d+ draws was altered",
    ),
    "no integer": ("UPDATE draws SET probability = 'x' WHERE draw = 1", "draw 1 was altered"),
    "no JSON": ("UPDATE facts SET value = '{' WHERE name = 'space'", "'space': expected JSON"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found_and_named(path: Path, forgery: str) -> None:
    change, message = FORGERIES[forgery]
    with closing(sqlite3.connect(path)) as db:
        before = db.total_changes
        db.executescript(change)
        assert db.total_changes > before
    with pytest.raises(JournalError, match=message):
        checked(path)


def test_a_flipped_byte_is_found_or_changes_nothing(path: Path) -> None:
    data, good = path.read_bytes(), checked(path)
    dice, found = random.Random(11), 0
    for _ in range(FLIPS):
        place, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        try:
            assert checked(path) == good, f"bit {bit} of byte {place}"
        except JournalError:
            found += 1
    assert 0 < found < FLIPS  # most of a file of this size is unused space


def test_rows_rewritten_with_their_links_change_the_head(path: Path) -> None:
    with closing(read_journal(path)) as journal:
        head, facts = journal.head, journal.facts()
        rows = journal.draws(), journal.calls(), journal.sources()
    with closing(SQLiteJournal(path.with_name("forged.db"))) as forged:
        forged.set_facts(**{**facts, "ended": {"reason": "another", "elapsed": 0}})
        for found in rows:
            forged.add(found)
        check_chain(forged, forged.draws(), forged.calls())
        assert forged.head != head


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_each_write_moves_the_head_and_a_refused_one_does_not(kind: str, tmp_path: Path) -> None:
    journal: Journal = MemoryJournal() if kind == "memory" else SQLiteJournal(tmp_path / "j.db")
    draw = DrawRow(0, 0, 0, "s", 0, 1.0, b"", {}, 0.0)
    call = CallRow(0, -0.0, 1, ())
    steps: list[Callable[[], None]] = [
        lambda: journal.set_facts(a=1),
        lambda: journal.set_facts(a=None),
        lambda: journal.add([draw]),
        lambda: journal.add([call]),
    ]
    heads = [journal.head]
    for step in steps:
        step()
        heads.append(journal.head)
        journal.set_facts(a=journal.facts()["a"])  # the same value is no change
        with pytest.raises(JournalError):
            journal.add([draw, draw])
        assert journal.head == heads[-1]
        check_chain(journal, journal.draws(), journal.calls())
    assert heads[0] == ""
    assert len(set(heads)) == 5
    assert [f.value for f in journal.fact_rows()] == ["1", "null"]
    journal.close()


def test_facts_hold_json_of_any_kind(path: Path) -> None:
    with closing(SQLiteJournal(path)) as journal:
        journal.set_facts(**json.loads('{"odd": [1e400, -0.0, "\\u0000ö"]}'))
    checked(path)


# -- as of an earlier head ---------------------------------------------------------------


def judged(path: Path) -> Audit:
    """A judge is asked of some replies."""
    return audit(JudgeModel(Reader()), budget=8, journal=path)


def consistent(path: Path) -> Audit:
    """Source images are asked about, too."""
    given: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "budget": 8, "seed": 3}
    return Audit(space(), ScriptedModel(refuse=0.2), journal=path, **given)


@pytest.mark.parametrize("begin", [judged, consistent])
def test_it_comes_to_the_result_of_then(begin: Any, tmp_path: Path) -> None:
    then: list[JsonObject] = []
    with begin(tmp_path / "journal.db") as begun:
        begun.run(lambda step: then.append(summarise(begun.journal).to_dict()))
        assert len({told["journal_head"] for told in then}) > 5
        for told in then:
            earlier = as_of(begun.journal, told["journal_head"])
            assert earlier is not None
            assert {**summarise(earlier).to_dict(), "journal_head": None} == {
                **told,
                "journal_head": None,
            }
        assert begun.journal.judging() or begun.journal.sources()


def test_a_head_that_it_never_had_is_none_of_its_moments(tmp_path: Path) -> None:
    with consistent(tmp_path / "journal.db") as begun:
        assert as_of(begun.journal, "0" * 32) is None
