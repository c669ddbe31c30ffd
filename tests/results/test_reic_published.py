"""REIC's published tables, and how ours are shown beside them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.reic_beside import NUMBERS, SHOWN, beside, table
from adaptive_vtt.families import OfRelation, OfSeverity
from adaptive_vtt.people.agreement import scores
from adaptive_vtt.results.report import published, render
from adaptive_vtt.results.report.published import violation_rates
from adaptive_vtt.results.report.section import percent
from tests.helpers.report_kinds import captions


def test_scores_of_table_1_are_those_of_its_counts() -> None:
    for row in table("I").to_dict("records"):
        found = scores(row["TP"], row["FP"], row["FN"], row["TN"])
        for mine, printed in (
            (found.precision, "precision"),
            (found.recall, "recall"),
            (found.f1, "F1"),
        ):
            assert mine is not None
            assert 100 * mine == pytest.approx(row[printed], abs=0.11)


def test_tables_agree_with_one_another() -> None:
    cases = table("I").set_index(["dataset", "level", "captioner", "relation"])
    for row in table("II").to_dict("records"):
        if row["method"].startswith("REIC"):
            place = row["dataset"], "case", row["captioner"], row["method"].removeprefix("REIC, ")
            assert cases.loc[place, "TP"] == row["violations"]
            assert cases.loc[place, ["TP", "FN", "FP", "TN"]].sum() == row["follow-ups"] == 900
    reported = table("III").query("setting == 'REIC'")
    for row in reported.to_dict("records"):
        place = "MSCOCO", "object", row["captioner"], row["relation"]
        assert cases.loc[place, ["TP", "FP"]].sum() == row["reported"]
    f1 = table("V").query("oracle == 'all parts'")
    for row in f1.to_dict("records"):
        assert cases.loc[("MSCOCO", "object", row["captioner"], row["relation"]), "F1"] == row["F1"]


def test_every_table_is_there_and_others_are_named() -> None:
    assert all(len(table(number)) for number in NUMBERS)
    with pytest.raises(InputError, match="REIC's published tables: unknown table 'IX'"):
        table("IX")


def test_rates_are_reports_per_follow_up() -> None:
    rates = violation_rates("crop")
    assert list(rates) == ["Show and Tell", "Oscar", "VinVL", "OFA", "Azure"]
    assert rates["Show and Tell"] == pytest.approx((292 + 23 + 322 + 34) / 1800)
    assert violation_rates("rotation") == {}


def test_ours_keep_their_rows_and_get_the_range_of_theirs() -> None:
    ours = pd.DataFrame(
        {
            "relation": ["crop", "all"],
            "oracle": ["literal words", "literal words"],
            "F1": [50.0, 60.0],
        }
    )
    found = beside("V", ours)
    assert found["F1"].tolist() == [50.0, 60.0]
    assert found["paper: F1"].tolist() == ["60.7-71.8", ""]
    types = beside("VI", pd.DataFrame({"error": ["3"], "crop": [6], "stretch": [6], "rotate": [1]}))
    assert types["paper: crop"].tolist() == ["24-49"]
    rivals = beside("II", pd.DataFrame({"method": ["REIC, crop", "ROME"]}))
    assert rivals["paper: eligible"].tolist() == ["300", "150-256"]


@pytest.mark.parametrize("number", SHOWN)
def test_what_is_shown_is_in_the_paper(number: str) -> None:
    keys, _ = SHOWN[number]
    paper = table(number)
    found = beside(number, paper[list(keys)].drop_duplicates())
    shown = [name for name in found if name.startswith("paper: ")]
    assert (found[shown] != "").all().all()


def test_a_report_shows_them_beside_the_rates_of_reics_relations() -> None:
    crop = OfRelation("reic/crop")
    told = [
        SimpleNamespace(id=target, estimate=0.25, lower=0.2, upper=0.3)
        for target in (
            crop,
            replace(crop, relation="rotation"),
            OfSeverity("reic/rotate", 2),
        )
    ]
    found = published.reic_section(cast(Any, SimpleNamespace(standings=told)))
    assert found is not None
    assert found.html.count("<tr>") == 2  # the head and one row
    assert "reic/crop" in found.html
    for rate in (0.25, *violation_rates("crop").values()):
        assert percent(rate) in found.html
    assert published.reic_section(cast(Any, SimpleNamespace(standings=told[1:]))) is None


@pytest.mark.slow
def test_the_report_of_a_caption_audit_has_that_section() -> None:
    assert 'id="reic-published"' in render(captions())
