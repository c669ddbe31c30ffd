"""A result can be looked into: wrong answers, pictures, charts, the report; reprs, progress."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.audit import inspection
from adaptive_vtt.audit.inspection import COLUMNS
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.results.beliefs import PLOTS
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.results.result import Result
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.figures import Bar, table_html
from tests.helpers.captioned import faulty
from tests.helpers.captioned import space as caption_space
from tests.helpers.report_pages import EVIL, Tags

SPACE = avtt.QuestionSpace(tiny_dataset(), ["identity", "rotation", "gaussian_noise"])
CERTIFY: dict[str, Any] = {"half_width": 0.1, "surrogate": False, "budget": 20, "seed": 1}


@pytest.fixture(scope="module")
def audit() -> avtt.Audit:
    made = avtt.Audit(SPACE, ScriptedModel(refuse=0.2), **CERTIFY)
    made.run()
    return made


@pytest.fixture(scope="module")
def result(audit: avtt.Audit) -> Result:
    return audit.result()


# -- wrong answers ---------------------------------------------------------------------


def test_failures_are_the_wrong_answers_of_the_journal(audit: avtt.Audit, result: Result) -> None:
    failures = result.failures()
    wrong = {a.question for c in audit.journal.calls() for a in c.answers if a.loss == 1}
    assert tuple(failures.columns) == COLUMNS
    assert set(failures["question"]) == wrong
    assert len(wrong) == len(failures) > 3
    assert failures["draw"].is_monotonic_increasing
    assert failures["unanswered"].notna().sum() == failures["answer"].isna().sum() > 0


def test_pictures_are_those_that_were_asked_about(audit: avtt.Audit, result: Result) -> None:
    failures = result.failures()
    row = failures[failures["relation"] != "identity"].iloc[0]
    picture = result.picture(row)
    source, follow_up = SPACE.pair(int(SPACE.image_of([row["question"]])[0]))
    assert np.array_equal(picture.source, source.require_image())
    assert np.array_equal(picture.follow_up, follow_up.require_image())
    assert np.array_equal(result.picture(int(row.name)).follow_up, picture.follow_up)
    assert picture._repr_html_().count('<img src="data:image/png;base64,') == 2
    assert row["sample"] in picture.title
    with pytest.raises(InputError, match=rf"expected a row of failures\(\), 0 to .* got {10**6}"):
        result.picture(10**6)


@pytest.mark.slow
def test_a_result_read_from_a_folder_shows_the_pictures_that_were_kept(tmp_path: Path) -> None:
    with avtt.Audit(SPACE, ScriptedModel(), journal=tmp_path / "journal.db", **CERTIFY) as audit:
        during = avtt.read_result(tmp_path)
        assert (during.calls, during.reason) == (0, None)
        audit.run()
        said = audit.result()
    assert len(said.failures()) > 0, "the journal's file is closed by now"
    read = avtt.read_result(tmp_path)
    assert read.to_dict() == said.to_dict()
    assert read.picture(0).follow_up.shape == said.picture(0).follow_up.shape
    assert read.report() == tmp_path / "report.html"


# -- charts and the report -------------------------------------------------------------


def test_charts_are_plotly_figures_by_name(audit: avtt.Audit, result: Result) -> None:
    drawn = ["concepts", "conditions", "cost", "intervals", "widths"]
    data = {name: result.plot(name).data for name in drawn}
    assert result.plot().data == data["intervals"]
    (intervals, *_) = data["intervals"]
    assert sorted(intervals.y) == sorted(result.targets["target"])
    assert list(intervals.x) == (100 * result.targets["estimate"]).tolist()[::-1]
    with pytest.raises(InputError, match="figure 'width'; did you mean 'widths'") as error:
        result.plot("width")
    names = str(error.value).partition("one of ")[2].partition(";")[0].split(", ")
    assert names == sorted([*drawn, *PLOTS])
    widths, answered = data["widths"], len(audit.journal.calls())
    assert [line.name for line in widths] == result.targets["target"].tolist()
    assert [line.y[0] for line in widths] == [50.0] * len(widths)
    ends = [line.y[-1] for line in widths]
    assert np.allclose(ends, 100 * result.targets["half_width"], atol=1e-9)
    assert {line.x[-1] for line in widths} == {answered}
    assert data["cost"][0].y[-1] == result.cost
    table = outcomes(audit.journal)
    here = table[(table["relation"] == "rotation") & (table["severity"] == 2)]
    cells = data["conditions"][0]
    assert list(cells.y) == ["gaussian_noise", "rotation", "identity"], "identity is on top"
    assert list(cells.x) == [*"012345"]
    at = list(cells.y).index("rotation"), list(cells.x).index("2")
    assert cells.z[at[0]][at[1]] == pytest.approx(100 * here["loss"].mean())
    _, present = data["concepts"]
    missed = table[(table["concept"] == present.x[0]) & (table["truth"] == 1)]
    assert present.y[0] == pytest.approx(100 * missed["loss"].mean())


def test_curves_of_long_audits_have_few_points(result: Result, monkeypatch: pytest.MonkeyPatch):
    (before, *_) = result.plot("widths").data
    monkeypatch.setattr(inspection, "MOMENTS", 4)
    (line, *_) = result.plot("widths").data
    assert len(line.x) == len(line.y) == 4 < len(before.x)
    ends = [(each.x[at], each.y[at]) for each in (line, before) for at in (0, -1)]
    assert ends[:2] == ends[2:]


# -- what shows itself -----------------------------------------------------------------


def test_notebooks_show_every_interval(result: Result) -> None:
    page = result._repr_html_()
    tags = [tag for tag, _ in Tags(page).tags]
    assert tags.count("tr") == 1 + len(result.targets)
    assert not {"script", "style", "link", "iframe"} & set(tags)
    first = result.targets.iloc[0]
    assert f"{100 * first['estimate']:.1f} %" in page
    assert str(result.guarantee) in page


def test_intervals_are_rounded_outwards_and_names_are_escaped() -> None:
    bar = Bar(EVIL, 0.12345, 0.10019, 0.20011, done=True)
    assert bar.words == "12.3 % (10.0 to 20.1)"
    assert Bar("exact", 0.1, 0.13, 0.29, done=True).words == "10.0 % (13.0 to 29.0)"
    assert Bar("raw", 0.5, math.nan, math.nan, done=False).words == "50.0 %"
    page = table_html(EVIL, EVIL, [bar], [EVIL])
    assert EVIL not in page


# -- every kind of audit ---------------------------------------------------------------


def _words_audit() -> Result:
    return avtt.Audit(caption_space(), faulty(), budget=40, half_width=0.3, surrogate=False).run()


KINDS: dict[str, Callable[[], Result]] = {
    "captions": _words_audit,
    "evil names": lambda: avtt.Audit(
        avtt.QuestionSpace(from_table([np.zeros((4, 4), np.uint8)] * 4, [EVIL, "b", EVIL, "b"])),
        lambda images: [EVIL] * len(images),
        **CERTIFY,
        journal=MemoryJournal(),
    ).run(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_looked_into(kind: str) -> None:
    result = KINDS[kind]()
    failures = result.failures()
    assert len(failures) > 0 or kind == "evil names"
    if len(failures):
        assert EVIL not in result.picture(0)._repr_html_()
    if kind == "captions":
        assert failures["answer_text"].notna().all()
    assert EVIL not in result._repr_html_()
    assert result.plot().data
