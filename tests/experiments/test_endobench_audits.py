"""Audits of EndoBench's questions."""

from pathlib import Path

import numpy as np
import pytest
import torch

import adaptive_vtt as avtt
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.taxonomy import TASKS
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.oracles import MultipleChoice, Premise
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.endobench_rows import row, write


def test_questions_about_coordinates_do_not_count_where_the_picture_moves(tmp_path: Path) -> None:
    boxes = {"A": "[1, 2, 9, 9]", "B": "[3, 4, 8, 9]", "C": "[5, 5, 9, 9]", "D": "[0, 0, 4, 4]"}
    rows = [row(0, **boxes), row(1)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    oracle = MultipleChoice()
    space = avtt.QuestionSpace(dataset, relations=["reduction", "gaussian_noise"], oracle=oracle)
    spoilt = {}
    for number in space.nth(np.arange(space.size)).tolist():
        question = space.question(number)
        sample, follow_up = space.pair(int(space.image_of(number)))
        relation = space.variants[int(space.parts(number)[1])].relation
        expected = oracle.expect(Premise(relation, follow_up, sample, question, None))
        outcome = oracle.judge(question, "B", expected)
        spoilt[question.sample_id, relation.name] = outcome.excluded is not None
    moved = {name for (sample, name), bad in spoilt.items() if bad}
    assert moved
    assert "gaussian_noise" not in moved
    assert not any(bad for (sample, _), bad in spoilt.items() if sample == "1")


def test_features_tell_questions_apart(tmp_path: Path) -> None:
    from adaptive_vtt.surrogates.features import sample_features

    rows = [row(k) for k in range(9)] + [row(9, C="", D="")]
    path = write(tmp_path / "e.tsv", rows)
    dataset = from_endobench(path)
    assert dataset.features is not None
    assert dataset.features[9, -1] == 0.5  # the error of guessing
    assert dataset.features[0, -1] == 0.75
    import torch

    made = sample_features(dataset, 0)(torch.arange(10))
    assert torch.linalg.norm(made[0] - made[6]) < torch.linalg.norm(made[0] - made[1])


@pytest.mark.slow
def test_the_benchmark_certifies_every_task() -> None:
    from adaptive_vtt.experiments.endobench.endobench_tasks import Task, run, space

    assert space().size == 6832
    row = run(Task("GPT-4o", "adaptive", 0.3, seed=0))
    assert row["certified"]
    assert row["covered"]
    assert sum(row[task.name] for task in TASKS) == row["calls"] < 2000


def test_guessing_among_the_options_is_what_is_expected_at_first(tmp_path: Path) -> None:
    rows = [row(0, C="", D="", answer="A"), row(3)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    made = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    proxies = Proxies(made, {})
    assert proxies.names == ["guessing"]
    questions = np.sort(made.nth(np.arange(made.size)))
    parts = (torch.from_numpy(p) for p in made.parts(questions))
    shares = proxies(*parts, torch.from_numpy(made.truth(questions)))[:, 0]
    assert shares.tolist() == [0.5, 0.75]
    audit = avtt.Audit(made, ScriptedModel(answers="one"), half_width=0.2, targets=["overall"])
    assert audit.journal.facts()["settings"]["proxies"] == ["guessing"]
    assert audit.result().scoring == "exact"
