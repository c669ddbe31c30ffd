"""Failing follow-ups for other tools: COCO's JSON, and FiftyOne's JSON of classifications.

Formats: https://cocodataset.org/#format-data, and ``FiftyOneImageClassificationDataset`` in
FiftyOne's user guide. Neither tool is needed to write them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...types import Mask


class Outline(NamedTuple):
    """Where something is expected in a follow-up; ``box``: known as a box alone, which ``mask``
    fills."""

    label: str
    mask: Mask
    box: bool = False


class Annotated(NamedTuple):
    """A follow-up: its file's name without the ending, its size, its truths (concept -> 0 or 1),
    and what is expected where."""

    name: str
    height: int
    width: int
    truth: Mapping[str, int]
    outlines: Sequence[Outline]


def run_lengths(mask: Mask) -> list[int]:
    """COCO's run lengths of a mask (H x W of bool): down the columns, outside first."""
    flat = mask.T.reshape(-1)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.array([0, *changes, flat.size])).tolist()
    return [0, *lengths] if flat[0] else lengths


def coco(pictures: Iterable[Annotated], failures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``images``, ``categories`` and ``annotations`` of the pictures.

    Categories are whatever is outlined in any. Each image also has ``truth``, and ``failures``: its
    rows of ``failures``, told by their "id". An outline that is empty, moved out of view, is left
    out.
    """
    several = list(pictures)
    labels = list(dict.fromkeys(o.label for each in several for o in each.outlines))
    numbers = {label: number for number, label in enumerate(labels, 1)}
    about = _by_id(failures)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image_id, each in enumerate(several, 1):
        images.append(
            {
                "id": image_id,
                "file_name": f"{each.name}.png",
                "height": each.height,
                "width": each.width,
                "truth": dict(each.truth),
                "failures": about.get(each.name, []),
            }
        )
        for outline in each.outlines:
            if outline.mask.any():
                found = _annotation(outline)
                own = {"id": len(annotations) + 1, "image_id": image_id}
                annotations.append({**own, "category_id": numbers[outline.label], **found})
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    return {"images": images, "categories": categories, "annotations": annotations}


def fiftyone(failures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The concepts that failed of each image, as classifications with the rest as attributes."""
    labels = {
        name: [{"label": row["concept"], "attributes": _without(row, "concept")} for row in rows]
        for name, rows in _by_id(failures).items()
    }
    return {"labels": labels}


def _annotation(outline: Outline) -> dict[str, Any]:
    mask = outline.mask
    rows, columns = np.nonzero(mask)
    left, top = int(columns.min()), int(rows.min())
    right, bottom = int(columns.max()) + 1, int(rows.max()) + 1
    runs = {"size": list(mask.shape), "counts": run_lengths(mask)}
    return {
        "bbox": [left, top, right - left, bottom - top],
        "area": int(mask.sum()),
        "iscrowd": 0,
        "segmentation": [] if outline.box else runs,
    }


def _by_id(failures: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in failures:
        found.setdefault(str(row["id"]), []).append(_without(row, "id"))
    return found


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {column: value for column, value in row.items() if column != name}
