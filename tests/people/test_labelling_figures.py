"""Figures of labels by people: agreement, scores, and what they say of an audit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.people.agreement import fleiss_kappa, majority, scores
from adaptive_vtt.people.answers import Answers
from adaptive_vtt.people.captions import Item, summarise, to_label
from adaptive_vtt.people.cards import NONE
from tests.helpers.labelled_audit import found, journal, plain_item, said, space

__all__ = ["found", "journal", "space"]  # fixtures

GOLDEN = Path(__file__).parents[1] / "golden"


def all_say(found: list[Item], types: dict[str, list[str]]) -> dict[str, Answers]:
    """Inspector -> labels, of the types each gives to the items in order ("" for none)."""
    return {
        name: {i.key: said(i, name, t) for i, t in zip(found, given_types, strict=True) if t}
        for name, given_types in types.items()
    }


# -- agreement ----------------------------------------------------------------------------

WORKED = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""10 subjects, 14 raters, 5 categories: the example most often worked through; .210."""
FLEISS = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 "
    "00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)
"""Fleiss (1971), Table 1: 30 patients, 6 psychiatrists, 5 diagnoses, one digit each; .430."""


def test_kappa_of_two_published_tables() -> None:
    assert fleiss_kappa(WORKED) == pytest.approx(0.210, abs=0.0005)
    table = [[int(digit) for digit in row] for row in FLEISS.split()]
    assert fleiss_kappa(table) == pytest.approx(0.430, abs=0.0005)


def test_kappa_of_full_agreement_is_1_and_of_none_between_two_is_minus_1() -> None:
    assert fleiss_kappa([[3, 0], [0, 3], [3, 0]]) == 1
    assert fleiss_kappa([[1, 1], [1, 1]]) == -1


@pytest.mark.parametrize(
    "counts", [np.empty((0, 2)), [[1, 0], [0, 1]], [[3, 0], [3, 0]], [[2], [2]]]
)
def test_kappa_is_undefined_without_subjects_raters_or_choice(counts: Any) -> None:
    assert fleiss_kappa(counts) is None


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[2, 0], [2, 1]], "as many raters for every subject, got 2 to 3"),
        ([1, 2], r"an array of shape \(2,\)"),
        ([[1.5, 0.5]], "expected counts of subjects x categories"),
        ([[3, -1]], "expected counts of subjects x categories"),
    ],
)
def test_kappa_wants_counts(counts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fleiss_kappa(counts)


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=8))
def test_kappa_depends_on_no_order_and_is_at_most_1(ratings: list[list[int]]) -> None:
    table = np.array([np.bincount(row, minlength=4) for row in ratings])
    kappa = fleiss_kappa(table)
    turned = fleiss_kappa(table[::-1, ::-1])
    if kappa is None or turned is None:
        assert kappa is turned
    else:
        assert turned == pytest.approx(kappa)
        assert kappa <= 1 + 1e-12


def test_scores_are_those_of_all_60_rows_of_table_1() -> None:
    table = pd.read_csv(GOLDEN / "reic_table1.csv")
    assert len(table) == 60
    for row in table.to_dict("records"):
        got = scores(row["tp"], row["fp"], row["fn"], row["tn"])
        for name in ("accuracy", "precision", "recall", "f1"):
            assert 100 * getattr(got, name) == pytest.approx(row[name], abs=0.0501), row


def test_scores_of_nothing_are_none() -> None:
    assert vars(scores(0, 0, 0, 0)) == dict.fromkeys(("accuracy", "precision", "recall", "f1"))
    missed = scores(0, 0, 3, 1)
    assert (missed.precision, missed.recall, missed.f1) == (None, 0, 0)
    unknown = scores(3, 1, np.nan, np.nan)
    assert (unknown.precision, unknown.recall, unknown.f1) == (0.75, None, None)


@pytest.mark.parametrize(
    ("choices", "most"),
    [("aab", "a"), ("ab", None), ("", None), ("abbcb", "b"), ("aabbc", None), ("a", "a")],
)
def test_majority_is_the_most_frequent_and_ties_are_undecided(choices: str, most: Any) -> None:
    assert majority(choices) == most


# -- figures ------------------------------------------------------------------------------

# CASES in order: reported are (0, dog), (2, dog), (2, table); the other five are not.


