"""A SPEC.toml without [oracle] asks what `avtt init` and `avtt.audit` ask about the same images."""

from pathlib import Path

import cv2
import numpy as np

from adaptive_vtt.audit.overview import overview
from adaptive_vtt.audit.proposed import proposed
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space

MODEL = {"kind": "python", "target": "model.py:predict"}


def folders(base: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (base / "images" / name).mkdir(parents=True)
        for k in range(3):
            image = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            cv2.imwrite(str(base / "images" / name / f"{k}.png"), image)


def test_one_class_per_image_is_judged_by_the_class(tmp_path: Path) -> None:
    folders(tmp_path)
    table = {"dataset": {"kind": "classes", "path": "images"}, "model": MODEL}
    space = build_space(parse_spec(table, "SPEC.toml"), tmp_path)
    assert proposed(space.dataset).oracle == "top-class"  # what the other entries take
    assert dict(overview(space, [], "all"))["task"].startswith("one class per image")
    assert type(space.oracle.original).__name__ == "TopClass"


def test_an_oracle_that_is_named_stays(tmp_path: Path) -> None:
    folders(tmp_path)
    table = {
        "dataset": {"kind": "classes", "path": "images"},
        "model": MODEL,
        "oracle": {"kind": "correctness"},
    }
    space = build_space(parse_spec(table, "SPEC.toml"), tmp_path)
    assert type(space.oracle.original).__name__ == "Correctness"
