"""A table of recorded answers about things that are no images, in the terminal and on the page."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.command_line import run
from tests.helpers.report_pages import Tags

SPEC = """[dataset]
kind = "table"
labels = "labels.csv"
metadata = ["language"]

[model]
kind = "recorded"
answers = "answers.csv"

[space]
relations = ["identity"]

[audit]
budget = 20

[certify]
half_width = 0.2
surrogate = false
self_taught = false
targets = ["overall", "group:language"]
"""


@pytest.mark.slow
def test_rows_are_called_items_and_no_picture_is_spoken_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows, ids = np.arange(120), [f"t{k}" for k in range(120)]
    labels = {"id": ids, "language": np.where(rows % 3, "en", "de"), "toxic": rows % 2}
    answers = {"sample": ids, "toxic": np.where(rows % 5, rows % 2, 1 - rows % 2)}
    for name, columns in {"labels": labels, "answers": answers}.items():
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "SPEC.toml").write_text(SPEC)
    out = tmp_path / "run"

    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(out), "--seed", "1") == 0
    output = capfd.readouterr()
    assert "120 questions about 120 items of labels" in output.err
    assert "avtt export" not in output.out, "it would refuse: there are no images"
    shown = Tags((out / "report.html").read_text()).text
    assert "by concept. Choose a cell" in shown
    assert re.findall(r"[^.]*\b(?:images?|pictures?)\b[^.]*", shown) == []
