"""Comparisons that are killed, lied to, echoed at and given damaged files."""

import json
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audits import content
from loopback import Said, serving
from test_versus import Skilled, both, space

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import phantom
from adaptive_vtt.demo_server import Behaviour, DemoBrain
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import SQLiteJournal, read_journal
from adaptive_vtt.journal.halves import HalfStore
from adaptive_vtt.models import HttpJson, Limits, OpenAIChat, Prices, Retries
from adaptive_vtt.report import write_report
from adaptive_vtt.stopping import Compared, State
from adaptive_vtt.testing import demo_server, tiny_dataset
from adaptive_vtt.types import Answer, Prompt, Unanswered
from adaptive_vtt.versus import Versus

PLAIN: dict[str, Any] = {"surrogate": False, "candidates": 16, "seed": 6}
PROMPT = Prompt(None, ("c0", "c1"), "s0", "identity", 0)

# -- killed at any moment --------------------------------------------------------------------

KILLED: dict[str, Any] = {**PLAIN, "budget": 26, "batch": 2, "canaries": 2}


class Killer:
    """Kills this process at the n-th SQL statement, having noted which that was; 0: never."""

    def __init__(self, path: Path, kill_at: int) -> None:
        self.path, self.kill_at, self.ticks = path, kill_at, 0

    def __call__(self, statement: str) -> None:
        self.ticks += 1
        if self.ticks == self.kill_at:
            self.path.write_text(statement)
            os.kill(os.getpid(), signal.SIGKILL)


class Billed(Skilled):
    """Notes what it answered where no crash can undo it; each answer is paid for."""

    def __init__(self, name: str, right: float, bill: Path) -> None:
        super().__init__(name, right, seed=int(name == "new"))
        self.bill = bill

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        with self.bill.open("a") as file:
            file.write(f"{self.name} {prompt.sample_id} {prompt.relation} {prompt.severity}\n")
        return super()._answer(prompt)


def compare(folder: Path, name: str, **options: Any) -> Counter[str]:
    """Runs a comparison to its end; how often each answer was paid for."""
    bill = folder / f"{name}.bill"
    a, b = Billed("old", 0.6, bill), Billed("new", 0.9, bill)
    questions = QuestionSpace(tiny_dataset(6, 3), ["identity", "gaussian_noise"])
    given = {**KILLED, **options}
    with Versus(questions, a, b, journal=folder / f"{name}.db", **given) as versus:
        versus.run()
    return Counter(bill.read_text().splitlines())


