"""Contract suites of models under test and of oracles."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from itertools import islice

import numpy as np

from ...datasets.base import Dataset
from ...errors import InputError
from ...models.base import ConcurrentModel, ModelDefaults, adapted_model
from ...models.checking import checked, is_cost, name_of
from ...oracles import Premise
from ...relations import Relation, get
from ...space import QuestionSpace
from ...types import (
    IDENTITY,
    Answer,
    Case,
    Image,
    Outcome,
    Prompt,
    Received,
    Sample,
    SourceAnswer,
    Unanswered,
    Value,
)
from ...utils.random_streams import generator
from .. import tiny_dataset
from .checks import Contract, assert_json, assert_line


class ModelContract(Contract):
    """Tests of a model, which ``make`` returns.

    ``prompts`` returns the prompts, by default about ``concepts`` on images of ``image``.
    """

    concepts: tuple[str, ...] = ("c0", "c1", "c2")
    repeatable = True
    """True if the answer to a prompt is always the same, in any batch."""
    tolerance = 1e-6
    """Maximum difference of P(yes) between batches of different sizes (float32 sums)."""

    def image(self, number: int) -> Image:
        """Return the source image of sample ``s0`` .. ``s3``."""
        image = tiny_dataset(4, 3).sample(number).image
        assert image is not None
        return image

    def prompts(self, answers: str) -> list[Prompt]:
        """Return prompts for four sources and their follow-ups.

        Args:
            answers: "all": one prompt per image; "one": one prompt per image and concept.
        """
        relation, prompts = get("brightness_up"), []
        asked = [self.concepts] if answers == "all" else [(name,) for name in self.concepts]
        for number in range(4):
            id, source = f"s{number}", self.image(number)
            rng = generator(0, "contract", number)
            brighter = relation.transform(source.copy(), 2, rng)  # type: ignore[attr-defined]
            prompts += [Prompt(source, concepts, id, IDENTITY, 0) for concepts in asked]
            prompts += [Prompt(brighter, concepts, id, relation.name, 2) for concepts in asked]
        return prompts

    # -- the tests ---------------------------------------------------------------------

    def test_every_prompt_has_an_answer_of_the_promised_form_and_price(self) -> None:
        with closing(self._made()) as model:
            assert model.answers in ("one", "all")
            answers = checked(model, self.prompts(model.answers))
            assert any(isinstance(a, Answer) for a in answers), "nothing was answered"
            assert model.most_cost is None or is_cost(model.most_cost)
            if model.prices_known:
                assert model.most_cost is not None
                assert all(a.cost <= model.most_cost for a in answers)

    def test_asked_again_alone_or_in_another_order_it_answers_the_same(self) -> None:
        if not self.repeatable:
            return
        with closing(self._made()) as model, closing(self._made()) as other:
            prompts = self.prompts(model.answers)
            answers = checked(model, prompts)
            self._assert_same(checked(model, prompts), answers)
            self._assert_same(checked(other, prompts), answers)
            self._assert_same(checked(model, prompts[::-1])[::-1], answers)
            self._assert_same([checked(model, [p])[0] for p in prompts], answers)

    def test_images_sent_are_left_alone(self) -> None:
        with closing(self._made()) as model:
            prompts = self.prompts(model.answers)
            before = deepcopy([prompt.image for prompt in prompts])
            checked(model, prompts)
            for prompt, image in zip(prompts, before, strict=True):
                assert np.array_equal(prompt.image, image)  # type: ignore[arg-type]

    def test_what_describes_it_can_be_journaled(self) -> None:
        with closing(self._made()) as model:
            assert_line(name_of(model))
            for text in (model.version, model.template_hash, model.content()):
                assert isinstance(text, str | None)
            assert isinstance(model.needs_image, bool)
            assert isinstance(model.takes_words, bool)
            in_words = model.template_hash is not None
            assert model.takes_words or not in_words, "its prompts do not say Prompt.words"
            assert "template" in model.protocol() or not in_words, "its protocol names no template"
            assert_json(model.protocol())
            assert model.most_attempts >= 1
            assert_json(model.statistics())

    def test_asked_several_things_at_a_time_it_answers_the_same(self) -> None:
        with closing(self._made()) as model:
            if not isinstance(model, ConcurrentModel):
                return
            assert model.in_flight >= 1
            prompts = self.prompts(model.answers)
            answers = [future.result(60) for future in [model.submit(p) for p in prompts]]
            if self.repeatable:
                self._assert_same(answers, checked(model, prompts))

    def _made(self) -> ModelDefaults:
        return adapted_model(self.make())

    def _assert_same(
        self, one: Sequence[Answer | Unanswered], other: Sequence[Answer | Unanswered]
    ) -> None:
        assert [*map(type, one)] == [*map(type, other)]
        for mine, theirs in zip(one, other, strict=True):
            if isinstance(mine, Answer) and isinstance(theirs, Answer):
                pairs = zip(mine.values, theirs.values, strict=True)
                assert all(self._alike(a, b) for a, b in pairs), (mine, theirs)

    def _alike(self, one: Value, other: Value) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return abs(one - other) <= self.tolerance
        if isinstance(one, Unanswered) and isinstance(other, Unanswered):
            return one.reason == other.reason
        return bool(np.array_equal(one, other))  # type: ignore[arg-type]  # masks, texts


MAX_CALLS = 24
"""Maximum number of calls that are judged."""
SILENT = Unanswered("refused")


class OracleContract(Contract):
    """Tests of an oracle, which ``make`` returns.

    ``dataset`` and ``relations`` give the questions, and ``value`` the answers of a model.
    """

    def dataset(self) -> Dataset:
        """Return samples that the oracle can judge."""
        return tiny_dataset(6, 3)

    def relations(self) -> list[str | Relation]:
        """Return the relations that make the follow-ups."""
        return [IDENTITY, "brightness_up"]

    def value(self, sample: Sample, concept: str, rng: np.random.Generator) -> Value:
        """Return a random answer about ``concept``: P(yes); overridden for masks or words."""
        return float(rng.choice([0.0, 0.3, 0.5, 1.0]))

    # -- the tests ---------------------------------------------------------------------

    def test_outcomes_lie_in_their_ranges_differ_and_are_repeatable(self) -> None:
        calls = list(self._calls(self._space()))
        assert calls, "no question of the dataset can be judged"
        for cases, _, outcomes in calls:
            assert len(outcomes) == len(cases)
            self._assert_outcomes(outcomes)
        losses = {outcome.loss for _, _, outcomes in calls for outcome in outcomes}
        assert len(losses) > 1, f"expected several losses, got {losses} alone"
        again = [outcomes for _, _, outcomes in self._calls(self._space())]
        assert again == [outcomes for _, _, outcomes in calls]

    def test_what_is_judged_is_left_alone(self) -> None:
        space = self._space()
        for cases, values, _ in self._calls(space):
            before = repr(deepcopy((cases, values)))
            space.oracle.judge_call(cases, values)
            assert before == repr((cases, values))

    def test_a_call_left_unanswered_has_a_loss_and_no_coordinate(self) -> None:
        space = self._space()
        for cases, values, _ in self._calls(space):
            silent = [replace(c, answer=SILENT) for c in cases]
            outcomes = space.oracle.judge_call(silent, [SILENT] * len(values))
            self._assert_outcomes(outcomes)
            for outcome in outcomes:
                assert outcome.coordinate is None
                assert outcome.excluded or outcome.loss == space.oracle.unanswered_loss

    def test_follow_ups_are_judged_or_excluded_where_the_source_went_unanswered(self) -> None:
        space = self._space()
        if space.oracle.needs_source:
            for _, _, outcomes in self._calls(space, received=False):
                self._assert_outcomes(outcomes)

    def test_it_states_what_is_asked_and_the_names_of_rates(self) -> None:
        space = self._space()
        assert len(space.asked_by) == len(space.concepts)
        assert all(0 <= place < len(space.asked) for place in space.asked_by)
        for rate, side in space.oracle.rates.items():
            assert_line(rate)
            assert side in (0, 1, None)
        assert isinstance(space.oracle.needs_source, bool)
        assert 0 <= space.oracle.unanswered_loss <= 1

    def test_a_source_answer_is_recorded_as_a_number_or_not_at_all(self) -> None:
        space = self._space()
        sample = space.dataset.sample(0)
        for concept in space.asked:
            value = self.value(sample, concept, generator(0, "contract"))
            try:
                recorded = space.oracle.record(value, sample, concept)
            except InputError as error:  # an oracle may refuse to be judged again
                assert_line(str(error))
            else:
                assert recorded is None or math.isfinite(recorded)

    def test_there_are_at_most_so_many_versions_to_ask_about(self) -> None:
        space = self._space()
        most = space.oracle.most_versions(space.dataset)
        for index in range(len(space.dataset)):
            versions = space.oracle.versions(space.dataset.sample(index), None)
            assert all(0 <= place < most for place in versions)
            assert all(version.make().dtype == np.uint8 for version in versions.values())

    def _space(self) -> QuestionSpace:
        return QuestionSpace(self.dataset(), self.relations(), oracle=self.make())

    def _calls(
        self, space: QuestionSpace, *, received: bool = True
    ) -> Iterator[tuple[list[Case], list[Value], list[Outcome]]]:
        """Yield MAX_CALLS calls that answer all concepts, as (cases, answers, outcomes).

        Args:
            space: The space.
            received: Whether the source images were answered, too, if the oracle needs that.
        """
        images = np.unique(space.image_of(space.nth(np.arange(space.size)))).tolist()
        for image in islice(images, MAX_CALLS):
            sample, follow_up = space.pair(image)
            rng = generator(0, "contract", image)
            # one answer per concept that is asked about; concepts of the space may share one
            answers = [self.value(sample, concept, rng) for concept in space.asked]
            of_source: list[Value] = [SILENT] * len(space.asked)
            if received:
                of_source = [self.value(sample, concept, rng) for concept in space.asked]
            values = [answers[k] for k in space.asked_by]
            relation, cases = space.variants[image % len(space.variants)].relation, []
            for place, asked in enumerate(space.asked_by):
                number = image * len(space.concepts) + place
                if space.eligible(number):
                    question = space.question(number)
                    source = self._received(space, sample, of_source[asked])
                    premise = Premise(relation, follow_up, sample, question, source)
                    expected = space.oracle.expect(premise)
                    cases.append(Case(question, place, answers[asked], expected, source))
            yield cases, values, space.oracle.judge_call(cases, values)

    @staticmethod
    def _received(space: QuestionSpace, sample: Sample, value: Value) -> SourceAnswer:
        """Return the answer about the source, with the same answer about all its versions."""
        if not space.oracle.needs_source:
            return None
        if space.oracle.most_versions(space.dataset) == 0:
            return value
        wanted = space.oracle.versions(sample, Received(value, {}))
        return Received(value, dict.fromkeys(wanted, value))

    @staticmethod
    def _assert_outcomes(outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            for number in (outcome.loss, outcome.coordinate):
                assert number is None or 0 <= number <= 1
            assert outcome.score is None or math.isfinite(outcome.score)
            for reason in (outcome.unanswered, outcome.excluded):
                if reason is not None:
                    assert_line(reason)
            assert_json(dict(outcome.details or {}))