def test_figures_where_one_inspector_labelled_everything(found: list[Item]) -> None:
    truth = ["2.2", NONE, NONE, "2.1", NONE, "1.2", NONE, NONE]
    figures = summarise(found, all_say(found, {"ann": truth}))
    objects, cases = figures.objects, figures.cases
    assert (objects.tp, objects.fp, objects.fn, objects.tn) == (2, 1, 1, 4)
    assert objects.scores == scores(2, 1, 1, 4)
    # follow-ups 0 and 2 are reported, and right; 1 hides an error, 3 does not
    assert (cases.tp, cases.fp, cases.fn, cases.tn) == (2, 0, 1, 1)
    assert cases.scores == scores(2, 0, 1, 1)
    assert figures.types == {"1.1": 0, "1.2": 1, "2.1": 0, "2.2": 1, "3": 0, "unknown": 0}
    assert {k: {t: n for t, n in row.items() if n} for k, row in figures.confusion.items()} == {
        "2.2": {"2.2": 1},
        "3": {NONE: 1},
        "unknown": {"1.2": 1},
    }
    assert figures.notes == ["no kappa: it takes the labels of two inspectors or more"]
    assert figures.errors.kappa is None


def test_without_labels_of_the_rest_there_is_precision_only(found: list[Item]) -> None:
    some = ["2.2", "", "", "", NONE, "1.2", "", ""]
    figures = summarise(found, all_say(found, {"ann": some}))
    assert figures.objects.scores.precision == pytest.approx(2 / 3)
    assert (figures.objects.scores.recall, figures.objects.scores.f1) == (None, None)
    assert figures.cases.scores.precision == 1
    assert any("no accuracy, recall and F1 until" in note for note in figures.notes)


def test_a_labelled_part_stands_for_the_rest(found: list[Item]) -> None:
    # follow-up 1 of the two without violation: one error in two objects
    some = ["2.2", "", NONE, "2.1", NONE, "1.2", "", ""]
    objects = summarise(found, all_say(found, {"ann": some})).objects
    assert (objects.fn, objects.tn, objects.others) == (1, 1, 5)
    assert objects.scores == scores(2, 1, 2.5, 2.5)


def test_estimates_from_samples_are_right_on_average(found: list[Item]) -> None:
    rng = np.random.default_rng(0)
    many = [plain_item(q, name, q % 4 == 0) for q in range(200) for name in "ab"]
    truth = {item.key: item.reported != (rng.random() < 0.2) for item in many}
    exact = scores(*_counts(many, truth)).recall
    estimates = []
    for seed in range(40):
        labels_ = {
            i.key: said(i, "x", "2.2" if truth[i.key] else NONE) for i in to_label(many, 60, seed)
        }
        estimates.append(summarise(many, {"x": labels_}).objects.scores.recall)
    # one deviates by .045, the mean of 40 by .007: off by .03 once in 50,000 seeds
    assert np.mean(estimates) == pytest.approx(exact, abs=0.03)


def _counts(many: list[Item], truth: dict[Any, bool]) -> tuple[int, int, int, int]:
    pairs = [(item.reported, truth[item.key]) for item in many]
    true_positive, false_positive = pairs.count((True, True)), pairs.count((True, False))
    return true_positive, false_positive, pairs.count((False, True)), pairs.count((False, False))


def test_three_inspectors_are_outvoted_undecided_and_agree_as_fleiss_says(
    found: list[Item],
) -> None:
    told = {
        "ann": ["2.2", NONE, NONE, NONE, "3", "1.2", NONE, NONE],
        "bo": ["2.2", NONE, NONE, NONE, "3", "1.2", NONE, NONE],
        "cy": ["2.1", NONE, NONE, NONE, NONE, "1.2", NONE, ""],
    }
    figures = summarise(found, all_say(found, told))
    assert figures.labelled == {"ann": 8, "bo": 8, "cy": 7}
    assert (figures.objects.tp, figures.objects.fp, figures.objects.tn) == (3, 0, 5)
    assert figures.types["2.2"] == figures.types["3"] == figures.types["1.2"] == 1
    # seven objects have three labels each; no / yes
    errors = [[0, 3], [3, 0], [3, 0], [3, 0], [1, 2], [0, 3], [3, 0]]
    assert figures.errors.count == 7
    assert figures.errors.kappa == pytest.approx(fleiss_kappa(errors))
    # two of them all call an error: 1.2, 2.1, 2.2
    assert figures.kinds.count == 2
    assert figures.kinds.kappa == pytest.approx(fleiss_kappa([[0, 1, 2], [3, 0, 0]]))


def test_ties_are_undecided_and_count_for_neither_side(found: list[Item]) -> None:
    told = {"ann": ["2.2"] + [""] * 7, "bo": [NONE] + [""] * 7}
    figures = summarise(found, all_say(found, told))
    assert (figures.objects.undecided, figures.objects.tp, figures.objects.fp) == (1, 0, 0)
    assert figures.objects.scores.precision is None
    types = {"ann": ["2.2"] + [""] * 7, "bo": ["1.2"] + [""] * 7}
    assert summarise(found, all_say(found, types)).types["unknown"] == 1
