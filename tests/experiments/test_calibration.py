"""Thresholds of similarity: the best there is on pairs judged by hand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic import calibration
from adaptive_vtt.experiments.reic.calibration import Pair, calibrate, pairs, quality, threshold
from adaptive_vtt.oracles.captions.embeddings import EmbeddingSame, MiniLM, WordVectors
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding
from tests.helpers.small_lexicons import folder, glove

__all__ = ["folder", "glove"]  # fixtures


def f1(scores: np.ndarray, right: np.ndarray, least: float) -> float:
    taken = scores >= least
    return float(2 * (taken & right).sum() / (taken.sum() + right.sum()))


@pytest.mark.parametrize(
    ("scores", "right", "expected"),
    [
        ([0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0], 0.55),
        ([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], 0.2),  # all of .3 and above: F1 = 4 / 5
        ([np.inf, 0.8, 0.3, -np.inf], [1, 0, 0, 1], 0.55),
    ],
)
def test_calibrated_threshold(scores: list[float], right: list[int], expected: float) -> None:
    assert calibrate(scores, right) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=2, max_size=30))
def test_no_threshold_between_scores_is_better(judged: list[tuple[int, bool]]) -> None:
    scores, right = np.array([s for s, _ in judged]), np.array([r for _, r in judged])
    if right.any() and len(set(scores.tolist())) > 1:
        best = f1(scores, right, calibrate(scores, right))
        levels = np.unique(scores)[1:]
        assert best == pytest.approx(max(f1(scores, right, level) for level in levels))


@pytest.mark.parametrize(
    ("scores", "right", "says"),
    [
        ([0.5, 0.5], [True, False], "got 1 pairs and 1 scores"),
        ([0.5, 0.6], [False, False], "got 0 pairs and 2 scores"),
        ([0.5], [True, False], "a score for each of 2 pairs, and none NaN, got 1"),
        ([0.5, np.nan], [True, False], "a score for each of 2 pairs, and none NaN, got 1"),
    ],
)
def test_calibration_needs_something_to_choose_by(
    scores: list[float], right: list[bool], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        calibrate(scores, right)


def test_pairs_are_balanced_and_each_there_once() -> None:
    known = pairs()
    assert len({frozenset((pair.one, pair.other)) for pair in known}) == len(known) >= 300
    for half in (True, False):
        right = [pair.same for pair in known if pair.held_out is half]
        assert sum(right) * 2 == len(right) >= 150


def test_threshold_leaves_out_what_others_find_the_same(glove: Path) -> None:
    judged = [
        Pair("dog", "dogs", True, False),
        Pair("dog", "puppy", True, False),
        Pair("puppy", "cat", False, False),
        Pair("dog", "cat", False, False),
    ]
    way = EmbeddingSame(WordVectors(glove), 1)
    assert threshold(way, [Folding()], judged) == pytest.approx(0.7)  # between .8 and .6
    assert quality(AnyOf([Folding(), EmbeddingSame(way.vectors, 0.7)]), judged) == (1, 1)


def test_the_table_says_what_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MiniLM, "installed", classmethod(lambda cls: False))
    calibration.main(["--wordnet", str(folder)])
    rows = capsys.readouterr().out.splitlines()
    assert "equal words                                  1.000   0.000  0.000" in rows
    assert rows[-1].startswith("MiniLM                                   left out: all-MiniLM")
