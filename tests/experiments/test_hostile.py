import pandas as pd
import pytest

from adaptive_vtt.experiments.engine import hostile
from tests.helpers.twins import slowly


@pytest.mark.parametrize("cell", ["silent, groups, batches", *slowly("lies", "to the end")])
def test_intervals_of_hostile_cells_hold(cell: str) -> None:
    assert not hostile.missed((cell, 0))


def test_a_miss_at_any_moment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a level of 2 %, some of a few audits miss at some moment."""
    monkeypatch.setattr(hostile, "LEVEL", 0.02)
    assert any(hostile.missed(("graded", seed)) for seed in range(6))


def test_the_table_counts_misses_and_what_chance_would_allow(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(hostile, "missed", lambda job: job[1] % 10 == 0)
    arguments = ["--seeds", "20", "--workers", "1", "--only", "rare", "lies"]
    hostile.main([*arguments, "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "hostile.csv").set_index("cell")
    assert table.loc["all"].to_dict() == {
        "audits": 40,
        "missed": 4,
        "5 % is": 2,
        "with .001 over": 7,
    }
