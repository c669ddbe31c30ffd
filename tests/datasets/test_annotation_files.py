"""Annotations as people have them: files of YOLO, COCO and VOC, and what lies between them."""

from typing import Any

import pytest

from adaptive_vtt.datasets import UNKNOWN, recognised
from adaptive_vtt.datasets.formats.yolo import class_names, from_yolo
from adaptive_vtt.errors import InputError
from tests.helpers.annotated import coco
from tests.helpers.small_datasets import mask, picture, truths


def test_voc_with_some_masks_is_read_by_its_boxes(tmp_path):
    for k in range(2):
        picture(tmp_path / "JPEGImages" / f"{k}.jpg")
        (tmp_path / "Annotations").mkdir(exist_ok=True)
        (tmp_path / "Annotations" / f"{k}.xml").write_text("<annotation></annotation>")
    mask(tmp_path / "SegmentationClass" / "0.png")
    layout = recognised(tmp_path)
    assert (layout.kind, layout.apart) == ("voc", "")


# -- label files ---------------------------------------------------------------------------


def yolo(root, labels, shape="{split}/images/{k}.jpg"):
    for split in ("train", "val"):
        for k, text in enumerate(labels):
            file = root / shape.format(split=split, k=k)
            picture(file, 20, 40)
            label = root / file.relative_to(root).as_posix().replace("images", "labels")
            label.parent.mkdir(parents=True, exist_ok=True)
            label.with_suffix(".txt").write_text(text)
    (root / "data.yaml").write_text("names: [polyp, instrument]\nval: val/images\n")
    return root


@pytest.mark.parametrize("shape", ["{split}/images/{k}.jpg", "images/{split}/{k}.jpg"])
def test_yolo_is_read(tmp_path, shape):
    outline = "1 0.1 0.1 0.2 0.1 0.2 0.3\n"
    root = yolo(tmp_path, ["0 0.5 0.5 0.2 0.2\n", outline, ""], shape)
    layout = recognised(root)
    assert layout.kind == "yolo"
    dataset: Any = layout.load()
    assert dataset.concepts == ("polyp", "instrument")
    assert truths(dataset) == [[1, 0], [0, 1], [0, 0]] * 2
    box = dataset.sample(0).boxes[0]
    assert box.edges == pytest.approx((16, 8, 24, 12))
    assert dataset.sample(1).boxes[0].edges == pytest.approx((4, 2, 8, 6))
    assert dataset.remarks["splits"].startswith("train (3 images), val (3 images)")
    assert "not read" not in dataset.remarks
    assert len(from_yolo(root, split="val")) == 3


@pytest.mark.parametrize(
    ("line", "truth"),
    [
        ("0 0.5 0.5 0.2", [UNKNOWN, 0]),
        ("0 0.5 0.5 0.2 0", [UNKNOWN, 0]),
        ("9 0.5 0.5 0.2 0.2", [UNKNOWN, UNKNOWN]),
        ("x 0.5 0.5 0.2 0.2", [UNKNOWN, UNKNOWN]),
    ],
)
def test_lines_of_yolo_that_cannot_be_read(tmp_path, line, truth):
    root = yolo(tmp_path, ["0 .5 .5 .2 .2\n1 .5 .5 .2 .2\n", f"\n{line}\n"])
    with pytest.raises(InputError, match=r"1\.txt, line 2: expected .*; broken = 'skip'"):
        from_yolo(root)
    assert truths(from_yolo(root, broken="skip")) == [[1, 1], truth] * 2


@pytest.mark.parametrize(
    "text",
    [
        "nc: 2\nnames: ['a', \"b c\"]\n",
        "path: x\nnames:\n  0: a\n  1: b c  # two words\n\nnc: 2\n",
        "names:\n- a\n- b c\ntrain: x\n",
        "names: {0: a, 1: b c}\n",
        "names: [\n  'a',\n  'b c',\n]\nnc: 2\n",
    ],
)
def test_names_of_classes_in_a_yaml(tmp_path, text):
    (tmp_path / "set.yaml").write_text(text)
    assert class_names(tmp_path) == {0: "a", 1: "b c"}


@pytest.mark.parametrize("file", ["train/_annotations.coco.json", "labels.json", "a/b.json"])
def test_coco_is_read_under_any_name(tmp_path, file):
    folder = "train" if "/_" in file else "images"
    coco(tmp_path, images=folder, file=file)
    assert recognised(tmp_path).kind == "coco"


def test_a_dicom_without_an_ending_is_named_with_the_way_to_convert(tmp_path):
    (tmp_path / "scan").write_bytes(bytes(128) + b"DICM")
    with pytest.raises(InputError, match="DICOM"):
        recognised(tmp_path)
