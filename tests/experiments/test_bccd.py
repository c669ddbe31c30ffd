"""The experiment on photographs of blood: what is read of a folder, and that it runs on any."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.experiments.medmnistc import bccd
from adaptive_vtt.experiments.medmnistc.bccd_cells import HEIGHT, WIDTH, Tiles, halves, read

Cell = tuple[str, int, int, int]
"""Class, middle (x, y) and radius in pixels of a photograph of 160 x 120."""
COLOURS = {"RBC": (200, 140, 140), "WBC": (90, 60, 180), "Platelets": (150, 110, 200)}


def photograph(folder: Path, name: str, cells: Sequence[Cell]) -> None:
    """A drawn one, 160 x 120, with its annotation."""
    image = np.full((120, 160, 3), 230, np.uint8)
    entries = []
    for label, x, y, radius in cells:
        cv2.circle(image, (x, y), radius, COLOURS[label], -1)
        sides = {
            "xmin": x - radius + 1,
            "ymin": y - radius + 1,
            "xmax": x + radius,
            "ymax": y + radius,
        }
        box = "".join(f"<{side}>{value}</{side}>" for side, value in sides.items())
        entries.append(f"<object><name>{label}</name><bndbox>{box}</bndbox></object>")
    for part in ("Annotations", "JPEGImages"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    size = "<size><width>160</width><height>120</height><depth>3</depth></size>"
    text = f"<annotation>{size}{''.join(entries)}</annotation>"
    (folder / "Annotations" / f"{name}.xml").write_text(text)
    cv2.imwrite(str(folder / "JPEGImages" / f"{name}.jpg"), image[:, :, ::-1])


@pytest.fixture
def two(tmp_path: Path) -> Tiles:
    """A white cell in the first tile and red ones in the last; a platelet on a border."""
    photograph(tmp_path, "a", [("WBC", 40, 30, 15), ("RBC", 120, 90, 9), ("RBC", 140, 70, 5)])
    photograph(tmp_path, "b", [("Platelets", 83, 30, 10), ("RBC", 120, 30, 8)])
    return read(tmp_path)


def test_a_photograph_makes_four_tiles_with_what_each_shows(two: Tiles) -> None:
    assert len(two) == 8
    assert two.images[0].shape == (HEIGHT, WIDTH, 3)
    assert two.present[:4].tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]
    assert two.red.tolist() == [0, 0, 0, 2, 0, 1, 0, 0]
    assert two.photograph.tolist() == [0] * 4 + [1] * 4


def test_halves_share_no_photograph(two: Tiles) -> None:
    one, other = (two.of(photographs) for photographs in halves(two, seed=0))
    assert {*one.photograph.tolist()} ^ {*other.photograph.tolist()} == {0, 1}
    assert len(one) == len(other) == 4


def test_without_data_it_says_what_is_skipped_and_where_to_get_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bccd.main(["--out", str(tmp_path)])
    output = capsys.readouterr().out
    assert "skipped" in output
    assert "https://github.com/Shenggan/BCCD_Dataset" in output
    assert "--data" in output
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_every_table_is_made_of_any_folder_in_that_layout(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(16):
        cells = [
            (label, int(x), int(y), radius)
            for label, radius, most in (("WBC", 14, 2), ("Platelets", 4, 4), ("RBC", 9, 12))
            for x, y in rng.integers(20, (140, 100), (int(rng.integers(1, most + 1)), 2))
        ]
        photograph(tmp_path / "data", f"{number:02d}", cells)
    bccd.main(["--quick", "--seeds", "1", "--data", f"{tmp_path}/data", "--out", str(tmp_path)])
    tables = {path.stem: path.read_text() for path in tmp_path.glob("*.csv")}
    assert sorted(tables) == ["bccd-audits", "bccd-intervals", "bccd-retraining"]
    assert "before,trained on,equal shares,by error rates" in tables["bccd-retraining"]
    assert tables["bccd-audits"].count("1/1") == 6  # three nets, two ways to audit
    truths = pd.read_csv(tmp_path / "bccd-intervals.csv").groupby("asked")["truth"]
    assert truths.max()["grade of red cells"] > 0  # hardly trained, it is no census of nothing
