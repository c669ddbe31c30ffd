"""Numbers as classes are ordered as numbers, however a table writes them."""

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.overview import overview
from adaptive_vtt.datasets import as_dataset
from adaptive_vtt.datasets.table import one_per_class
from tests.helpers.small_datasets import picture


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        ([10, 2, 0, 1], ["0", "1", "2", "10"]),
        (["10.0", "2.0", "0.0"], ["0", "2", "10"]),
        ([10.0, 2.0, np.nan, 0.0], ["0", "2", "10"]),
        (["3.0", "3", "12", " 3"], ["3", "12"]),
        (np.array([11, 3, -1], np.int16), ["-1", "3", "11"]),
        (["grade 10", "grade 2", "grade 1"], ["grade 1", "grade 2", "grade 10"]),
        (["polyp", "3", "20"], ["3", "20", "polyp"]),
    ],
)
def test_classes_are_in_the_order_of_their_numbers(cells, names):
    assert [*one_per_class(pd.Series(cells))] == names


@pytest.mark.parametrize("form", ["{}", "{}.0"])
def test_numbers_of_a_table_are_ordered_and_the_order_is_said(tmp_path, form):
    for k in range(24):
        picture(tmp_path / "images" / f"p{k:02}.png")
    rows = "".join(f"p{k:02}.png,{form.format(k % 12)}\n" for k in range(24))
    (tmp_path / "labels.csv").write_text("file,label\n" + rows)
    dataset = as_dataset(tmp_path)
    assert dataset.concepts == tuple(map(str, range(12)))
    order = dict(overview(QuestionSpace(dataset), [], "all"))["order"]
    assert order == "0, 1, 2 and 9 more: as numbers; text would give 0, 1, 10 and 9 more"
