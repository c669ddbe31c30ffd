"""Regions as samples: where they lie, what they show, and what nobody knows of them."""

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.regions import Regions, grid_regions, object_regions
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import UNKNOWN, Box
from tests.helpers.small_datasets import idrid_files

HEIGHT, WIDTH = 40, 60


def pictures(count):
    """Images of which every pixel is another, as far as bytes go."""
    rng = np.random.default_rng(5)
    return [rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8) for _ in range(count)]


def spots(*rectangles):
    mask = np.zeros((HEIGHT, WIDTH), bool)
    for left, top, right, bottom in rectangles:
        mask[top:bottom, left:right] = True
    return mask


def lesions():
    """Three images: two lesions, none, and one that is there without a mask."""
    labels = pd.DataFrame({"lesion": [1, 0, 1], "disc": [1, 1, np.nan]}, index=list("abc"))
    masks = {
        "lesion": [spots((2, 3, 8, 9), (50, 30, 54, 34)), None, None],
        "disc": [spots((20, 10, 40, 30)), spots((0, 0, 60, 2)), None],
    }
    site = pd.DataFrame({"site": ["x", "y", "x"]})
    return from_table(pictures(3), labels, masks=masks, metadata=site, name="eyes")


def table(dataset):
    places = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    return dataset.truth(places[0][:, None], places[1])


def test_regions_of_a_grid_show_what_reaches_into_them():
    dataset = grid_regions(lesions(), 2, 3)
    assert len(dataset) == 18
    truths = table(dataset)
    assert truths[:6, 0].tolist() == [1, 0, 0, 0, 0, 1]  # its two lesions
    assert truths[:6, 1].tolist() == [0, 1, 0, 0, 1, 0]  # the disc spans both rows
    assert truths[6:12, 0].tolist() == [0] * 6  # absent from the image, and so from its parts
    assert truths[6:12, 1].tolist() == [1, 1, 1, 0, 0, 0]
    assert truths[12:].tolist() == [[UNKNOWN, UNKNOWN]] * 6  # there, but nobody knows where
    assert dataset.counts.tolist() == [[10, 2], [7, 5]]


def test_a_region_is_the_part_of_its_image_with_its_masks():
    whole, dataset = lesions(), grid_regions(lesions(), 2, 3)
    result, source = dataset.sample(5), whole.sample(0)
    assert np.array_equal(result.image, source.image[20:40, 40:60])
    assert list(result.masks) == ["lesion"]  # of what it shows alone
    assert np.array_equal(result.masks["lesion"], source.masks["lesion"][20:40, 40:60])
    assert dict(result.truth) == {"lesion": 1, "disc": 0}
    assert result.metadata == {"site": "x", "image": "a", "region": "row 2 column 3"}
    assert result.id == "a [40:60, 20:40] row 2 column 3"
    assert dataset.sample(12).truth == {}
    assert dataset.pixels(np.array([0, 5])).tolist() == [400, 400]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 13), (7, 2)])
def test_a_grid_covers_every_pixel_once(rows, columns):
    dataset = grid_regions(lesions(), rows, columns)
    seen = np.zeros((HEIGHT, WIDTH), int)
    of_first = dataset.rectangles[dataset.sources == 0]
    for left, top, right, bottom in of_first.tolist():
        seen[top:bottom, left:right] += 1
    assert len(of_first) == rows * columns
    assert (seen == 1).all()
    sides = of_first[:, 2:] - of_first[:, :2]
    assert (np.ptp(sides, axis=0) <= 1).all()


def test_what_covers_too_little_of_a_region_is_unknown_there():
    dataset = grid_regions(lesions(), 2, 3, least=0.05)  # 16 and 36 of 400 pixels
    assert table(dataset)[:6, 0].tolist() == [1, 0, 0, 0, 0, UNKNOWN]


def test_regions_around_objects_have_a_margin_and_a_least_side():
    dataset = object_regions(lesions(), margin=0.5, least_side=10)
    assert dataset.metadata_values("region").tolist() == ["lesion", "lesion", "disc", "disc"]
    assert dataset.metadata_values("image").tolist() == ["a", "a", "a", "b"]
    assert dataset.metadata_values("site").tolist() == ["x", "x", "x", "y"]
    assert dataset.rectangles.tolist() == [
        [0, 0, 12, 12],  # 12 x 12 about (5, 6), moved into the image
        [47, 27, 57, 37],  # 8 x 8 with its margin, 10 by the least side
        [10, 0, 50, 40],
        [0, 0, 60, 10],
    ]
    assert table(dataset).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_boxes_are_objects_and_are_clipped():
    boxes = [
        (Box("cell", 10, 10, 20, 20), Box("spot", 18, 12, 30, 22)),
        (Box("cell", 0.5, 30, 9.5, 40, 0.5),),
    ]
    truths = np.array([[1, 1], [1, 0]], np.int8)
    whole = TableDataset(pictures(2), truths, ["a", "b"], ["cell", "spot"], boxes=boxes)
    dataset = object_regions(whole, margin=0, least_side=4)
    assert dataset.rectangles.tolist() == [[10, 10, 20, 20], [18, 12, 30, 22], [0, 30, 9, 40]]
    assert table(dataset).tolist() == [[1, 1], [1, 1], [1, 0]]
    assert dataset.sample(0).boxes == (Box("cell", 0, 0, 10, 10), Box("spot", 8, 2, 10, 10))
    assert dataset.most_boxes == 2


def test_another_cut_is_another_audit():
    marks = {
        grid_regions(lesions(), 2).fingerprint,
        grid_regions(lesions(), 3).fingerprint,
        grid_regions(lesions(), 2, least=0.05).fingerprint,
        object_regions(lesions()).fingerprint,
        lesions().fingerprint,
    }
    assert len(marks) == 5


X = pd.DataFrame({"x": [1]})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid_regions(lesions(), 0), r"expected a grid of 1 x 1 or more, got 0 x 0"),
        (lambda: grid_regions(lesions(), 41), r"'a': expected an image of 41 x 41 pixels or more"),
        (lambda: grid_regions(lesions(), 2, least=2), r"least: expected .* at most 1, got 2"),
        (lambda: grid_regions(from_table(pictures(1), X), 2), r"expected masks or boxes that"),
        (lambda: grid_regions(from_table(None, X), 2), r"dataset 'table' has no images"),
        (lambda: grid_regions(grid_regions(lesions(), 2), 2), r"metadata called 'image' or"),
    ],
)
def test_what_cannot_be_cut_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


# -- SPEC.toml ---------------------------------------------------------------------------------

SPEC = """
[dataset]
kind = "idrid"
path = "."
[regions]
{regions}
[model]
target = "model.py:predict"
"""


@pytest.mark.parametrize(
    ("regions", "samples"),
    [("grid = [2, 5]", 20), ('around = "objects"\nmargin = 0.0\nleast_side = 1', 2)],
)
def test_a_spec_says_where_to_cut(tmp_path, regions, samples):
    idrid_files(tmp_path)
    (tmp_path / "SPEC.toml").write_text(SPEC.format(regions=regions))
    space = build_space(read_spec(tmp_path / "SPEC.toml"), tmp_path)
    assert isinstance(space.dataset, Regions)
    assert len(space.dataset) == samples
