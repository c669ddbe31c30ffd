"""Small files of each format, written into a folder; each function gives what reads them."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pandas as pd

from adaptive_vtt.datasets import (
    Dataset,
    from_class_folders,
    from_coco,
    from_endobench,
    from_images,
    from_masks,
    from_medvqa,
    from_voc,
    read_table,
)
from adaptive_vtt.datasets.vqa.taxonomy import TASKS
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
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    text = base64.b64encode(cv2.imencode(".jpg", pixels)[1].tobytes()).decode()
    rows = [
        {
            "index": k,
            "image": text,
            "image_path": f"{k}.jpg",
            "question": f"What is this ({k})?",
            "category": TASKS[k % 3].category,
            "task": TASKS[k % 3].name,
            "subtask": "any",
            "scene": "WCE",
            "answer": "B",
            "dataset": "Kid",
            "gt": "two",
            "A": "one",
            "B": "two",
            "C": "three",
            "D": "four",
            "E": "",
            "F": "",
        }
        for k in range(6)
    ]
    pd.DataFrame(rows).to_csv(folder / "e.tsv", sep="\t", index=False)
    return lambda: from_endobench(folder / "e.tsv")


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
    for name in "ab":
        picture(folder / "images" / f"{name}.png", 20, 30)
    described = {
        "images": [
            {"id": k, "file_name": f"{name}.png", "width": 30, "height": 20}
            for k, name in enumerate("ab")
        ],
        "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "kite"}],
        "annotations": [
            {
                "id": 5,
                "image_id": 0,
                "category_id": 1,
                "bbox": [2, 4, 10, 10],
                "iscrowd": 0,
                "segmentation": [[2, 4, 12, 4, 12, 14, 2, 14]],
            }
        ],
    }
    (folder / "instances.json").write_text(json.dumps(described))
    return lambda: from_coco(folder / "instances.json", folder / "images", outlines=True)


def voc(folder: Path) -> Callable[[], Dataset]:
    thing = (
        "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>2</xmin><ymin>3</ymin>"
        "<xmax>9</xmax><ymax>8</ymax></bndbox></object>"
    )
    size = "<size><width>30</width><height>20</height><depth>3</depth></size>"
    (folder / "Annotations").mkdir()
    for name, things in {"a": [("dog", 0), ("cat", 1)], "b": [("cat", 0)]}.items():
        picture(folder / "JPEGImages" / f"{name}.jpg", 20, 30)
        said = "".join(thing.format(*each) for each in things)
        (folder / "Annotations" / f"{name}.xml").write_text(
            f"<annotation>{size}{said}</annotation>"
        )
    return lambda: from_voc(folder)
