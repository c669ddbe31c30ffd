"""``avtt init``: a short SPEC.toml that runs, for a few images or for those that are there."""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from adaptive_vtt.cli.init import example, seen_from, write_first
from adaptive_vtt.config import Spec, read_spec
from adaptive_vtt.config.section import kind_name, kinds_of, shown_default
from adaptive_vtt.datasets.recognition import recognised
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run, shown


def image(path: Path, number: int = 0, bright: int = 200) -> None:
    pixels = np.random.default_rng(number).integers(0, bright, (12, 12, 3), dtype=np.uint8)
    write_bytes(path, png(pixels))


def classes(folder: Path) -> None:
    for number in range(12):
        image(folder / ("cat", "dog", "fox")[number % 3] / f"{number}.png", number)


def table(folder: Path) -> None:
    rows = ["filename,hospital,bright,round"]
    for number in range(12):
        image(folder / "pictures" / f"{number}.png", number)
        rows.append(f"{number}.png,{'ab'[number % 2]},{number % 2},{number // 6}")
    write_text(folder / "data.csv", "\n".join(rows) + "\n")


def masks(folder: Path) -> None:
    for number in range(12):
        image(folder / "images" / f"{number}.png", number)
        mask = np.zeros((12, 12, 1), np.uint8)
        mask[2:8, 3:9] = 255 * (number > 0)  # one shows nothing
        write_bytes(folder / "masks" / f"{number}.png", png(mask))


def images(folder: Path) -> None:
    for number in range(12):
        image(folder / f"{number}.png", number)


LAYOUTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "classes": (
        classes,
        "recognised 12 images in 3 class folders (cat, dog, fox)",
        {"oracle": {"kind": "top-class"}, "dataset": {"kind": "classes", "path": "."}},
    ),
    "table": (
        table,
        "recognised 12 images with a table of labels (bright, round)",
        {"dataset": {"id_column": "filename", "metadata": ["hospital"], "images": "pictures"}},
    ),
    "masks": (
        masks,
        "recognised 11 images with masks",
        {"oracle": {"kind": "mask-drop"}, "dataset": {"kind": "masks", "empty": "skip"}},
    ),
    "images": (
        images,
        "recognised 12 images without labels",
        {"oracle": {"kind": "consistency"}, "dataset": {"kind": "images"}},
    ),
}


@pytest.mark.parametrize(
    ("name", "full"), [*((name, False) for name in LAYOUTS), ("classes", True)]
)
def test_what_lies_in_a_folder_is_recognised_and_its_spec_is_read(
    name: str, full: bool, tmp_path: Path
) -> None:
    make, result, expected = LAYOUTS[name]
    make(tmp_path)
    text = shown("init", str(tmp_path), *(["--full"] if full else []))
    assert result in text
    assert "call your model" in text
    assert read_spec(tmp_path / "SPEC.toml")
    written = tomllib.loads((tmp_path / "SPEC.toml").read_text())
    for section, fields in expected.items():
        assert written[section].items() >= fields.items()
    if name == "classes":  # accuracy comes first
        assert written["certify"]["targets"][0] == "overall"


@pytest.mark.parametrize("name", ["table", pytest.param("masks", marks=pytest.mark.slow)])
def test_the_spec_of_ones_own_images_runs_as_it_is(name: str, tmp_path: Path) -> None:
    LAYOUTS[name][0](tmp_path / "data")
    out = tmp_path / "run"
    assert run("init", str(tmp_path / "spec"), "--data", str(tmp_path / "data")) == 0
    spec = str(tmp_path / "spec" / "SPEC.toml")
    plain = ("--set", "certify.self_taught=false", "--set", "certify.surrogate=false")
    assert run("audit", spec, "--budget", "4", "--out", str(out), *plain) == 0
    assert 2 <= json.loads((out / "result.json").read_text())["calls"] <= 4


def test_nothing_of_the_users_is_overwritten(tmp_path: Path) -> None:
    classes(tmp_path)
    write_text(tmp_path / "model.py", "mine")
    write_first(tmp_path)
    assert (tmp_path / "model.py").read_text() == "mine"
    with pytest.raises(InputError, match=r"SPEC\.toml: exists already; nothing was written"):
        write_first(tmp_path)


def test_a_path_that_would_climb_to_the_root_is_absolute(tmp_path: Path) -> None:
    assert seen_from(tmp_path / "audit", tmp_path / "images") == "../images"
    assert seen_from(tmp_path / "audit", Path("/elsewhere/images")) == "/elsewhere/images"


def yes_and_no(folder: Path, head: str) -> None:
    rows = [head]
    for number in range(12):
        image(folder / f"{number}.png", number)
        rows.append(f"{number}.png,{('yes', 'No')[number % 2]},{'abc'[number % 3]}")
    write_text(folder / "data.csv", "\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("file,polyp,hospital", {"concepts": ["polyp"], "metadata": ["hospital"]}),
        ("file,blurred,species", {"class_column": "species", "metadata": ["blurred"]}),
    ],
    ids=["labels", "metadata"],
)
def test_columns_of_yes_and_no_are_labels_unless_another_column_is_called_as_classes_are(
    head: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    yes_and_no(tmp_path, head)
    assert run("init", str(tmp_path)) == 0
    written = tomllib.loads((tmp_path / "SPEC.toml").read_text())["dataset"]
    assert written.items() >= expected.items()
    if "concepts" in expected:
        truths = recognised(tmp_path).load().truth(np.arange(12), np.zeros(12, int))
        np.testing.assert_array_equal(truths, [1, 0] * 6)


def test_the_model_of_a_plain_folder_may_answer_about_several_concepts(tmp_path: Path) -> None:
    images(tmp_path)
    assert run("init", str(tmp_path)) == 0
    spec = tmp_path / "SPEC.toml"
    spec.write_text(spec.read_text().replace('path = "."', 'path = "."\nconcepts = ["cat", "dog"]'))
    assert read_spec(spec).dataset.build(tmp_path).concepts == ("cat", "dog")


# -- every field of --full, with its default -----------------------------------------------


def shown_fields() -> list[tuple[str, Any, str, Any, Any]]:
    """Section, class, name, field and example of every field without a default of its own."""
    result = []
    for section, info in Spec.model_fields.items():
        for kind in kinds_of(info.annotation):
            for name, field in kind.model_fields.items():
                default = None
                if not field.is_required():
                    default = shown_default(field)
                if name != "kind" and default is None:
                    shown = example(section, kind_name(kind), name)
                    result.append((section, kind, name, field, shown))
    return result


def test_every_example_of_a_field_is_a_value_that_it_takes() -> None:
    for section, _, name, field, value in shown_fields():
        if value is None:  # tables of options, which differ with what they are about
            assert "dict[" in str(field.annotation), (section, name)
            continue
        checked = TypeAdapter(Annotated[(field.annotation, field, *field.metadata)])
        checked.validate_python(value, strict=True)


def test_a_default_that_a_description_tells_is_the_value_that_is_shown() -> None:
    pattern = re.compile(r"\((?:default: )?([\d.e^]+|true|false)\)")
    known = 0
    for section, kind, name, field, value in shown_fields():
        if (match := pattern.search(field.description or "")) is None:
            continue
        known += 1
        base, _, power = match[1].partition("^")
        words = {"true": True, "false": False}
        default = words[base] if base in words else float(base) ** int(power or 1)
        assert value == default, (section, kind, name, field.description)
    assert known > 7
