"""Images that are broken, missing, or links out of the data: refused, or skipped by name."""

import copy
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.datasets import from_class_folders, from_images, from_masks
from adaptive_vtt.datasets.scanning import Folder
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.image_codec import png
from adaptive_vtt.utils.image_files import read_image
from tests.helpers.small_datasets import ids, mask, picture, truths

PICTURE = png(np.zeros((8, 8, 3), np.uint8))

LAYOUTS: dict[str, tuple[Callable[..., Any], str]] = {
    "classes": (from_class_folders, "{top}/cat"),
    "images": (lambda top, **options: from_images(top / "cat", **options), "{top}/cat"),
    "masks": (lambda top, **options: from_masks(top, **options), "{top}/images"),
}


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request, tmp_path):
    """A loader of a folder "top", and the folder of images in it."""
    load, place = LAYOUTS[request.param]
    top = tmp_path / "top"
    images = Path(place.format(top=top))
    for folder in (images, top / "masks", tmp_path / "private"):
        folder.mkdir(parents=True)
    if request.param != "masks":
        (top / "masks").rmdir()
    for file in (images / "a.png", tmp_path / "private" / "b.png"):
        file.write_bytes(PICTURE)
    if request.param == "classes":
        (top / "dog").mkdir()
        (top / "dog" / "c.png").write_bytes(PICTURE)
    if request.param == "masks":
        for name in "ab":
            (top / "masks" / f"{name}.png").write_bytes(png(np.full((8, 8), 255, np.uint8)))
        shutil.copy(images / "a.png", images / "b.png")
    return partial(load, top), images


def test_folders_do_not_follow_links_out_of_them(layout, tmp_path):
    load, images = layout
    (images / "b.png").unlink(missing_ok=True)
    (images / "b.png").symlink_to(tmp_path / "private" / "b.png")
    with pytest.raises(InputError, match=r"expected a file inside .*'.*b\.png', which is outside"):
        load()
    assert load(allow_outside=True).sample(1).image is not None
    (images / "b.png").unlink()
    (images / "b.png").symlink_to(images / "a.png")  # which stays inside
    assert load().sample(1).image is not None


def test_a_folder_within_the_data_that_is_a_link_out_is_refused(tmp_path):
    for name in ("private", "top/cat", "top/masks"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.png").write_bytes(PICTURE)
    for link in ("dog", "images"):
        (tmp_path / "top" / link).symlink_to(tmp_path / "private")
    for load in (from_class_folders, from_masks):
        with pytest.raises(InputError, match=r"expected a file inside .*a\.png', which is outside"):
            load(tmp_path / "top")


def test_links_lead_to_all_of_the_data_and_names_only_into_their_folder(tmp_path):
    images, other = tmp_path / "images", tmp_path / "other"
    for folder in (images, other):
        folder.mkdir()
        (folder / "a.png").write_bytes(PICTURE)
    (images / "link.png").symlink_to(other / "a.png")
    (other / "link.png").symlink_to(images / "a.png")
    data = Folder(images, allow_outside=False, top=tmp_path)
    assert data.file("link.png", "row 1").is_file()
    for name in ("../other/a.png", "../other/link.png"):
        with pytest.raises(InputError, match=r"row 1: expected a file inside .*images'"):
            data.file(name, "row 1")


def test_a_link_made_after_loading_is_refused_when_the_file_is_opened(layout, tmp_path):
    load, images = layout
    for kept in (load(), copy.deepcopy(load())):
        assert kept.sample(0).image is not None
    dataset = load()
    (images / "a.png").unlink()
    (images / "a.png").symlink_to(tmp_path / "private" / "b.png")
    with pytest.raises(InputError, match=r"a\.png: expected a file inside .* made since"):
        _ = dataset.sample(0).image
    with pytest.raises(InputError, match=r"a\.png: expected a file inside .* made since"):
        _ = kept.sample(0).image


@pytest.fixture
def with_broken_image(tmp_path):
    for name in ("a", "b", "c"):
        picture(tmp_path / "images" / f"{name}.png")
        mask(tmp_path / "masks" / f"{name}.png")
    whole = (tmp_path / "images" / "b.png").read_bytes()
    (tmp_path / "images" / "b.png").write_bytes(whole[:44])  # its header is fine
    return tmp_path


def test_a_broken_image_is_refused_when_it_is_met_or_skipped_by_name(with_broken_image):
    dataset = datasets.from_masks(with_broken_image)
    assert dataset.sample(0).image is not None
    with pytest.raises(InputError, match=r"sample 'b': '.*b\.png' is not an image that can be re"):
        dataset.sample(1)
    left = datasets.from_masks(with_broken_image, broken="skip")
    assert ids(left) == ["a", "c"]
    assert left.skipped == (str(with_broken_image / "images" / "b.png"),)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"<html>not found</html>"])
