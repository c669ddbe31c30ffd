"""Figures are told alike, wherever they stand."""

import io
from types import SimpleNamespace

import pandas as pd
import pytest
from rich.console import Console

from adaptive_vtt.cli.progress import _table
from adaptive_vtt.results.gate import Rule, Ruling
from adaptive_vtt.utils.figures import Bar, estimate_percent, figure


@pytest.mark.parametrize(
    ("estimate", "lower", "upper", "text"),
    [
        (0.000072, 0.0, 0.362, "0.0 %"),
        (0.1234, 0.1, 0.15, "12.3 %"),
        (0.000072, 0.000072, 0.000072, "0.0072 %"),
        (float("nan"), 0.0, 1.0, "–"),
    ],
)
def test_an_estimate_has_the_decimals_of_its_interval(estimate, lower, upper, text):
    """More say nothing, unless the rate is known exactly."""
    assert estimate_percent(estimate, lower, upper) == text
    assert Ruling(Rule.parse("a <= 0.4"), "a", estimate, lower, upper, "pass").estimated == text
    row = {
        "target": "a",
        "kind": "overall",
        "estimate": estimate,
        "lower": lower,
        "upper": upper,
        "questions": 9,
    }
    console = Console(file=io.StringIO(), width=80)
    targets = pd.DataFrame([{**row, "more_calls": 1}])
    console.print(_table(SimpleNamespace(census={}, targets=targets)))
    assert f" {text} " in console.file.getvalue()


def test_a_figure_may_have_no_rows_and_rows_without_an_interval():
    (trace,) = figure("nothing yet", [])["data"]
    assert (trace["x"], trace["error_x"]["array"], trace["error_x"]["arrayminus"]) == ([], [], [])
    unknown = Bar("a", 0.5, float("nan"), float("nan"), done=False)
    (trace,) = figure("some", [unknown, Bar("b", 0.5, 0.25, 1.0, done=True)])["data"]
    assert (trace["error_x"]["array"], trace["error_x"]["arrayminus"]) == ([50, 0], [25, 0])
