"""An audit under a lease: it pauses where the lease is used up, draws what it would have drawn, and
spends no more; and members of a fleet that are killed again and again keep the cap."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.fleet import FLEET, Broker, BrokerLease
from adaptive_vtt.audit.fleet.broker import Caps, read_fleet_db
from adaptive_vtt.audit.fleet.leasing import Outlook
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine.budget import Account
from adaptive_vtt.errors import ModelError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.audits import content, finished, same_targets
from tests.helpers.batched import Client, Provider
from tests.helpers.dying import needs_fork
from tests.helpers.source_spaces import space as source_space
from tests.helpers.twins import crossed
from tests.models import test_concurrency

CERTIFIED: dict[str, Any] = {"half_width": 0.2, "targets": ["overall"], "surrogate": False}


class Doled:
    """A lease of ``calls`` calls at a time, ``times`` times."""

    def __init__(self, calls: int, times: int = 10**6) -> None:
        self.money: float | None = 0.0
        self.calls: int | None = 0
        self.short = False
        self.over: str | None = None
        self.accounts: list[Account] = []
        self.settled: Account | None = None
        self._dole, self._times = calls, times

    def renew(self, account: Account) -> bool:
        if len(self.accounts) >= self._times:
            self.over = "no more is leased"
            return False
        self.accounts.append(account)
        dole = max(self._dole, account.together) + account.waiting
        self.money = account.committed + dole * account.worst
        self.calls = account.calls + dole
        return True

    def keep_up(self, account: Account) -> None:
        assert self.money is not None
        assert account.committed <= self.money + 1e-9

    def settle(self, account: Account) -> None:
        self.settled = account


def plain() -> dict[str, Any]:
    space = QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"])
    return {"space": space, "model": ScriptedModel(refuse=0.2), "batch": 3, **CERTIFIED}


def sources() -> dict[str, Any]:
    return {"space": source_space(), "model": ScriptedModel(), "budget": 40, **CERTIFIED}


def repeat_probes() -> dict[str, Any]:
    return {**plain(), "repeat_probes": 4}


def concurrent() -> dict[str, Any]:
    return {**plain(), "model": test_concurrency.Busy(5)}


def batches() -> dict[str, Any]:
    return {**plain(), "model": Client(Provider())}


KINDS = [plain, sources, repeat_probes, concurrent, batches]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "calls"), crossed(KINDS, [1, 7]))
def test_an_audit_that_pauses_comes_to_the_end_of_one_that_does_not(
    kind: Callable[[], dict[str, Any]], calls: int
) -> None:
    lease = Doled(calls)
    paused, whole = finished(**kind(), lease=lease), finished(**kind())
    assert len(lease.accounts) > 2
    assert content(paused.journal) == content(whole.journal)
    assert same_targets(paused, whole)
    assert verify(paused.journal)
    assert lease.settled is not None
    assert lease.settled.committed == pytest.approx(paused.cost)


class Watched(ScriptedModel):
    """Charges its worst, and checks before every call that the lease pays for it."""

    def __init__(self, lease: Doled) -> None:
        super().__init__()
        self.lease = lease

    def ask(self, prompts: list[Prompt]) -> list[Answer | Unanswered]:  # type: ignore[override]
        assert self.lease.money is not None
        assert self.lease.calls is not None
        assert len(self.asked) + len(prompts) <= min(self.lease.money, self.lease.calls)
        return super().ask(prompts)


def test_no_call_is_sent_that_the_lease_does_not_pay_for() -> None:
    lease = Doled(5)
    audit = finished(**{**plain(), "model": Watched(lease), "batch": 4}, lease=lease)
    assert audit.cost == len(audit.model.asked) > 15  # type: ignore[attr-defined]


def test_where_no_more_is_leased_the_audit_ends_and_goes_on_later(tmp_path: Path) -> None:
    path, whole = tmp_path / "j.db", finished(**plain())
    lease = Doled(6, times=2)
    with Audit(**plain(), journal=path, lease=lease) as audit:
        result = audit.run()
        assert result.reason == "no more is leased"
        assert audit.stopped == "no more is leased"
        assert result.calls == 12
        assert verify(audit.journal)
    with Audit(**plain(), journal=path, lease=Doled(9)) as audit:
        audit.run()
        assert content(audit.journal) == content(whole.journal)
        assert same_targets(audit, whole)


def test_a_model_that_raises_leaves_what_it_may_have_cost(tmp_path: Path) -> None:
    lease, model = Doled(8), test_concurrency.Busy(4, lambda n: 0.25)
    model.fails_at = 10
    with (
        Audit(**{**plain(), "model": model}, journal=tmp_path / "j.db", lease=lease) as audit,
        pytest.raises(ModelError, match="gone"),
    ):
        audit.run()
    assert lease.settled is not None
    assert lease.settled.spent == 2.5
    assert lease.settled.committed == 2.5 + audit.interrupted > 2.5


# -- what money is worth ----------------------------------------------------------------------


def test_the_gain_is_targets_per_money_and_grows_on_the_way() -> None:
    lease, gains = Doled(1), []
    options = {**plain(), "half_width": 0.1}
    audit = Audit(**options, lease=lease)
    outlook = Outlook(audit, paid=True)

    def note(_: object) -> None:
        gains.append(outlook.gain(lease.accounts[-1]))

    start = outlook.gain(Account(0.0, 0.0, 0, 1, 1, 2.0, 0))
    assert start == pytest.approx(outlook.gain(Account(0.0, 0.0, 0, 1, 1, 4.0, 0)) * 2)
    certifier = audit.belief.certifier
    assert certifier is not None
    assert start == pytest.approx((1 / outlook.remaining(certifier)).sum() / 2.0)
    assert Outlook(audit, paid=False).gain(Account(0.0, 0.0, 0, 1, 1, 2.0, 0)) == 2 * start
    audit.run(note)
    assert np.all(np.isfinite(gains))
    assert gains[-1] == 0.0  # nothing is open
    assert max(gains) > 3 * start
    assert not any(outlook.more(lease.accounts[-1]).values())


def test_an_audit_that_certifies_nothing_comes_last() -> None:
    audit = Audit(QuestionSpace(tiny_dataset(6, 2), ["identity"]), ScriptedModel())
    outlook = Outlook(audit, paid=True)
    assert outlook.gain(Account(0.0, 0.0, 0, 1, 1, 1.0, 0)) == 0.0
    assert outlook.more(Account(0.0, 0.0, 0, 1, 1, 1.0, 0))["more_calls"] == 0


# -- members that are killed ------------------------------------------------------------------

CAP = 100.0
SEEDS = {"a": 1, "b": 2, "c": 3}


class Billing(ScriptedModel):
    """Charges a random part of its worst, on a bill, before it answers; kills itself at times."""

    def __init__(self, bill: Path, deadly: float, attempt: int) -> None:
        super().__init__()
        self._bill, self._rng = bill, random.Random(f"{bill.name}{attempt}")
        self._deadly = deadly

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        said = super()._answer(prompt)
        assert isinstance(said, Answer)
        self._die()
        price = round(self._rng.random(), 6)
        with self._bill.open("a") as file:
            file.write(f"{price}\n")
        self._die()
        return Answer(said.values, price)

    def _die(self) -> None:
        if self._rng.random() < self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def member(folder: Path, name: str, deadly: float = 0.0, attempt: int = 0) -> Audit:
    with closing(Broker(folder / FLEET)) as broker:
        lease = BrokerLease(broker, name)
        space = QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"])
        model = Billing(folder / f"{name}.bill", deadly, attempt)
        options = {**CERTIFIED, "half_width": 0.1, "batch": 2, "max_cost": CAP}
        journal = folder / name / "journal.db"
        with Audit(space, model, journal=journal, seed=SEEDS[name], lease=lease, **options) as it:
            lease.follow(it)
            it.run()
            return it


def forked(folder: Path, name: str, deadly: float, attempt: int = 0) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            member(folder, name, deadly, attempt)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def ended(pids: Iterable[int]) -> tuple[int, int]:
    """The first of these children that ends, and its status."""
    while True:
        for pid in pids:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return found, status
        time.sleep(0.001)


def killed_until_the_end(folder: Path, deadly: float, most: int) -> int:
    """Runs all members beside each other; those that die go on at once, as long as fewer than
    ``most`` died. How many did."""
    running = {forked(folder, name, deadly): name for name in SEEDS}
    deaths = 0
    while running:
        pid, status = ended(running)
        name = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGKILL)
        if code:
            deaths += 1
            running[forked(folder, name, deadly if deaths < most else 0.0, deaths)] = name
    return deaths


@pytest.mark.slow
@needs_fork
def test_members_that_are_killed_keep_the_cap_and_pay_for_nothing_twice(tmp_path: Path) -> None:
    """20 kills among three audits, before and after a call was charged."""
    Broker.create(tmp_path / FLEET, Caps(CAP, None, 2), list(SEEDS)).close()
    assert killed_until_the_end(tmp_path, 0.25, 20) >= 20
    bills = {
        name: [float(x) for x in (tmp_path / f"{name}.bill").read_text().split()] for name in SEEDS
    }
    assert sum(map(sum, bills.values())) <= CAP + 1e-6
    caps, members = read_fleet_db(tmp_path / FLEET)
    assert sum(m.money for m in members) <= CAP + 1e-6
    for found in members:
        with closing(SQLiteJournal(tmp_path / found.name / "journal.db", read_only=True)) as kept:
            assert verify(kept)
            paid = [call.cost for call in kept.calls()]
            assert found.spent == pytest.approx(sum(paid))
            # what was charged is journaled, or counted as lost at its worst
            lost = found.money - found.spent
            assert sum(bills[found.name]) <= found.money + 1e-6
            assert lost == pytest.approx(round(lost))
            assert len(bills[found.name]) <= len(paid) + round(lost)  # no other is paid for again
    assert caps.at_a_time == 2
