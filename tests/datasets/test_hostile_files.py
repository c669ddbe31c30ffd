"""Files that mean no good: names that lead out, formulas, bombs, absurd shapes and widths."""

import base64
import contextlib
import errno
import io
import json
import os
import sqlite3
import time
import tracemalloc
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.datasets import from_coco, from_medvqa, from_voc, read_table
from adaptive_vtt.datasets.formats.medmnist import NpzArray
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.errors import AvttError, InputError, JournalError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.journal.answer_json import from_json, to_json
from adaptive_vtt.journal.rows import AnswerRow, CallRow, DrawRow, SourceRow
from adaptive_vtt.utils.files import why_unread
from adaptive_vtt.utils.image_codec import png
from adaptive_vtt.utils.tables import csv_text, inert, original, restored

PICTURE = png(np.zeros((8, 8, 3), np.uint8))

LONG = "a" * 300
"""A name longer than any file's."""


# -- names that lead out of their folder ----------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder of images beside one that is nobody's business."""
    for name in ("data/images", "data/Annotations", "data/ImageSets/Main", "private"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "JPEGImages").symlink_to("images")
    for name in ("data/images/inside.jpg", "private/outside.jpg"):
        (tmp_path / name).write_bytes(PICTURE)
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox>"
    thing = f"<object><name>c</name>{box}</object>"
    xml = f"<a><size><width>8</width><height>8</height></size>{thing}</a>"
    for place in ("data/Annotations/inside", "private/outside"):
        (tmp_path / f"{place}.xml").write_text(xml)
    (tmp_path / "data" / "images" / "link.jpg").symlink_to(tmp_path / "private" / "outside.jpg")
    (tmp_path / "data" / "Annotations" / "link.xml").write_text(xml)
    return tmp_path / "data"


def table(folder, name, **options):
    text = f"id,file,c\na,{name}.jpg,1\n"
    (folder / "labels.csv").write_text(text)
    return read_table(folder / "labels.csv", folder / "images", file_column="file", **options)


def coco(folder, name, **options):
    image = {"id": 1, "file_name": f"{name}.jpg", "width": 8, "height": 8}
    thing = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 4]}
    content = {"images": [image], "categories": [{"id": 1, "name": "c"}], "annotations": [thing]}
    (folder / "coco.json").write_text(json.dumps(content))
    return from_coco(folder / "coco.json", folder / "images", **options)


def medvqa(folder, name, **options):
    label = {"Question": "Are there any polyps?", "AnswerType": "x", "Answer": ["no"]}
    question = "Have all polyps been removed?"
    label = {**label, "Question": question}
    (folder / "gt.json").write_text(json.dumps([{"ImageID": name, "Labels": [label]}]))
    return from_medvqa(folder, **options)


def voc(folder, name, **options):
    (folder / "ImageSets" / "Main" / "val.txt").write_text(f"{name}\n")
    return from_voc(folder, split="val", **options)


LOADERS = (table, coco, medvqa, voc)
OUTSIDE = (
    "../../private/outside",
    "{root}/private/outside",
    "link",
    "sub/../../../private/outside",
)


@pytest.mark.parametrize("load", LOADERS)
def test_names_inside_their_folder_are_taken(load, folder):
    (folder / "images" / "sub").mkdir()
    (folder / "images" / "sub" / "deep.jpg").write_bytes(PICTURE)
    assert len(load(folder, "inside")) == 1
    if load is not voc:
        assert len(load(folder, "sub/deep")) == 1
        assert len(load(folder, "sub/../inside")) == 1


@pytest.mark.parametrize("load", LOADERS)
def test_a_name_too_long_for_a_file_is_one_sentence(load, folder):
    with pytest.raises(InputError, match=r"does not exist|File name too long"):
        load(folder, LONG)


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out_are_refused(load, name, folder):
    written = name.format(root=folder.parent)
    with pytest.raises(InputError, match=r"expected a file inside .*allow_outside = true") as error:
        load(folder, written)
    assert "outside" in str(error.value)


