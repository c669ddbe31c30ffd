"""A SPEC.toml in about fifteen lines for images that somebody has, each line with a comment."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..audit.shortcut import RELATIONS, are_classes
from ..datasets import Dataset
from ..datasets.recognition import Layout

HEAD = "# What to audit, and how. Every field, with its default: avtt init DIR --full\n"
WIDTH = 36
"""Columns before a comment, where the line leaves them free."""
COMMENTS = {
    "dataset.path": "the folder of images",
    "dataset.labels": "a row per image, 0 or 1 per concept",
    "dataset.images": "the folder of the images",
    "dataset.id_column": "the column that names the image",
    "dataset.file_column": "the column of file names",
    "dataset.class_column": "the column that names the class",
    "dataset.concepts": "the columns to ask about",
    "dataset.metadata": "columns to group by, not to ask about",
    "dataset.classes": "ask an image about its own class",
    "dataset.concept": "what the masks show",
    "dataset.empty": "images without anything in their mask",
    "model.target": "your function: images -> answers",
    "space.relations": "what is done to the images",
    "audit.budget": "calls, at most; max_cost limits money",
    "certify.half_width": "until every rate is known to this",
}
KINDS = {
    "classes": "a folder of images per class",
    "masks": "images beside masks",
    "images": "images without labels",
    "voc": "images with boxes, as PASCAL VOC",
}
ORACLES = {
    "top-class": "wrong where another class is likelier",
    "mask-drop": "wrong where the mask gets much worse",
    "consistency": "wrong where a change changes the answer",
}
TARGETS = {
    ("misclassified", "relations"): "of all, and under each relation",
    ("misclassified",): "the share of wrong classes",
    ("overall", "relations"): "of all, and under each relation",
    ("concepts", "relation-sides"): "of all, and of each relation",
}
"""What the targets of a first spec are, for a comment."""
MODEL = '''"""The model under test: make ``predict`` call yours."""

import numpy as np

CONCEPTS = {concepts}


def predict(images):
    """images: list of H x W x C arrays of uint8; returns {returns}."""
    return {stub}  # <- your model
'''


@dataclass(frozen=True)
class First:
    """What ``avtt init`` writes for a layout: SPEC.toml and model.py, and what was recognised."""

    spec: str
    model: str
    found: str


def first(layout: Layout, base: Path, *, budget: int = 500, half_width: float = 0.1) -> First:
    """For the data in ``layout``, as seen from the folder ``base``. Raises InputError for data
    that cannot be used."""
    if layout.kind == "masks":  # a frame that shows nothing has nothing to lose sight of
        layout = replace(layout, options={**layout.options, "empty": "skip"})
    dataset = layout.load()
    oracle = _oracle(layout, dataset)
    sections: dict[str, dict[str, Any]] = {
        "dataset": _dataset(layout, base),
        "model": {"target": "model.py:predict"},
        "space": {"relations": list(RELATIONS)},
        "oracle": {} if oracle is None else {"kind": oracle},
        "audit": {"budget": budget},
        "certify": {"half_width": half_width, "targets": _targets(layout, oracle)},
    }
    text = "".join(_section(name, fields) for name, fields in sections.items() if fields)
    return First(HEAD + text, _model(layout, dataset), _found(layout, dataset))


def _oracle(layout: Layout, dataset: Dataset) -> str | None:
    """The oracle to name; None: correctness, which needs no naming."""
    if layout.kind in {"masks", "images"}:
        return "mask-drop" if layout.kind == "masks" else "consistency"
    return "top-class" if are_classes(dataset) else None


def _targets(layout: Layout, oracle: str | None) -> list[str]:
    if oracle == "top-class":
        return ["misclassified", "relations"] if layout.kind == "classes" else ["misclassified"]
    return ["concepts", "relation-sides"] if oracle == "mask-drop" else ["overall", "relations"]


def _dataset(layout: Layout, base: Path) -> dict[str, Any]:
    path = seen_from(base, layout.path)
    options = {
        name: seen_from(base, value) if isinstance(value, Path) else value
        for name, value in layout.options.items()
    }
    if layout.kind == "table":
        if options.get("id_column") == "id":
            del options["id_column"]
        return {"labels": path, **options}
    own = {"classes": "own"} if layout.kind == "classes" else {}
    return {"kind": layout.kind, "path": path, **own, **options}


def seen_from(base: Path, path: Path) -> str:
    """``path`` from ``base``; absolute where the two have nothing in common but the root."""
    whole = Path(os.path.abspath(path))
    if os.path.commonpath([whole, os.path.abspath(base)]) == whole.anchor:
        return whole.as_posix()
    return Path(os.path.relpath(path, base)).as_posix()


def _section(name: str, fields: Mapping[str, Any]) -> str:
    lines = [f"\n[{name}]\n"]
    for field, value in fields.items():
        line = f"{field} = {json.dumps(value, ensure_ascii=False)}"
        comment = COMMENTS.get(f"{name}.{field}") or {**KINDS, **ORACLES}.get(str(value), "")
        if field == "targets":
            comment = TARGETS[tuple(value)]
        lines.append(_line(line, comment))
    return "".join(lines)


def _line(line: str, comment: str) -> str:
    """With its comment behind it, or above it where both would pass 80 columns."""
    if not comment:
        return f"{line}\n"
    beside = f"{line:<{WIDTH}}  # {comment}"
    return f"{beside}\n" if len(beside) <= 80 else f"# {comment}\n{line}\n"


def _model(layout: Layout, dataset: Dataset) -> str:
    concepts = [*dataset.concepts]
    if layout.kind == "masks":
        returns = "n masks, 1 x H x W, of bool or P(yes)"
        stub = "[np.zeros((1, *image.shape[:2]), bool) for image in images]"
    else:
        returns = "an array n x CONCEPTS of P(yes)"
        stub = "np.full((len(images), len(CONCEPTS)), 0.5)"
    names = json.dumps(concepts, ensure_ascii=False)
    return MODEL.format(concepts=names, returns=returns, stub=stub)


def _found(layout: Layout, dataset: Dataset) -> str:
    names = list(dataset.concepts)
    beside = f"; {layout.apart}" if layout.apart else ""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    what = {
        "classes": f"in {len(names)} class folders ({shown})",
        "masks": "with masks",
        "images": "without labels",
        "table": f"with a table of labels ({shown})",
        "voc": f"with boxes ({shown})",
    }
    if layout.kind == "table" and not {"images", "file_column"} & set(layout.options):
        return (
            f"a table of {len(dataset)} samples ({shown}), and none of their images beside it: "
            'name their folder by images = "..." in [dataset]'
        )
    return f"{len(dataset)} images {what[layout.kind]}{beside}"
