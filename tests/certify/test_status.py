"""Where a target stands: the row that a journal keeps of it, and what is read of that."""

from dataclasses import replace
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.further import Range
from adaptive_vtt.certify.status import TargetStatus, read_statuses
from adaptive_vtt.errors import JournalError
from adaptive_vtt.families import Overall
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.run import Run
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


@pytest.fixture(scope="module")
def ended() -> Audit:
    space = QuestionSpace(tiny_dataset(20, 2, images=False), ["identity"])
    audit = Audit(space, ScriptedModel(), half_width=0.2, at_most=0.4, budget=20, seed=1)
    audit.run()
    return audit


def test_what_a_journal_states_is_what_the_engine_said(ended: Audit) -> None:
    facts = read_facts(ended.journal.facts())
    assert facts.certificate is not None
    rows = read_statuses(facts.certificate, facts.intervals or [])
    assert [status.row() for status in rows] == [status.row() for status in ended.statuses()]
    assert [status.row() for status in rows] == facts.intervals
    again = Run(ended.journal)
    assert [status.decided for status in again.statuses] == [status.decided for status in rows]
    assert again.facts is again.facts  # read once


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows[1:],
        lambda rows: [{**rows[0], "lower": None}, *rows[1:]],
        lambda rows: [None] * len(rows),
    ],
    ids=["missing", "no number", "no rows"],
)
def test_rows_that_do_not_fit_are_a_damaged_fact(ended: Audit, spoil: Any) -> None:
    facts = read_facts(ended.journal.facts())
    assert facts.certificate is not None
    with pytest.raises(JournalError, match="the fact 'intervals' is damaged"):
        read_statuses(facts.certificate, spoil(facts.intervals))


def test_a_difference_follows_from_the_rate_of_pairs() -> None:
    pair = TargetStatus(
        id=Overall(), estimate=0.55, lower=0.5, upper=0.7, certified=True, pivot=(0.5, 2.0)
    )
    assert pair.difference == pytest.approx((0.1, 0.0, 0.4))
    turned = replace(pair, pivot=(0.5, -1.0))  # model B's rate alone, A's being known
    assert turned.difference == pytest.approx((-0.05, -0.2, 0.0))
    assert replace(pair, pivot=None).difference is None


def test_a_target_is_reached_once_it_is_certified_and_decided() -> None:
    status = TargetStatus(id=Overall(), estimate=0.2, lower=0.1, upper=0.3, certified=True)
    assert status.reached
    assert not replace(status, decided="open").reached
    assert not replace(status, certified=False, decided="below").reached
    drawn = replace(status, variance_ratio=0.5, effective_draws=9.0, more_calls=Range(5, 3, 9))
    assert drawn.row()["more_calls_most"] == 9
    assert replace(drawn, more_calls=None).row()["more_calls"] is None
