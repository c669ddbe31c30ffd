"""The [detector] section of a spec: where nothing asks where things are, it is refused."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError


def space(base: Path, oracle: str, relations: list[str]) -> Any:
    table = {
        "dataset": {"kind": "scenes", "count": 2},
        "detector": {"kind": "regions"},
        "model": {"kind": "simulated", "target": "unbiased"},
        "oracle": {"kind": oracle},
        "space": {"relations": relations},
    }
    return build_space(parse_spec(table, "SPEC.toml"), base)


def test_a_detector_that_nothing_asks_is_refused(tmp_path: Path) -> None:
    said = r"detector: expected an oracle or a relation .*, got oracle 'consistency' and .*leave \["
    with pytest.raises(InputError, match=said):
        space(tmp_path, "consistency", ["identity", "gaussian_noise"])


@pytest.mark.parametrize(
    ("oracle", "relations"), [("captions", ["reic"]), ("consistency", ["reduction"])]
)
def test_captions_and_reductions_ask_it(tmp_path: Path, oracle: str, relations: list[str]) -> None:
    assert space(tmp_path, oracle, relations).dataset.sample(0).boxes
