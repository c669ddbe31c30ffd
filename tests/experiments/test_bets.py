"""The testbed of bets."""

import pandas as pd
import pytest

from adaptive_vtt.experiments.engine import bets


def test_a_quick_run_tells_calls_and_misses(tmp_path, monkeypatch):
    monkeypatch.setitem(bets.TASKS, "one, 30 %", (bets.TASKS["one, 30 %"][0], 20))
    arguments = ["--tasks", "one, 30 %", "--cells", "few questions, lies"]
    bets.main(
        [*arguments, "--seeds", "2", "--coverage", "2", "--workers", "1", "--out", str(tmp_path)]
    )
    assert pd.read_csv(tmp_path / "bets.csv")["both"].tolist() == [20.0]
    assert pd.read_csv(tmp_path / "bets-coverage.csv")["missed"].tolist() == [0, 0]


@pytest.mark.parametrize("cell", [name for name, cell in bets.CELLS.items() if cell.targets])
def test_draws_of_cells_with_targets_choose_a_relation_first(cell: str) -> None:
    material = bets.by_relation(bets.CELLS[cell], 0)
    strata = bets.selector_of(material, bets.Bets(), 0).belief.certifying.strata
    assert strata is not None
    assert len(strata) == len(material.space.variants)


@pytest.mark.slow
@pytest.mark.parametrize("cell", bets.CELLS)
def test_intervals_hold_in_hostile_cells(cell: str) -> None:
    assert sum(bets.misses((cell, seed)) for seed in range(40)) <= 6  # binomial, .001


def test_bets_of_whom_too_much_is_risked_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bets, "LEVEL", 0.02)
    assert sum(bets.misses(("lies", seed)) for seed in range(12)) >= 3
