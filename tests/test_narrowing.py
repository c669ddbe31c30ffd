"""What narrower intervals will take, read off a curve; and what the report says of it."""

import numpy as np
import pytest
import report_kinds
from hypothesis import given
from hypothesis import strategies as st
from report_pages import Tags

from adaptive_vtt.certify.narrowing import NARROW, Narrowing
from adaptive_vtt.report.page import render
from adaptive_vtt.types import Floats


def curve(exponent: float, calls: int, total: int, scale: float = 8.0) -> Floats:
    """Half-widths that fall with (draws with replacement) ^ (-1 / exponent)."""
    drawn = np.arange(calls + 1)
    worth = drawn / (1 - drawn / total)
    return np.minimum(0.5, (scale / np.maximum(worth, 1e-9)) ** (1 / exponent))


@pytest.mark.parametrize("exponent", [1.0, 1.4, 2.0])
@pytest.mark.parametrize("total", [1000, 10**12])
def test_a_curve_that_goes_on_as_it_did_is_foretold(exponent: float, total: int) -> None:
    whole = curve(exponent, 900, total)
    found = Narrowing.of(whole[:301], total)
    assert found is not None
    assert found.exponent == pytest.approx(exponent)
    for calls in (301, 500, 900):
        assert found.calls_to(whole[calls]) in (calls, calls + 1)


@given(st.floats(1, 2), st.integers(40, 400), st.integers(500, 10**6), st.floats(0.001, 0.9))
def test_narrower_takes_more_calls_but_never_more_than_there_are(
    exponent: float, calls: int, total: int, part: float
) -> None:
    found = Narrowing.of(curve(exponent, calls, total), total)
    if found is None:
        return
    assert found.calls_to(found.widest) == calls
    assert calls < found.calls_to(part * found.widest) <= total
    assert found.calls_to(part * found.widest) <= found.calls_to(part * found.widest / 2)


def test_of_intervals_that_hardly_narrowed_nothing_is_foretold() -> None:
    assert Narrowing.of(np.array([0.5]), 100) is None
    assert Narrowing.of(np.array([0.5, 0.4, NARROW + 0.01]), 100) is None
    assert Narrowing.of(curve(1.0, 100, 10**6), 100) is None  # all was asked
    sudden = Narrowing.of(np.array([0.5] * 40 + [0.1]), 10**6)
    assert sudden is not None
    assert sudden.exponent == 2.0


def test_the_report_says_what_more_would_have_cost() -> None:
    """From the journal alone; not where intervals are those of pairs, or nothing is certified."""
    options = {"targets": ["overall"], "half_width": 0.05, "budget": 120}
    page = Tags(render(report_kinds.labels(**options)))
    assert page.with_id("forecast")
    assert page.with_id("forecast-chart")
    for words in ("What more would have cost", "calls in all", "cost in all", "certifies nothing"):
        assert words in page.text
    for other in ({"half_width": None, "at_most": 0.3, "budget": 20}, {"budget": 5}):
        assert not Tags(render(report_kinds.labels(**{**options, **other}))).with_id("forecast")
