"""A plain pool: items that are no images, asked and told by hand, certified like any other."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, Pool, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import Dataset
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.oracles import GivenLosses, Oracle
from adaptive_vtt.results.runs import read_run
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.testing.contracts import DatasetContract, OracleContract
from adaptive_vtt.types import Answer, CallMode, Floats, Prompt, Unanswered
from adaptive_vtt.utils.figures import Bar
from tests.helpers.audits import content
from tests.helpers.command_line import run as command
from tests.helpers.dying import killed, needs_fork
from tests.helpers.report_pages import block
from tests.helpers.twins import slowly

ROOT = Path(__file__).parent.parent


def told(audit: Audit, losses: Floats, most: int = 10**9, batch: int = 1) -> list[int]:
    """Asks and tells until the audit ends, or ``most`` items were told; gives those."""
    items: list[int] = []
    while len(items) < most and (calls := audit.ask(batch)):
        for call in reversed(calls):
            audit.tell(call, losses[call.item])
            items.append(call.item)
    return items


def two_sites(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """A tenth of the items are of the site that fails six times as often; losses are anything in
    [0, 1], often an end."""
    rng = np.random.default_rng(seed)
    small = rng.random(n) < 0.1
    losses = np.where(rng.random(n) < np.where(small, 0.6, 0.1), 1.0, 0.0)
    losses = np.where(rng.random(n) < 0.5, losses, rng.random(n) * losses)
    return pd.DataFrame({"site": np.where(small, "Basel", "Bern")}), losses


def truths(groups: pd.DataFrame, losses: Floats) -> dict[str, float]:
    by_site = {
        f"site {s}: mean loss": losses[groups["site"] == s].mean() for s in ("Basel", "Bern")
    }
    return {"overall mean loss": losses.mean(), **by_site}


TARGETS = ["overall", "group:site"]


class TestItems(DatasetContract):
    def make(self) -> Dataset:
        groups = pd.DataFrame({"site": ["b", "a", "b"], "year": [1, 1, 2]})
        return Pool(3, features=np.eye(3), groups=groups).dataset


class TestGivenLosses(OracleContract):
    def make(self) -> Oracle:
        return GivenLosses()


# -- asked and told by hand ----------------------------------------------------------------


def test_groups_are_targets_and_their_sizes_are_exact() -> None:
    groups, losses = two_sites(1500, 1)
    audit = Audit(Pool(1500, groups=groups), targets=TARGETS, half_width=0.15, seed=2)
    items = told(audit, losses, batch=4)
    assert len(set(items)) == len(items) < 600
    table = audit.intervals().set_index("target")
    sizes, true = groups["site"].value_counts(), pd.Series(truths(groups, losses))[table.index]
    assert table["certified"].all()
    assert ((table["lower"] <= true) & (true <= table["upper"])).all()
    assert (table["upper"] - table["lower"]).max() <= 0.3 + 1e-9
    assert table["size"].to_dict() == {
        "overall mean loss": 1500,
        "site Basel: mean loss": sizes["Basel"],
        "site Bern: mean loss": sizes["Bern"],
    }
    for found, (name, row) in zip(verify(audit.journal), table.iterrows(), strict=True):
        assert found.name == name
        assert (found.lower, found.upper) == pytest.approx((row["lower"], row["upper"]))


def test_an_item_nobody_could_look_at_counts_as_lost() -> None:
    audit = Audit(Pool(50), half_width=0.1, seed=0)
    (call,) = audit.ask()
    audit.tell(call, Unanswered("the recording is broken"))
    (failure,) = audit.result().failures().to_dict("records")
    assert failure["loss"] == 1
    assert failure["unanswered"] == "the recording is broken"


@pytest.mark.parametrize(
    ("unanswered", "counts"),
    [
        ("loss", "they count as wrong"),
        ("both", "intervals hold whether they are right or wrong"),
    ],
)
def test_a_caution_says_how_items_without_a_loss_count(
    unanswered: Literal["loss", "both"], counts: str
) -> None:
    audit = Audit(Pool(50), half_width=0.1, seed=0, unanswered=unanswered)
    for call in audit.ask(10):
        audit.tell(call, 1.0 if call.item % 3 else Unanswered("the reader is unsure"))
    silent = audit.result().failures()["unanswered"].notna().sum()
    caution = f"{silent} of 10 items ({10 * silent}.0 %) have no loss, most often ({silent} times)"
    assert audit.result().warnings == (f"{caution} with 'the reader is unsure': {counts}",)


def test_a_cap_on_money_is_a_budget_of_items_whose_answers_carry_their_cost() -> None:
    with pytest.raises(InputError, match="or give a budget: the money over the price of a call"):
        Audit(Pool(50), half_width=0.1, max_cost=3.0)
    audit = Audit(Pool(50), half_width=0.1, budget=6)
    while calls := audit.ask(4):
        for call in calls:
            audit.tell(call, Answer((0.0,), cost=0.5))
    assert (audit.result().calls, audit.result().cost) == (6, 3.0)


def test_the_group_in_which_losses_concentrate_is_found_and_certified() -> None:
    rng = np.random.default_rng(0)
    site = rng.choice([*"abcde"], 400)
    losses = (rng.random(400) < np.where(site == "c", 0.9, 0.1)).astype(float)
    pool = Pool(400, groups=pd.DataFrame({"site": site}))
    audit = Audit(pool, half_width=0.1, discover=1, seed=1)
    told(audit, losses, batch=4)
    table = audit.intervals().set_index("target").loc["slice site c"]
    assert table["lower"] <= losses[site == "c"].mean() <= table["upper"]


class Lossy(ModelDefaults):
    """Tells what was lost on items by their names, as tasks of Inspect do."""

    answers: CallMode = "one"
    needs_image = False
    takes_words = True
    gives_losses = True

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Answer((float(prompt.sample_id == "7"),)) for prompt in prompts]


def test_items_go_by_names_of_their_own_and_a_model_may_tell_losses() -> None:
    pool = Pool(10, ids=[*"9876543210"], name="digits")
    result = Audit(pool, Lossy(), half_width=0.01, seed=0).run()
    assert result.failures()[["sample", "loss"]].to_numpy().tolist() == [["7", 1.0]]
    audit = Audit(pool, half_width=0.2, seed=0)
    (call,) = audit.ask()
    assert pool.dataset.sample_id(call.item) == call.prompt.sample_id
    known = Pool(10).dataset.fingerprint, Pool(10, ids=[*"0123456789"]).dataset.fingerprint
    assert pool.dataset.name == "digits"
    assert len({*known, pool.dataset.fingerprint}) == 3


# -- without torch -------------------------------------------------------------------------

ALONE = """
import json, sys
import numpy as np
from adaptive_vtt import Audit, Pool
from adaptive_vtt.certify.verify import verify
import adaptive_vtt.results.gate
losses = np.arange(60) % 5 == 0
with Audit(Pool(60), half_width=0.3, journal=sys.argv[1], seed=0) as audit:
    while calls := audit.ask():
        for call in calls:
            audit.tell(call, losses[call.item])
    verify(audit.journal)
    audit.result()
