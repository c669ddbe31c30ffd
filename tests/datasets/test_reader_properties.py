"""Whatever a cell, a name or a line of YOLO holds: it is read as meant, or refused by its place."""

import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adaptive_vtt.datasets import UNKNOWN, read_table
from adaptive_vtt.datasets.columns import WORDS, label_cells
from adaptive_vtt.datasets.formats.table_file import near_image
from adaptive_vtt.datasets.formats.yolo import from_yolo
from adaptive_vtt.datasets.scanning import NAMES, Folder
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import picture, truths

PLAIN = {
    1: [*NAMES["yes"], "1", "1.0", "1,0", "1.00"],
    0: [*NAMES["no"], "0", "0.0", "0,0"],
    UNKNOWN: [*NAMES["missing"], ""],
}
CASES = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])
CELLS = st.sampled_from([*PLAIN]).flatmap(
    lambda truth: st.tuples(st.just(truth), st.sampled_from(PLAIN[truth]), CASES)
)


@settings(max_examples=12)
@given(st.lists(CELLS, min_size=1, max_size=12))
def test_words_in_any_letters_mean_their_plain_form(cells):
    read = label_cells(pd.Series([f" {case(word)} " for _, word, case in cells], dtype=object))
    assert not read.odd.any()
    assert read.truths.fillna(UNKNOWN).tolist() == [truth for truth, *_ in cells]


ODD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)


@settings(max_examples=6)
@given(st.lists(st.sampled_from("01"), min_size=3, max_size=8), ODD, st.data())
def test_any_other_cell_is_refused_by_its_sample(cells, odd, data):
    assume(odd.lower() not in {*WORDS, *NAMES["missing"]} and not odd.isdigit())
    assume(not odd.lower().startswith("1e0"))  # a number, one
    row = data.draw(st.integers(0, len(cells)))
    cells = [*"0011", *cells]
    cells[row] = odd
    with TemporaryDirectory() as folder:
        path = Path(folder, "labels.csv")
        path.write_text("id,x\n" + "".join(f"s{k},{cell}\n" for k, cell in enumerate(cells)))
        with pytest.raises(InputError, match=rf"got '{odd}' (at sample 's{row}'|in row {row + 1})"):
            read_table(path)


STEMS = st.text(st.sampled_from("abÅé ß01_-"), min_size=1, max_size=6).map(str.strip)
CHANGES = {
    "nothing": str,
    "slashes": lambda name: name.replace("/", "\\"),
    "letters": str.upper,
    "Unicode form": lambda name: unicodedata.normalize("NFD", name),
    "its ending": lambda name: name.removesuffix(".png"),
}


@settings(max_examples=12)
@given(st.lists(STEMS.filter(bool), min_size=1, max_size=5), st.sampled_from([*CHANGES]))
def test_a_name_is_found_where_it_can_mean_one_file_alone(stems, change):
    stems = [unicodedata.normalize("NFC", stem) for stem in stems]
    with TemporaryDirectory() as top:
        for stem in stems:
            file = Path(top, "set", f"{stem}.png")
            file.parent.mkdir(exist_ok=True)
            file.touch()
        there = Path(top, "set", f"{stems[0]}.png")
        name = CHANGES[change](f"set/{stems[0]}.png")
        alike = {stem for stem in stems if stem.casefold() == stems[0].casefold()}
        file = near_image(Folder(Path(top), allow_outside=False), name)
        if len(alike) == 1:
            assert file == there
        else:
            assert file is None or file.stem in alike


@settings(max_examples=12)
@given(st.integers(0, 9999), st.integers(0, 3), st.booleans())
def test_lost_zeros_of_a_number_are_found(number, zeros, twice):
    with TemporaryDirectory() as top:
        Path(top, f"{'0' * zeros}{number}.png").touch()
        if twice:
            Path(top, f"{'0' * (zeros + 1)}{number}.png").touch()
        file = near_image(Folder(Path(top), allow_outside=False), f"{'0' * 5}{number}.png")
        assert (file is None) == twice


SHARES = st.floats(0.1, 0.9)


@settings(max_examples=6)
@given(st.lists(st.tuples(st.integers(0, 2), SHARES, SHARES), min_size=1, max_size=5))
def test_boxes_of_yolo_lie_where_their_lines_say(boxes):
    dataset = yolo("".join(f"{label} {x} {y} 0.1 0.2\n" for label, x, y in boxes))
    assert {*dataset.concepts} == {f"class {label}" for label, *_ in boxes}
    for (label, x, y), box in zip(boxes, dataset.boxes[0], strict=True):
        assert box.label == f"class {label}"
        assert (box.left + box.right) / 2 == pytest.approx(100 * x, abs=0.01)
        assert (box.top + box.bottom) / 2 == pytest.approx(50 * y, abs=0.01)


@settings(max_examples=8)
@given(st.text(st.sampled_from("0123456789 .-eEnaif+x"), min_size=1, max_size=30))
def test_a_line_of_yolo_is_read_or_refused_by_its_number(line):
    text = f"0 0.5 0.5 0.2 0.2\n{line}\n"
    lenient = yolo(text, broken="skip")
    if lenient.skipped:
        with pytest.raises(InputError, match=r"0\.txt, line 2: expected"):
            yolo(text)
    else:
        assert len(lenient.boxes[0]) == 1 + bool(line.strip())
        assert truths(lenient) == truths(yolo(text))


def yolo(lines, **options):
    """Return the dataset of one image, 100 x 50 pixels, with these lines."""
    with TemporaryDirectory() as top:
        picture(Path(top, "images", "0.png"), 50, 100)
        Path(top, "labels").mkdir()
        Path(top, "labels", "0.txt").write_text(lines)
        dataset = from_yolo(top, **options)
        dataset.sample(0)  # while its file is there
        return dataset
