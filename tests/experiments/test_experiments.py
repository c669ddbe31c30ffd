"""The reproductions of Figures 3 and 4: the label sets, the curves, and what is written."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.experiments.engine import ablation, drift
from adaptive_vtt.experiments.vtt import trained_figures
from adaptive_vtt.experiments.vtt.figure4 import answers_of, ask, questions_needed
from adaptive_vtt.experiments.vtt.label_sets import (
    IDRID_PREVALENCES,
    ISIC_COUNTS,
    ISIC_IMAGES,
    ISIC_PAIRS,
    OCT_PREVALENCES,
    idrid,
    isic,
    isic_law,
    oct_like,
    simulated_classifier,
)
from adaptive_vtt.space import QuestionSpace


def labels(dataset: TableDataset) -> npt.NDArray[np.int64]:
    n, width = len(dataset), len(dataset.concepts)
    return dataset.truth(np.arange(n)[:, None], np.arange(width)[None, :]).astype(np.int64)


def pair_counts(rows: npt.NDArray[np.int64]) -> list[int]:
    return [int((rows[:, i] & rows[:, j]).sum()) for i, j in combinations(range(5), 2)]


# -- label sets ----------------------------------------------------------------------------


def test_isic_law_has_all_counts_and_pair_counts() -> None:
    patterns, expected = isic_law()
    both = [expected @ (patterns[:, i] & patterns[:, j]) for i, j in combinations(range(5), 2)]
    assert expected.sum() == pytest.approx(ISIC_IMAGES)
    assert expected @ patterns == pytest.approx(list(ISIC_COUNTS.values()), abs=1e-6)
    assert both == pytest.approx(list(ISIC_PAIRS.values()), abs=1e-6)


@pytest.mark.parametrize(("samples", "tolerance"), [(100, 0.5), (ISIC_IMAGES, 0.0)])
def test_isic_matches_the_published_counts(samples: int, tolerance: float) -> None:
    rows, share = labels(isic(samples)), samples / ISIC_IMAGES
    assert rows.shape == (samples, 5)
    assert np.abs(rows.sum(axis=0) - share * np.array(list(ISIC_COUNTS.values()))).max() <= (
        tolerance
    )
    assert np.abs(pair_counts(rows) - share * np.array(list(ISIC_PAIRS.values()))).max() <= (
        tolerance
    )


@pytest.mark.parametrize(
    ("dataset", "prevalences", "size"),
    [(idrid(), IDRID_PREVALENCES, 43), (oct_like(), OCT_PREVALENCES, 200)],
)
def test_independent_sets_have_their_prevalences(
    dataset: TableDataset, prevalences: dict[str, float], size: int
) -> None:
    assert len(dataset) == size
    assert dataset.concepts == tuple(prevalences)
    assert dataset.counts[:, 1].tolist() == [round(p * size) for p in prevalences.values()]


def test_simulated_classifier_is_worse_on_rare_concepts() -> None:
    dataset = oct_like(20_000)
    answers, truths = simulated_classifier(dataset), labels(dataset)
    assert answers.shape == truths.shape
    assert 0 <= answers.min() < answers.max() <= 1
    # share of (positive, negative) pairs in the right order, over pairs of 200 each
    auc = []
    for place in range(11):
        yes, no = answers[truths[:, place] == 1, place], answers[truths[:, place] == 0, place]
        auc.append(float((yes[:200, None] > no[None, :200]).mean()))
    assert auc[0] > 0.95 > 0.9 > auc[-1] > 0.75


# -- the curves ----------------------------------------------------------------------------


@pytest.mark.slow
def test_uncertainty_strategies_need_six_tenths_of_randoms_questions_at_most() -> None:
    # of the 45 pairs of the seeds 0 to 9, the worst ratios are .549 and .541
    dataset = oct_like(100)
    space = QuestionSpace(dataset)
    needed = {}
    for strategy in ("random", "uncertainty", "uncertainty+unpredictability"):
        runs = [
            ask(space, strategy, answers_of("unbiased", dataset, seed), seed=seed)[1]
            for seed in (0, 1)
        ]
        needed[strategy] = np.median(questions_needed(np.array(runs), 0.10))
    assert needed["uncertainty"] <= 0.6 * needed["random"]
    assert needed["uncertainty+unpredictability"] <= 0.6 * needed["random"]


def test_questions_needed_counts_to_the_first_question_near_the_end() -> None:
    curves = np.array([[4.0, 2.0, 1.1, 1.0, 1.0], [4.0, 4.0, 4.0, 4.0, 3.0]])
    assert questions_needed(curves, 0.10).tolist() == [2, 4]
    assert questions_needed(curves, 0.50).tolist() == [1, 4]


# -- what is written -----------------------------------------------------------------------


def test_the_distance_is_0_after_all_questions_and_1_before_any() -> None:
    dataset, answers = trained_figures.garments(20)
    space = QuestionSpace(dataset)
    last, _ = ask(space, "random", answers, seed=0)
    other, _ = ask(space, "uncertainty", answers, seed=1)
    none, _ = ask(space, "random", answers, seed=0, most=-1)
    some, _ = ask(space, "random", answers, seed=0, most=60)
    assert trained_figures.distance(other, last) == 0
    assert trained_figures.distance(none, last) == 1
    assert 0 < trained_figures.distance(some, last) < 1
    np.testing.assert_allclose(
        trained_figures.mean_curve(other), trained_figures.mean_curve(last), atol=1e-6
    )


# -- ablation ------------------------------------------------------------------------------


def ended(way: str, calls: list[int], certified: bool = True) -> list[tuple[object, ...]]:
    return [("demo", way, seed, n, certified, True, 1.0) for seed, n in enumerate(calls)]


def test_the_ablation_compares_with_the_same_predictions_first() -> None:
    rows = [
        *ended("certify", [90, 110]),
        *ended("random, same predictions", [150, 250]),
        *ended("uniform, no predictions", [400], certified=False),
        *ended("BALD, same predictions", [300], certified=False),
    ]
    table = ablation.summary(pd.DataFrame(rows, columns=list(ablation.COLUMNS)))
    assert [*table] == ["way", "seeds", "calls", "to random", "to uniform", "always held"]
    assert table.to_numpy().tolist()[::2] == [
        ["certify", 2, "100", "0.50", "-", "2 of 2"],
        ["uniform, no predictions", 1, "over 400", "over 2.67", "-", "1 of 1"],
    ]
    assert table.iloc[3].tolist()[2:] == ["over 300", "over 2.00", "-", "1 of 1"]


def test_a_run_of_the_ablation_is_made_once(tmp_path: Path) -> None:
    made: list[tuple[str, int]] = []

    def run(way: ablation.Way, seed: int) -> tuple[int, bool, bool]:
        made.append((way.name, seed))
        if made[-1] == ("without predictions", 1):
            raise KeyboardInterrupt
        return 10, True, True

    ways = [ablation.WAYS[0], ablation.WAYS[3]]
    file = tmp_path / "ablation.csv"
    with pytest.raises(KeyboardInterrupt):
        ablation.measure(file, "demo", lambda: run, ways, 2)
    assert len(pd.read_csv(file)) == 3
    ablation.measure(file, "digits", lambda: run, ways[:1], 1)
    made.clear()
    with pytest.raises(KeyboardInterrupt):
        ablation.measure(file, "demo", lambda: run, ways, 2)
    assert made == [("without predictions", 1)]


def test_a_model_that_changes_gets_worse_when_and_where_its_drift_says() -> None:
    quiet = np.full(4, 0.5)  # a chance between how likely a loss is before and after
    model = drift.Model(np.full(4, 0.2), quiet, np.array([0, 1, 1, 1]), graded=False)

    def lost(kind: str, calls: Sequence[int], item: int = 0) -> list[float]:
        return [model.loss(item, call, kind, usual=200) for call in calls]

    assert lost("none", [0, 500]) == [0, 0]
    assert lost("sudden", [99, 100]) == [0, 1]
    assert lost("late", [149, 150]) == [0, 1]
    assert lost("slow", [140, 160, 400]) == [0, 1, 1]
    assert lost("periodic", [39, 40, 80]) == [0, 1, 0]
    assert lost("part", [100]) + lost("part", [100], item=1) == [1, 0]
