"""``avtt relations``: what there is, and what it looks like."""

import json
from pathlib import Path

import numpy as np
import typer

from ..datasets.base import Image, Sample
from ..datasets.images import read_image
from ..errors import InputError
from ..files import write_bytes
from ..randomness import generator
from ..relations import Relation, get, names

CELL = 128
LABEL = 18


def list_relations(as_json: bool) -> None:
    """Prints every relation with its severities and a description."""
    rows = [
        {
            "name": name,
            "severities": list(get(name).severities),
            "about": getattr(get(name), "about", ""),
        }
        for name in names()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    width = max(len(name) for name in names())
    for row in rows:
        levels = ",".join(map(str, row["severities"]))
        typer.echo(f"{row['name']:{width}}  {levels:10} {row['about']}")


def preview(path: Path, out: Path, chosen: list[str] | None, seed: int) -> None:
    """Writes a PNG sheet: one row per relation, one column per severity."""
    if out.suffix.lower() != ".png":
        raise InputError(f"--out: expected a file ending in .png, got {str(out)!r}")
    relations = [get(name) for name in chosen or names()]
    source = Sample(path.name, read_image(path, "preview"), {})
    columns = max(len(r.severities) for r in relations)
    sheet = np.vstack([_row(source, r, columns, seed) for r in relations])
    write_bytes(out, _png(sheet))


def _row(source: Sample, relation: Relation, columns: int, seed: int) -> Image:
    cells = []
    for severity in relation.severities:
        rng = generator(seed, f"preview/{relation.name}", severity)
        image = relation.apply(source, severity, rng).image
        assert image is not None
        cells.append(_cell(image, f"{relation.name} {severity}"))
    blank = np.full_like(cells[0], 255)
    return np.hstack(cells + [blank] * (columns - len(cells)))


def _cell(image: Image, label: str) -> Image:
    """The image fitted into a white CELL x CELL square, with its label above."""
    import cv2

    scale = (CELL - 6) / max(image.shape[:2])
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    small = cv2.resize(image, size, interpolation=way).reshape(size[1], size[0], -1)
    cell = np.full((CELL + LABEL, CELL, 3), 255, np.uint8)
    top, left = LABEL + (CELL - size[1]) // 2, (CELL - size[0]) // 2
    cell[top : top + size[1], left : left + size[0]] = small
    font, black = cv2.FONT_HERSHEY_SIMPLEX, (0, 0, 0)
    cv2.putText(cell, label, (3, LABEL - 5), font, 0.36, black, 1, cv2.LINE_AA)
    return cell


def _png(image: Image) -> bytes:
    import cv2

    done, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    assert done
    return data.tobytes()
