"""``avtt init``: a folder that runs as it is, to be changed into one's own audit."""

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pandas as pd
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..errors import InputError
from ..spec import Spec
from ..types import Image
from ..utils.files import write_bytes, write_text
from ..utils.random_streams import generator
from ..utils.tables import csv_text

SAMPLES = 60
MODEL = '''"""The model under test: change ``predict`` to call yours."""

import numpy as np


def predict(images):
    """images: list of H x W x C uint8; returns an array n x 2 of P(yes), one column per
    concept in the order of labels.csv: here "bright" and "round"."""
    answers = np.empty((len(images), 2))
    for row, image in enumerate(images):
        values = image.astype(float).mean(axis=2) / 255
        ink = values > values.mean()
        box = ink[np.ix_(ink.any(axis=1), ink.any(axis=0))]
        filled = box.mean() if box.size else 0.0
        answers[row, 0] = 1 / (1 + np.exp(-12 * (values.max() - 0.7)))
        answers[row, 1] = 1 / (1 + np.exp(25 * (filled - 0.89)))
    return answers
'''
SET = {
    ("dataset", "labels"): "labels.csv",
    ("dataset", "images"): "images",
    ("model", "target"): "model.py:predict",
    ("space", "relations"): ["identity", "gaussian_noise", "brightness_down", "rotation"],
    ("audit", "budget"): 200,
    ("certify", "half_width"): 0.15,
    ("certify", "targets"): ["overall", "relations"],
}


def write_start(directory: Path) -> Path:
    """Writes SPEC.toml, model.py, labels.csv and images/; refuses to overwrite any."""
    for name in ("SPEC.toml", "model.py", "labels.csv", "images"):
        if (directory / name).exists():
            raise InputError(f"{directory / name}: stands there already; nothing was written")
    labels = []
    for number in range(SAMPLES):
        rng = generator(0, "init", number)
        bright, disc = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
        name = f"shape-{number:02}"
        write_bytes(directory / "images" / f"{name}.png", _png(_shape(bright, disc, rng)))
        labels.append({"id": name, "bright": int(bright), "round": int(disc)})
    write_text(directory / "labels.csv", csv_text(pd.DataFrame(labels)))
    write_text(directory / "model.py", MODEL)
    write_text(directory / "SPEC.toml", commented_spec())
    return directory / "SPEC.toml"


def commented_spec() -> str:
    """SPEC.toml with every field described; those left at their default are commented out."""
    parts = ["# What to audit, and how. Paths start at this file's folder.\n"]
    for section, info in Spec.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        model = next(k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel))
        fields = [_field(section, name, field) for name, field in model.model_fields.items()]
        head = f"[{section}]" if type(None) not in kinds else f"# [{section}]"
        parts.append(f"\n# {model.__doc__}\n{head}\n" + "".join(fields))
    return "".join(parts)


def _field(section: str, name: str, field: FieldInfo) -> str:
    value = SET.get((section, name))
    default = field.get_default(call_default_factory=True)
    shown = _toml(value if value is not None else default, field.annotation)
    line = f"{name} = {shown}" if value is not None else f"# {name} = {shown}"
    return f"# {field.description}{_words(field.annotation)}\n{line}\n"


def _toml(value: Any, annotation: Any) -> str:
    """A value as TOML, or, where there is none, one of the kind that is expected."""
    if value is not None:
        return json.dumps(value)
    union = isinstance(annotation, UnionType)
    kind = next(k for k in (get_args(annotation) if union else (annotation,)) if k is not NoneType)
    if get_origin(kind) is Literal:
        return json.dumps(get_args(kind)[0])
    plain = {int: "100", float: "0.5", str: '""', bool: "true"}
    return plain.get(kind, "{}" if get_origin(kind) is dict else "[]")


def _words(annotation: Any) -> str:
    """The words that may be chosen, for a comment."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    words = [w for kind in kinds if get_origin(kind) is Literal for w in get_args(kind)]
    return f" ({', '.join(words)})" if words else ""


def _shape(bright: bool, disc: bool, rng: np.random.Generator) -> Image:
    """A 48 x 48 grey picture of one disc or square, light or dim, on a dark ground."""
    image = rng.integers(10, 40, (48, 48, 1), dtype=np.uint8)
    centre, radius = rng.integers(18, 30, 2), int(rng.integers(8, 15))
    rows, columns = np.ogrid[:48, :48]
    down, across = rows - centre[0], columns - centre[1]
    distance = np.hypot(down, across) if disc else np.maximum(abs(down), abs(across))
    image[distance <= radius] = rng.integers(200, 250) if bright else rng.integers(90, 140)
    return image


def _png(image: Image) -> bytes:
    import cv2

    done, data = cv2.imencode(".png", image)
    assert done
    return data.tobytes()
