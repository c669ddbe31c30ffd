"""What verify finds of prices, and what a server's bills cannot do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_facts import check_prices
from adaptive_vtt.engine.prices import MAX_RATIO, Prices
from adaptive_vtt.errors import JournalError
from adaptive_vtt.experiments.engine.prices import Billed, coverage, space_of, wrong_of
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.types import Answer, Prompt
from tests.helpers.priced import FACTS, billed

# -- what verify finds --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended() -> Audit:
    audit = billed(batch=3)
    audit.run()
    verify(audit.journal)
    return audit


def check(audit: Audit, draws: Any = None, calls: Any = None) -> None:
    prices = read_facts(audit.journal.facts()).settings.prices
    check_prices(prices, draws or audit.journal.draws(), calls or audit.journal.calls())


@pytest.mark.parametrize("name", ["expected_cost", "pixels"])
def test_verify_finds_a_price_that_the_journal_does_not_come_to(ended: Audit, name: str):
    draws = ended.journal.draws()
    why = draws[9].why
    draws[9] = replace(draws[9], why={**why, name: why[name] * 1.01})
    with pytest.raises(JournalError, match="verify: draw 9 should be expected to cost"):
        check(ended, draws)


def test_verify_finds_a_bill_that_was_changed_later(ended: Audit):
    draws, calls = ended.journal.draws(), ended.journal.calls()
    third = draws[2].call
    calls = [replace(c, cost=2 * c.cost) if c.call == third else c for c in calls]
    with pytest.raises(JournalError, match="verify: draw 3 should be expected to cost"):
        check(ended, calls=calls)


def test_verify_finds_a_draw_that_knew_what_was_not_answered(ended: Audit):
    draws = ended.journal.draws()
    calls = [c for c in ended.journal.calls() if c.call != draws[2].call]
    with pytest.raises(JournalError, match="draw 3 knew the answer to draw 2, which has none"):
        check(ended, calls=calls)


@pytest.mark.parametrize("sent", [None, -1.0, "much", float("nan")])
def test_verify_refuses_a_draw_that_does_not_say_what_it_sends(ended: Audit, sent: Any):
    draws = ended.journal.draws()
    draws[4] = replace(draws[4], why={**draws[4].why, "characters": sent})
    with pytest.raises(JournalError, match="draw 4 does not say what its call sends"):
        check(ended, draws)


# -- hostile bills ------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e12), st.floats(0, 50), st.floats(0, 50), st.sampled_from([0.5, 1.0])
        ),
        max_size=30,
    )
)
def test_no_bills_make_a_call_out_to_be_dearer_than_the_bounds_allow(bills: Any):
    """Whatever a server counts, prices are above 0 and within MAX_RATIO of their mean."""
    prices = Prices(space_of("halves", 10)[0], "one", FACTS)
    for cost, pixels, characters, share in bills:
        told = prices.reasons(np.array([pixels, characters]), share)
        prices.take(told)
        prices.learn(cost)
        every = prices.expected(np.array([[0, 0], [1, 1], [50, 0], [0, 50], [1e6, 1e6]]))
        assert (every > 0).all()
        assert np.isfinite(every).all()
        assert every.max() / every.min() <= MAX_RATIO**2 * (1 + 1e-9)


def test_a_server_cannot_starve_a_target_by_its_bills():
    """It bills a thousand times more for relation "two": that target's share of the proposal
    stays."""

    class Greedy(Billed):
        def _said(self, prompt: Prompt) -> Answer:
            said = super()._said(prompt)
            return replace(said, cost=1000.0 if prompt.relation == "two" else 1e-9)

    space, rates = space_of("targets", 60)
    model = Greedy(wrong_of(space, rates, 0))
    audit = billed(pool="targets", model=model, targets=["relations"], budget=60)
    audit.run()
    asked = [row.question for row in audit.journal.draws()]
    _, variants, _ = space.parts(asked)
    assert 20 <= int(np.sum(variants)) <= 40
    verify(audit.journal)


@pytest.mark.slow
def test_intervals_hold_where_a_server_bills_by_what_was_lost():
    """2 of 10 may miss; more than 6 do in 1 of 1,100 such tests. Seeds are fixed."""
    (found,) = coverage(10, samples=40, budget=20, bills=[True])
    assert found["missed"] <= 6


@pytest.mark.slow
def test_intervals_hold_in_300_audits() -> None:
    """Of 300, 60 may miss; more than 80 do in 1 of 500 such tests."""
    for found in coverage(300):
        assert found["missed"] <= 80
