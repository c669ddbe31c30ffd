"""MedTest's published tables: what they add up to, and where they stand in a report."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.datasets.vqa.medvqa_questions import NAMES
from adaptive_vtt.errors import InputError
from adaptive_vtt.families import OfRelation, OfRelationConcept, OfSeverity
from adaptive_vtt.oracles import overlap
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.medtest_beside import (
    answers,
    classification,
    error_finding_rates,
    rates,
    retrained_classification,
    retrained_segmentation,
)
from adaptive_vtt.results.report.section import percent
from tests.helpers.report_kinds import masks

RELATIONS = {
    "saturation",
    "contrast",
    "white_balance",
    "specularity",
    "blur",
    "instrument",
    "feces",
    "blood",
    "text",
}


def test_the_headline_rates_are_the_tables_weighted_by_the_sets_sizes() -> None:
    """4.38, 1.70, 15.70 and 1.47 % in the thesis's abstract; 2.25, .86, 7.98 and .93 at 0.5."""
    for threshold, headline in ((0.25, (4.38, 1.70, 15.70, 1.47)), (0.5, (2.25, 0.86, 7.98, 0.93))):
        table = error_finding_rates("dice", threshold)
        assert set(table.index) == RELATIONS
        found = 100 * table.xs("all", axis=1, level=1).mean()
        np.testing.assert_allclose(found, headline, atol=0.015)


def test_no_dice_rate_is_above_its_iou_rate() -> None:
    for threshold in (0.25, 0.5):
        dice, iou = (error_finding_rates(metric, threshold) for metric in ("dice", "iou"))
        assert (dice <= iou).all(axis=None)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_both_dice_and_iou_falling_is_dice_falling(seed: int, share: float) -> None:
    """The thesis's rule in words ("both ... less") is the Dice rule: where Dice falls by more
    than a share, so does IoU = Dice / (2 - Dice)."""
    rng = np.random.default_rng(seed)
    true, before, after = rng.random((3, 6, 6)) < rng.random((3, 1, 1))
    fell = {}
    for metric in ("dice", "iou"):
        was, now = overlap(before, true, metric), overlap(after, true, metric)
        fell[metric] = was - now > share * was + 1e-12
    assert not fell["dice"] or fell["iou"]


def test_gpt4v_averages_are_those_printed() -> None:
    assert answers().shape == (18, 10)
    every, clear = answers(), answers(name for name in NAMES if name not in _vague())
    assert every["Original"].mean() == pytest.approx(0.632, abs=0.001)
    assert clear["Original"].mean() == pytest.approx(0.694, abs=0.001)
    assert clear["instrument"].mean() == pytest.approx(0.626, abs=0.001)


def _vague() -> set[str]:
    """Table 13's rows 2, 10, 12 and 17."""
    return {NAMES[k - 1] for k in (2, 10, 12, 17)}


def test_classifiers_and_retraining_as_printed() -> None:
    table = classification()
    assert table.loc["white_balance", ("AGDN", "accuracy")] == 0.532
    assert table["AGDN", "accuracy"].mean() == pytest.approx(0.761, abs=0.001)
    assert "blood" not in table.index
    assert retrained_classification().loc["white_balance"].tolist() == [0.532, 0.673, 0.728, 0.848]
    pranet = retrained_segmentation("PraNet")
    assert pranet["CVC-300 Dice"].mean().tolist() == pytest.approx([0.815, 0.876], abs=0.001)


def test_what_is_not_published_is_named() -> None:
    with pytest.raises(InputError, match=r"published EFR: unknown threshold '0\.3'"):
        error_finding_rates("dice", 0.3)
    with pytest.raises(InputError, match="published retraining: unknown model 'TGANet'"):
        retrained_segmentation("TGANet")


def test_targets_find_their_rates() -> None:
    blur = OfRelationConcept("medtest/blur", "polyp drop > 0.25", 1, "EFR")
    found = rates(blur, ["polyp drop > 0.25"], "MaskDrop", "dice")
    assert list(found) == ["PraNet", "SANet", "TGANet", "SSFormer"]
    sets = (0.083, 60), (0.096, 612), (0.142, 380), (0.142, 1000)
    assert found["PraNet"] == pytest.approx(sum(r * n for r, n in sets) / 2052)
    assert found != rates(blur, ["polyp drop > 0.25"], "MaskDrop", "iou")
    for other in (
        replace(blur, concept="polyp drop > 0.3"),
        replace(blur, relation="rotation"),
        OfSeverity("medtest/blur", 3),
    ):
        assert rates(other, [], "MaskDrop", "dice") == {}
    of_classes = OfRelation("medtest/blur")
    assert rates(of_classes, ["normal"], "TopClass", None)["AGDN"] == pytest.approx(1 - 0.702)
    of_words = OfRelation("medtest/text")
    assert rates(of_words, NAMES, "ContainsTruth", None)["GPT-4V"] == pytest.approx(0.384, abs=1e-3)
    assert rates(of_words, ["normal"], "ContainsTruth", None) == {}


def test_tables_are_made_once() -> None:
    """A report asks for them at each of its targets."""
    assert error_finding_rates("iou", 0.5) is error_finding_rates("iou", 0.5)
    assert classification() is classification()


@pytest.mark.slow
def test_report_shows_them_beside_the_audit() -> None:
    page = render(masks())
    section = page[page.index('id="medtest-published"') :]
    text = section[: section.index("</section>")]
    table = error_finding_rates().xs("all", axis=1, level=1)
    assert percent(float(table["TGANet"].mean())) in text
    assert "Tables 3 to 10" in text
