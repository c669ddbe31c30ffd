"""Drawn scenes and photographs as the same thing: images of one size with boxes."""

from pathlib import Path

import numpy as np
import pytest

from adaptive_vtt.datasets.boxed import Picture, from_pictures
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic import drawn_and_photographed as experiment
from adaptive_vtt.experiments.reic.drawn_and_photographed import SIDE, Boxed, overlap, some
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.scene_plan import KINDS
from adaptive_vtt.types import Box
from adaptive_vtt.utils.image_codec import png


@pytest.fixture
def cells(tmp_path: Path) -> Boxed:
    """One image of 40 x 84 with two boxes of "cell" and one of "dog"."""
    (tmp_path / "a.png").write_bytes(png(np.zeros((40, 84, 3), np.uint8)))
    boxes = [Box("cell", 0, 0, 10, 10), Box("cell", 21, 0, 42, 20), Box("dog", 42, 20, 84, 40)]
    truth = {"cell": 1, "dog": 1}
    picture = Picture("a", tmp_path / "a.png", 40, 84, boxes, truth)
    return Boxed(from_pictures([picture], ["cell", "dog"], "here", name="cells"))


def test_labels_stand_for_everyday_kinds_and_keep_theirs_where_they_are_one(cells: Boxed) -> None:
    assert cells.names["dog"] == "dog"
    assert cells.names["cell"] in KINDS
    assert {*cells.concepts} == {*cells.names.values()}


def test_images_and_boxes_are_enlarged_alike_and_boxes_are_the_masks(cells: Boxed) -> None:
    sample = cells.sample(0)
    assert sample.require_image().shape == (160, SIDE, 3)
    assert [box.edges for box in sample.boxes][1] == (84, 0, 168, 80)
    assert {kind: int(mask.sum()) for kind, mask in sample.masks.items()} == {
        cells.names["cell"]: 40 * 40 + 84 * 80,
        "dog": 168 * 80,
    }


def test_overlap_is_that_of_areas() -> None:
    one = Box("a", 0, 0, 10, 10)
    assert overlap(one, one) == 1
    assert overlap(one, Box("b", 5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert overlap(one, Box("b", 11, 0, 15, 10)) == 0


def test_no_more_images_are_looked_at_than_asked_for() -> None:
    assert len(some(scenes(5), 3, seed=0)) == 3
    assert len(some(scenes(2), 3, seed=0)) == 2


def test_a_coco_file_without_its_images_is_refused() -> None:
    with pytest.raises(InputError, match="--coco FILE goes with --images FOLDER"):
        experiment.main(["--coco", "instances.json"])


@pytest.mark.slow
def test_without_photographs_drawn_scenes_are_measured_and_the_rest_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experiment.main(["--count", "2", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "photographs: skipped" in said
    assert "https://github.com/Shenggan/BCCD_Dataset" in said
    assert "retained" in (tmp_path / "drawn_and_photographed.csv").read_text()
