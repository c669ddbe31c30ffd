"""Audits of chat servers that answer in an odd way: what is read, kept, told and read again."""

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adaptive_vtt.audit.inspection import Inspection
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.rows import CallRow
from adaptive_vtt.models.local.self_taught import SelfTaught
from adaptive_vtt.results.report.page import render
from adaptive_vtt.results.run import Run
from adaptive_vtt.results.runs import read_rates, read_run
from adaptive_vtt.results.view.pages import state_of
from tests.helpers.command_line import run, shown
from tests.helpers.odd_chats import KEY, PAGE, SHAPE, odd_chat

pytestmark = pytest.mark.usefixtures("undrawn")
TAUGHT = ("--set", "certify.surrogate=true", "--set", "certify.self_taught=true")
RULE = "def read(reply, concept):\n    return 'artifacts' not in reply\n"


def audited(spec: Path, *options: str) -> tuple[int, Path]:
    """The exit code of an audit of some calls, and its folder."""
    out = spec.parent / "run"
    given = options or ("--budget", "5")
    return run("audit", str(spec), *given, "--out", str(out)), out


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of a server that answers everything with one sentence, and is gone by now."""
    printed, folder = io.StringIO(), tmp_path_factory.mktemp("prose")
    with odd_chat("prose", folder) as (spec, _), redirect_stderr(printed):
        code, out = audited(spec, "--budget", "12")
    assert code == 0
    assert printed.getvalue().count("reply: ") == 3
    assert "read as Yes" in printed.getvalue()
    return out


def calls_of(folder: Path) -> list[CallRow]:
    return read_journal(folder / "journal.db").calls()


def answers_of(folder: Path) -> set[Any]:
    return {row.answer for call in calls_of(folder) for row in call.answers}


def test_an_audit_ends_after_ten_calls_where_none_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with odd_chat("blind", tmp_path, in_flight=2) as (spec, requests):
        code, out = audited(spec, "--budget", "24")
    text = " ".join(capsys.readouterr().err.split())
    assert code == 2
    assert 10 <= len(calls_of(out)) < 15  # what was under way is kept, too
    assert "says that it got no image" in text
    assert "nothing is certified" in text
    assert len(requests) < 20  # the ways to P(yes) are tried once


def test_what_a_server_means_is_read_and_its_reply_kept(prose: Path) -> None:
    assert answers_of(prose) == {1.0}
    said = "The radiograph shows a lesion, without artifacts."
    assert {call.reply for call in calls_of(prose)} == {said}


@pytest.mark.slow
def test_a_refused_option_is_left_out_and_that_is_kept(tmp_path: Path) -> None:
    with odd_chat("no temperature", tmp_path) as (spec, requests):
        _, out = audited(spec)
    assert answers_of(out) == {0.0}
    assert sum("temperature" in request for request in requests) == 1
    facts = read_facts(read_journal(out / "journal.db").facts())
    assert facts.ways[""].without == ("temperature",)


def test_a_long_reply_is_shortened_and_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)
    with odd_chat("echo", tmp_path, key="ODD_KEY") as (spec, _):
        _, out = audited(spec)
    for call in calls_of(out):
        assert len(call.reply) <= 2000
        assert " [...] " in call.reply
        assert call.reply.startswith("No. You sent [key].")
        assert call.reply.endswith("calm. ")
    assert KEY.encode() not in (out / "journal.db").read_bytes()


def test_what_comes_in_place_of_a_reply_is_kept_without_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)
    monkeypatch.setattr("adaptive_vtt.results.report.page.render", render)
    with odd_chat("pages", tmp_path, key="ODD_KEY", yes_from="words") as (spec, _):
        code, out = audited(spec, "--budget", "8")
    assert code == 0
    replies = {PAGE.replace(KEY, "[key]"), SHAPE}
    assert replies | {"No"} == {call.reply for call in calls_of(out)}
    with Run.opened(out) as finished:
        assert replies <= {*Inspection(finished.journal).failures()["reply"]}
    assert "Gateway: no upstream for [key]" in (out / "report.html").read_text()
    assert KEY.encode() not in (out / "journal.db").read_bytes()
    assert run("export", str(out), "--failures", str(tmp_path / "failures")) == 0
    assert "Gateway: no upstream for [key]" in (tmp_path / "failures/failures.csv").read_text()


def test_cautions_reach_gate_view_runs_and_export(prose: Path, tmp_path: Path) -> None:
    out = prose
    caution = "the model gave the same answer (100 %) in all 12 calls"
    given = ("--rule", "lesion: miss rate <= 0.9", "--junit", str(tmp_path / "junit.xml"))
    assert run("gate", str(out), *given, "--summary", str(tmp_path / "gate.md")) == 0
    for file in ("junit.xml", "gate.md"):
        assert caution in (tmp_path / file).read_text()
    assert "same answer" in shown("runs", str(out))
    latest: Any = SimpleNamespace(value=read_rates(out), failure="", busy=False)
    report: Any = SimpleNamespace(value=None, failure="", busy=False)
    assert caution in state_of(read_run(out), report, latest)["figures"]
    assert caution in shown("export", str(out), "--failures", str(tmp_path / "failures"))


def test_replies_are_read_again_without_a_call(prose: Path, tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_text(RULE)
    same, other = tmp_path / "same", tmp_path / "other"
    assert run("rejudge", str(prose), "--out", str(same)) == 0
    rule = f"{tmp_path / 'rule.py'}:read"
    assert run("rejudge", str(prose), "--reading", rule, "--out", str(other)) == 0
    results = [json.loads((each / "result.json").read_text()) for each in (prose, same, other)]
    bounds = [[(row["lower"], row["upper"]) for row in each["targets"]] for each in results]
    assert bounds[0] == bounds[1] != bounds[2]
    warnings = [" ".join(each["warnings"]) for each in results]
    assert "read again" not in warnings[0]
    assert "read again by our own rules, split by template 'zero-shot'" in warnings[1]
    assert f"read again by {rule!r}, split by" in warnings[2]
    assert (answers_of(same), answers_of(other)) == ({1.0}, {0.0})
    assert run("verify", str(other)) == 0


@pytest.mark.parametrize(
    ("way", "code", "verdict"),
    [
        ("looks", 0, "the model looked at both images"),
        ("parts", 4, "the model did not look at its images"),
        ("blind", 4, "the model did not look at its images"),
        ("cut", 2, "raise max_tokens"),
    ],
)
def test_a_probe_of_two_calls_says_whether_a_model_looks(
    way: str, code: int, verdict: str, tmp_path: Path
) -> None:
    with odd_chat(way, tmp_path, price_per_call=0.5, yes_from="words") as (spec, requests):
        text = " ".join(shown("plan", str(spec), "--probe", code=code).split())
        assert len(requests) == 2
        assert verdict in text
        assert "cost $1.00" in text
        assert run("plan", str(spec), "--probe", "--set", "audit.max_cost=0.9") == 2
        assert len(requests) == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["openai", "openai-batch"])
def test_a_wrong_key_is_told_before_nets_are_taught(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[object] = []
    monkeypatch.setattr(SelfTaught, "of", lambda *_, **__: taught.append(1))
    with odd_chat("wrong key", tmp_path, kind=kind) as (spec, requests):
        code, _ = audited(spec, *TAUGHT)
    assert code == 2
    assert "http 401: the key is wrong or missing" in capsys.readouterr().err
    assert (len(requests), taught) == (1, [])


@pytest.mark.slow
def test_a_good_key_that_may_list_no_models_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfTaught, "of", lambda *_, **__: None)
    with odd_chat("parts", tmp_path) as (spec, requests):
        code, out = audited(spec, "--budget", "2", *TAUGHT)
    assert (code, requests[0]["messages"]) == (0, [])
    assert {call.reply for call in calls_of(out)} == {"Answer: no"}
    assert answers_of(out) == {0.0}