def run_and_kill(folder: Path, name: str, kill_at: int, **options: Any) -> int:
    """``compare`` in a child that dies at a statement; how many statements there were."""
    killer = Killer(folder / f"{name}.killed", kill_at)
    connect = sqlite3.connect

    def connected(*args: Any, **given: Any) -> sqlite3.Connection:
        database = connect(*args, **given)
        database.set_trace_callback(killer)
        return database

    child = os.fork()
    if child == 0:
        try:
            sqlite3.connect = connected  # type: ignore[assignment]
            compare(folder, name, **options)
            (folder / f"{name}.ticks").write_text(str(killer.ticks))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    ticks = folder / f"{name}.ticks"
    return int(ticks.read_text()) if ticks.exists() else 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, Counter[str]]:
    """Its folder, how many statements it took, and its bill."""
    folder = tmp_path_factory.mktemp("undisturbed")
    ticks = run_and_kill(folder, "whole", 0)
    return folder, ticks, Counter((folder / "whole.bill").read_text().splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(
    "moment", [pytest.param(i / 29, marks=[pytest.mark.slow] * bool(i % 5)) for i in range(30)]
)
def test_killed_at_any_statement_it_pays_for_no_half_twice(
    undisturbed: tuple[Path, int, Counter[str]], tmp_path: Path, moment: float
):
    """But for the answer that was on its way to the disk: that one may be asked again."""
    folder, ticks, bill = undisturbed
    run_and_kill(tmp_path, "torn", 1 + round(moment * (ticks - 1)))
    paid = compare(tmp_path, "torn")
    more = paid - bill
    keeping = (tmp_path / "torn.killed").read_text().startswith("INSERT OR REPLACE INTO answers")
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


# -- hostile answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
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
def test_an_answer_that_is_none_costs_the_other_model_nothing(tmp_path: Path, said: Any):
    class Lying(Skilled):
        def ask(self, prompts: Any) -> Any:
            return [said] * len(prompts)

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

    def __init__(self, name: str, said: Any) -> None:
        super().__init__(name, 1)
        self.said = said

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        return Answer((self.said,) * len(prompt.concepts), 1.0)


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
    with Versus(questions, a, b, journal=tmp_path / "j.db", budget=12, **PLAIN) as versus:
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


# -- targets that contradict themselves ------------------------------------------------------


def test_an_abandoned_target_does_not_keep_a_comparison_going():
    """No decision will ever come of it, so that all was asked, or all the budget spent."""
    some = np.array([True, False, True])
    state = State(9, 9, 1.0, np.ones((1, 2)), compared=some, doubtful=~some, abandoned=~some)
    told = "2 of 3 targets are decided, and the other is contradicted"
    assert Compared(0.0).reached(state) == told
    assert Compared(0.0).reached(replace(state, abandoned=np.zeros(3, bool))) is None
    assert Compared(0.0).reached(replace(state, doubtful=~some & False)) == told
    assert Compared(0.0).reached(replace(state, compared=~some, doubtful=~some & False)) is None


# -- what an earlier audit of A costs --------------------------------------------------------


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of model A, on 50 of 66 pictures."""
    path = tmp_path_factory.mktemp("earlier") / "journal.db"
    given = {**PLAIN, "half_width": 0.01, "budget": 50, "seed": 9}
    with Audit(space(11), both()[0], journal=path, **given) as audit:
        audit.run()
    return path


@pytest.mark.parametrize("budget", [2, 7, 12, 31])
def test_a_budget_counts_calls_of_both_models_and_is_never_exceeded(earlier: Path, budget: int):
    a, b = Skilled("old", 0.6), Skilled("new", 0.6)  # alike, so that only the budget ends it
    verdict = Versus(space(11), a, b, budget=budget, journal_a=earlier, **PLAIN).run()
    made = len(a.asked) + len(b.asked)
    assert verdict.calls_a + verdict.calls_b == made
    assert budget - 1 <= made <= budget
    assert budget < 12 or len(a.asked) < len(b.asked)  # most of A's answers were known


def test_a_budget_of_one_call_is_none():
    with pytest.raises(InputError, match="budget: expected at least 2 calls"):
        Versus(space(), *both(), budget=1)


def test_canaries_hear_model_a_again_where_its_answers_were_known(earlier: Path):
    """Its drift since the earlier audit was never seen: canaries were given what it said then."""
    a, b = both()
    given = {**PLAIN, "budget": 60, "canaries": 6}
    verdict = Versus(space(11), a, b, journal_a=earlier, **given).run()
    assert len(a.asked) + len(b.asked) == verdict.calls_a + verdict.calls_b <= 60
    again = [key for key, times in Counter(b.asked).items() if times == 2]
    assert len(again) == 6
    assert set(again) <= set(a.asked)
    changed = Skilled("old", 0.1)
    result = Versus(space(11), changed, both()[1], journal_a=earlier, **given).run().result
    assert result.canaries is not None
    assert result.canaries.differ > 0  # which are asked again follows from the journal's head
    assert any("answers asked again differ" in warning for warning in result.warnings)


def test_a_canary_s_half_is_paid_for_once(tmp_path: Path):
    a, path = both()[0], tmp_path / "journal.db"

    class Down(Skilled):
        left = 6

        def ask(self, prompts: Sequence[Prompt]) -> Any:
            self.left -= 1
            if self.left < 0:
                raise TimeoutError("no route")
            return super().ask(prompts)

    given = {**PLAIN, "budget": 14, "canaries": 2}
    with Versus(space(), a, Down("new", 0.95, seed=1), journal=path, **given) as versus:
        with pytest.raises(ModelError, match="no route"):
            versus.run()
        assert len(a.asked) == 7  # five pairs, a canary, and half of another
    with Versus(space(), a, both()[1], journal=path, **given) as versus:
        versus.run()
    assert len(a.asked) == 7
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        assert sum(source.cost for source in journal.sources()) == 4


# -- two servers, many calls on their way ------------------------------------------------------

FAULTY: dict[str, Any] = {"latency": 0.004, "spread": 1.0, "limited": 0.1, "broken": 0.1}
TOKENS = Prices(input=1.0, output=1.0, tokens=1)


def spent(server: Any) -> int:
    """Tokens that a server billed, those of answers that got lost on the way included."""
    s = server.statistics
    return int(
        s.prompt_tokens + s.completion_tokens + s.unseen_prompt_tokens + s.unseen_completion_tokens
    )


def test_a_cap_needs_the_prices_of_both_models():
    """That of one alone was taken for that of both, the other being free."""
    priced = HttpJson("http://127.0.0.1:9/", request={}, response="p", prices=Prices(per_call=1.0))
    free = HttpJson("http://127.0.0.1:9/", request={}, response="p")
    for two in ((priced, free), (free, priced)):
        with pytest.raises(InputError, match=r"max_cost: expected the prices of model .* be known"):
            Versus(space(), *two, max_cost=9.0)


@pytest.mark.parametrize("cap", [20_000.0, pytest.param(70_000.0, marks=pytest.mark.slow)])
def test_under_a_cap_two_servers_with_faults_never_bill_more(tmp_path: Path, cap: float):
    """16 calls of each on their way, interrupted twice; the servers count what they billed."""
    dataset = phantom(30, size=64)
    questions = QuestionSpace(dataset, ["identity", "brightness_up"])
    brains = [DemoBrain(dataset, error=error, worse=0.1, seed=1) for error in (0.3, 0.2)]
    behaviours = [Behaviour(**FAULTY, truncated=0.1, retry_after=0.01, seed=k) for k in (1, 2)]
    path = tmp_path / "journal.db"

    def model(server: Any, name: str) -> OpenAIChat:
        return OpenAIChat(
            server.model,
            base_url=f"{server.url}/v1",
            prices=TOKENS,
            max_input_tokens=400,
            max_tokens=2,
            limits=Limits(in_flight=16),
            retries=Retries(times=1, first_wait=0.001),
            name=name,
        )

    def stop_at(calls: int) -> Any:
        def step(progress: Any) -> None:
            if progress.state.calls >= calls:
                raise KeyboardInterrupt

        return step

    with demo_server(brains[0], behaviours[0]) as one, demo_server(brains[1], behaviours[1]) as two:
        for stop in (40, 60, 10**9):
            a, b = model(one, "a"), model(two, "b")
            given = {**PLAIN, "max_cost": cap, "seed": 3, "journal": path}
            with Versus(questions, a, b, **given) as versus, suppress(KeyboardInterrupt):
                versus.run(stop_at(stop))
            a.close()
            b.close()
        billed = spent(one) + spent(two)
        assert max(one.statistics.most_at_once, two.statistics.most_at_once) > 4
    assert billed <= cap
    with closing(read_journal(path)) as journal:
        paid = sum(call.cost for call in journal.calls())
        assert 0.5 * cap < paid <= cap  # where an answer was cut off, its worst price
        verify(journal)
