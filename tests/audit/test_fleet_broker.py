"""The broker: whatever its members do, and whoever is killed, they stay within the cap together."""

import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.audit.fleet import FLEET, Broker
from adaptive_vtt.audit.fleet.broker import Caps, Member, read_fleet_db
from adaptive_vtt.engine.budget import Account
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal.files import JOURNAL, Lock

NAMES = ("a", "b", "c")
CENTS = 1e-9


def caps(money: float | None = 10.0, calls: int | None = None, at_a_time: int = 9) -> Caps:
    return Caps(money, calls, at_a_time)


def account(
    spent: float = 0.0,
    lost: float = 0.0,
    *,
    waiting: int = 0,
    question: int = 1,
    worst: float = 1.0,
    calls: int = 0,
) -> Account:
    return Account(spent, spent + lost, waiting, question, question, worst, calls)


def begun(folder: Path, limits: Caps, names: tuple[str, ...] = NAMES) -> Broker:
    return Broker.create(folder / FLEET, limits, names)


def row(broker: Broker, name: str) -> Member:
    return broker.member(name)


# -- the promise ------------------------------------------------------------------------------


@dataclass
class Spender:
    """A member as the bill sees it: what it was charged, what may be charged for calls that were
    sent and never came back, and what it may send now."""

    charged: float = 0.0
    lost: int = 0
    made: int = 0
    left: int = 0

    def told(self, worst: float) -> Account:
        return account(self.charged, self.lost * worst, worst=worst, calls=self.made)


STEP = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["lease", "send", "send", "lose", "settle", "killed"]),
    st.integers(1, 7),
    st.floats(0, 1),
)


@settings(max_examples=30)
@given(
    st.floats(0.5, 30),
    st.one_of(st.none(), st.integers(1, 30)),
    st.floats(0.1, 3),
    st.lists(STEP, max_size=40),
)
def test_charges_and_what_may_be_charged_never_exceed_the_cap(
    tmp_path_factory: pytest.TempPathFactory,
    money: float,
    calls: int | None,
    worst: float,
    steps: list[tuple[str, str, int, float]],
) -> None:
    folder = tmp_path_factory.mktemp("fleet")
    members = {name: Spender() for name in NAMES}
    with closing(begun(folder, caps(money, calls))) as broker:
        for name, what, count, share in steps:
            member = members[name]
            if what == "lease":
                terms = broker.lease(name, member.told(worst), count, share)
                paid = (terms.money - member.charged - member.lost * worst) / worst + CENTS
                drawn = paid if calls is None else min(paid, terms.calls - member.made)
                member.left = int(drawn) if terms.kind == "leased" else 0
            elif what in ("send", "lose"):
                sent = min(count, member.left)
                member.left -= sent
                member.made += sent
                if what == "lose":
                    member.lost += sent
                else:
                    member.charged += sent * worst * share
            elif what == "settle":
                broker.settle(name, member.told(worst), "stopped")
                member.left = 0
            else:
                member.left = 0  # it never tells anybody
            bill = sum(m.charged + m.lost * worst for m in members.values())
            assert bill <= money + 1e-6
            assert calls is None or sum(m.made for m in members.values()) <= calls
            for other, said in members.items():
                assert (
                    said.charged + (said.lost + said.left) * worst
                    <= row(broker, other).money + 1e-6
                )


def test_a_lease_is_what_may_be_spent_and_the_next_calls_at_their_worst(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(10))) as broker:
        terms = broker.lease("a", account(1.5, 2.0, waiting=1, worst=0.5, calls=7), 4, 1.0)
        assert (terms.kind, terms.money) == ("leased", 1.5 + 2.0 + 5 * 0.5)
        assert (row(broker, "a").money, row(broker, "a").state) == (6.0, "asking")
        # what is left pays for fewer than are wanted
        assert broker.lease("b", account(worst=1.5), 4, 1.0).money == 3.0
        over = broker.lease("c", account(worst=1.5), 4, 1.0)
        assert over.kind == "over"
        assert over.over == (
            "the fleet's money is used up: $1.00 of $10.00 is left, and the next "
            "question may cost $1.50"
        )


