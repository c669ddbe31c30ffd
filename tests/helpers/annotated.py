"""Small files of annotated boxes, in COCO's and VOC's formats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.small_datasets import picture

SQUARE = [[2, 4, 12, 4, 12, 14, 2, 14]]


def coco(
    folder: Path,
    change: Callable[[dict[str, Any]], Any] | None = None,
    *,
    images: str = "images",
    file: str = "instances.json",
) -> tuple[Path, Path]:
    """Write one image with a dog and a crowd of people, and one without objects.

    ``change`` may edit the annotations. Return their file and the folder of images.
    """
    pictures = [{"id": 7, "file_name": "a.png"}, {"id": 9, "file_name": "b.png"}]
    for image in pictures:
        picture(folder / images / str(image["file_name"]), 20, 30)
        image |= {"width": 30, "height": 20}
    kinds = [{"id": 3, "name": "dog"}, {"id": 1, "name": "person"}, {"id": 2, "name": "kite"}]
    crowd = {"size": [20, 30], "counts": [40, 5, 555]}
    dog = {"id": 70, "category_id": 3, "bbox": [2, 4, 10, 10], "iscrowd": 0}
    people = {"id": 71, "category_id": 1, "bbox": [0, 0, 30, 20], "iscrowd": 1}
    things = [
        {**dog, "image_id": 7, "segmentation": SQUARE},
        {**people, "image_id": 7, "segmentation": crowd},
    ]
    content = {"images": pictures, "categories": kinds, "annotations": things}
    if change is not None:
        change(content)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(content))
    return folder / file, folder / images


THING = (
    "<object><name>{0}</name><difficult>{1}</difficult><part><name>head</name></part><bndbox>"
    "<xmin>{2}</xmin><ymin>{3}</ymin><xmax>{4}</xmax><ymax>{5}</ymax></bndbox></object>"
)
SIZE = "<size><width>30</width><height>20</height><depth>3</depth></size>"


def voc(top: Path, name: str, *things: tuple[Any, ...], text: str | None = None) -> Path:
    """Write an image and its annotations: class, difficult or not, left, top, right, bottom."""
    picture(top / "JPEGImages" / f"{name}.jpg", 20, 30)
    (top / "Annotations").mkdir(exist_ok=True)
    usual = f"<annotation>{SIZE}{''.join(THING.format(*t) for t in things)}</annotation>"
    (top / "Annotations" / f"{name}.xml").write_text(usual if text is None else text)
    return top
