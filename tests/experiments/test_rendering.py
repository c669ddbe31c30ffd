"""The comparison of torch with OpenCV compares the same images."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.experiments.engine import crossover, rendering


@pytest.mark.parametrize("side", [28, 90])
@pytest.mark.parametrize("change", ["blur", "rotation"])
def test_torch_makes_the_package_s_images_to_within_one_grey_level(change: str, side: int) -> None:
    images = rendering.drawn(side, 3)
    ours, theirs = rendering.by_package(change, images), rendering.by_torch(change, images, "cpu")
    assert theirs.dtype == np.uint8
    assert np.abs(ours.astype(int) - images).mean() > 1
    assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_the_table_has_a_row_per_change_size_and_batch_and_says_where_torch_is_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--sides", "28", "--batches", "1", "2", "--device", "cpu"]
    crossover.main(["--quick", "--only", "rendering", *sizes, "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "crossover-rendering.csv")
    assert [*table] == ["change", "pixels", "images", "OpenCV", "torch, cpu"]
    assert table["images"].tolist() == [1, 2] * 3
    assert (table[["OpenCV", "torch, cpu"]] > 0).all(axis=None)
    won = int((table["torch, cpu"] < table["OpenCV"]).sum())
    assert f"torch, cpu is faster than OpenCV in {won} of 6 rows" in capsys.readouterr().out
