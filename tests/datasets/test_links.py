"""Links in folders of images that lead out of the data, when they are read and afterwards."""

import copy
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.datasets import from_class_folders, from_images, from_masks
from adaptive_vtt.datasets.scanning import Folder
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.image_codec import png

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
    for name in ("private", "top/cat", "top/masks", "top/cats"):
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
