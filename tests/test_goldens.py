"""Thirty audits come to what they came to: draws, answers, intervals, results, reports' data.

Where that changes on purpose, ``python -m tests.goldens`` writes the goldens anew.
"""

import pytest

from tests.golden_audits import AUDITS
from tests.goldens import differences, golden, kept, told


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_comes_to_what_it_came_to(name: str) -> None:
    found = [*differences(kept(name), golden(name))]
    assert not found, told(name, found)
