"""Cohorts in audits: from earlier runs, tables and other harnesses' files; their keys; verify."""

import json
import sys
from pathlib import Path
from shutil import copytree
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, Cohort, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_facts import check_cohort
from adaptive_vtt.cohort import Item, Member
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models import Recorded
from tests.helpers.command_line import run

OTHER = QuestionSpace(avtt.testing.tiny_dataset(4, 2))
SAMPLES = 300
NAMES = [f"s{k:03d}" for k in range(SAMPLES)]
HARD = np.random.default_rng(0).random(SAMPLES) < 0.3
"""Images on which most models fail."""


def space(**options: Any) -> QuestionSpace:
    labels = pd.DataFrame({"c": np.ones(SAMPLES, int)}, index=NAMES)
    return QuestionSpace(avtt.datasets.from_table(None, labels), **options)


def losses(version: int) -> Any:
    rate = np.where(HARD, 0.85, 0.05)
    return (np.random.default_rng(version).random(SAMPLES) < rate).astype(float)


def table(count: int = 5) -> pd.DataFrame:
    return pd.DataFrame({f"m{k}": losses(k + 1) for k in range(count)}, index=NAMES)


def audited(version: int, **options: Any) -> Audit:
    wrong = losses(version)
    model = Recorded(pd.DataFrame({"c": 1 - wrong}, index=NAMES), name=f"version {version}")
    given = {"half_width": 0.08, "targets": ["overall"], **options}
    audit = Audit(space(), model, **given)
    audit.run()
    return audit


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of other models, of 30 calls each, and a folder without one."""
    base = tmp_path_factory.mktemp("runs")
    for version in (1, 2, 3):
        (base / f"run{version}").mkdir()
        path = base / f"run{version}" / "journal.db"
        audited(version, seed=version, budget=30, journal=path, surrogate=False).close()
    (base / "notes").mkdir()
    return base


@pytest.fixture
def folder(runs: Path, tmp_path: Path) -> Path:
    """A copy of the runs for one test, which may add to them."""
    return Path(copytree(runs, tmp_path / "runs"))


# -- what it is worth ------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_after_others_takes_fewer_calls_and_its_interval_holds() -> None:
    took = {}
    for cohort in (Cohort.from_table(table()), None):
        with audited(9, seed=1, cohort=cohort) as audit:
            (row,) = audit.result().targets.to_dict("records")
            assert row["lower"] <= losses(9).mean() <= row["upper"]
            took[cohort is None] = audit.result().calls
    assert took[False] < 0.8 * took[True]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inverted", "turned", "constant"])
def test_a_model_unlike_its_cohort_costs_few_calls_more(kind: str) -> None:
    """32 seeds of "turned" gave 1.11 with a standard error of .03, so 8 seeds pass 1.2 at most."""
    usual = losses(9)
    wrong = {"turned": np.roll(usual, 150), "inverted": 1 - usual, "constant": np.ones(SAMPLES)}
    model = Recorded(pd.DataFrame({"c": 1 - wrong[kind]}, index=NAMES), name=kind)
    took = {}
    for cohort in (Cohort.from_table(table()), None):
        took[cohort is None] = 0
        for seed in range(8):
            given: dict[str, Any] = {"seed": seed, "cohort": cohort, "targets": ["overall"]}
            with Audit(space(), model, half_width=0.08, **given) as audit:
                took[cohort is None] += audit.run().calls
    assert took[False] <= 1.2 * took[True]


@pytest.mark.slow
def test_a_run_goes_on_with_the_cohort_that_it_was_begun_with(folder: Path) -> None:
    """A pattern matches the run itself by then."""
    path = folder / "run9" / "journal.db"
    path.parent.mkdir()
    pattern = str(folder / "run*")
    with audited(9, seed=9, budget=20, journal=path, cohort=Cohort.from_runs(pattern)) as audit:
        first = [row.call for row in audit.journal.draws()]
    with audited(9, seed=9, budget=30, journal=path, cohort=Cohort.from_runs(pattern)) as audit:
        assert [row.call for row in audit.journal.draws()][:20] == first
        facts = read_facts(audit.journal.facts())
        assert facts.cohort is not None
        assert len(facts.cohort.models) == 3
        assert len(verify(audit.journal)) == 1
    with pytest.raises(JournalError, match=r"begun with a cohort that has 'version 1 in .*run1'"):
        audited(9, seed=9, budget=40, journal=path, cohort=Cohort.from_table(table()))
    audited(3, seed=3, budget=31, surrogate=False, journal=folder / "run3" / "journal.db").close()
    with pytest.raises(JournalError, match="begun with another key"):
        audited(9, seed=9, budget=40, journal=path, cohort=Cohort.from_runs(pattern))


# -- keys and verify -------------------------------------------------------------------------------


def test_an_audit_of_the_same_key_is_no_member(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    audited(9, seed=9, budget=5, journal=path).close()
    own = Cohort.from_runs(path, *(folder / f"run{k}" for k in (1, 2, 3)))
    with pytest.raises(InputError, match=r"cohort: expected audits with draws of their own"):
        audited(9, seed=9, budget=10, journal=path, cohort=own)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": [0.0, 1.0, 0.0]}, "expected the prior's mean"),
        ({"variance": [1.0, 1.0, 1.0]}, "expected the prior's variance"),
        ({"members": [[0.0] * 5] * 2}, "expected regressions of 3 models or more"),
        ({"keys": ["own"] * 5}, "'m0': expected an audit with another key"),
    ],
)
def test_verify_works_the_prior_out_again(change: dict[str, Any], message: str) -> None:
    with audited(9, seed=1, budget=5, cohort=Cohort.from_table(table())) as audit:
        raw = audit.journal.facts()
        check_cohort(read_facts(raw))
        raw = {**raw, "cohort": {**raw["cohort"], **change}}
        if "keys" in change:
            raw["key"] = "own"
    with pytest.raises(JournalError, match=message):
        check_cohort(read_facts(raw))


# -- tables ----------------------------------------------------------------------------------------


def test_a_table_names_its_items_in_columns_or_its_index() -> None:
    where = space(relations=["identity", "brightness_up"])
    rows = pd.DataFrame(
        {
            "sample": ["s000", "s001", "s001", "elsewhere"],
            "relation": ["identity", "brightness_up", "brightness_up", "identity"],
            "severity": [0, 1, 2, 0],
            "concept": "c",
            **{name: [1.0, np.nan, 0.25, 0.0] for name in "abc"},
        }
    )
    known = Cohort.from_table(rows).on(where)[0]
    asked = [where.question(number) for number in known.questions.tolist()]
    assert [(q.sample_id, q.relation, q.severity) for q in asked] == [
        ("s000", "identity", 0),
        ("s001", "brightness_up", 2),
    ]
    assert known.losses.tolist() == [1.0, 0.25]
    scores = Cohort.from_table(rows, scores=True).on(where)[0]
    assert scores.losses.tolist() == [0.0, 0.75]
    assert known.of(np.array([0, 1])).tolist()[0] == 1.0
    assert np.isnan(known.of(np.array([1]))).all()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Cohort.from_table(table(2)).on(space()), "expected 3 models or more .* got 2"),
        (lambda: Cohort.from_table(table() * 2), r"model 'm0', row \d+: expected a loss between"),
        (lambda: Cohort.from_table(pd.concat([table(), table()])), "expected every item once"),
        (lambda: Cohort([Member("a"), Member("a")]), "expected every model once, got 'a'"),
        (lambda: Cohort([Member("a", {Item("s000"): 1.0})]).on(OTHER), "expected a concept"),
    ],
)
def test_what_is_no_cohort_has_its_sentence(made: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made()


# -- runs ------------------------------------------------------------------------------------------


def test_a_pattern_takes_what_has_ended(folder: Path, tmp_path: Path) -> None:
    assert Cohort.from_runs(folder / "*1").names == [f"version 1 in {folder / 'run1'}"]
    with pytest.raises(InputError, match=r"expected run folders .* got 0 journals"):
        Cohort.from_runs(tmp_path / "*")


def test_audits_of_other_spaces_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"cohort: .*run1.* expected an audit of this space"):
        Cohort.from_runs(folder / "run1", folder / "run2", folder / "run3").on(OTHER)


# -- lm-evaluation-harness -------------------------------------------------------------------------


def harness(path: Path, **fields: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"doc_id": k, "doc": {"id": NAMES[k]}, "target": "yes", "acc": float(k % 2), **fields}
        for k in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_samples_of_lm_evaluation_harness_are_scores(tmp_path: Path) -> None:
    paths = [harness(tmp_path / name / "samples_task_2026.jsonl") for name in "abc"]
    cohort = Cohort.from_lm_eval(paths[0], tmp_path / "b", paths[2], item="id")
    assert cohort.names == ["a", "b", "c"]
    known = cohort.on(space())[1]
    assert known.questions.tolist() == [0, 1, 2, 3, 4, 5]
    assert known.losses.tolist() == [1.0, 0.0] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "f1"}, "line 1: expected a score in the field 'f1'"),
        ({"item": "name"}, "line 1: expected the sample's name in the field 'name'"),
    ],
)
def test_fields_that_a_row_lacks_are_named(tmp_path: Path, options: dict[str, str], message: str):
    with pytest.raises(InputError, match=message):
        Cohort.from_lm_eval(harness(tmp_path / "a" / "samples_x.jsonl"), **options)


# -- Inspect ---------------------------------------------------------------------------------------


def inspect_log(path: str) -> Any:
    """As inspect_ai.log.read_eval_log gives it."""
    if not path.endswith(".eval"):
        raise ValueError("no log")
    about = {"sample": "s002", "relation": "identity", "severity": 0, "concept": "c"}
    score = lambda value: SimpleNamespace(value=value)  # noqa: E731
    samples = [
        SimpleNamespace(id="s000", metadata={}, scores={"match": score("Yes")}),
        SimpleNamespace(id="s001", metadata={}, scores={"match": score("I")}),
        SimpleNamespace(id="s001", metadata={}, scores={"match": score("C")}),  # another epoch
        SimpleNamespace(id="2", metadata=about, scores={"adaptive_vtt/loss": score(1.0)}),
        SimpleNamespace(id="s003", metadata=None, scores=None),
        SimpleNamespace(id="s004", metadata={}, scores={"match": score("C"), "f1": score(0.5)}),
    ]
    kept = samples[:-1] if "one" in path else samples
    return SimpleNamespace(eval=SimpleNamespace(model=Path(path).stem), samples=kept)


@pytest.fixture
def inspect(monkeypatch: pytest.MonkeyPatch) -> None:
    package, log = ModuleType("inspect_ai"), ModuleType("inspect_ai.log")
    log.read_eval_log = inspect_log  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "inspect_ai", package)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", log)


@pytest.mark.usefixtures("inspect")
def test_logs_of_inspect_are_scores_and_those_of_our_own_task_losses() -> None:
    cohort = Cohort.from_inspect("one-a.eval", "one-b.eval", "one-c.eval")
    assert cohort.names == ["one-a", "one-b", "one-c"]
    known = cohort.on(space())[0]
    assert known.questions.tolist() == [0, 1, 2]
    assert known.losses.tolist() == [0.0, 0.5, 1.0]


def test_inspect_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(InputError, match="are read by inspect-ai"):
        Cohort.from_inspect("one.eval")
    with pytest.raises(InputError, match="Inspect needs inspect-ai: pip install"):
        avtt.inspect.audit(lambda: None, model="mockllm/model")


# -- the command -----------------------------------------------------------------------------------


GOAL = ("--half-width", "0.2", "--targets", "overall", "--set", "certify.self_taught=false")


@pytest.mark.slow
def test_after_three_runs_or_more_they_are_a_cohort(tmp_path: Path, capsys: Any):
    assert run("init", str(tmp_path)) == 0
    spec = tmp_path / "SPEC.toml"
    for number in (1, 2, 3):
        given = (str(spec), *GOAL, "--seed", str(number))
        assert run("audit", *given, "--out", str(tmp_path / "runs" / str(number))) == 0
    after = [part for n in (1, 2, 3) for part in ("--after", str(tmp_path / "runs" / str(n)))]
    assert run("audit", str(spec), *GOAL, *after, "--out", str(tmp_path / "last")) == 0
    assert run("verify", str(tmp_path / "last")) == 0
    facts = read_facts(read_journal(tmp_path / "last" / "journal.db").facts())
    assert facts.cohort is not None
    assert len(set(facts.cohort.keys) | {facts.key}) == 4

    assert run("audit", str(spec), *GOAL, *after[:4], "--out", str(tmp_path / "no")) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "or runs of 3 or more other models, got 2" in told
