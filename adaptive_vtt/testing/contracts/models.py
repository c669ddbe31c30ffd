"""What every model under test promises."""

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from ...models.base import ConcurrentModel, ModelDefaults, ModelUnderTest, adapted_model
from ...models.checking import checked, is_cost, name_of
from ...relations import get
from ...types import Answer, Image, Prompt, Unanswered, Value
from ...utils.random_streams import generator
from .. import tiny_dataset
from .checks import assert_json, assert_line


class ModelContract:
    """``make``: the model. ``concepts``, ``image`` and ``prompts``: what it is asked."""

    concepts: tuple[str, ...] = ("c0", "c1", "c2")
    repeatable = True
    """Whether the same prompt has the same answer, whenever and beside whichever it is asked."""
    tolerance = 1e-6
    """By how much P(yes) may differ in batches of another size (float32 sums)."""

    def make(self) -> ModelUnderTest:
        raise TypeError(f"{type(self).__name__} defines no make")

    def image(self, number: int) -> Image:
        """The source image of sample ``s0`` .. ``s3``."""
        image = tiny_dataset(4, 3).sample(number).image
        assert image is not None
        return image

    def prompts(self, answers: str) -> list[Prompt]:
        """Four sources and a follow-up of each, about all concepts at a time or one."""
        relation = get("brightness_up")
        found = []
        for number in range(4):
            image = self.image(number)
            rng = generator(0, "contract", number)
            made = relation.transform(image.copy(), 2, rng)  # type: ignore[attr-defined]
            for picture, name, severity in ((image, "identity", 0), (made, "brightness_up", 2)):
                every = [self.concepts] if answers == "all" else [(c,) for c in self.concepts]
                where = (f"s{number}", name, severity)
                found += [Prompt(picture, concepts, *where) for concepts in every]
        return found

    # -- the tests ---------------------------------------------------------------------

    def test_it_says_whether_a_call_answers_one_concept_or_all(self) -> None:
        with closing(self._made()) as model:
            assert model.answers in ("one", "all")

    def test_every_prompt_has_an_answer_of_the_form_that_is_promised(self) -> None:
        with closing(self._made()) as model:
            answers = checked(model, self.prompts(model.answers))
            assert any(isinstance(a, Answer) for a in answers), "nothing was answered"

    def test_asked_again_it_says_the_same(self) -> None:
        if not self.repeatable:
            return
        with closing(self._made()) as model, closing(self._made()) as other:
            prompts = self.prompts(model.answers)
            answers = checked(model, prompts)
            self._assert_same(checked(model, prompts), answers)
            self._assert_same(checked(other, prompts), answers)

    def test_answers_come_in_the_order_of_prompts_whatever_their_company(self) -> None:
        if not self.repeatable:
            return
        with closing(self._made()) as model:
            prompts = self.prompts(model.answers)
            answers = checked(model, prompts)
            self._assert_same(checked(model, prompts[::-1])[::-1], answers)
            self._assert_same([checked(model, [p])[0] for p in prompts], answers)

    def test_images_sent_are_left_alone(self) -> None:
        with closing(self._made()) as model:
            prompts = self.prompts(model.answers)
            before = [None if p.image is None else p.image.copy() for p in prompts]
            checked(model, prompts)
            for prompt, image in zip(prompts, before, strict=True):
                assert np.array_equal(prompt.image, image)  # type: ignore[arg-type]

    def test_no_call_costs_more_than_it_says_is_the_most(self) -> None:
        with closing(self._made()) as model:
            answers = checked(model, self.prompts(model.answers))
            assert model.most_cost is None or is_cost(model.most_cost)
            if model.prices_known:
                assert model.most_cost is not None
                assert all(a.cost <= model.most_cost for a in answers)

    def test_what_it_says_of_itself_can_be_journaled(self) -> None:
        with closing(self._made()) as model:
            assert_line(name_of(model))
            for said in (model.version, model.template_hash, model.content()):
                assert said is None or isinstance(said, str)
            assert isinstance(model.needs_image, bool)
            assert isinstance(model.takes_words, bool)
            worded = model.template_hash is not None
            assert model.takes_words or not worded, "its prompts do not say Prompt.words"
            assert "template" in model.protocol() or not worded, "its protocol names no template"
            assert_json(model.protocol())
            assert model.most_attempts >= 1
            assert_json(model.statistics())

    def test_asked_several_things_at_a_time_it_says_the_same(self) -> None:
        with closing(self._made()) as model:
            if not isinstance(model, ConcurrentModel):
                return
            assert model.in_flight >= 1
            prompts = self.prompts(model.answers)
            answers = [future.result(60) for future in [model.submit(p) for p in prompts]]
            if self.repeatable:
                self._assert_same(answers, checked(model, prompts))

    # -- what they are made of ---------------------------------------------------------

    def _made(self) -> ModelDefaults:
        return adapted_model(self.make())

    def _assert_same(
        self, one: Sequence[Answer | Unanswered], other: Sequence[Answer | Unanswered]
    ) -> None:
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert type(mine) is type(theirs)
            if isinstance(mine, Answer) and isinstance(theirs, Answer):
                pairs = zip(mine.values, theirs.values, strict=True)
                assert all(self._alike(a, b) for a, b in pairs), (mine, theirs)

    def _alike(self, one: Value, other: Value) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return abs(one - other) <= self.tolerance
        if isinstance(one, Unanswered) and isinstance(other, Unanswered):
            return one.reason == other.reason
        return bool(np.array_equal(one, other))  # type: ignore[arg-type]  # masks, texts