@pytest.mark.parametrize(("load", "name"), [*zip((table, coco, medvqa), OUTSIDE, strict=False)])
def test_they_are_taken_where_that_is_allowed(load, name, folder):
    dataset = load(folder, name.format(root=folder.parent), allow_outside=True)
    assert dataset.sample(0).image is not None


# -- formulas -------------------------------------------------------------------------------

CELLS = st.text(st.sampled_from("=+-@\t\r'a1.e\" ,"), max_size=8)


@settings(max_examples=40)
@given(CELLS)
def test_no_text_is_written_as_a_formula_and_all_come_back(cell):
    written = inert(cell)
    assert original(written) == cell
    if written[:1] in tuple("=+-@\t\r"):
        float(written)  # a number, and nothing else


def test_tables_come_back_as_they_were():
    before = pd.DataFrame({"=id": ["=a", "'-b", "-1"], "loss": [-0.5, 1.0, 0.0]})
    text = csv_text(before)
    assert text.splitlines() == ["'=id,loss", "'=a,-0.5", "''-b,1.0", "-1,0.0"]
    pd.testing.assert_frame_equal(
        restored(pd.read_csv(io.StringIO(text), dtype={"'=id": str})), before
    )


# -- arrays that are not what they say --------------------------------------------------------


def npy(shape, data=b"", kind="|u1"):
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + data


def archive(path, content, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("x.npy", content)
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("shape", "data", "sentence"),
    [
        ((3_000_000_000,), b"", "over the limit of 2147483648; a larger most_bytes|expected 3"),
        ((10**9, 10**9, 10**9), b"", "over the limit|expected 1000000000000000000000000000 bytes"),
        ((-4, 4), b"x" * 16, r"expected sides of 0 or more, got \(-4, 4\)"),
        ((4, 4), b"x" * 15, r"expected 16 bytes, as its shape \(4, 4\).*got 15"),
        ((4, 4), b"x" * 17, r"expected 16 bytes, .* got 17"),
    ],
)
def test_declared_sizes_are_checked_before_anything_is_unpacked(
    shape, data, sentence, compression, tmp_path
):
    path = archive(tmp_path / "a.npz", npy(shape, data), compression)
    with pytest.raises(InputError, match=sentence):
        NpzArray(path, "x")


def test_a_bomb_takes_no_memory(tmp_path):
    path = archive(tmp_path / "a.npz", npy((8_000_000,), bytes(8_000_000)))
    assert path.stat().st_size < 50_000
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to 8000000 bytes, over the limit of 5000000"):
        NpzArray(path, "x", most_bytes=5_000_000)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    assert NpzArray(path, "x", most_bytes=8_000_000).array.nbytes == 8_000_000


# -- wide tables ----------------------------------------------------------------------------


def test_a_table_of_100_000_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(["id", *(f"c{k}" for k in range(99_999))])
    path.write_text(f"{names}\n" + ("a" + ",1" * 99_999 + "\n") * 9)
    began = time.process_time()
    with pytest.raises(InputError, match=r"wide\.csv: expected at most 10000 columns, got 100000"):
        read_table(path)
    assert time.process_time() - began < 1


def test_a_header_without_end_is_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a" * (5 * 2**20))
    with pytest.raises(InputError, match="expected a header of fewer than 4194304 characters"):
        read_table(path)


# -- damaged journals -------------------------------------------------------------------------


def mask_said(height, width, data):
    return {"mask": base64.b64encode(data).decode(), "shape": [height, width]}


HONEST = to_json(np.ones((4, 4), bool))
DAMAGED = (
    mask_said(-4, -4, zlib.compress(b"ab")),
    mask_said(10**9, 10**9, zlib.compress(b"ab")),
    mask_said(4, 4, zlib.compress(bytes(10**7))),
    mask_said(4, 4, zlib.compress(b"a")),
    mask_said(4, 4, b"no zlib"),
    mask_said(4.0, 4, zlib.compress(b"ab")),
    {**HONEST, "shape": [4]},
    {**HONEST, "mask": "*"},
    {**HONEST, "mask": HONEST["mask"][:-8]},
    {"mask": HONEST["mask"]},
    {},
    None,
)


