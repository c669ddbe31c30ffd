"""Comparisons that are killed, lied to and given damaged files; and what they may cost."""

import json
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.halves import HalfStore
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.journal import SQLiteJournal, read_journal
from adaptive_vtt.models import HttpJson, Limits, OpenAIChat, Prices, Retries
from adaptive_vtt.results.report import write_report
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import Answer, Prompt, Unanswered
from tests.audit.test_versus import Skilled, both, space
from tests.helpers.audits import content
from tests.helpers.dying import Ticks, killed, needs_fork, ticking
from tests.helpers.endpoint import Behaviour, DemoModel, demo_server
from tests.helpers.interrupted import cut_off
from tests.helpers.loopback import RawResponse, serving
from tests.helpers.twins import slowly

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
    "moment", [pytest.param(i / 29, marks=[pytest.mark.slow] * bool(i % 12)) for i in range(30)]
)
def test_killed_at_any_statement_it_pays_for_no_half_twice(
    undisturbed: tuple[Path, int, Counter[str]], tmp_path: Path, moment: float
):
    """But for the answer that was on its way to the disk: that one may be asked again."""
    folder, ticks, bill = undisturbed
    last = killed(lambda _: compare(tmp_path, "torn"), 1 + round(moment * (ticks - 1))) or ""
    assert last or moment > 0.9  # beliefs are kept by the clock: some runs take fewer statements
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
        ("answer", "[" * 100_000),
        ("answer", "[0.5]"),
        ("answer", '[{"mask": "x", "shape": [9e9, 1]}, 0]'),
        ("answer", None),
        ("cost", float("nan")),
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
    "reply",
    [
        Answer((0.5,)),
        Answer((2.0,) * 3),
        Answer((0.5,) * 3, float("nan")),
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


# -- keys ------------------------------------------------------------------------------------


def test_no_key_of_either_endpoint_is_kept_or_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both servers echo whatever they are sent, as an answer's trouble and as an error."""
    keys = {"KEY_A": "first&secret/0", "KEY_B": "second-secret-1"}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    asked: list[str] = []

    def echo(path: str, headers: Any, body: bytes) -> RawResponse:
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


# -- what an earlier audit of A costs --------------------------------------------------------


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of model A, on 50 of 66 pictures."""
    path = tmp_path_factory.mktemp("earlier") / "journal.db"
    given = {**PLAIN, "half_width": 0.01, "budget": 50, "seed": 9}
    given["clock"] = lambda: 0.0  # comparisons draw by the journal's head, which times enter
    with Audit(space(11), both()[0], journal=path, **given) as audit:
        audit.run()
    return path


@pytest.mark.parametrize("budget", [7, 31, *slowly(2, 12)])
def test_a_budget_counts_calls_of_both_models_and_is_never_exceeded(earlier: Path, budget: int):
    a, b = Skilled("old", 0.6), Skilled("new", 0.6)  # alike, so that only the budget ends it
    verdict = Versus(space(11), a, b, budget=budget, journal_a=earlier, **PLAIN).run()
    made = len(a.asked) + len(b.asked)
    assert verdict.calls_a + verdict.calls_b == made
    assert budget - 1 <= made <= budget
    assert budget < 12 or len(a.asked) < len(b.asked)  # most of A's answers were known


def test_repeat_probes_hear_model_a_again_where_its_answers_were_known(earlier: Path):
    """Its drift since the earlier audit was never seen: repeat probes were given what it said
    then."""
    a, b = both()
    given = {**PLAIN, "budget": 60, "repeat_probes": 6}
    verdict = Versus(space(11), a, b, journal_a=earlier, **given).run()
    assert len(a.asked) + len(b.asked) == verdict.calls_a + verdict.calls_b <= 60
    again = [key for key, times in Counter(b.asked).items() if times == 2]
    assert len(again) == 6
    assert set(again) <= set(a.asked)
    changed = Skilled("old", 0.1)
    result = Versus(space(11), changed, both()[1], journal_a=earlier, **given).run().result
    assert result.repeat_probes is not None
    assert result.repeat_probes.differ > 3
    assert any("answers asked again differ" in warning for warning in result.warnings)


def test_a_repeat_probe_s_half_is_paid_for_once(tmp_path: Path):
    a, path = both()[0], tmp_path / "journal.db"
    given = {**PLAIN, "budget": 14, "repeat_probes": 2}
    with Versus(space(), a, cut_off(both()[1], 6), journal=path, **given) as versus:
        with pytest.raises(ModelError, match="power cut"):
            versus.run()
        assert len(a.asked) == 7  # five pairs, a repeat probe, and half of another
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


@pytest.mark.parametrize("cap", [8_000.0, *slowly(70_000.0)])
def test_under_a_cap_two_servers_with_faults_never_bill_more(tmp_path: Path, cap: float):
    """16 calls of each on their way, interrupted twice; the servers count what they billed."""
    dataset = phantoms.frames(30, size=64)
    questions = QuestionSpace(dataset, ["identity", "brightness_up"])
    fake_models = [DemoModel(dataset.concepts, seed=seed) for seed in (1, 2)]
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

    with (
        demo_server(fake_models[0], behaviours[0]) as one,
        demo_server(fake_models[1], behaviours[1]) as two,
    ):
        for stop in (cap // 1000, cap // 600, 10**9):
            a, b = model(one, "a"), model(two, "b")
            given = {**PLAIN, "max_cost": cap, "seed": 3, "journal": path}
            with Versus(questions, a, b, **given) as versus, suppress(KeyboardInterrupt):
                versus.run(stop_at(stop))
            a.close()
            b.close()
        billed = spent(one) + spent(two)
        assert max(one.statistics.most_at_once, two.statistics.most_at_once) > 1
    assert billed <= cap
    with closing(read_journal(path)) as journal:
        paid = sum(call.cost for call in journal.calls())
        assert 0.5 * cap < paid <= cap  # where an answer was cut off, its worst price
        verify(journal)
