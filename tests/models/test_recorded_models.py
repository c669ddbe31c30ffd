"""Recorded answers and simulated models."""

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Answer, Prompt, Recorded, Simulated, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.utils.random_streams import generator


def test_recorded_answers_are_replayed_and_gaps_are_unanswered():
    model = Recorded(pd.DataFrame({"drusen": [0.2, np.nan], "cyst": [0.4, 1.0]}, index=["a", "b"]))
    ask = [Prompt(None, ("cyst", "drusen"), s, "identity", 0) for s in ("a", "b", "z")]
    gap = Unanswered("not recorded")
    assert checked(model, ask) == [Answer((0.4, 0.2)), Answer((1.0, gap)), gap]


def test_recorded_answers_of_follow_ups_stand_under_relation_and_severity():
    rows = {"sample": ["a", "a"], "relation": ["identity", "rotation"], "severity": [0, 3]}
    model = Recorded(pd.DataFrame({**rows, "drusen": [0.2, 0.9]}))
    ask = [Prompt(None, ("drusen",), "a", *of) for of in (("rotation", 3), ("rotation", 2))]
    assert checked(model, ask) == [Answer((0.9,)), Unanswered("not recorded")]


HERE = {"sample": ["a"], "relation": ["rotation"], "drusen": [1]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sample": ["a"], "drusen": [1.2]}, r"between 0 and 1, got 1.2 in row 1, column 'drusen'"),
        ({"sample": ["a", "a"], "drusen": [0, 1]}, r"\('a', 'identity', 0\) stands twice.* row 2"),
        ({"sample": ["a"], "drusen": ["yes"]}, r"recorded answers: expected numbers"),
        ({**HERE, "severity": [np.inf]}, r"a whole number as severity, got inf in row 1"),
        ({**HERE, "severity": [1.5]}, r"a whole number as severity, got 1.5 in row 1"),
    ],
)
def test_recorded_answers_that_cannot_be_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        Recorded(pd.DataFrame(table))


@pytest.mark.parametrize(
    ("kind", "common", "others"),
    [
        pytest.param("unbiased", 0.7, 0.7, marks=pytest.mark.slow),
        ("biased", 0.9, 0.5),
        pytest.param("negatively-biased", 0.5, 0.9, marks=pytest.mark.slow),
    ],
)
def test_simulated_models_are_right_as_often_as_the_paper_says(kind, common, others):
    # 3,000 answers per concept: a share strays more than 4 standard deviations (< 0.037) once
    # in 16,000 seeds; 3 kinds x 2 concepts make that once in 2,600.
    labels = pd.DataFrame(generator(0, "labels").random((3000, 2)) < (0.6, 0.3)).astype(int)
    dataset = from_table(None, labels.set_axis(["often", "rare"], axis=1))
    model = Simulated.paper(kind, dataset, seed=3, answers="all")
    prompts = [Prompt(None, dataset.concepts, str(i), "identity", 0) for i in range(3000)]
    answers = np.array([a.values for a in checked(model, prompts) if isinstance(a, Answer)])
    right = ((answers >= 0.5) == (labels.to_numpy() == 1)).mean(axis=0)
    assert right == pytest.approx([common, others], abs=0.037)