print(json.dumps([n for n in ("torch", "gpytorch", "cv2", "scipy") if n in sys.modules]))
"""


@pytest.mark.slow
def test_without_features_nothing_needs_torch(tmp_path: Path) -> None:
    line = [sys.executable, "-c", ALONE, str(tmp_path / "journal.db")]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


# -- journal, resume, verify, report, gate -------------------------------------------------


@needs_fork
@pytest.mark.parametrize("at", [25, *slowly(130)])
def test_killed_it_goes_on_with_the_same_draws(at: int, tmp_path: Path) -> None:
    losses = two_sites(200, 5)[1]
    options: dict[str, Any] = {"half_width": 0.25, "seed": 5, "budget": 16}
    undisturbed = Audit(Pool(200), **options)
    told(undisturbed, losses)

    def run(_: Callable[[], None]) -> None:
        told(Audit(Pool(200), journal=tmp_path / "journal.db", **options), losses)

    assert killed(run, at) is not None
    with Audit(Pool(200), journal=tmp_path / "journal.db", **options) as audit:
        before = {row.question for row in audit.journal.calls() for row in row.answers}
        assert not before & {*told(audit, losses)}
        assert content(audit.journal)[0] == content(undisturbed.journal)[0]
        verify(audit.journal)


def test_the_commands_read_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups, losses = two_sites(300, 6)
    pool = Pool(300, groups=groups)
    journal = tmp_path / "journal.db"
    with Audit(pool, targets=TARGETS, half_width=0.15, journal=journal, seed=6) as audit:
        told(audit, losses)
        audit.result().save(tmp_path)
    assert command("verify", str(tmp_path)) == 0
    assert "every draw follows" in " ".join(capsys.readouterr().out.split())
    assert command("gate", str(tmp_path), "--rule", "overall <= 60 %") == 0
    assert command("gate", str(tmp_path), "--rule", "group:site <= 5 %") == 1
    assert command("report", str(tmp_path)) == 0
    assert command("gate", str(tmp_path), "--rule", "overall <= 30 %") == 4
    output = " ".join(capsys.readouterr().out.split())
    assert "Audit(pool, journal=...)" in output, "a pool has no model to ask"
    assert "in the loop that began it" in output
    assert command("resume", str(tmp_path)) == 2
    assert "the lines of Python that began it" in " ".join(capsys.readouterr().err.split())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Audit(pool, journal=..., half_width=...)" in page
    assert "Audit(space" not in page
    assert "avtt verify" in page.partition("Next steps")[2]
    assert "not over items it does not hold" in page
    cards = block(page, "failures-data")
    assert {line["name"] for card in cards for line in card["lines"]} == {"loss"}
    assert all(card["views"] == [] for card in cards)  # no empty frame where a picture would be
    assert "Is item present" not in page
    assert "Mean loss" in page


# -- what cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"pool: expected n, a whole number from 1 to \d+, got 0"),
        ({"n": 2.5}, "got 2.5"),
        ({"n": 3, "ids": ["a", "b"]}, "expected 3 names that differ, got 2, 2 of them different"),
        ({"n": 3, "features": np.ones((2, 2))}, "expected 3 rows of d numbers, got shape 2 x 2"),
        (
            {"n": 2, "features": [[1], [np.nan]]},
            "expected finite numbers, got NaN or infinity in row 1",
        ),
        ({"n": 2, "ids": ["a", "a"]}, "pool: ids: expected 2 names that differ, got 2, 1 of them"),
        ({"n": 2, "groups": pd.DataFrame({"a": [1]})}, "a table of 2 rows.*got 1 rows"),
        ({"n": 2, "groups": pd.DataFrame({"a": [1, None]})}, "got none in column 'a', row 1"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pool(**arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ["concepts"]}, "unknown target 'concepts'.*group:COLUMN"),
        ({"targets": ["group:site"]}, "unknown column of groups 'site'"),
        ({"proxies": {"cheap": np.ones(3)}}, r"proxy 'cheap': expected an array of shape \(5, 1"),
        ({"model": lambda images: images}, "expected a pool alone, got a model"),
    ],
)
def test_what_a_pool_has_not_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Audit(Pool(5), half_width=0.2, **options)


def test_a_strategy_that_goes_by_answers_says_so() -> None:
    audit = Audit(Pool(5), strategy="uncertainty", budget=2)
    with pytest.raises(InputError, match=r"expected answers of a model.*'certify' or 'random'"):
        audit.ask()


@pytest.mark.parametrize("loss", [1.5, float("nan"), "much", [0.1, 0.2]])
def test_a_loss_that_is_none_is_refused_and_asked_for_again(loss: Any) -> None:
    audit = Audit(Pool(5), half_width=0.2, seed=0)
    (call,) = audit.ask()
    with pytest.raises(ModelError, match="tell: expected a loss between 0 and 1 for item"):
        audit.tell(call, loss)
    audit.tell(call, 1)


# -- a space of images without a model -----------------------------------------------------


def test_a_space_is_told_by_hand_as_a_model_would_answer() -> None:
    space = QuestionSpace(tiny_dataset(8, 2), ["identity", "rotation"])
    options: dict[str, Any] = {"half_width": 0.3, "targets": ["overall"], "seed": 0, "budget": 6}
    by_hand, by_name = Audit(space, **options), Audit(space, **options)
    while calls := by_hand.ask():
        by_hand.tell(calls[0], {"c1": 0.9, "c0": 0.2})
    while calls := by_name.ask():
        by_name.tell(calls[0], Answer((0.2, 0.9)))
    assert by_hand.statuses() == by_name.statuses()
    assert len(by_hand.journal.calls()) == 6
    audit = Audit(space, **options)
    (call,) = audit.ask()
    assert call.image is not None
    with pytest.raises(InputError, match="expected one about an item of a pool, got one about"):
        _ = call.item
    with pytest.raises(ModelError, match=r"a number for each of 'c0', 'c1' for call \d+, got some"):
        audit.tell(call, {"c0": 1.0})


# -- coverage ------------------------------------------------------------------------------


def missed(seed: int, confidence: float) -> bool:
    """Whether any interval of a short audit misses its truth, after any of its answers."""
    groups, losses = two_sites(2000, seed)
    pool = Pool(2000, groups=groups)
    audit = Audit(
        pool, targets=TARGETS, half_width=0.2, confidence=confidence, seed=seed, budget=25
    )
    by_name, sequences = truths(groups, losses), audit.belief.certifying.sequences
    truth = np.array([by_name[name] for name in audit.targets])
    while calls := audit.ask():
        audit.tell(calls[0], losses[calls[0].item])
        if (sequences.lower > truth + 1e-9).any() or (sequences.upper < truth - 1e-9).any():
            return True
    return False


@pytest.mark.slow
def test_intervals_hold_as_often_as_is_said() -> None:
    """With probability 80 % all hold at every moment; bets miss less often than they may."""
    wrong = sum(missed(seed, 0.8) for seed in range(200))
    assert wrong <= 0.2 * 200


# -- from a table, and without a line of Python -----------------------------------------------


def texts(n: int) -> pd.DataFrame:
    rows = [
        (f"t{k}", f"What is {k} + 1?", str(k + 2), "odd" if k % 2 else "even") for k in range(n)
    ]
    return pd.DataFrame(rows, columns=["name", "prompt", "reply", "parity"])


def test_a_pool_of_a_tables_rows_has_failures_that_show_the_row() -> None:
    table = texts(60)
    pool = Pool.from_frame(table, id="name", text=["prompt", "reply"], group="parity")
    audit = Audit(pool, half_width=0.3, targets=["overall", "group:parity"], seed=0, budget=20)
    while calls := audit.ask():
        audit.tell(calls[0], float(calls[0].item % 2))
    failures = audit.result().failures()
    first = failures.iloc[0]
    row = table.set_index("name").loc[first["sample"]]
    assert first["asked"] == f"prompt: {row['prompt']}\nreply: {row['reply']}"
    assert set(failures["parity"]) == {"odd"}
    with pytest.raises(InputError, match="did you mean 'name'"):
        Pool.from_frame(table, id="nam")
    other = Pool.from_frame(table.assign(reply="?"), id="name", text=["prompt", "reply"])
    assert other.fingerprint != Pool.from_frame(table, id="name", text="reply").fingerprint


def test_a_pool_is_planned_before_anything_is_looked_at() -> None:
    plan = Audit(Pool(2000), half_width=0.1, seed=0).plan()
    assert plan["target"].tolist() == ["overall mean loss", "all"]
    first = plan.iloc[0]
    assert first["at_least"] < first["likely at 10 %"] < first["likely at 30 %"] < first["at_most"]
    assert first["at_most"] < 2000
    with pytest.raises(InputError, match="expected an audit with half_width or at_most"):
        Audit(Pool(20), seed=0).plan()


def head(out: Path) -> str:
    with closing(read_journal(out / "journal.db")) as journal:
        return journal.head


def test_items_without_a_model_are_labelled_in_turns(tmp_path: Path, capsys: Any):
    table, out = tmp_path / "items.csv", tmp_path / "run"
    texts(80).to_csv(table, index=False)
    given = ("label", str(table), "--out", str(out))
    columns = ("--id", "name", "--text", "prompt", "--group", "parity", "--half-width", "0.3")
    assert command(*given, *columns, "--sample", "5") == 0
    printed = capsys.readouterr().out
    assert "at least  rate 10 %  rate 30 %  at most" in printed  # as 'avtt plan' names them
    assert "labels in all until certified to +-30 points" in printed
    asked, turns = out / "next.csv", 0
    first = pd.read_csv(asked, dtype=str, keep_default_na=False)
    assert [*first] == ["name", "loss", "parity", "text"]  # "name" is the user's column
    half = first.assign(loss=["1", "0", "", "unsure", ""])
    half.to_csv(tmp_path / "half.csv", index=False)
    assert command(*given, "--take", str(tmp_path / "half.csv")) == 0
    printed = capsys.readouterr().out
    row = json.loads((out / "result.json").read_text())["targets"][0]  # of the report, and runs
    bar = Bar("overall", row["estimate"], row["lower"], row["upper"], done=False)
    assert f"{bar.name} mean loss {bar.words} no" in " ".join(printed.split())
    assert "after 2 of 3 labels" in printed.partition("took 3 losses")[2]
    assert f"1 label waits for earlier items, first '{first['name'][2]}': give" in printed
    assert command("runs", str(out)) == 0
    assert "3  $0.00" in (listed := capsys.readouterr().out)
    assert "+ 20 open" in listed
    assert f"'avtt label {table} --out {out} --take {asked}'" in listed
    filled = pd.read_csv(asked, dtype=str)
    assert {*first["name"][[2, 4]]} <= set(filled["name"])  # nobody has looked at these two yet
    assert not {*first["name"][[0, 1, 3]]} & set(filled["name"])
    while asked.is_file() and turns < 9:
        pd.read_csv(asked, dtype=str).assign(loss="0,0").to_csv(asked, index=False, sep=";")
        assert command(*given) == 2
        assert f"losses that were not taken; add --take {asked}" in capsys.readouterr().err
        assert command(*given, "--take", str(asked)) == 0
        turns += 1
    output = capsys.readouterr().out
    assert "no more labels are needed: all 3 targets are certified" in output
    assert f"avtt label {table} --out {out} --half-width WIDTH" in output
    assert command("verify", str(out)) == 0
    page = (out / "report.html").read_text()
    assert "What is" in page
    assert "on the way" not in page  # items that wait for people are not lost between two turns


@pytest.mark.parametrize("count", [80, 4])
def test_looking_at_labels_and_refused_ones_write_nothing(count: int, tmp_path: Path, capsys: Any):
    """With 4 items the audit has ended, as all are labelled."""
    table, out, file = tmp_path / "items.csv", tmp_path / "run", tmp_path / "filled.csv"
    texts(count).to_csv(table, index=False)
    given = ("label", str(table), "--out", str(out))
    assert command(*given, "--id", "name", "--sample", "4") == 0
    pd.read_csv(out / "next.csv", dtype=str).assign(loss="0").to_csv(file, index=False)
    assert command(*given, "--take", str(file)) == 0
    fingerprint = head(out)
    assert command(*given, "--take", str(file)) == 2  # they were taken
    assert command(*given) == 0
    assert ("no more labels are needed" in capsys.readouterr().out) == (count == 4)
    assert command("verify", str(out), "--head", fingerprint) == 0


def test_items_with_a_high_loss_are_exported_with_their_texts(tmp_path: Path, capsys: Any):
    table, out, exported = tmp_path / "items.csv", tmp_path / "run", tmp_path / "failures"
    texts(80).to_csv(table, index=False)
    given = ("label", str(table), "--out", str(out))
    assert command(*given, "--id", "name", "--text", "prompt", "--sample", "4") == 0
    run = read_run(out)
    assert run.state == "waiting"
    assert run.words == (
        f"waiting for people: fill in {out / 'next.csv'}; "
        f"'avtt {' '.join(given)} --take {out / 'next.csv'}' takes it"
    )
    export = ("export", str(out), "--failures", str(exported))
    assert command(*export) == 2
    assert "export: no item has a loss of 0.5 or more" in capsys.readouterr().err
    rows = pd.read_csv(out / "next.csv", dtype=str).assign(loss=["1", "0", "unsure", ""])
    rows.to_csv(tmp_path / "back.csv", index=False)
    assert command(*given, "--take", str(tmp_path / "back.csv")) == 0
    assert command(*export) == 0
    failures = pd.read_csv(exported / "failures.csv", dtype=str)
    rows.rename(columns={"name": "item"}).to_csv(tmp_path / "back.csv", index=False)
    assert command(*given, "--take", str(tmp_path / "back.csv")) == 2  # read, and taken before
    assert "row 2: expected an item that was asked for" in capsys.readouterr().err
    pd.testing.assert_frame_equal(
        failures, rows.iloc[[0, 2]][["name", "text", "loss"]].reset_index(drop=True)
    )
    assert command(*export) == 2  # in use


@pytest.mark.parametrize(("column", "by"), [("ID", "'ID'"), ("kind", "their row, from 0")])
def test_items_are_named_by_the_one_column_of_names(
    column: str, by: str, tmp_path: Path, capsys: Any
) -> None:
    table, out = tmp_path / "items.csv", tmp_path / "run"
    pd.DataFrame({column: ["a", "b", "c"]}).to_csv(table, index=False)
    assert command("label", str(table)) == 2
    assert "as in 'avtt label" in " ".join(capsys.readouterr().err.split())
    for _ in range(2):  # the second call resumes
        assert command("label", str(table), "--out", str(out)) == 0
        name = "ID" if column == "ID" else "item"
        assert {*pd.read_csv(out / "next.csv", dtype=str)[name]} <= (
            {"a", "b", "c"} if column == "ID" else {"0", "1", "2"}
        )
    assert "items are named by" in (printed := capsys.readouterr().out)
    assert by in printed


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("2", "row 2: loss: expected a number from 0"),
        ("bad", "got 'bad'"),
        ("", "in column 'loss' of the items that you looked at, got none; fill it in, and run"),
    ],
)
def test_a_loss_that_is_none_takes_nothing(cell: str, message: str, tmp_path: Path, capsys: Any):
    table, out = tmp_path / "items.csv", tmp_path / "run"
    texts(30).to_csv(table, index=False)
    given = ("label", str(table), "--out", str(out))
    assert command(*given, "--id", "name", "--sample", "2") == 0
    rows = pd.read_csv(out / "next.csv", dtype=str).assign(loss=[cell, "0" if cell else ""])
    rows.to_csv(tmp_path / "back.csv", index=False)
    assert command(*given, "--take", str(tmp_path / "back.csv")) == 2
    output = capsys.readouterr()
    assert message in " ".join((output.out + output.err).split())
    rows.assign(name="t99", loss="1").to_csv(tmp_path / "back.csv", index=False)
    assert command(*given, "--take", str(tmp_path / "back.csv")) == 2
    assert "expected an item that was asked for" in " ".join(capsys.readouterr().err.split())


def test_other_columns_or_rows_for_a_run_name_another_out(tmp_path: Path, capsys: Any) -> None:
    table, out = tmp_path / "items.csv", tmp_path / "run"
    texts(30).to_csv(table, index=False, sep="\t")
    given = ("label", str(table), "--out", str(out))
    assert command(*given, "--group", "parity") == 0
    assert "next.csv shows no text; --text prompt with another --out" in capsys.readouterr().out
    for options in (("--text", "prompt"), ("--group", "prompt")):
        assert command(*given, *options) == 2
        sentence = f"{out}: was begun with another {options[0]}; keep that, or give another --out"
        assert sentence in capsys.readouterr().err
    texts(31).to_csv(table, index=False)
    assert command(*given) == 2
    assert f"was begun with another table than {table}" in capsys.readouterr().err


@pytest.mark.parametrize("useful", [False, *slowly(True)])
def test_a_proxy_that_saves_nothing_is_named_after_100_labels(useful: bool) -> None:
    rng = np.random.default_rng(0)
    losses = (rng.random(500) < 0.2).astype(float)
    guesses = np.clip(0.7 * losses + rng.normal(0.1, 0.1, 500), 0, 1)
    cheap = guesses if useful else rng.random(500)
    audit = Audit(Pool(500), half_width=0.03, proxies={"a rule": cheap}, seed=1, budget=105)
    told(audit, losses, most=95, batch=5)
    sentence = "calls the proxy 'a rule' saved nothing"
    assert not any(sentence in warning for warning in audit.result().warnings)
    told(audit, losses, batch=5)
    assert any(sentence in warning for warning in audit.result().warnings) is not useful


def test_a_pool_whose_losses_are_all_known_has_exact_rates_and_a_report(tmp_path: Path) -> None:
    groups, losses = two_sites(120, 5)
    pool = Pool(120, groups=groups)
    options: dict[str, Any] = {"strategy": "everything", "targets": TARGETS}
    with Audit(pool, journal=tmp_path / "journal.db", **options) as audit:
        told(audit, losses, batch=50)
        result = audit.result()
        result.save(tmp_path)
    rates = result.census["rates"].set_index("target")["exact"]
    assert rates.to_dict() == pytest.approx(truths(groups, losses))
    assert "Exact rates" in (tmp_path / "report.html").read_text()
    assert command("verify", str(tmp_path)) == 0
