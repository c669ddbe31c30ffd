"""MedMNIST-C's Table 2 beside an audit: what is compared with what, and where it stands."""

import re

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.derived import alexnet
from adaptive_vtt.datasets import from_table
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.relations.medmnistc import CATEGORIES, KINDS
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.published import RELATIVE, WHOLE, published_tables

CLASSES = ("a", "b", "c")


def test_every_corruption_is_of_one_category() -> None:
    members = [name for names in CATEGORIES.values() for name in names]
    assert sorted(members) == sorted(KINDS)
    models, rows = (published_tables("medmnistc")[part] for part in ("models", "rows"))
    assert list(rows) == [WHOLE, *CATEGORIES, RELATIVE]
    assert all(len(values) == len(models) and values[0] == 1 for values in rows.values())


@pytest.fixture(scope="module")
def audited() -> tuple[MemoryJournal, pd.DataFrame]:
    """A classifier by brightness under OCTMNIST's corruptions; journal and derived figures."""
    rng = np.random.default_rng(0)
    kinds = np.arange(9) % 3
    images = [rng.integers(80 * k, 80 * k + 80, (16, 16, 1), dtype=np.uint8) for k in kinds]
    labels = pd.DataFrame(np.eye(3, dtype=int)[kinds], columns=CLASSES)
    space = QuestionSpace(
        from_table(images, labels), ["identity", "medmnistc/octmnist"], oracle=TopClass()
    )

    def predict(batch: list[np.ndarray]) -> np.ndarray:
        means = np.array([image.mean() for image in batch])
        return np.exp(-(((means[:, None] - [40, 120, 200]) / 40) ** 2)).clip(0.01, 0.99)

    journal = MemoryJournal()
    result = Audit(
        space,
        predict,
        half_width=0.2,
        targets=["relation-sides"],
        budget=150,
        seed=1,
        journal=journal,
    ).run()
    return journal, result.derived.set_index("quantity")


@pytest.mark.slow
def test_rows_are_the_means_over_each_kind_of_corruption(
    audited: tuple[MemoryJournal, pd.DataFrame],
) -> None:
    journal, derived = audited
    page = render(journal)
    start = page.index('id="medmnistc-published"')
    table = page[start : page.index("</table>", start)]
    rows = re.findall(r'<th scope="row">(.*?)</th>\s*<td data-value="(.*?)">', table)
    ours = {name: float(value) for name, value in rows}
    assert list(ours) == [WHOLE, "digital", "noise", "blur", "color", RELATIVE]  # no task's own
    for name, (middle, lower, upper) in {
        "digital": means(derived, CATEGORIES["digital"]),
        "noise": means(derived, ("speckle_noise",)),
        WHOLE: means(derived, tuple(alexnet()["octmnist"])),
    }.items():
        assert ours[name] == pytest.approx(middle)
        assert lower <= middle <= upper
    for value in ("131.5", "74.0", "166.1"):  # ResNet50's BE, ViT's on digital ones, ResNet50's rBE
        assert value in table
    assert table.index("ResNet50") < table.index("ViT-B/16")


def means(derived: pd.DataFrame, names: tuple[str, ...]) -> tuple[float, float, float]:
    rows = [f"relation medmnistc/octmnist/{name}: BE / AlexNet" for name in names]
    found = derived.loc[rows, ["estimate", "lower", "upper"]].mean()
    return tuple(found.tolist())


@pytest.mark.slow
def test_other_relations_have_no_such_table() -> None:
    images = [np.zeros((8, 8, 1), np.uint8)] * 3
    labels = pd.DataFrame(np.eye(3, dtype=int), columns=CLASSES)
    space = QuestionSpace(from_table(images, labels), ["identity", "rotation"], oracle=TopClass())
    journal = MemoryJournal()
    Audit(
        space,
        lambda batch: [[0.5, 0.2, 0.1]] * len(batch),
        half_width=0.3,
        targets=["relation-sides"],
        budget=9,
        journal=journal,
    ).run()
    assert 'id="medmnistc-published"' not in render(journal)
