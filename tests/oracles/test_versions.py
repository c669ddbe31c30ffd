"""Oracles that have to hear of versions of a source image, too: after it, before its follow-ups."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_losses
from adaptive_vtt.cli.plan import planned
from adaptive_vtt.config import parse_spec
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.oracles import Consistency, Outcome, Premise, Received, Version
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Sample
from tests.helpers.interrupted import assert_resumes
from tests.helpers.twins import slowly

MAX = 3


class Doubting(Consistency):
    """Asks about up to three negatives of the source: as many as its answer is high."""

    def most_versions(self, dataset: Dataset) -> int:
        return MAX

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, Version]:
        image = sample.image
        assert image is not None
        count = MAX if received is None else wanted(received.answer)
        return {v: Version("negative", v + 1, lambda: 255 - image) for v in range(count)}

    def expect(self, given: Premise) -> Any:
        received = given.source_answer
        assert isinstance(received, Received)
        assert sorted(received.versions) == list(range(wanted(received.answer)))
        return int(received.answer >= 0.5)

    def judge(
        self, question: Any, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        return super().judge(question, answer, expected)


def answer_of(sample: str) -> Any:
    prompt = Prompt(None, ("c0",), sample, "identity", 0)
    (answer,) = ScriptedModel(answers="one").ask([prompt])
    return answer.values[0] if isinstance(answer, Answer) else answer


def wanted(answer: Any) -> int:
    return 0 if isinstance(answer, Unanswered) else round(answer * MAX)


def space(samples: int = 6) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 1), ["identity", "rotation"], oracle=Doubting())


Asked = tuple[str, str, int]


def asked(model: ScriptedModel) -> list[Asked]:
    return [call[:3] for call in model.asked]


@pytest.mark.parametrize(("batch", "budget"), [(1, 6), (4, 13), (1, 1000)])
def test_versions_come_after_their_source_and_before_its_follow_ups(
    batch: int, budget: int
) -> None:
    model = ScriptedModel(answers="one")
    result = Audit(space(), model, budget=budget, batch=batch).run()
    calls = asked(model)
    assert len(calls) == len(set(calls)) == result.calls == result.cost
    assert result.calls <= budget
    for place, (sample, relation, _) in enumerate(calls):
        before = [c for c in calls[:place] if c[0] == sample]
        if relation == "negative":
            assert (sample, "identity", 0) in before
        if relation == "rotation":
            there = {c for c in calls if c[0] == sample and c[1] == "negative"}
            assert there <= set(before)
    if budget == 1000:
        answers = [answer_of(sample) for sample in {c[0] for c in calls}]
        assert sum(c[1] == "negative" for c in calls) == sum(map(wanted, answers)) > 0


def test_versions_of_one_source_are_handed_out_together() -> None:
    audit, model = Audit(space(), ScriptedModel(answers="one")), ScriptedModel(answers="one")
    while True:
        (source,) = audit.ask(1)
        audit.tell(source, model.ask([source.prompt])[0])
        if source.prompt.relation == "identity" and audit.waiting > 1:
            break
    versions = audit.ask(audit.waiting)
    assert {call.prompt.relation for call in versions} == {"negative"}
    assert {call.prompt.sample_id for call in versions} == {source.prompt.sample_id}
    assert source.prompt.sample_id not in {call.prompt.sample_id for call in audit.ask(1)}


@pytest.mark.parametrize("last", [8, *slowly(0, 2, 4, 6, 10, 12, 14, 16, 18, 20)])
def test_an_interrupted_audit_goes_on_and_pays_for_no_version_twice(
    tmp_path: Path, last: int
) -> None:
    options = {"half_width": 0.2, "targets": ["overall"], "budget": 24}
    assert_resumes(space, tmp_path / "j.db", last, "one", options)


def test_everything_can_be_asked_through_for_the_truth() -> None:
    model = ScriptedModel(answers="one")
    questions, losses = all_losses(space(), model)
    assert len(questions) == len(losses) == space().size
    assert len(asked(model)) == len(set(asked(model)))


def test_a_dry_run_counts_the_most_versions_there_may_be() -> None:
    table: dict[str, Any] = {"dataset": {"kind": "images", "path": "x"}}
    table["model"] = {"kind": "python", "target": "m.py:f"}
    spec = parse_spec({**table, "audit": {"budget": 1000}}, "SPEC.toml")
    plan = planned(spec, Path(), space(), ScriptedModel(answers="one"))
    assert plan.total == 6 * (1 + MAX) + space().size
