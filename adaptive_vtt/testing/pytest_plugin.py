"""A fixture for pytest, registered by an entry point: gates as tests.

    def test_model(avtt_gate):
        avtt_gate("runs/nightly", "overall <= 0.1", "relation:fog <= 20 %")

Passes where every rule passes, fails with the rulings where one fails, and skips where one is open,
unless pytest was given ``--avtt-open=fail``. Nothing is asked. This module imports only
pytest, so that it costs other test suites nothing.
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
    """Decide rules about the audit in a run folder: ``avtt_gate(DIR, RULE, ...)``."""

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
