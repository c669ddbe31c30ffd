"""The campaign of tests/campaigns/resilience.py still attacks, and what it counts can be
trusted."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns import resilience_audits as audits
from tests.campaigns import resilience_server
from tests.campaigns.resilience_audits import Ended
from tests.campaigns.resilience_forgeries import changed, edited, leaves
from tests.campaigns.resilience_hostile import CAP, HONEST, STAPLES, chosen, over
from tests.campaigns.resilience_secrets import forms, written
from tests.campaigns.resilience_server import ATTACKS, Asked

# A process of its own, because the campaign forks.
TINY = """
import json
from tests.campaigns.resilience import SUITES, TINY, campaign
if __name__ == "__main__":
    print(campaign([*SUITES], TINY, 0).to_json(orient="records"))
"""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """The table of the smallest campaign there is."""
    command = [sys.executable, "-c", TINY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.slow
def test_every_suite_attacks_and_accounts_for_what_it_tried(rows: list[dict[str, Any]]) -> None:
    assert {row["suite"] for row in rows} == {
        "kills",
        "concurrent",
        "hostile",
        "forgeries",
        "secrets",
    }
    assert all(row["tried"] == row["survived"] + row["lost"] for row in rows)
    tried = {suite: 0 for suite in ("kills", "hostile", "forgeries", "secrets")}
    for row in rows:
        tried[row["suite"]] = tried.get(row["suite"], 0) + row["tried"]
    assert all(tried[suite] > 0 for suite in ("kills", "hostile", "forgeries", "secrets"))


@pytest.mark.slow
def test_nothing_is_lost(rows: list[dict[str, Any]]) -> None:
    assert {row["what"]: row["note"] for row in rows if row["lost"]} == {}


def test_every_attack_has_a_name_and_makes_something_to_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resilience_server, "BOMB", 2**20)
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for attack, chat in product(ATTACKS, (True, False)):
        sent = attack.reply(Asked(chat, "http://other", "/v1", ""))
        assert sent.cut or isinstance(sent.body, bytes) or callable(sent.body), attack.name


def test_quick_campaign_tries_the_staples_and_full_one_everything() -> None:
    assert chosen(1) == [*range(len(ATTACKS))]
    assert {*STAPLES} < {ATTACKS[number].name for number in chosen(7)}


# -- what counts as lost ----------------------------------------------------------------------


def run(**found: Any) -> dict[str, Any]:
    ended = Ended(0, "", 100.0, 1.0)
    honest = {"ended": ended, "finished": True, "cost": CAP / 2, "billed": 3, "attacked": 1}
    return honest | found


@pytest.mark.parametrize(
    "broken",
    [{"cost": -75.0}, {"cost": float("nan")}, {"cost": CAP * 1.01}, {"billed": CAP / HONEST + 1}],
    ids=str,
)
def test_cap_is_broken_by_the_books_of_either_side(broken: dict[str, Any]) -> None:
    assert not over(ATTACKS[0], run())
    assert over(ATTACKS[0], run(**broken))


def test_count_above_the_bound_may_break_the_cap_once() -> None:
    above = next(attack for attack in ATTACKS if attack.above)
    assert not over(above, run(cost=1e6, attacked=4))
    assert over(above, run(cost=1e6, attacked=20))


def test_every_leaf_of_a_result_is_found_and_changed() -> None:
    stated = {"a": [{"b": 1.5, "c": None}, {"b": 2.5}], "d": {}, "e": True, "f": ""}
    paths = [*leaves(stated)]
    assert paths == [("a", 0, "b"), ("a", 0, "c"), ("d",), ("e",), ("f",)]
    assert all(edited(stated, path) != stated for path in paths)
    assert changed(b"") != b""


def test_secret_is_found_however_it_is_written() -> None:
    secret = "sk-a/b+c=d"
    for how, form in forms(secret).items():
        broken = f"before {form[:4]}\n  {form[4:]} after".encode()
        assert how in [*written(secret, broken)]
    assert not [*written(secret, b"sk-another")]


def test_rows_are_read_past_the_log_of_a_dead_process(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE calls (call INTEGER, cost REAL)")
        db.execute("CREATE TABLE facts (name TEXT)")
        db.execute("INSERT INTO calls VALUES (3, .5)")
        db.commit()
        assert audits.tables(tmp_path / "journal.db") == {"calls": {(3, 0.5)}}
    assert audits.tables(tmp_path / "none.db") == {}
