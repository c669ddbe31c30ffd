"""A pytest plug-in, registered by an entry point, with a fixture that decides gates as tests.

    def test_model(avtt_gate):
        avtt_gate("runs/nightly", "overall <= 0.1", "relation:fog <= 20 %")

The test passes if all rules pass, fails with the rulings if one fails, and is skipped if one is
open, or fails then with ``--avtt-open=fail``. The model is not asked. This module imports only
pytest, so that it does not slow down other test suites.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("adaptive-vtt")
    group.addoption(
        "--avtt-open",
        choices=("skip", "fail"),
        default="skip",
        help="what a gate is whose rules are not all decided yet (default: skip)",
    )


@pytest.fixture
def avtt_gate(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return the function ``avtt_gate(DIR, RULE, ...)``, which decides rules about an audit."""

    def decide(folder: Path | str, *rules: str) -> None:
        from ..journal import read_journal
        from ..journal.files import JOURNAL
        from ..results.gate import gate

        with closing(read_journal(Path(folder) / JOURNAL)) as journal:
            decision = gate(journal, rules)
        text = "\n".join([*map(str, decision.rulings), decision.promise])
        fails = decision.state == "open" and request.config.getoption("--avtt-open") == "fail"
        if decision.state == "fail" or fails:
            pytest.fail(text, pytrace=False)
        if decision.state == "open":
            pytest.skip(text)

    return decide
