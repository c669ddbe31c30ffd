"""Folders as people have them: splits, parts that are no classes, label files, files left over."""

import json
from typing import Any

import pytest

from adaptive_vtt.datasets import UNKNOWN, as_dataset, from_images, recognised
from adaptive_vtt.datasets.formats.yolo import class_names, from_yolo
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Box
from tests.helpers.annotated import coco
from tests.helpers.command_line import run
from tests.helpers.small_datasets import mask, picture, truths


@pytest.mark.parametrize(
    ("files", "concepts", "split"),
    [
        ("{c}/{k}.png", ("normal", "ulcer"), None),
        ("train/{c}/{k}.png", ("normal", "ulcer"), "train"),
        ("{c}/train/{k}.png", ("normal", "ulcer"), "train"),
        ("valid/images/{c}/{k}.png", ("normal", "ulcer"), "valid"),
    ],
)
def test_the_class_is_the_folder_that_tells_images_apart(tmp_path, files, concepts, split):
    for k in range(4):
        for name in concepts:
            picture(tmp_path / files.format(c=name, k=k))
    dataset: Any = as_dataset(tmp_path)
    assert dataset.concepts == concepts
    assert dataset.counts.tolist() == [[4, 4], [4, 4]]
    if split:
        assert {*dataset.metadata_values("split")} == {split}
        assert dataset.remarks["splits"].startswith(f"{split} (8 images)")


def test_masks_in_the_folder_of_their_images_are_named_with_the_way_to_read_them(tmp_path):
    for k in range(3):
        picture(tmp_path / f"{k}.png")
        mask(tmp_path / f"{k}_mask.png")
    layout = recognised(tmp_path)
    assert layout.kind == "images"
    assert "3 masks in the folders of their images; move them into a folder masks/" in layout.apart


@pytest.mark.parametrize("folder", ["gt", "segmentations", "ground_truth"])
def test_folders_of_masks_have_many_names(tmp_path, folder):
    for k in range(3):
        picture(tmp_path / "images" / f"{k}.png")
        mask(tmp_path / folder / f"{k}_segmentation.png")
    layout = recognised(tmp_path)
    assert (layout.kind, len(layout.load())) == ("masks", 3)


def test_voc_with_some_masks_is_read_by_its_boxes(tmp_path):
    for k in range(2):
        picture(tmp_path / "JPEGImages" / f"{k}.jpg")
        (tmp_path / "Annotations").mkdir(exist_ok=True)
        (tmp_path / "Annotations" / f"{k}.xml").write_text("<annotation></annotation>")
    mask(tmp_path / "SegmentationClass" / "0.png")
    layout = recognised(tmp_path)
    assert (layout.kind, layout.apart) == ("voc", "")


def test_mask_and_no_mask_are_classes(tmp_path):
    for k in range(3):
        picture(tmp_path / "mask" / f"{k}.png")
        picture(tmp_path / "no_mask" / f"{k}.png")
    assert as_dataset(tmp_path).concepts == ("mask", "no_mask")


@pytest.mark.parametrize(
    "places",
    [
        ["study1/a", "study1/b"],
        ["p1/study1", "p2/study1", "p2/study2"],
        ["train/images", "val/images"],
    ],
)
def test_folders_that_are_no_classes_are_refused(tmp_path, places, capsys):
    for place in places:
        for k in range(20):
            picture(tmp_path / "data" / place / f"{place[-1]}{k}.png")
    if places == ["study1/a", "study1/b"]:
        assert as_dataset(tmp_path / "data").concepts == ("a", "b")
        return
    assert run("init", str(tmp_path / "spec"), "--data", str(tmp_path / "data")) == 2
    assert "whose names are no classes" in capsys.readouterr().err
    assert not (tmp_path / "spec").exists()


def test_a_class_of_each_images_own_is_no_class(tmp_path):
    for k in range(20):
        picture(tmp_path / f"anna{chr(97 + k)}" / "eye.png")
    with pytest.raises(InputError, match="whose names are no classes"):
        recognised(tmp_path)
    picture(tmp_path / "annaa" / "other.png")
    assert recognised(tmp_path).kind == "classes"


def test_endings_in_any_case_are_read_and_others_counted(tmp_path):
    for name in ("a.PNG", "b.JPG", "c.jpeg", "d.TIF", "e.bmp", "f.WebP"):
        picture(tmp_path / name)
    for name in ("g.heic", "h.heic", "i.nii.gz"):
        (tmp_path / name).write_bytes(b"?")
    dataset = from_images(tmp_path)
    assert len(dataset) == 6
    assert dataset.remarks["not read"] == "2 .heic, 1 .gz"


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
    assert isinstance(box, Box)


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


@pytest.mark.parametrize(
    ("name", "data", "tool"),
    [
        ("a.json", json.dumps({"version": "5", "shapes": [], "imagePath": "a.png"}), "LabelMe"),
        ("annotations.xml", "<annotations><version>1.1</version></annotations>", "CVAT"),
        ("export.json", json.dumps([{"id": 1, "annotations": []}]), "Label Studio"),
        ("scan.dcm", "?", "DICOM"),
        ("scan", "\0" * 128 + "DICM", "DICOM"),
    ],
)
def test_label_files_of_other_tools_are_named_with_the_way_to_convert(tmp_path, name, data, tool):
    picture(tmp_path / "a.png")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(data)
    assert tool in recognised(tmp_path).apart
    (tmp_path / "a.png").unlink()
    with pytest.raises(InputError, match=tool):
        recognised(tmp_path)


def test_of_several_tables_that_of_the_test_split_is_read_and_it_is_said(tmp_path):
    for split in ("train", "test"):
        rows = "".join(f"{split}{k}.png,{k % 2}\n" for k in range(4))
        for k in range(4):
            picture(tmp_path / "images" / f"{split}{k}.png")
        (tmp_path / f"{split}.csv").write_text(f"file,x\n{rows}")
    layout = recognised(tmp_path)
    assert layout.path.name == "test.csv"
    assert "test.csv is read; 'train.csv' was left alone" in layout.apart


@pytest.mark.parametrize(("boxes", "concepts"), [(1, ("cat", "dog")), (24, ("class 0",))])
def test_a_stray_text_of_numbers_makes_no_set_of_boxes(tmp_path, boxes, concepts):
    for k in range(24):
        picture(tmp_path / ("cat", "dog")[k % 2] / f"{k}.png")
    for k in range(boxes):
        (tmp_path / ("cat", "dog")[k % 2] / f"{k}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    assert recognised(tmp_path).load().concepts == concepts