def test_what_a_settled_call_did_not_cost_is_free_for_others(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(4))) as broker:
        assert broker.lease("a", account(), 4, 1.0).money == 4.0
        assert broker.lease("b", account(), 1, 1.0).kind == "over"
        broker.settle("a", account(0.25, calls=4), "done")
        assert row(broker, "a").money == 0.25
        assert broker.lease("b", account(), 4, 1.0).money == 3.0


def test_a_killed_members_lease_stays_until_it_is_resumed(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(4))) as broker:
        broker.lease("a", account(), 3, 1.0)  # and is killed
        assert broker.lease("b", account(), 4, 1.0).money == 1.0
        # resumed: one of its calls was answered, at half the price, and two are lost
        broker.settle("a", account(0.5, 2.0, calls=3), "stopped")
        assert row(broker, "a").money == 2.5
        assert broker.lease("b", account(), 4, 1.0).money == 1.0
        assert broker.lease("b", account(0.1, calls=1), 4, 1.0).money == 1.1


def test_calls_are_capped_as_money_is(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(None, 10))) as broker:
        assert broker.lease("a", account(worst=0.0), 7, 1.0).calls == 7
        assert broker.lease("b", account(worst=0.0, question=2), 7, 1.0).calls == 3
        over = broker.lease("c", account(worst=0.0), 7, 1.0)
        assert (over.kind, over.over) == ("over", "the fleet's 10 calls are used up")
        # a question that may take two calls does not begin with one
        broker.settle("a", account(worst=0.0, calls=6), "done")
        assert broker.lease("c", account(worst=0.0, question=2), 7, 1.0).kind == "over"
        assert broker.lease("c", account(worst=0.0), 7, 1.0).calls == 1


def test_a_journal_that_tells_of_less_than_was_settled_is_refused(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(10))) as broker:
        broker.settle("a", account(2.0, calls=4), "stopped")
        for less in (account(1.0, calls=4), account(2.0, calls=3)):
            with pytest.raises(JournalError, match=r"member 'a' spent 2 in 4 calls, and its journ"):
                broker.lease("a", less, 1, 1.0)
            with pytest.raises(JournalError, match="restore the journal"):
                broker.settle("a", less, "done")
        assert row(broker, "a").money == 2.0


def test_a_server_that_charges_more_than_its_bound_is_booked_and_ends_leasing(
    tmp_path: Path,
) -> None:
    with closing(begun(tmp_path, caps(4))) as broker:
        broker.lease("a", account(), 2, 1.0)
        broker.settle("a", account(5.0, calls=2, worst=3.0), "stopped")
        assert row(broker, "a").money == 5.0
        assert broker.lease("b", account(), 1, 1.0).kind == "over"


# -- whose turn it is -------------------------------------------------------------------------


def test_the_member_that_gains_most_goes_first(tmp_path: Path) -> None:
    locks = []
    for name in NAMES:
        (tmp_path / name).mkdir()
        locks.append(Lock(tmp_path / name / JOURNAL))  # as a process that runs the audit
    with closing(begun(tmp_path, caps(100, at_a_time=1))) as broker:
        assert broker.lease("a", account(), 4, 0.1).kind == "leased"
        assert broker.lease("b", account(), 4, 0.2).kind == "wait"
        assert broker.lease("c", account(), 4, 0.3).kind == "wait"
        # of those that wait the best goes on; a, which would extend its lease, keeps what it has
        assert broker.lease("a", account(1, calls=1), 4, 0.1, extend=True).kind == "wait"
        assert row(broker, "a").money == 4.0
        assert broker.lease("a", account(1, calls=1), 4, 0.1).kind == "wait"
        assert row(broker, "a").money == 1.0
        assert broker.lease("b", account(), 4, 0.2).kind == "wait"
        assert broker.lease("c", account(), 4, 0.3).kind == "leased"
        # whoever is gone holds nobody up
        locks[2].release()
        assert broker.lease("b", account(), 4, 0.2).kind == "leased"
    for lock in locks:
        lock.release()


