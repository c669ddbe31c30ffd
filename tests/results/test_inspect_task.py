"""Questions of a space as a task of Inspect: which are asked, and what is made of answers."""

import base64
import math
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.stats import chi2

from adaptive_vtt import QuestionSpace
from adaptive_vtt.config.inspect_task import audit_task
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import Consistency, ContainsTruth, MultipleChoice, TopClass
from adaptive_vtt.results.export.inspect_task import inspect_task
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.judged import OPTIONS
from tests.helpers.judged import space as worded
from tests.helpers.served import FRAMES

pytest.importorskip("inspect_ai")
from inspect_ai import eval as evaluated
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from tests.models.test_inspect_model import output

SPACE = QuestionSpace(FRAMES, relations=["identity", "brightness_down"])
CHANCE = 1e-6
"""A correct sampler fails the test of its proposal with this probability, were the seed drawn
anew."""


def asked(task: Any, reply: Any, folder: Path) -> Any:
    """The log of an evaluation of a mock model."""

    def said(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        result = reply(messages)
        result = output(result) if isinstance(result, str) else result
        result.usage = ModelUsage(input_tokens=1, output_tokens=1)
        return result

    model = get_model("mockllm/model", custom_outputs=said)
    (log,) = evaluated(task, model=model, display="none", log_dir=str(folder), log_level="error")
    assert log.status == "success", log.error
    return log


def metrics(log: Any) -> dict[str, float]:
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


def test_a_sample_has_the_follow_up_the_words_the_truth_and_what_it_is_about() -> None:
    (sample,) = inspect_task(SPACE, questions=1, seed=3).dataset
    number = int(sample.id)
    question = SPACE.question(number)
    image, text = sample.input[-1].content
    pixels = np.frombuffer(base64.b64decode(image.image.partition(",")[2]), np.uint8)
    shown = SPACE.follow_up(int(SPACE.image_of(number))).require_image()
    assert np.array_equal(cv2.imdecode(pixels, cv2.IMREAD_COLOR)[..., ::-1], shown)
    assert f"Does the image show this: {question.concept}?" in text.text
    assert sample.target == ["Yes" if question.truth else "No"]
    about = {name: sample.metadata[name] for name in ("sample", "relation", "severity", "concept")}
    assert list(about.values()) == [
        *(question.sample_id, question.relation),
        *(question.severity, question.concept),
    ]
    assert sample.metadata["polyps"] in "01234"


def test_the_same_seed_draws_the_same_and_its_beginning_is_a_sample_of_its_own() -> None:
    whole, again, other = (inspect_task(SPACE, questions=12, seed=s).dataset for s in (0, 0, 1))
    ids = [[sample.id for sample in one] for one in (whole, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert len(set(ids[0])) == 12
    assert ids[0] != sorted(ids[0], key=int)


def test_questions_are_drawn_evenly_and_all_where_fewer_are_there() -> None:
    small = QuestionSpace(tiny_dataset(4, 2))
    everything = inspect_task(small, questions=10**6).dataset
    assert {int(sample.id) for sample in everything} == set(
        np.flatnonzero(small.eligible(np.arange(small.total))).tolist()
    )
    tiny = QuestionSpace(tiny_dataset(3, 2))
    draws = [inspect_task(tiny, questions=2, seed=seed).dataset for seed in range(300)]
    seen = Counter(sample.id for one in draws for sample in one)
    even = 600 / tiny.size
    statistic = sum((seen[str(n)] - even) ** 2 / even for n in range(tiny.size))
    # draws without replacement vary less than the multinomial that this bound is of
    assert chi2.sf(statistic, tiny.size - 1) > CHANCE


def test_the_mean_is_that_of_the_oracles_losses_in_all_and_per_relation(tmp_path: Path) -> None:
    task = inspect_task(SPACE, questions=30)
    log = asked(task, lambda messages: "Yes", tmp_path)
    wrong = {sample.id: sample.target == ["No"] for sample in task.dataset}
    result = metrics(log)
    assert result["mean"] == pytest.approx(np.mean(list(wrong.values())))
    for relation in ("identity", "brightness_down"):
        mine = [wrong[s.id] for s in task.dataset if s.metadata["relation"] == relation]
        assert result[relation] == pytest.approx(np.mean(mine))
    assert [s.scores["loss"].value for s in log.samples] == [wrong[s.id] for s in log.samples]


def test_log_probabilities_and_what_is_no_answer_are_judged(tmp_path: Path) -> None:
    task = inspect_task(SPACE, questions=8, seed=1)
    truth = {sample.id: sample.target == ["Yes"] for sample in task.dataset}
    unsure = asked(task, lambda messages: output(p=0.4), tmp_path)
    for sample in unsure.samples:
        score = sample.scores["loss"]
        assert score.metadata["p_yes"] == pytest.approx(0.4)
        assert score.value == truth[sample.id]
    silent = asked(inspect_task(SPACE, questions=8), lambda messages: "Perhaps.", tmp_path)
    assert metrics(silent)["mean"] == 1.0
    assert {sample.scores["loss"].explanation for sample in silent.samples} == {"no answer"}


@pytest.mark.parametrize(
    ("oracle", "reply"), [(MultipleChoice(), "B"), (ContainsTruth(), f"a {OPTIONS[1]}")]
)
def test_options_and_free_answers_have_targets_that_the_oracle_accepts(
    oracle: Any, reply: str, tmp_path: Path
) -> None:
    task = inspect_task(worded(oracle, samples=8), questions=8)
    assert all(len(sample.input[-1].content) == 1 for sample in task.dataset)  # no images
    right = {sample.id: sample.target[0] in reply for sample in task.dataset}
    assert sum(right.values()) == 2
    log = asked(task, lambda messages: reply, tmp_path)
    assert {s.id: s.scores["loss"].value == 0 for s in log.samples} == right


def test_what_takes_more_than_one_answer_is_refused() -> None:
    space = QuestionSpace(FRAMES, relations=["brightness_down"], oracle=Consistency())
    with pytest.raises(InputError, match="judges each answer by itself, got Consistency, which"):
        inspect_task(space)
    classes = QuestionSpace(FRAMES, oracle=TopClass())
    with pytest.raises(InputError, match="oracle TopClass: needs a model that answers all"):
        inspect_task(classes)
    with pytest.raises(InputError, match="questions: expected 1 or more, got 0"):
        inspect_task(SPACE, questions=0)


SPEC = """
[dataset]
kind = "adaptive_vtt.experiments.medtest.phantoms:frames"
[dataset.options]
count = 6
size = 64
concepts = ["polyp", "instrument"]

[model]
kind = "openai"
model = "never-asked"

[space]
relations = ["identity", "gaussian_noise"]
"""


def test_a_spec_is_a_task_whose_model_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "colon.toml").write_text(SPEC)
    (tmp_path / "mine.txt").write_text("Is there any {concept}? Yes or No.")
    task = audit_task(tmp_path / "colon.toml", questions=5, template="mine.txt")
    assert (task.name, len(task.dataset)) == ("colon", 5)
    log = asked(task, lambda messages: "No", tmp_path)
    assert all("Is there any" in s.input[-1].content[1].text for s in log.samples)
    assert math.isfinite(metrics(log)["stderr"])
