"""The table per perturbation and concept: certified and derived."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_table
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.rates import perturbations, perturbations_section
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Image
from adaptive_vtt.utils.tables import restored
from tests.helpers.command_line import run
from tests.helpers.report_kinds import labels
from tests.helpers.report_pages import audit

CLASSES = ["dark", "grey", "light"]
CONTRAST = "medtest/contrast"
FEW: dict[str, Any] = {"budget": 12, "strategy": "random", "surrogate": False}


def predict(batch: Sequence[Image]) -> np.ndarray:
    means = np.array([image.mean() for image in batch])
    return np.exp(-(((means[:, None] - [40, 110, 190]) / 40) ** 2)).clip(0.01, 0.99)


@pytest.fixture(scope="module")
def space() -> avtt.QuestionSpace:
    rng = np.random.default_rng(0)
    kinds = np.arange(6) % 3
    images = [rng.integers(60 * k, 60 * k + 130, (16, 16, 3), dtype=np.uint8) for k in kinds]
    names = pd.DataFrame(np.eye(3, dtype=int)[kinds], columns=CLASSES)
    asked = [CONTRAST, "identity", "medtest/saturation"]
    return avtt.QuestionSpace(from_table(images, names), asked, oracle=TopClass())


@pytest.fixture(scope="module")
def folder(space: avtt.QuestionSpace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an audit that asked everything, so that every interval is a point."""
    out = tmp_path_factory.mktemp("whole")
    options: dict[str, Any] = {"targets": ["relation-sides", "relations"], "surrogate": False}
    options |= {"strategy": "random", "half_width": 0.001, "journal": out / "journal.db"}
    with avtt.Audit(space, predict, **options) as all_:
        all_.run()
    return out


@pytest.fixture(scope="module")
def table(folder: Path) -> pd.DataFrame:
    """What the command writes."""
    assert run("report", str(folder), "--tables") == 0
    assert (folder / "tables" / "targets.csv").is_file()
    assert CONTRAST in (folder / "tables" / "perturbations.tex").read_text()
    table = restored(pd.read_csv(folder / "tables" / "perturbations.csv"))
    return table.set_index(["relation", "concept"])


@pytest.mark.slow
def test_the_latex_of_targets_has_the_columns_that_a_page_holds(
    table: pd.DataFrame, folder: Path
) -> None:
    header = re.search(r"toprule\n(.*?) \\\\", (folder / "tables" / "targets.tex").read_text())
    assert header is not None
    names = ["target", "questions", "estimate", "lower", "upper", "certified"]
    assert header[1].split(" & ")[:6] == names
    assert header[1].split(" & ")[6:] in ([], ["decided"])
    assert len(pd.read_csv(folder / "tables" / "targets.csv").columns) > 20


@pytest.mark.slow
def test_a_page_has_it(folder: Path, table: pd.DataFrame) -> None:
    page = (folder / "report.html").read_text()
    part = page[page.index('id="perturbations"') :]
    part = part[: part.index("</table>")]
    assert f"{100 * table.loc[(CONTRAST, 'all'), 'accuracy']:.1f}\u202f%" in part
    assert "all of these hold together" in part


@pytest.mark.parametrize("guarantee", ["all", pytest.param("each", marks=pytest.mark.slow)])
def test_intervals_are_turned_and_figures_of_several_hold_together(guarantee: str) -> None:
    journal = labels(targets=["relations", "relation-sides"], guarantee=guarantee, **FEW)
    table = perturbations(Evidence(journal))
    for rate, figure in (("label error", "accuracy"), ("miss rate", "recall")):
        there = table[table[rate].notna()]
        assert len(there)
        assert (there[figure] == 1 - there[rate]).all()
        assert (there[f"{figure} lower"] == 1 - there[f"{rate} upper"]).all()
        assert (there[f"{figure} upper"] == 1 - there[f"{rate} lower"]).all()
    assert ("balanced accuracy" in table) == (guarantee == "all")
    shown = perturbations_section(Evidence(journal))
    assert shown is not None
    assert ("all of these hold together" in shown.html) == (guarantee == "all")


def test_of_one_relation_each_concept_has_its_balanced_accuracy() -> None:
    sides: dict[str, Any] = {"targets": ["relation-sides"], "half_width": 0.1, **FEW}
    journal = audit(tiny_dataset(), ScriptedModel(), [CONTRAST], **sides)
    figures = perturbations(Evidence(journal)).set_index(["relation", "concept"])[
        "balanced accuracy"
    ]
    assert {relation for relation, _ in figures.index} == {CONTRAST}
    assert figures.notna().all()


def test_without_a_relation_there_is_none() -> None:
    journal = labels(targets=["overall", "concepts"], **FEW)
    assert perturbations(Evidence(journal)).empty
    assert perturbations_section(Evidence(journal)) is None
