"""Comparisons that are killed, lied to, echoed at and given damaged files."""

import json
import math
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.halves import HalfStore
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import files, read_journal
from adaptive_vtt.models import HttpJson, Prices, Retries
from adaptive_vtt.results.report import write_report
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Answer, Prompt, Unanswered
from tests.audit.test_versus import Skilled, both, space
from tests.helpers.audits import content
from tests.helpers.dying import Ticks, killed, needs_fork, ticking
from tests.helpers.loopback import Said, serving

PLAIN: dict[str, Any] = {"surrogate": False, "candidates": 16, "seed": 6}
PROMPT = Prompt(None, ("c0", "c1"), "s0", "identity", 0)

# -- killed at any moment --------------------------------------------------------------------

KILLED: dict[str, Any] = {**PLAIN, "budget": 26, "batch": 2, "repeat_probes": 2}


class Billed(Skilled):
    """Notes what it answered where no crash can undo it; each answer is paid for."""

    def __init__(self, name: str, right: float, bill: Path) -> None:
        super().__init__(name, right, seed=int(name == "new"))
        self.bill = bill

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        with self.bill.open("a") as file:
            file.write(f"{self.name} {prompt.sample_id} {prompt.relation} {prompt.severity}\n")
        return super()._answer(prompt)


def compare(folder: Path, name: str) -> Counter[str]:
    """Runs a comparison to its end; how often each answer was paid for."""
    bill = folder / f"{name}.bill"
    a, b = Billed("old", 0.6, bill), Billed("new", 0.9, bill)
    questions = QuestionSpace(tiny_dataset(6, 3), ["identity", "gaussian_noise"])
    with Versus(questions, a, b, journal=folder / f"{name}.db", **KILLED) as versus:
        versus.run()
    return Counter(bill.read_text().splitlines())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, Counter[str]]:
    """Its folder, how many statements it took, and its bill."""
    folder, tick = tmp_path_factory.mktemp("undisturbed"), Ticks()
    ticking(lambda _: compare(folder, "whole"), tick)
    return folder, tick.count, Counter((folder / "whole.bill").read_text().splitlines())


@needs_fork
@pytest.mark.parametrize(
    "moment", [pytest.param(i / 29, marks=[pytest.mark.slow] * bool(i % 5)) for i in range(30)]
)
def test_killed_at_any_statement_it_pays_for_no_half_twice(
    undisturbed: tuple[Path, int, Counter[str]], tmp_path: Path, moment: float
):
    """But for the answer that was on its way to the disk: that one may be asked again."""
    folder, ticks, bill = undisturbed
    last = killed(lambda _: compare(tmp_path, "torn"), 1 + round(moment * (ticks - 1)))
    assert last is not None
    paid = compare(tmp_path, "torn")
    more = paid - bill
    keeping = last.startswith("INSERT OR REPLACE INTO answers")
    assert not bill - paid
    assert more.total() <= (2 if keeping else 0)  # of a block of two
    with (
        closing(read_journal(folder / "whole.db")) as whole,
        closing(read_journal(tmp_path / "torn.db")) as torn,
    ):
        assert content(torn) == content(whole)
        sources = ([(s.source, s.answers, s.cost) for s in j.sources()] for j in (torn, whole))
        assert next(sources) == next(sources)
        verify(torn)


# -- the file of halves ----------------------------------------------------------------------


def rewritten(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement, values)
        file.commit()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("said", "[0.5"),
        ("said", "[" * 100_000),
        ("said", "[0.5]"),
        ("said", '{"a": 1}'),
        ("said", '[{"mask": "x", "shape": [9e9, 1]}, 0]'),
        ("said", None),
        ("cost", float("nan")),
        ("cost", -1.0),
        ("cost", float("inf")),
        ("cost", "much"),
        ("prompt", "nothing"),
        ("time", "often"),
    ],
)
def test_a_half_that_cannot_have_been_written_is_refused(tmp_path: Path, column: str, value: Any):
    path = tmp_path / "halves"
    with closing(HalfStore(path, "these")) as store:
        store.keep("a", PROMPT, Answer((0.5, 1.0), 2.0))
    rewritten(path, f"UPDATE answers SET {column} = ?", value)
    with pytest.raises(JournalError, match=r"halves: expected the answers of an interrupted pair"):
        HalfStore(path, "these")


@pytest.mark.parametrize("kind", ["text", "cut", "foreign", "folder"])
def test_a_file_that_holds_no_halves_is_refused_and_left_alone(tmp_path: Path, kind: str):
    path = tmp_path / "journal.db.halves"
    if kind == "text":
        path.write_text("no database\n" * 100)
    elif kind == "folder":
        path.mkdir()
    else:
        rewritten(path, "CREATE TABLE answers (x TEXT)")
        if kind == "cut":
            path.write_bytes(path.read_bytes()[:5000])
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(JournalError, match=r"journal\.db\.halves: expected the answers.*move it"):
        Versus(space(), *both(), budget=4, journal=tmp_path / "journal.db")
    assert not path.is_file() or path.read_bytes() == before


def test_halves_of_other_models_are_not_given(tmp_path: Path):
    with closing(HalfStore(tmp_path / "halves", "those")) as store:
        store.keep("a", PROMPT, Unanswered("busy \ud800", 1.5))
        assert store.take("a", PROMPT) is not None
    with closing(HalfStore(tmp_path / "halves", "these")) as store:
        assert store.take("a", PROMPT) is None
    with closing(HalfStore(tmp_path / "halves", "those")) as store:
        assert store.take("a", PROMPT) == Unanswered("busy \ud800", 1.5)
        assert store.take("b", PROMPT) is None


