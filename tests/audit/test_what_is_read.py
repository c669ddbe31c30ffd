"""Data read honestly: what became of every column and file is said before anything is asked."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.overview import overview, show
from adaptive_vtt.datasets import as_dataset, from_table, read_table
from adaptive_vtt.datasets.formats.folders import from_class_folders
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.utils.files import write_bytes
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run

PIXELS = png(np.zeros((4, 4, 1), np.uint8))
NAMES = [f"page_{k}.png" for k in range(12)]
EVEN, LOOP, SITE = [0, 1] * 6, ["1", "0", "0"] * 4, [*"aabbccaabbcc"]


def pages(root: Path, **columns: Any) -> Path:
    """Twelve images beside a table of labels with these columns in the place of some."""
    for name in NAMES:
        write_bytes(root / "images" / name, PIXELS)
    rows = {"file": NAMES, "even": EVEN, "loop": LOOP, "site": SITE, **columns}
    pd.DataFrame(rows).to_csv(root / "labels.csv", index=False)
    return root


def test_one_odd_cell_is_named_and_not_the_model_blamed(tmp_path: Path) -> None:
    odd = [*LOOP]
    odd[8] = "maybe"
    root = pages(tmp_path, loop=odd)
    message = "row 9 holds 'maybe', the other 11 are 0 or 1"
    with pytest.warns(UserWarning, match=f"column 'loop' was taken for metadata: {message}"):
        dataset = as_dataset(root)
    space = QuestionSpace(dataset)
    assert dict(overview(space, ["overall label error"], "all"))["loop"] == f"metadata: {message}"
    with pytest.raises(InputError, match=r"got 'maybe' at sample 'page_8\.png', concept 'loop'"):
        as_dataset(root, concepts=["even", "loop"])


def test_a_rate_that_no_label_can_show_is_named() -> None:
    truths = np.array([[1, 0, 1], [1, 0, 0]])
    table = pd.DataFrame(truths, columns=["dog", "cat", "cow"])
    dataset = from_table([np.zeros((8, 8, 3), np.uint8)] * 2, table)
    rows = dict(overview(QuestionSpace(dataset), [], "all"))
    assert rows["no false-alarm rate"] == "of dog: no label is 'no'"
    assert rows["no miss rate"] == "of cat: no label is 'yes'"


def test_images_without_a_row_are_named(tmp_path: Path) -> None:
    root = pages(tmp_path)
    for name in ("page_20.png", "page_100.png", "page_3_mask.png", ".hidden.png", "a.txt"):
        write_bytes(root / "images" / name, PIXELS)
    names = "2 images have no row in the table: page_20.png, page_100.png"
    assert as_dataset(root).remarks["not read"] == f"{names}, 1 .png, 1 .txt"


def test_a_column_of_metadata_that_could_be_asked_about_is_named(tmp_path: Path) -> None:
    root = pages(tmp_path)
    given: dict[str, Any] = {"id_column": "file", "metadata": ["loop", "site"]}
    dataset = read_table(root / "labels.csv", root / "images", **given)
    message = "metadata, though it holds only 0 and 1: take it out of metadata to ask about it"
    assert dataset.remarks == {"file": "names the images", "loop": message}
    chosen = read_table(root / "labels.csv", root / "images", concepts=["even"], **given)
    assert "loop" not in chosen.remarks


def test_init_leaves_out_a_row_without_its_image_and_says_so(tmp_path: Path, capsys: Any):
    root = pages(tmp_path, file=[*NAMES[:6], "page_999.png", *NAMES[7:]])
    start = tmp_path / "start"
    assert run("init", str(start), "--data", str(root)) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "images 11; 1 left out, as" in output
    assert "page_999.png (missing)" in output
    assert 'broken = "skip"' in (start / "SPEC.toml").read_text()
    assert run("audit", str(start / "SPEC.toml"), "--dry-run") == 0


def test_concepts_choose_columns_or_are_refused(tmp_path: Path) -> None:
    root = pages(tmp_path)
    dataset = as_dataset(root, concepts=["loop"])
    assert (dataset.concepts, dataset.metadata_columns) == (("loop",), ("even", "site"))
    with pytest.raises(InputError, match=r"unknown concept 'lop'"):
        as_dataset(root, concepts=["lop"])
    rows = pd.DataFrame({"file": [str(root / "images" / n) for n in NAMES], "x": EVEN, "y": EVEN})
    assert as_dataset(rows, concepts=["y"]).concepts == ("y",)
    assert as_dataset(root / "images", rows[["x", "y"]], concepts=["y"]).concepts == ("y",)
    with pytest.raises(InputError, match="unknown concept 'z'"):
        as_dataset(root / "images", rows[["x"]], concepts=["z"])
    with pytest.raises(InputError, match=r"concepts: expected those of the data, .* got 'z'"):
        as_dataset(tiny_dataset(), concepts=["z"])


def test_the_table_says_what_became_of_everything_within_80_columns() -> None:
    labels = pd.DataFrame({"even": [0, 1, np.nan]}, index=["a", "b", "c"])
    images = [np.zeros((4, 4), np.uint8)] * 3
    site = pd.DataFrame({"site": ["x", "y", "x"]})
    dataset = from_table(images, labels, metadata=site, skipped=["d.png"], name="pages")
    space = QuestionSpace(dataset, ["identity", "rotation"], severities=[1, 3])
    assert dict(overview(space, ["overall label error", "even: miss rate"], "all")) == {
        "images": "3; 1 left out, as d.png",
        "even": "concept: 1 yes, 1 no, 1 unknown",
        "metadata": "site",
        "task": "labels: the label error, over images and labels",
        "relations (severities)": "identity, rotation (x2)",
        "targets": "2: overall label error, even: miss rate",
        "a call": "a under rotation, severity 3: even?",
    }
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(space, [f"target {k} with a long name" for k in range(9)], "all", console)
    text = console.export_text()
    assert "read: pages" in text
    assert max(map(len, text.splitlines())) <= 80


def test_classes_are_counted_alike_whatever_is_asked_about_them(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        write_bytes(tmp_path / name, png(np.zeros((4, 4, 1), np.uint8)))
    for classes in ("all", "own"):
        dataset = from_class_folders(tmp_path, classes=classes)
        rows = dict(overview(QuestionSpace(dataset, oracle=TopClass()), [], "all"))
        assert (rows["cat"], rows["dog"]) == ("class of images: 2", "class of images: 1")


def test_init_and_dry_run_print_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", str(tmp_path / "spec"), "--data", str(pages(tmp_path / "data"))) == 0
    output = capsys.readouterr().out
    assert re.search(r"loop +concept: 4 yes, 8 no", output)
    assert run("audit", str(tmp_path / "spec" / "SPEC.toml"), "--dry-run") == 0
    again = capsys.readouterr().out
    assert re.search(r"file +names the images", again)
    assert again.index("concept: 4 yes") < again.index("calls in all until certified")


def test_an_id_with_a_dot_names_its_image_and_labels_csv_is_the_one_meant(tmp_path: Path) -> None:
    """As `avtt export --failures` writes them: "page_0.png--identity-0", beside failures.csv."""
    root = pages(tmp_path, file=[f"page_{k}.v1" for k in range(12)])
    for k in range(12):
        (root / "images" / NAMES[k]).rename(root / "images" / f"page_{k}.v1.png")
    pd.DataFrame({"file": NAMES, "loss": EVEN}).to_csv(root / "failures.csv", index=False)
    dataset = as_dataset(root)
    assert dataset.concepts == ("even", "loop")
    assert dataset.has_images
    assert dataset.sample(3).id == "page_3.v1"
    assert dataset.sample(3).image is not None


def test_twelve_bits_in_a_file_of_sixteen_are_asked_about() -> None:
    dataset = from_table(np.full((2, 8, 8), 4095 // 257, np.uint8), pd.DataFrame({"x": [0, 1]}))
    rows = dict(overview(QuestionSpace(dataset, relations=["identity"]), [], "all"))
    assert rows["dark"] == "15 of 255 at most in the first: 12 bits in a 16-bit file?"