def test_a_file_that_does_not_begin_as_an_image_is_refused_at_the_start(content, with_broken_image):
    (with_broken_image / "images" / "c.png").write_bytes(content)
    expected = r"c\.png'? is not an image that can be read.*; broken = 'skip' in \[dataset\]"
    with pytest.raises(InputError, match=expected):
        datasets.from_masks(with_broken_image)
    left = datasets.from_masks(with_broken_image, broken="skip")
    assert ids(left) == ["a"]


def test_broken_images_of_a_table_are_skipped_by_name(with_broken_image):
    table = with_broken_image / "labels.csv"
    table.write_text("id,polyp,age\na,1,50\nb,1,60\nc,0,70\n")
    folder = with_broken_image / "images"
    dataset = datasets.read_table(table, folder, metadata=["age"], broken="skip")
    assert ids(dataset) == ["a", "c"]
    assert truths(dataset) == [[1], [0]]
    assert dataset.sample(1).metadata == {"age": "70"}
    assert dataset.skipped == (str(folder / "b.png"),)


def test_rows_whose_file_is_missing_are_skipped_by_name_too(with_broken_image):
    table = with_broken_image / "labels.csv"
    table.write_text("id,polyp,loop\na,1,1\nb,1,0\nc,0,1\nd,0,maybe\ne,1,0\nf,0,1\n")
    folder = with_broken_image / "images"
    for name in "ef":
        picture(folder / f"{name}.png")
    dataset = datasets.read_table(table, folder, metadata=["loop"], broken="skip")
    assert ids(dataset) == ["a", "c", "e", "f"]
    assert truths(dataset) == [[1], [0], [1], [0]]
    assert dataset.skipped == (str(folder / "b.png"), f"{folder / 'd'} (missing)")
    text = r"missing: d \(row 4\); .* or leave such rows out by broken = 'skip' .in \[dataset\]"
    also = r".*; also column 'loop': row 4 holds 'maybe', the other 5 are 0 or 1"
    for metadata in ([], ["loop"]):
        with pytest.raises(InputError, match=text + also):
            datasets.read_table(table, folder, metadata=metadata)
    for name in "acef":  # most are missing: the folder is another
        (folder / f"{name}.png").unlink()
    with pytest.raises(InputError, match=r"sample 'a': image file .* does not exist, nor do"):
        datasets.read_table(table, folder, broken="skip")


def test_nothing_but_broken_files_is_no_dataset(tmp_path):
    (tmp_path / "polyps").mkdir()
    (tmp_path / "polyps" / "a.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"expected folders of images, .*, got no image"):
        datasets.from_class_folders(tmp_path, broken="skip")
    with pytest.raises(InputError, match=r"unknown value of broken 'ignore'"):
        datasets.from_class_folders(tmp_path, broken="ignore")


def test_nothing_but_the_error_is_said_of_half_a_file(tmp_path, capfd):
    whole = png(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is not an image that can be read"):
        read_image(tmp_path / "half.png", "sample")
    assert capfd.readouterr().err == ""
