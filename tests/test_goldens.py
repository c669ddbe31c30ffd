"""Every audit of ``golden_audits`` still gives its kept draws, answers, intervals and report data.

Where that changes on purpose, ``python -m tests.goldens`` writes the goldens again.
"""

import pytest

from tests.golden_audits import AUDITS
from tests.goldens import differences, golden, kept, summary

DEAR = {
    *("bald", "cohort-slices", "failure-search", "mask-consistency", "nipv", "ordinal"),
    *("paper-explored", "reic-detector-command", "top-class-taught", "versus-recorded"),
}
"""Audits that `make test` leaves to `make test-slow`."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in DEAR)) for n in AUDITS]
)
def test_an_audit_gives_its_golden(name: str) -> None:
    lines = [*differences(kept(name), golden(name))]
    assert not lines, summary(name, lines)
