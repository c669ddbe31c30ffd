"""What an audit that has begun still takes: one range, the same wherever it is told."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adaptive_vtt as avtt
from adaptive_vtt.certify.further import DONE, KNOWN, Range, _range, further, in_calls, longest
from adaptive_vtt.datasets import from_table
from adaptive_vtt.experiments.engine.digits import RecordedRelation
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import Recorded
from adaptive_vtt.results.advice import more_calls
from adaptive_vtt.results.report.evidence import Evidence

SAMPLES, NAMES = 200, ["sharp", "turned", "blurred", "noisy"]
CALLS = st.integers(0, 10**6)


def audit(budget: int | None, **options: Any) -> tuple[Any, Any]:
    """A stopped audit of recorded answers, and what came of it."""
    wrong = np.random.default_rng(1).random((SAMPLES, 4)) < (0.05, 0.1, 0.2, 0.3)
    dataset = from_table(None, pd.DataFrame({"c": np.ones(SAMPLES, int)}))
    space = avtt.QuestionSpace(dataset, [RecordedRelation(name, [1]) for name in NAMES])
    answers = {"sample": np.repeat(np.arange(SAMPLES), 4).astype(str), "relation": NAMES * SAMPLES}
    model = Recorded(pd.DataFrame({**answers, "severity": 1, "c": 1.0 - wrong.ravel()}))
    chosen: dict[str, Any] = {"half_width": 0.06, "surrogate": False, "seed": 3} | options
    chosen = {"targets": ["overall", "relations"]} | chosen
    begun = avtt.Audit(space, model, budget=budget, journal=MemoryJournal(), **chosen)
    return begun, begun.run()


@pytest.mark.slow
def test_a_range_holds_what_a_stopped_audit_takes_from_there() -> None:
    """The formula of before, draws * ((width / wanted)^2 - 1), said two to ten times as much."""
    _, whole = audit(None)
    for part in (0.3, 0.5, 0.7):
        budget = round(part * whole.calls)
        _, stopped = audit(budget)
        found = stopped.further
        assert found is not None
        assert found.least <= whole.calls - budget <= found.most
        widest = stopped.targets["half_width"].max()
        assert budget * ((widest / 0.06) ** 2 - 1) > 1.5 * (whole.calls - budget)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"at_most": 0.5, "half_width": None}, {"at_most": 0.5}])
def test_decisions_have_a_forecast(options: dict[str, Any]) -> None:
    _, whole = audit(None, **options)
    _, stopped = audit(round(0.6 * whole.calls), **options)
    found = stopped.further
    assert found is not None
    assert found.least <= 0.4 * whole.calls + 1
    assert found.most >= 0.4 * whole.calls - 1


def test_nothing_is_forecast_before_targets_are_known() -> None:
    begun, stopped = audit(KNOWN)
    assert stopped.targets["more_calls"].isna().all()
    assert longest(s.more_calls for s in stopped.statuses) is None
    certifier = begun.belief.certifying
    assert set(further(certifier, certifier.left)) == {None}
    facts = Evidence(begun.journal).facts
    assert more_calls(facts, KNOWN, None) == KNOWN  # it may double what it asked


@pytest.mark.slow
def test_the_report_s_game_forecasts_what_the_engine_did() -> None:
    begun, _ = audit(150)
    content, certifier = Evidence(begun.journal), begun.belief.certifying
    there = longest(further(certifier, certifier.left, 0.03))
    assert there is not None
    assert content.calls_to(0.03) == there.after(150)
    assert there.likely > longest_to(certifier, 0.05) > 0
    half = float(content.widest[75])
    first = content.calls_to(half)
    assert first is not None
    assert first.likely == first.most <= 75


def longest_to(certifier: Any, width: float) -> int:
    found = longest(further(certifier, certifier.left, width))
    return 0 if found is None else found.likely


@given(CALLS, CALLS, CALLS)
def test_ranges_are_told_by_their_ends_where_they_are_wide(one: int, two: int, three: int) -> None:
    least, likely, most = sorted((one, two, three))
    found = Range(likely, least, most)
    assert found.wide == (most > 4 * max(least, 1))
    words = f"between {least:,} and {most:,}"
    assert (str(found) == words) == found.wide
    assert str(found).startswith("between" if found.wide else f"about {likely:,} ({least:,} to ")
    assert found.short in (f"{least:,} to {most:,}", f"{likely:,} ({least:,} to {most:,})")
    assert found.after(5).most == most + 5
    assert found.times(2).likely == 2 * likely


def test_the_longest_of_several_is_not_known_where_one_is_not() -> None:
    some = [Range(5, 3, 9), Range(6, 2, 8)]
    assert longest(some) == Range(6, 3, 9)
    assert longest([*some, None]) is None
    assert longest([]) is None
    open_ = np.array([True, True, False])
    calls = in_calls([Range(5, 3, 9), None, Range(7, 7, 7)], open_, 2.0)
    assert calls == [Range(10, 6, 18), None, DONE]
    assert in_calls([DONE], np.array([True]), 1.0) == [None]


def test_a_range_of_boundless_doubt_ends_at_what_is_left() -> None:
    assert _range(20.0, 1e6, 90) == Range(20, 1, 90)
