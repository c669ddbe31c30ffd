"""The dataset of a spec: every kind is reached, and what cannot be used is named."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.audit.overview import overview
from adaptive_vtt.audit.proposed import proposed
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import idrid as idrid
from tests.helpers.small_datasets import isic as isic
from tests.helpers.small_datasets import mask, medmnist, picture

MODEL = {"model": {"kind": "simulated", "target": "unbiased"}}


def from_spec(base: Path, **dataset: Any) -> Any:
    return build_space(parse_spec({"dataset": dataset, **MODEL}, "SPEC.toml"), base).dataset


def test_every_kind_of_dataset_is_reached_from_a_spec(isic: Path, idrid: Path) -> None:
    base = isic  # both fixtures share one folder
    medmnist(base, "octmnist")
    picture(base / "polyps" / "images" / "a.png")
    mask(base / "polyps" / "masks" / "a.png")
    for name in ("normal", "ulcer"):
        picture(base / "classes" / name / "a.png")
    assert from_spec(base, kind="medmnist", path="octmnist.npz", classes="own").counts.sum() == 6
    assert len(from_spec(base, kind="medmnist", path=".", flag="octmnist", split="val")) == 6
    assert from_spec(base, kind="masks", path="polyps", concept="lesion").concepts == ("lesion",)
    assert len(from_spec(base, kind="classes", path="classes", broken="skip")) == 2
    assert len(from_spec(base, kind="isic", path=".")) == 2
    assert len(from_spec(base, kind="idrid", path=".", split="train")) == 1
    drawn = "adaptive_vtt.experiments.medtest.phantoms:frames"
    options = {"count": 3, "size": 64, "seed": 5, "polyps": 1.0}
    frames = from_spec(base, kind=drawn, options=options)
    assert frames.sample(2).image.shape == (64, 64, 3)
    assert frames.counts[0].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"kind": "masks"}, r"dataset\.path: expected .*, got nothing; kind .masks. needs path = "),
        ({"kind": "masks", "path": ".", "flag": "x"}, r"dataset\.flag: is no field of kind 'm"),
        ({"kind": "medmist"}, r"dataset\.kind: unknown value 'medmist'.*did you mean 'medmnist'"),
        ({"kind": "masks", "empty": "no"}, r"dataset\.empty: unknown value 'no'"),
        ({"kind": "medmnist", "path": "gone.npz"}, r"unknown dataset flag 'gone'"),
    ],
)
def test_dataset_section_that_cannot_be_used_is_named(
    tmp_path: Path, dataset: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_spec(tmp_path, **dataset)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"regions": {"grid": 3}}, r"grid: expected a list \(rows and columns, .*\), got 3$"),
        ({"regions": {"grid": [3]}}, r"at least 2 items \(rows and columns, .*\), got \[3\]$"),
        ({"regions": [{"grid": [2, 2]}]}, r"regions: expected a table of fields \(\[regions\]"),
        ({"detector": {"labels": "a"}}, r"the file, got nothing; kind 'onnx' needs path = "),
        ({"model": {"kind": "torch", "size": "big"}}, r"a valid integer or a list.*, got 'big'"),
    ],
)
def test_what_is_wrong_in_other_sections_is_said_in_their_words(
    section: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_spec({"dataset": {"kind": "fashion"}, **MODEL, **section}, "SPEC.toml")


def test_without_an_oracle_the_one_that_suits_the_images_judges(tmp_path: Path) -> None:
    """One class per image is judged by its class, as by ``avtt init`` and ``avtt.audit``."""
    for name in ("cat", "dog"):
        picture(tmp_path / "images" / name / "a.png")
    table: dict[str, Any] = {"dataset": {"kind": "classes", "path": "images"}, **MODEL}
    space = build_space(parse_spec(table, "SPEC.toml"), tmp_path)
    assert proposed(space.dataset).oracle == "top-class"
    assert dict(overview(space, [], "all"))["task"].startswith("one class per image")
    assert type(space.oracle.original).__name__ == "TopClass"
    table["oracle"] = {"kind": "correctness"}
    space = build_space(parse_spec(table, "SPEC.toml"), tmp_path)
    assert type(space.oracle.original).__name__ == "Correctness"
