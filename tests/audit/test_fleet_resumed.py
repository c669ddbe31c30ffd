"""Members of a fleet that are interrupted at odd moments, and go on."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.audit.fleet import Broker, BrokerLease
from adaptive_vtt.audit.fleet.broker import Caps
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Prompt
from tests.audit.test_fleet_leases import Doled, plain


class Dear(ScriptedModel):
    """Each call may cost 1."""

    most_cost = 1.0


class Interrupted(Dear):
    """Is interrupted in its third batch."""

    batches = 0

    def ask(self, prompts: list[Prompt]) -> Any:  # type: ignore[override]
        self.batches += 1
        if self.batches == 3:
            raise KeyboardInterrupt
        return super().ask(prompts)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    (tmp_path / "a").mkdir()
    with closing(Broker.create(tmp_path / "fleet.db", Caps(90.0, None, 1), ["a"])) as broker:
        yield broker


def member(broker: Broker, model: ScriptedModel, **options: Any) -> Audit:
    lease = BrokerLease(broker, "a")
    journal = broker.path.parent / "a" / "journal.db"
    audit = Audit(**{**plain(), **options, "model": model}, journal=journal, lease=lease)
    lease.follow(audit)
    return audit


def test_interrupted_while_it_draws_it_goes_on(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, drawn = Selector.draw, []

    def interrupted(self: Selector, *given: Any) -> Any:
        drawn.append(given)
        if len(drawn) == 5:
            raise KeyboardInterrupt
        return draw(self, *given)

    with monkeypatch.context() as patch, member(broker, Dear(), budget=30) as audit:
        patch.setattr(Selector, "draw", interrupted)
        with pytest.raises(KeyboardInterrupt):
            audit.run()
    row = broker.member("a")
    assert row.money == 16.0  # nobody knows what was drawn: all that was leased
    with member(broker, Dear(), budget=30) as audit:
        assert audit.run().calls == broker.member("a").drawn > 3


def test_repeat_probes_that_wait_when_it_is_killed_need_not_be_there_again(broker: Broker) -> None:
    with member(broker, Interrupted(), repeat_probes=4, budget=10) as audit:
        with pytest.raises(KeyboardInterrupt):
            audit.run()
        assert len(audit._loop.queue.numbers) == 4
    with member(broker, Dear(), repeat_probes=4, budget=30) as audit:
        assert audit.run().calls > 10


def test_what_was_drawn_before_is_asked_though_its_end_is_reached() -> None:
    ended = []
    for lease in (None, Doled(7)):
        journal = MemoryJournal()
        options = {**plain(), "model": Dear(), "budget": 6, "journal": journal}
        audit = Audit(**options)
        audit.tell_all([(call.number, [0.5] * len(call.concepts)) for call in audit.ask(3)])
        assert len(audit.ask(3)) == 3  # and is killed
        ended.append(Audit(**options, lease=lease).run())
    assert [result.waiting for result in ended] == [0, 0]
    assert ended[0].calls == ended[1].calls == 6


def test_what_is_given_back_is_not_spent_by_running_again(broker: Broker) -> None:
    with member(broker, Interrupted(), budget=30) as audit:
        with pytest.raises(KeyboardInterrupt):
            audit.run()
        lease = audit.limits.lease
        assert lease is not None
        assert lease.money == broker.member("a").money < 16.0
