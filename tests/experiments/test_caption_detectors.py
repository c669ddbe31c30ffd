"""What detectors add to REIC's localisation, on photographs boxed by hand."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from adaptive_vtt.experiments.reic import caption_detectors, photographs
from adaptive_vtt.experiments.reic.caption_detectors import localised, summary
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.types import Box, Image

SIZE = (96, 128)


class Finds:
    """A detector that finds the same in every picture."""

    fingerprint = "finds"

    def __init__(self, *boxes: Box) -> None:
        self.boxes = boxes

    def detect(self, image: Image) -> tuple[Box, ...]:
        return self.boxes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise in place of two of the photographs."""
    return noise(tmp_path_factory.mktemp("photographs"), "flower.jpg", "china.jpg")


def noise(there: Path, *names: str) -> Path:
    rng = np.random.default_rng(0)
    for name in names:
        height, width = photographs.PHOTOGRAPHS[name][0]
        coarse = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
        cv2.imwrite(str(there / name), cv2.resize(coarse, (width, height)))
    return there


def test_found_by_name_by_hiding_and_not_at_all() -> None:
    exact = scenes(1, size=SIZE)
    captioner = TemplateCaptioner(omission=0, misclassification=0, fabrication=0, setting=0)
    first, second, *others = exact.sample(0).boxes
    there = {first.label, second.label, *(box.label for box in others)}
    nameless = Box("", *second.edges)
    detected = caption_detectors.Detected(exact, Finds(first, nameless))
    result = localised(exact, detected, captioner, ReducedCaptions())
    assert sorted(result["how"]) == ["hiding", "name", *["not"] * (len(there) - 2)]
    counts = summary(result)
    assert counts["things"] == len(there)
    assert counts["by name"] == counts["by name, right"] == 1
    assert counts["by hiding"] == counts["by hiding, right"] == 1
    assert counts["not found"] == len(there) - 2
    assert counts["hidden"] > 0


@pytest.mark.slow
def test_the_tables_of_photographs(tmp_path: Path, capsys: Any) -> None:
    folder = noise(tmp_path, "chelsea.png")
    given = ["--photographs", str(folder), "--seeds", "1", "--out", str(tmp_path)]
    caption_detectors.main(given)
    assert "no --detector FILE.onnx was given" in capsys.readouterr().out
    places, judged = json.loads((tmp_path / "caption_detectors.json").read_text()).values()
    assert [row["detector"] for row in places] == ["boxes by hand", "region proposals"]
    assert (places[0]["things"], places[0]["by name, right"]) == (1, 1)
    assert {row["relation"] for row in judged} == {"crop", "stretch", "rotate", "all"}