@pytest.mark.parametrize("message", DAMAGED)
def test_a_damaged_answer_gets_one_sentence_that_names_the_row(message):
    with pytest.raises(JournalError, match=r"^journal: sources, row 7: expected an answer"):
        from_json(message, "journal: sources, row 7")


ATOMS = st.none() | st.booleans() | st.floats() | st.text() | st.integers()
FIELDS_SAID = st.sampled_from(["mask", "shape", "unanswered"])


@settings(max_examples=15)
@given(
    st.recursive(
        ATOMS, lambda inner: st.dictionaries(FIELDS_SAID, inner | st.lists(inner, max_size=2))
    )
)
def test_any_json_is_an_answer_or_a_journal_error(message):
    with contextlib.suppress(JournalError):
        from_json(message)


FIELDS = (("facts", "value"), ("draws", "why"), ("answers", "details"), ("sources", "answers"))


@pytest.mark.parametrize(("place", "field"), FIELDS)
@pytest.mark.parametrize("text", ["{", "[" * 100_000, b"\xff\xfe"])
def test_damaged_json_in_a_journal_gets_one_sentence(place, field, text, tmp_path):
    path = tmp_path / "journal.db"
    journal = SQLiteJournal(path)
    journal.set_facts(seed=1)
    proposal = Proposal(np.array([5]), np.array([1.0])).pack()
    journal.add([DrawRow(0, 5, 5, "a", 0, 1.0, proposal, {}, 0.0)])
    answer = AnswerRow(5, 5, 1, 0.5, None, 0.0, 0.5, None, {"a": 1})
    journal.add([CallRow(5, 0.0, 0.0, (answer,))])
    journal.add([SourceRow(2, (0.5,), 0.0, 0.0)])
    journal.close()
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE {place} SET {field} = ?", (text,))
    db.close()
    journal = SQLiteJournal(path)
    with pytest.raises(JournalError, match=rf"journal: {place}, .*expected JSON.*damaged"):
        getattr(journal, "calls" if place == "answers" else place)()
    journal.close()


@pytest.mark.parametrize(
    "packed", [b"", b"no zlib", zlib.compress(b"123"), zlib.compress(bytes(32))[:-2]]
)
def test_a_damaged_proposal_gets_one_sentence(packed):
    with pytest.raises(AvttError, match="expected the proposal of a draw"):
        Proposal.unpack(packed)


# -- files that cannot be read ------------------------------------------------------------


def test_why_a_file_cannot_be_read_is_said_whatever_its_name(tmp_path):
    """With what to do where it is not there, and nothing more where it is there, or cannot be."""
    (tmp_path / "captions.csv").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere")
    missing = "it does not exist"
    expected = {
        "caption.csv": f"{missing}; did you mean 'captions.csv'?",
        "Captioned.csv": f"{missing}; did you mean 'captions.csv'?",
        "dangling.csv": f"{missing}; put it there, or name another",
        "nowhere/x.csv": f"{missing}; put it there, or name another",
        "x.**": f"{missing}; put it there, or name another",
        "folder": os.strerror(errno.EISDIR),
        "captions.csv/x.csv": os.strerror(errno.ENOTDIR),
        f"{'a' * 300}.csv": os.strerror(errno.ENAMETOOLONG),
        "nul\0.csv": "embedded null byte",
    }
    assert {name: unread(tmp_path / name) for name in expected} == expected


def unread(path):
    with pytest.raises((OSError, ValueError)) as raised:
        path.read_text()
    return why_unread(path, raised.value)


@pytest.mark.parametrize(
    "read", [from_medvqa, lambda folder: from_coco(folder / "gt.json", folder)]
)
def test_annotations_that_nest_too_deep_are_refused(tmp_path, read):
    (tmp_path / "gt.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"gt\.json: cannot read .*: maximum recursion depth"):
        read(tmp_path)
