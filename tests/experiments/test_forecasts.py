"""The experiment about forecasts: what it counts, and that ranges hold in a few audits of it."""

import pandas as pd
import pytest

from adaptive_vtt.experiments.engine.forecasts import row, stopped


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["several", "rare"])
def test_a_stopped_audit_is_gone_on_with_and_its_range_compared(kind: str) -> None:
    result = stopped(kind, 100)
    assert 0 < result["least"] <= result["likely"] <= result["most"]
    assert result["least"] <= result["truth"] <= result["most"]
    assert result["before"] > 1.5 * result["truth"]


def test_a_row_counts_what_held_and_leaves_out_what_was_not_told() -> None:
    table = pd.DataFrame(
        {
            "truth": [10, 20, 30],
            "least": [5, 30, None],
            "likely": [10, 40, None],
            "most": [25, 50, None],
            "wide": [True, False, False],
            "before": [40, 80, 9],
        }
    )
    cells = row("all", table)
    assert cells["held"] == "1 of 2"
    assert (cells["unknown"], cells["between"]) == (1, 1)
    assert cells["before / truth"].startswith("4.00")
