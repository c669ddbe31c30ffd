"""Tables of labels in Parquet mean the same as in CSV."""

import sys

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import truths


def test_parquet_table_means_the_same_as_csv(tmp_path):
    pytest.importorskip("pyarrow")
    columns = {"drusen": [True, False, None], "cyst": [1.0, np.nan, 0.0], "eye": list("lrl")}
    table = pd.DataFrame({"id": [7, 8, 9], **columns})
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,drusen,cyst,eye\n7,1,1,l\n8,0,,r\n9,,0,l\n")
    read = [datasets.read_table(tmp_path / f"t.{e}", metadata=["eye"]) for e in ("csv", "parquet")]
    assert read[0].fingerprint == read[1].fingerprint
    assert truths(read[0]) == truths(read[1])
    assert [d.sample(1).metadata for d in read] == [{"eye": "r"}] * 2
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"bad\.parquet: cannot read a table: .*Parquet"):
        datasets.read_table(tmp_path / "bad.parquet")


def test_missing_parquet_reader_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"needs pyarrow: pip install 'pyarrow>="):
        datasets.read_table(tmp_path / "t.parquet")
