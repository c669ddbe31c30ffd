"""Small files of each format, written into a folder; each function gives what reads them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from adaptive_vtt.datasets import (
    Dataset,
    from_class_folders,
    from_coco,
    from_endobench,
    from_images,
    from_masks,
    from_medvqa,
    from_voc,
    from_yolo,
    read_table,
)
from tests.helpers import annotated
from tests.helpers.endobench_rows import row, write
from tests.helpers.small_datasets import mask, picture


def table(folder: Path) -> Callable[[], Dataset]:
    for name in "abc":
        picture(folder / "images" / f"{name}.png")
    (folder / "labels.csv").write_text("id,cyst,drusen,site\na,1,0,x\nb,0,,y\nc,1,1,x\n")
    return lambda: read_table(folder / "labels.csv", folder / "images", metadata=["site"])


def masks(folder: Path) -> Callable[[], Dataset]:
    for name, inside in (("a", True), ("b", False)):
        picture(folder / "images" / f"{name}.png")
        mask(folder / "masks" / f"{name}.png", inside=inside)
    return lambda: from_masks(folder, empty="absent")


def classes(folder: Path) -> Callable[[], Dataset]:
    for name in ("ulcer/a", "ulcer/b", "polyp/a"):
        picture(folder / f"{name}.png")
    return lambda: from_class_folders(folder)


def images(folder: Path) -> Callable[[], Dataset]:
    for name in "ab":
        picture(folder / f"{name}.png")
    return lambda: from_images(folder)


def endobench(folder: Path) -> Callable[[], Dataset]:
    return partial(from_endobench, write(folder / "e.tsv", [row(k) for k in range(6)]))


def medvqa(folder: Path) -> Callable[[], Dataset]:
    entries = []
    for name in "ab":
        picture(folder / "images" / f"{name}.jpg", 40, 48)
        labels = [
            {"Question": "Are there any abnormalities in the image?", "Answer": ["Polyp", "Ulcer"]},
            {"Question": "Have all polyps been removed?", "Answer": ["No"]},
            {"Question": "Is there text?", "Answer": ["Yes"]},
        ]
        entries.append({"ImageID": name, "Labels": labels})
    (folder / "gt.json").write_text(json.dumps(entries))
    return lambda: from_medvqa(folder)


def coco(folder: Path) -> Callable[[], Dataset]:
    return partial(from_coco, *annotated.coco(folder), outlines=True)


def yolo(folder: Path) -> Callable[[], Dataset]:
    for number, text in enumerate(("0 .5 .5 .2 .2\n1 .5 .5 .4 .4\n", "1 .3 .3 .2 .2\n", "")):
        picture(folder / "images" / f"{number}.png", 20, 30)
        (folder / "labels").mkdir(exist_ok=True)
        (folder / "labels" / f"{number}.txt").write_text(text)
    return partial(from_yolo, folder)


def voc(folder: Path) -> Callable[[], Dataset]:
    annotated.voc(folder, "a", ("dog", 0, 2, 3, 9, 8), ("cat", 1, 2, 3, 9, 8))
    return partial(from_voc, annotated.voc(folder, "b", ("cat", 0, 2, 3, 9, 8)))
