"""Published formats are recognised by looking, in Python and by ``avtt init`` alike."""

import tomllib
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.datasets import recognised
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.image_codec import png
from tests.datasets.test_hugging_face_data import animals
from tests.helpers import annotated
from tests.helpers.command_line import run
from tests.helpers.endobench_rows import row, write
from tests.helpers.small_datasets import medmnist

PIXELS = png(np.full((20, 30, 3), 90, np.uint8))


def coco(folder):
    annotated.coco(folder, images="val2017", file="annotations/instances_val2017.json")
    return folder


def hugging_face(folder):
    animals().save_to_disk(folder)
    return folder


def endobench(folder):
    folder.mkdir()
    return write(folder / "e.tsv", [row(k) for k in range(6)])


def archive(folder):
    folder.mkdir()
    return medmnist(folder, "breastmnist", count=16)


FORMATS: dict[str, tuple[Any, dict[str, Any]]] = {
    "coco": (coco, {"kind": "coco", "images": "../data/val2017"}),
    "hugging-face": (hugging_face, {"kind": "hugging-face", "path": "../data"}),
    "endobench": (endobench, {"kind": "endobench", "path": "../data/e.tsv"}),
    "medmnist": (archive, {"kind": "medmnist"}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_spec_is_written_that_reads_them(name, tmp_path):
    make, expected = FORMATS[name]
    data = make(tmp_path / "data")
    data = data.parent if name == "medmnist" else data  # a file, or the folder that holds it
    spec = tmp_path / "spec" / "SPEC.toml"
    assert run("init", str(spec.parent), "--data", str(data)) == 0
    assert tomllib.loads(spec.read_text())["dataset"].items() >= expected.items()
    space = build_space(read_spec(spec), spec.parent)
    assert space.size > 0
    assert space.dataset.has_images
    if name == "endobench":
        assert "options are" in (spec.parent / "model.py").read_text()


def test_boxes_without_their_images_are_told_what_to_name(tmp_path):
    file = coco(tmp_path) / "annotations" / "instances_val2017.json"
    (tmp_path / "val2017").rename(tmp_path.parent / f"{tmp_path.name}-elsewhere")
    with pytest.raises(InputError, match=r"with its images, such as 'a\.png', .*labels = "):
        recognised(file)
    other = tmp_path / "other.json"
    other.write_text("[1]")
    with pytest.raises(InputError, match=r"or COCO's boxes \(\.json\), got another file"):
        recognised(other)
