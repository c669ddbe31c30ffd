"""Objects with a protocol's mandatory members alone are enough; their other members count, too."""

from concurrent.futures import Future
from typing import Any

import numpy as np

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets.base import adapted_dataset
from adaptive_vtt.engine.audit_key import CONTENT, version_of
from adaptive_vtt.models import Answer, ConcurrentModel, adapted_model
from adaptive_vtt.models.checking import name_of
from adaptive_vtt.oracles import Outcome
from adaptive_vtt.relations.base import adapted_relation
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import FollowUp

MANDATORY = (
    "name", "concepts", "has_images", "counts", "fingerprint", "sample", "sample_id", "truth",
    "members", "profile", "profile_row", "metadata_values", "reference",
)  # fmt: skip


class PlainModel:
    def __init__(self, answers="all"):
        self.answers = answers

    def ask(self, prompts):
        return [Answer((0.5,) * len(prompt.concepts)) for prompt in prompts]


class PlainRelation:
    name, severities = "darker", (1, 2)

    def apply(self, sample, severity, rng):
        assert sample.image is not None
        return FollowUp(sample.image // (1 + severity))

    def expect(self, truth, follow_up):
        return truth


class PlainDataset:
    """Has the mandatory members of another dataset, and nothing else."""

    def __init__(self, inner):
        self._inner = inner

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        if name not in MANDATORY:
            raise AttributeError(name)
        return getattr(self._inner, name)


class PlainOracle:
    needs_source = False

    def judge(self, question, answer, expected, source_answer):
        return Outcome(abs(answer - expected), 0.5)


def test_an_audit_of_plain_objects_alone_comes_to_its_end():
    plain: Any = PlainDataset(tiny_dataset(4, 2)), PlainRelation(), PlainOracle(), PlainModel()
    dataset, relation, oracle, model = plain
    space = QuestionSpace(dataset, [relation], oracle=oracle)
    with Audit(space, model, half_width=0.01) as audit:
        result = audit.run()
    assert result.calls == 8
    assert (result.targets["estimate"].dropna() == 0.5).all()


def test_what_a_plain_model_lacks_has_its_default():
    model = adapted_model(PlainModel("one"))
    assert (model.answers, model.name, name_of(PlainModel())) == ("one", "PlainModel", "PlainModel")
    assert (model.version, model.needs_image, model.prices_known) == (None, True, False)
    assert (model.most_attempts, model.template_hash, model.statistics()) == (1, None, None)
    assert version_of(model) is None


def test_what_a_plain_model_has_goes_before_the_defaults_as_it_is_now():
    plain: Any = PlainModel()
    model = adapted_model(plain)
    plain.name, plain.most_cost, plain.needs_image = "mine", 0.5, False
    assert (model.name, model.most_cost, model.prices_known) == ("mine", 0.5, True)
    assert model.needs_image is False
    plain.most_cost = 0.75
    plain.content = lambda: "abc"
    assert model.most_cost == 0.75
    assert version_of(model) == CONTENT + "abc"
    model.version = "2"
    assert (plain.version, version_of(plain)) == ("2", "2")


def test_a_plain_model_for_several_calls_at_a_time_stays_one():
    class Concurrent(PlainModel):
        in_flight = 3

        def submit(self, prompt):
            future = Future()
            future.set_result(self.ask([prompt])[0])
            return future

    model = adapted_model(Concurrent())
    assert isinstance(model, ConcurrentModel)
    assert model.in_flight == 3
    assert not isinstance(adapted_model(PlainModel()), ConcurrentModel)
    with Audit(QuestionSpace(tiny_dataset(4, 2)), Concurrent(), budget=4) as audit:
        assert audit.run().calls == 4


def test_a_plain_relation_preserves_answers_and_has_no_options():
    relation = adapted_relation(PlainRelation())
    assert (relation.name, relation.severities) == ("darker", (1, 2))
    assert (relation.about, relation.fingerprint, relation.adds) == ("", None, "")
    assert not relation.reduces
    assert relation.applies("anything")
    mask = np.eye(3, dtype=bool)
    assert np.array_equal(relation.expect_mask(mask, FollowUp(None)), mask)


def test_a_plain_dataset_has_the_defaults_and_can_be_given_features():
    plain: Any = PlainDataset(tiny_dataset(4, 2))
    dataset = adapted_dataset(plain)
    assert len(dataset) == 4
    assert (dataset.features, dataset.guessing, dataset.most_boxes) == (None, None, None)
    assert dataset.asked == (("c0", "c1"), range(2))
    dataset.features = np.zeros((4, 1))
    assert plain.features is dataset.features