def test_halves_are_kept_however_long_the_file_is_open(monkeypatch: pytest.MonkeyPatch):
    """The clock of queries, which was started where the file was opened, ends no write."""
    monkeypatch.setattr(files, "STEPS", 1)
    monkeypatch.setattr(files, "PATIENCE", 60.0)
    with closing(HalfStore(None, "these")) as store:
        monkeypatch.setattr(files, "time", SimpleNamespace(monotonic=lambda: math.inf))
        store.keep("a", PROMPT, Answer((0.5, 1.0)))


# -- hostile answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        Answer((0.5,)),
        Answer((float("nan"),) * 3),
        Answer((2.0,) * 3),
        Answer((0.5,) * 3, float("nan")),
        Answer((0.5,) * 3, -1.0),
        Answer((None,) * 3),  # type: ignore[arg-type]
        Answer((np.zeros((2, 2)),) * 3),  # type: ignore[arg-type]
        "yes",
        None,
    ],
)
def test_an_answer_that_is_none_costs_the_other_model_nothing(tmp_path: Path, reply: Any):
    class Lying(Skilled):
        def ask(self, prompts: Any) -> Any:
            return [reply] * len(prompts)

    a, path = both()[0], tmp_path / "journal.db"
    with (
        Versus(space(), a, Lying("new", 1), journal=path, budget=4, **PLAIN) as versus,
        pytest.raises(ModelError, match="'new'"),
    ):
        versus.run()
    with Versus(space(), a, both()[1], journal=path, budget=4, **PLAIN) as versus:
        assert versus.run().calls_b == 2
    assert len(a.asked) == 2


class Saying(Skilled):
    """Says the same, whatever it is asked."""

    def __init__(self, name: str, reply: Any) -> None:
        super().__init__(name, 1)
        self.reply = reply

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        return Answer((self.reply,) * len(prompt.concepts), 1.0)


def test_models_of_different_kinds_of_answers_are_told_apart():
    """Each is judged by the one oracle, which says of which model it makes nothing."""
    words, mask = Saying("words", "<b>yes</b>"), Saying("mask", np.zeros((8, 8), bool))
    for odd in (words, mask):
        with pytest.raises((InputError, ModelError), match=f"'{odd.name}'"):
            Versus(space(), both()[0], odd, budget=4, **PLAIN).run()


HOSTILE = "<script>alert(1)</script>\"'&"


def test_names_and_answers_are_shown_and_never_run(tmp_path: Path):
    images = [np.full((8, 8, 3), 30 * k, np.uint8) for k in range(6)]
    labels = pd.DataFrame({HOSTILE: [0, 1] * 3}, index=[f"{HOSTILE}{k}" for k in range(6)])
    dataset = avtt.datasets.from_table(images, labels)
    questions = QuestionSpace(dataset, ["identity"])

    class Refusing(Saying):
        def _answer(self, prompt: Prompt) -> Answer | Unanswered:
            return Unanswered(HOSTILE, 1.0)

    a, b = Saying(HOSTILE, 1.0), Refusing(f"{HOSTILE} 2", 1.0)
    options = {"budget": 12, "fail_on_error": 1, **PLAIN}
    with Versus(questions, a, b, journal=tmp_path / "j.db", **options) as versus:
        versus.run()
        write_report(versus.audit.journal, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


# -- keys ------------------------------------------------------------------------------------


def test_no_key_of_either_endpoint_is_kept_or_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both servers echo whatever they are sent, as an answer's trouble and as an error."""
    keys = {"KEY_A": "first&secret/0", "KEY_B": "second-secret-1"}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    asked: list[str] = []

    def echo(path: str, headers: Any, body: bytes) -> Said:
        asked.append(path)
        told = f"{path} {dict(headers.items())} {body.decode()}"
        if len(asked) % 5 == 0:
            return 400, {}, json.dumps({"error": told}).encode()
        return 200, {}, json.dumps({"p": 0.5 if len(asked) % 2 else told}).encode()

    def model(url: str, key: str) -> HttpJson:
        return HttpJson(
            f"{url}/?k=${key}",
            request={"of": "{concept}", "key": f"${key}"},
            response="p",
            prices=Prices(per_call=1.0),
            retries=Retries(times=0, first_wait=0.001),
        )

    questions = QuestionSpace(tiny_dataset(6, 2), ["identity"])
    path, told = tmp_path / "run" / "journal.db", ""
    with serving(echo) as one, serving(echo) as other:
        versus = Versus(
            questions, model(one, "KEY_A"), model(other, "KEY_B"), journal=path, budget=16, **PLAIN
        )
        with versus:
            try:
                verdict = versus.run()
                told += str(verdict) + verdict.targets.to_string()
            except ModelError as error:
                told += str(error)
            write_report(versus.audit.journal, tmp_path / "run" / "report.html")
    assert len(asked) >= 8
    files = {file: file.read_bytes() for file in path.parent.iterdir()}
    assert {file.name for file in files} >= {"journal.db", "journal.db.halves", "report.html"}
    for key in keys.values():
        assert key not in told
        assert [file.name for file, body in files.items() if key.encode() in body] == []
