"""The chapter "Predictions": its numbers are those of ``Result.beliefs`` and its figures those
of ``Result.plot``, in every kind of report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.audit.inspection import Inspection
from adaptive_vtt.journal import Journal
from adaptive_vtt.results.beliefs.figures import Moments, turned
from adaptive_vtt.results.report import predictions, render
from adaptive_vtt.results.result import Result, summarise
from tests.helpers.report_kinds import KINDS, labels
from tests.helpers.report_pages import Tags, spaced, unpacked

OF_TABLES = ("relation-concept", "cell", "relation", "severity")


@pytest.fixture(scope="module")
def journal() -> Journal:
    """Of an audit that predicts, with three severities and certified relations."""
    return labels(surrogate=True, budget=24, half_width=0.05)


@pytest.fixture(scope="module")
def result(journal: Journal) -> Result:
    return replace(summarise(journal), source=Inspection(journal))


@pytest.fixture(scope="module")
def content(journal: Journal) -> dict[str, Any]:
    return dict(unpacked(render(journal), "believed-data"))


@pytest.mark.parametrize("of", OF_TABLES)
def test_its_numbers_are_those_of_beliefs(result: Result, content: dict[str, Any], of: Any) -> None:
    """Every number of every moment, to four decimals."""
    table, here = result.beliefs(of), content["tables"][of]
    assert here["draws"] == table["draws"].drop_duplicates().tolist()
    assert here["draws"][-1] == 24
    for name in ("predicted", "sd", "spread", "drawn", "asked", "failed", "lower", "upper"):
        shown = np.array(here["columns"][name], float).ravel()
        assert shown == pytest.approx(table[name].to_numpy(float), abs=1e-4, nan_ok=True), name
    names = table[["concept", "relation", "severity"]].head(len(here["groups"])).astype(object)
    assert here["groups"] == names.where(names.notna(), None).to_numpy().tolist()


@pytest.mark.slow
def test_its_figures_are_those_of_plot(result: Result, content: dict[str, Any]) -> None:
    """What the page draws at the last moment is, number by number, what ``plot`` gives."""
    tables = {
        of: Moments(of, here["draws"], here["groups"], here["columns"])
        for of, here in content["tables"].items()
    }
    concept = content["concepts"][1]
    pairs = {
        "": result.plot("concept"),
        "c1": result.plot("concept", concept),
        "r1": result.plot("relation", content["relations"][1]),
    }
    compared = [(content["curves"][name], figure) for name, figure in pairs.items()]
    compared.append((content["surfaces"][""], result.plot("beliefs")))
    compared.append((content["surfaces"]["rotation"], result.plot("beliefs", "rotation")))
    for page, figure in compared:
        assert len(page["data"]) == len(figure.data) > 1
        for hollow, trace in zip(page["data"], figure.data, strict=True):
            full = turned(hollow, tables, -1)
            for path in hollow["meta"]["bind"]:
                outer, _, inner = path.partition(".")
                shown = full[outer][inner] if inner else full[outer]
                given = trace[outer][inner] if inner else trace[outer]
                if path == "text":
                    assert np.array_equal(np.array(shown), np.array(given))
                else:
                    values = np.array(given, float)
                    assert np.array(shown, float) == pytest.approx(values, abs=1e-4, nan_ok=True)


@pytest.mark.slow
def test_images_and_trust_are_those_of_plot(journal: Journal, result: Result) -> None:
    page = render(journal)
    images = result.beliefs("images").query("draws == 24")
    dots = unpacked(page, "images-data")
    assert dots["samples"] == images["sample"].tolist()
    assert dots["data"][0]["x"] == [*result.plot("images").data[0].x] == images["x"].tolist()
    assert [row[0] for row in dots["data"][0]["customdata"]] == images["predicted"].tolist()
    gain = result.plot("calibration").layout.annotations[0].text
    assert spaced(gain) in Tags(page).text


def test_why_each_question_was_asked(journal: Journal, content: dict[str, Any]) -> None:
    """The parts of every probability sum to it, and no draw is left out."""
    draws, gaps = journal.draws(), content["draws"]["gaps"]
    assert [line[0] for gap in gaps for line in gap] == [row.draw + 1 for row in draws]
    assert content["draws"]["counts"] == [len(gap) for gap in gaps]
    heads = content["draws"]["heads"]
    assert heads[-3:] == [predictions.REASONS[name] for name in predictions.PARTS]
    for gap in gaps:
        for line in gap:
            assert sum(line[2][-3:]) == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize(
    "name", [pytest.param("masks", marks=pytest.mark.slow), "nothing", "running"]
)
def test_every_kind_has_the_chapter_or_says_why_not(tmp_path: Path, name: str) -> None:
    tags = Tags(render(KINDS[name](tmp_path), plotly="cdn"))
    assert tags.with_id("believes")
    assert tags.with_id("surface-chart") != (spaced(predictions.NONE) in tags.text)
    assert tags.with_id("surface-chart") == (name not in ("nothing", "running"))
