"""A fleet's file that tells less than its members' journals: the journals are believed."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.audit.fleet import FLEET, Broker, check_alone, recount, wait_for_members
from adaptive_vtt.audit.fleet.broker import Caps, Member
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.files import Lock
from adaptive_vtt.oracles.findings import taken
from tests.audit.test_fleet_command import FLEET_TOML, ran
from tests.audit.test_fleet_leases import CAP, KINDS, SEEDS, Doled, killed_until_the_end, member
from tests.audit.test_fleet_resumed import Dear, Interrupted
from tests.audit.test_fleet_resumed import member as asked
from tests.helpers.dying import needs_fork


def forged(out: Path) -> None:
    """Edits a fleet's file: its members took nothing yet."""
    with closing(sqlite3.connect(out / FLEET)) as db, db:
        db.execute("UPDATE members SET money = 0, calls = 0, spent = 0, drawn = 0")


@pytest.mark.slow
def test_a_fleets_file_that_tells_less_buys_no_more_calls(tmp_path: Path) -> None:
    assert ran(tmp_path, "init", "a").returncode == 0
    (tmp_path / "FLEET.toml").write_text(FLEET_TOML)
    assert ran(tmp_path, "fleet", "FLEET.toml", "--out", "out").returncode == 0
    forged(tmp_path / "out")
    again = ran(tmp_path, "fleet", "FLEET.toml", "--out", "out", "--resume", "--json")
    assert again.returncode == 0
    told = json.loads(again.stdout)
    assert told["calls"] == 60
    assert [member["state"] for member in told["members"]] == ["done", "short"]


def recounted(out: Path) -> list[Member]:
    with closing(Broker(out / FLEET)) as broker:
        recount(broker)
        return broker.members()


@pytest.mark.parametrize("kind", KINDS)
def test_a_journal_tells_what_its_audit_told_the_broker(kind: Callable[[], dict[str, Any]]) -> None:
    for times in (1, 3):
        lease, journal = Doled(7, times), MemoryJournal()
        Audit(**kind(), journal=journal, lease=lease).run()
        found, told = taken(journal), lease.settled
        assert told is not None
        assert (found.spent, found.calls) == (pytest.approx(told.spent), told.written)
        assert found.money >= told.committed - 1e-9


def test_members_that_ended_before_any_lease_are_counted_before_the_first(tmp_path: Path) -> None:
    Broker.create(tmp_path / FLEET, Caps(17.0, None, 1), list(SEEDS)).close()
    spent = member(tmp_path, "a").cost
    assert spent > 12.0
    forged(tmp_path)
    first, *others = recounted(tmp_path)
    assert first.money == first.spent == pytest.approx(spent)
    assert [row.money for row in others] == [0.0, 0.0]
    assert member(tmp_path, "b").cost <= 17.0 - spent  # some 16 without the recount


def test_calls_that_were_lost_count_at_their_worst(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with closing(Broker.create(tmp_path / FLEET, Caps(90.0, None, 1), ["a"])) as broker:
        with asked(broker, Interrupted(), budget=30) as audit, pytest.raises(KeyboardInterrupt):
            audit.run()
        before = broker.member("a")
        assert before.money > before.spent
        forged(tmp_path)
        recount(broker)
        after = broker.member("a")
        assert (after.money, after.spent) == (before.money, before.spent)
        with asked(broker, Dear(), budget=30) as audit:  # its own account is no less
            assert audit.run().calls > before.drawn


def test_a_file_that_tells_more_is_believed(tmp_path: Path) -> None:
    Broker.create(tmp_path / FLEET, Caps(6.0, None, 1), list(SEEDS)).close()
    member(tmp_path, "a")
    with closing(sqlite3.connect(tmp_path / FLEET)) as db, db:
        db.execute("UPDATE members SET money = 6 WHERE name = 'a'")
    assert recounted(tmp_path)[0].money == 6.0


@needs_fork
def test_members_that_were_killed_are_counted_as_they_were_leased(tmp_path: Path) -> None:
    Broker.create(tmp_path / FLEET, Caps(CAP, None, 2), list(SEEDS)).close()
    killed_until_the_end(tmp_path, 0.25, 6)
    with closing(Broker(tmp_path / FLEET)) as broker:
        before = broker.members()
    forged(tmp_path)
    for was, now in zip(before, recounted(tmp_path), strict=True):
        assert (now.spent, now.drawn) == (pytest.approx(was.spent), was.drawn)
        assert now.money == pytest.approx(was.money)


def test_a_member_that_is_still_written_is_waited_for_and_named(tmp_path: Path) -> None:
    Broker.create(tmp_path / FLEET, Caps(6.0, None, 1), list(SEEDS)).close()
    member(tmp_path, "a")
    lock = Lock(tmp_path / "a" / "journal.db")
    with (
        closing(Broker(tmp_path / FLEET)) as broker,
        pytest.raises(InputError, match=r"member 'a': expected .* at rest, found that process \d+"),
    ):
        wait_for_members(broker, patience=0.1)
    lock.release()


def test_a_member_goes_on_alone_only_where_it_leaves(tmp_path: Path) -> None:
    Broker.create(tmp_path / FLEET, Caps(6.0, None, 1), ["a"]).close()
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for name in ("a", "link"):
        with pytest.raises(InputError, match=r"is a member of the fleet in .*--resume'.*--leave-f"):
            check_alone(tmp_path / name, leaves=False)
        check_alone(tmp_path / name, leaves=True)
    check_alone(tmp_path / "other", leaves=False)
    with pytest.raises(InputError, match="other: is no member of a fleet; leave --leave-fleet out"):
        check_alone(tmp_path / "other", leaves=True)
