"""Calls in batches: nothing submitted twice, the cap kept, whatever breaks, whatever comes back."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine.journaled_endpoint import give_up, under_way
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import Journal, MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models.network import batches
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.audits import content, same_targets
from tests.helpers.batched import PRICE, WORST, Client, Provider, Struck

CERTIFY: dict[str, Any] = {"half_width": 0.02, "targets": ["overall"], "surrogate": False}
CERTIFY["seed"] = 3


def space(**options: Any) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(30, 2), ["identity", "rotation"], **options)


def audit(provider: Provider, journal: Journal | Path | None = None, **options: Any) -> Audit:
    client = {n: options.pop(n) for n in ("retries", "batch_size", "poll_seconds") if n in options}
    where = options.pop("space", None) or space()
    return Audit(where, Client(provider, **client), journal=journal, **{**CERTIFY, **options})


def whole(**options: Any) -> tuple[Audit, Provider]:
    """An audit in batches that nothing disturbs."""
    provider = Provider()
    found = audit(provider, **options)
    found.run()
    return found, provider


# -- rounds -----------------------------------------------------------------------------------


def test_a_round_is_one_batch_of_draws_that_know_all_rounds_before_and_none_of_their_own():
    found, provider = whole(budget=20)
    assert [row.learned for row in found.journal.draws()] == [0] * 8 + [8] * 8 + [16] * 4
    assert [len(batch["requests"]) for batch in provider.batches.values()] == [8, 8, 4]
    verify(found.journal)


def test_what_is_submitted_is_journaled_before_and_its_id_before_it_is_looked_at():
    journal, seen = MemoryJournal(), []

    class Noting(Provider):
        def exchange(self, what: str, doing: Any) -> Any:
            sent = journal.facts().get("batches", [{}])[-1]
            seen.append((what, sent.get("key"), sent.get("id"), sent.get("calls")))
            return super().exchange(what, doing)

    provider = Noting()
    audit(provider, journal, budget=8).run()
    (create, key, nothing, calls), (look, same, found, _), (read, *_) = seen
    assert (create, look, read) == ("create", "look", "results")
    assert key == same == provider.batches["b0"]["key"]
    assert nothing is None
    assert found == "b0"
    assert calls == [row.call for row in journal.draws()]


def test_where_the_source_is_asked_first_it_is_a_batch_before_that_of_its_follow_ups():
    of_sources = space(oracle=Consistency())
    found, provider = whole(space=of_sources, budget=40)
    first, second = list(provider.batches.values())[:2]
    assert {request[1] for request in first["requests"].values()} == {"identity"}
    assert {request[1] for request in second["requests"].values()} != {"identity"}
    assert max(Counter(provider.asked).values()) == 1
    verify(found.journal)


# -- interruptions ----------------------------------------------------------------------------

SPACES = [{}, {"oracle": Consistency()}]


@pytest.mark.slow
@pytest.mark.parametrize("options", SPACES, ids=["plain", "sources"])
def test_struck_at_any_exchange_it_goes_on_and_nothing_is_submitted_twice(options: Any):
    given: dict[str, Any] = {"budget": 12, "batch_size": 5, "space": space(**options)}
    undisturbed, quiet = whole(**given)
    for half in range(1, 2 * quiet.exchanges + 1):
        provider, journal = Provider(strike=half / 2), MemoryJournal()
        with pytest.raises(Struck):
            audit(provider, journal, **given).run()
        going_on = audit(provider, journal, **given)
        going_on.run()
        assert sorted(provider.asked) == sorted(quiet.asked), half
        if any(batch.lost for batch in read_facts(journal.facts()).batches):
            # struck before it was submitted: nobody knows that it was not
            result = going_on.result()
            assert result.cost == pytest.approx(undisturbed.cost + result.unconfirmed)
            assert result.unconfirmed > 0
        else:
            assert content(journal) == content(undisturbed.journal), half
        assert same_targets(going_on, undisturbed)
        assert going_on.interrupted == 0  # all are found again, so none counts as lost
        assert under_way(journal) == []


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=8), st.booleans(), st.integers(1, 3))
@pytest.mark.slow
def test_struck_again_and_again_the_cap_holds(strikes: list[int], listed: bool, looks: int):
    cap, journal = 20.0, MemoryJournal()
    provider = Provider(listed=listed, looks=looks)
    for strike in strikes:
        provider.strike = provider.exchanges + strike / 2
        try:
            audit(provider, journal, budget=40, max_cost=cap).run()
        except Struck:
            continue
        break
    provider.strike = 0
    last = audit(provider, journal, budget=40, max_cost=cap)
    last.run()
    # every request that the provider was ever given, at its worst price
    assert last.cost <= cap
    if listed:
        assert max(Counter(provider.asked).values()) == 1
    unseen = len(provider.asked) - len(set(provider.asked))
    assert last.cost >= PRICE * len(set(provider.asked)) + WORST * unseen - 1e-9


def test_a_batch_that_nobody_can_find_again_counts_at_its_worst_price_and_is_told_of():
    provider, journal = Provider(listed=False, strike=1), MemoryJournal()
    with pytest.raises(Struck):
        audit(provider, journal, budget=8).run()
    found = audit(provider, journal, budget=8).run()
    assert found.cost == pytest.approx(8 * (WORST + PRICE))
    assert any("of 1 batch nobody could tell whether" in warning for warning in found.warnings)
    assert len(provider.batches) == 2


def test_a_cap_below_what_is_on_its_way_is_refused_on_going_on():
    provider, journal = Provider(strike=2), MemoryJournal()
    with pytest.raises(Struck):
        audit(provider, journal, budget=8, max_cost=100.0).run()
    with pytest.raises(InputError, match=r"at least 24, as 0 was spent and 8 calls are on their w"):
        audit(provider, journal, budget=8, max_cost=20.0)
    assert audit(provider, journal, budget=8, max_cost=24.0).run().calls == 8


# -- money ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [3.0, 9.5])
def test_a_whole_batch_is_reserved_at_its_worst_price_before_it_is_submitted(cap: float):
    spent: list[float] = []

    class Counting(Provider):
        def create(self, key: str, requests: Any) -> str:
            most = 3 * WORST  # three attempts each
            assert running.cost + len(requests) * most <= cap + 1e-9
            spent.append(running.cost)
            return super().create(key, requests)

    running = audit(Counting(), max_cost=cap)
    result = running.run()
    assert result.cost <= cap
    assert spent


LIES: dict[str, Any] = {
    "nothing": lambda lines: [],
    "doubled": lambda lines: [*lines, *lines],
    "foreign": lambda lines: [{**one, "custom_id": f"x{k}"} for k, one in enumerate(lines)],
    "odd names": lambda lines: [{**one, "custom_id": [1]} for one in lines],
    "no JSON": lambda lines: b"\xff\xfe nothing\n{" * 20,
    "nested": lambda lines: b"[" * 200_000,
    "long": lambda lines: b'{"custom_id": "' + b"x" * 9_000_000 + b'"}',
    "usage of nothing": lambda lines: [{**one, "usage": [-5, "many"]} for one in lines],
    "no probabilities": lambda lines: [{**one, "said": [7.0, -1.0]} for one in lines],
    "expired": lambda lines: [{**one, "fails": {"kind": "batch expired"}} for one in lines],
}


@pytest.mark.parametrize("lie", LIES)
def test_whatever_comes_back_the_cap_holds_and_the_audit_ends(lie: str):
    provider = Provider(tamper=LIES[lie])
    running = audit(provider, max_cost=60.0, budget=24, fail_on_error=1.0)
    result = running.run()
    assert result.cost <= 60.0
    assert max(Counter(provider.asked).values()) <= 3  # the retries, and no more
    verify(running.journal)


def test_two_results_of_one_call_are_none_and_may_be_billed():
    provider = Provider(tamper=lambda lines: lines + lines[: len(provider.batches) == 1])
    running = audit(provider, budget=8)
    running.run()
    assert [len(batch["requests"]) for batch in provider.batches.values()] == [8, 1]
    assert running.cost == pytest.approx(8 * PRICE + WORST)


def test_a_batch_that_was_given_up_counts_at_its_worst_price():
    provider, journal = Provider(strike=2), MemoryJournal()
    with pytest.raises(Struck):
        audit(provider, journal, budget=8).run()
    with pytest.raises(InputError, match=r"expected a batch that is awaited \(b0\), got 'b1'"):
        give_up(journal, "b1")
    give_up(journal, "b0")
    result = audit(provider, journal, budget=8).run()
    assert result.unconfirmed == pytest.approx(8 * WORST)
    assert result.cost == pytest.approx(8 * (WORST + PRICE))
    assert len(provider.batches) == 2


def test_other_requests_than_those_that_failed_are_not_submitted_again():
    provider = Provider(tamper=lambda lines: lines if len(provider.batches) > 1 else lines[:5])
    running = audit(provider, budget=8)
    running.run()
    first, second = provider.batches.values()
    assert list(second["requests"].values()) == list(first["requests"].values())[5:]
    assert running.cost == pytest.approx(8 * PRICE + 3 * WORST)  # what is missing may be billed
    assert [row.answers[0].unanswered for row in running.journal.calls()] == [None] * 8


def test_a_call_that_fails_as_often_as_retries_allow_is_unanswered_for_that_reason():
    def tamper(lines: list[Any]) -> list[Any]:
        return [{**one, "fails": {"kind": "batch cancelled"}} for one in lines[:1]] + lines[1:]

    provider = Provider(tamper=tamper)
    running = audit(provider, budget=2)
    running.run()
    told = [row.answers[0].unanswered for row in running.journal.calls()]
    assert told == ["batch cancelled", None]
    assert running.cost == pytest.approx(PRICE)  # what was cancelled is not billed
    assert len(provider.batches) == 3


# -- what ends an audit -----------------------------------------------------------------------


def test_a_batch_that_is_refused_at_first_ends_the_audit_and_costs_nothing():
    provider, journal = Provider(refused=1), MemoryJournal()
    with pytest.raises(ModelError, match="'batched' at memory: a batch was not taken: the file is"):
        audit(provider, journal, budget=8).run()
    result = audit(provider, journal, budget=8).run()
    assert result.cost == pytest.approx(8 * PRICE)


def test_counts_that_nobody_can_believe_end_the_audit():
    provider = Provider(tamper=lambda lines: [{**one, "usage": [10**30, 1]} for one in lines])
    with pytest.raises(ModelError, match="counts over 10,000,000 tokens for one call, so that"):
        audit(provider, budget=24).run()


def test_a_batch_that_does_not_end_ends_the_audit_after_ever_rarer_looks(monkeypatch: Any):
    assert batches.PATIENCE == 26 * 3600
    monkeypatch.setattr(batches, "PATIENCE", 3 * 3600)
    provider = Provider(looks=10**9)
    running = audit(provider, budget=8)
    with pytest.raises(ModelError, match=r"expected batch 'b0' to end within 3 hours, it has not"):
        running.run()
    assert 3 * 3600 < running.model.slept < 3 * 3600 + 300  # type: ignore[attr-defined]
    assert provider.said.count("look") < 3 * 3600 / 20  # pauses grow to 24 s
    provider.looks = 0
    running.run()
    assert len(provider.batches) == 1


def test_exchanges_that_keep_failing_end_the_audit_which_goes_on_with_the_same_batch():
    class Away(Provider):
        down = True

        def look(self, name: str) -> Any:
            if self.down:
                raise ConnectionError("no route")
            return super().look(name)

    provider, journal = Away(), MemoryJournal()
    with pytest.raises(ModelError, match=r"looking at batch b0 failed: .*no route; resume once"):
        audit(provider, journal, budget=8).run()
    provider.down = False
    audit(provider, journal, budget=8).run()
    assert len(provider.batches) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 0}, "batch_size: expected a whole number of at least 1, got 0"),
        ({"poll_seconds": 0}, "poll_seconds: expected a number above 0, got 0"),
    ],
)
def test_options_out_of_range_are_refused(options: Any, said: str):
    with pytest.raises(InputError, match=said):
        Client(Provider(), **options)
