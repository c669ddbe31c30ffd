"""The [detector] section of a spec: where nothing asks where things are, it is refused."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.drawn_scenes import scenes


def space(
    base: Path, oracle: str = "captions", relations: Any = ("reic",), kind: str = "regions"
) -> Any:
    drawn = "adaptive_vtt.experiments.reic.drawn_scenes:scenes"
    table = {
        "dataset": {"kind": drawn, "options": {"count": 2}},
        "detector": {"kind": kind},
        "model": {"kind": "simulated", "target": "unbiased"},
        "oracle": {"kind": oracle},
        "space": {"relations": list(relations)},
    }
    return build_space(parse_spec(table, "SPEC.toml"), base)


def test_a_detector_that_nothing_asks_is_refused(tmp_path: Path) -> None:
    message = (
        r"detector: expected an oracle or a relation .*, got oracle 'consistency' and .*leave \["
    )
    with pytest.raises(InputError, match=message):
        space(tmp_path, "consistency", ["identity", "gaussian_noise"])


@pytest.mark.parametrize(
    ("oracle", "relations"), [("captions", ["reic"]), ("consistency", ["reduction"])]
)
def test_captions_and_reductions_ask_it(tmp_path: Path, oracle: str, relations: list[str]) -> None:
    assert space(tmp_path, oracle, relations).dataset.sample(0).boxes


DETECTOR = """
import numpy as np
from adaptive_vtt.types import Box
class Mine:
    fingerprint = "mine"
    labels = ("dog", "cat")
    def detect(self, image):
        height, width = image.shape[:2]
        return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ('[Box("dog", 0, 0, float("nan"), 9)]', r"expected finite edges of boxes, got Box\("),
        ('[Box("dog", 4, 4, width + 9, 9)]', r".* within 336 pixels .*right=345"),
        ('[Box("dog", 9, 4, 3, 9)]', r"expected left < right within 336 pixels and top < bottom"),
        ('[Box("dog", 0.1, 0.1, 0.7, 0.9)]', r"expected edges in pixels, got shares of the image"),
        ("np.zeros((2, 4))", r"expected boxes .*Box\), got an array of shape \(4,\) among them"),
        ("[(1, 2, 3, 4)]", r"expected boxes .*Box\), got \(1, 2, 3, 4\) among them"),
        ("None", r"cannot be looked at: TypeError: 'NoneType' object is not iterable"),
        ("1 / 0", r"cannot be looked at: ZeroDivisionError: .* at .*line 9, in detect"),
        ('[Box("bird", 1, 1, 9, 9)]', r"expected one of 'dog', 'cat' as the label .*, got 'bird'"),
        ("[Box(3, 1, 1, 9, 9)]", r"expected one of 'dog', 'cat' as the label of a box, got 3"),
    ],
)
def test_what_is_no_box_in_the_image_is_told_before_anything_is_asked(
    tmp_path: Path, returned: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(DETECTOR.format(returned=returned))
    with pytest.raises(InputError, match=rf"detector: sample 'scene-0-00000': {message}"):
        space(tmp_path, kind="mine.py:Mine")


def test_a_detector_is_tried_on_the_last_image_too_and_a_pixel_too_many_is_none(
    tmp_path: Path,
) -> None:
    body = '[Box("", -0.5, 0, width + 0.5, 9)]'
    (tmp_path / "mine.py").write_text(DETECTOR.format(returned=body))
    assert space(tmp_path, kind="mine.py:Mine").dataset.sample(0).boxes
    last = scenes(2).sample(1).require_image().sum()
    body = f'[Box("dog", 0, 0, 9, 9 / (image.sum() != {last}))]'
    (tmp_path / "other.py").write_text(DETECTOR.format(returned=body))
    with pytest.raises(InputError, match=r"sample 'scene-0-00001': "):
        space(tmp_path, kind="other.py:Mine")