def test_who_cannot_afford_a_call_waits_while_another_may_leave_some(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
    locks = [Lock(tmp_path / name / JOURNAL) for name in NAMES]
    with closing(begun(tmp_path, caps(4, at_a_time=2))) as broker:
        assert broker.lease("a", account(), 4, 0.1).kind == "leased"
        assert broker.lease("b", account(), 4, 0.2).kind == "wait"
        broker.settle("a", account(3.5, calls=4), "done")
        assert broker.lease("b", account(), 4, 0.2).kind == "over"
    for lock in locks:
        lock.release()


# -- the file ---------------------------------------------------------------------------------


def test_a_fleet_that_leased_is_not_begun_again(tmp_path: Path) -> None:
    begun(tmp_path, caps(1)).close()
    with closing(begun(tmp_path, caps(2), ("x",))) as broker:  # nothing was leased: it is replaced
        assert [m.name for m in broker.members()] == ["x"]
        broker.lease("x", account(), 1, 1.0)
    with pytest.raises(InputError, match="holds a fleet already; --resume goes on with it"):
        begun(tmp_path, caps(2))


def test_caps_may_rise_and_fall_to_what_may_have_been_spent(tmp_path: Path) -> None:
    with closing(begun(tmp_path, caps(10, 10))) as broker:
        broker.settle("a", account(2.0, 1.0, calls=4), "stopped")
        broker.change_caps(caps(3.0, 4))
        assert broker.lease("a", account(2.0, 1.0, calls=4), 1, 1.0).kind == "over"
        with pytest.raises(InputError, match="max_cost: expected at least 3, which the members"):
            broker.change_caps(caps(2.9, 4))
        with pytest.raises(InputError, match="max_calls: expected at least 4, which the members"):
            broker.change_caps(caps(3.0, 3))
        broker.change_caps(caps(None, None))
        assert broker.lease("a", account(2.0, 1.0, calls=4), 1, 1.0).kind == "leased"


def test_what_is_no_fleet_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no fleet was begun here"):
        Broker(tmp_path / FLEET)
    (tmp_path / FLEET).write_text("no database at all, but a text that is long enough")
    with pytest.raises(JournalError, match="file is not a database"):
        Broker(tmp_path / FLEET)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(JournalError, match="expected a fleet's file of version 1, got 0"):
        Broker(other)
    with (
        closing(begun(tmp_path / "good", caps())) as broker,
        pytest.raises(InputError, match="unknown member 'd'"),
    ):
        broker.member("d")


# -- many processes ---------------------------------------------------------------------------


def lines(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().split()] if path.exists() else []


def note(path: Path, value: float) -> None:
    with path.open("a") as file:
        file.write(f"{value:.6f}\n")


def spend(folder: Path, name: str, seed: int) -> None:
    """Leases and spends until nothing is left, as an audit does: a call is noted, then the server
    charges it, then its answer is noted. One that was noted and has no answer is lost."""
    rng = random.Random(seed)
    sent, charged, answered = (folder / f"{name}.{kind}" for kind in ("sent", "bill", "answers"))
    with closing(Broker(folder / FLEET)) as broker:
        lost = len(lines(sent)) - len(lines(answered))
        while True:
            paid, calls = sum(lines(answered)), len(lines(sent))
            said = account(paid, lost, calls=calls)
            terms = broker.lease(name, said, rng.randint(1, 5), rng.random())
            if terms.kind != "leased":
                return
            for _ in range(round(terms.money - said.committed)):
                price = rng.random()
                for place in (sent, charged, answered):
                    note(place, price)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_processes_that_are_killed_never_spend_more_than_the_cap_together(tmp_path: Path) -> None:
    """Six at a time, 30 kills: every kill at another moment, and started anew at once."""
    cap, rng = 40.0, random.Random(7)
    begun(tmp_path, caps(cap), tuple("abcdef")).close()
    running: dict[int, str] = {}

    def start(name: str) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                spend(tmp_path, name, rng.randrange(10**6))
                os._exit(0)
            finally:
                os._exit(1)
        running[pid] = name

    for name in "abcdef":
        start(name)
    for _ in range(30):
        time.sleep(rng.uniform(0, 0.01))
        pid = rng.choice(list(running))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        rng.random()
        start(running.pop(pid))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in running]
    assert codes == [0] * 6
    bill = sum(sum(lines(tmp_path / f"{name}.bill")) for name in "abcdef")
    known = sum(sum(lines(tmp_path / f"{name}.answers")) for name in "abcdef")
    _, members = read_fleet_db(tmp_path / FLEET)
    assert bill <= sum(member.money for member in members) + 1e-3 <= cap + 2e-3
    assert sum(member.spent for member in members) <= known + 1e-3
    assert bill > cap - 30 - 6  # each kill lost a call at most, and the rest was used
