"""What every relation promises."""

from typing import Any

import numpy as np

from ...errors import InputError
from ...relations.base import LabelPreserving, Relation, RelationDefaults, adapted_relation
from ...types import Box, FollowUp, Image, Mask, Sample
from ...utils.random_streams import generator
from .checks import assert_line, error_of


class RelationContract:
    """``make``: the relation. ``shapes`` and ``image``: what it is tried on."""

    shapes: tuple[tuple[int, int, int], ...] = ((28, 28, 1), (24, 20, 3))
    """Height, width and colours of images."""
    keeps_shape = True
    """Whether follow-ups are as large as their sources."""

    def make(self) -> Relation:
        raise TypeError(f"{type(self).__name__} defines no make")

    def image(self, shape: tuple[int, int, int]) -> Image:
        """H x W x C uint8: noise, unless something has to be seen."""
        return generator(0, "contract").integers(0, 256, shape, dtype=np.uint8)

    def sample(self, image: Image | None) -> Sample:
        """The source of an image: a thing in its middle, with mask and box, and another box."""
        if image is None:
            return Sample("s", None, {})
        height, width = image.shape[:2]
        mask = np.zeros((height, width), bool)
        top, left, bottom, right = 2 * height // 5, 2 * width // 5, 3 * height // 5, 3 * width // 5
        mask[top:bottom, left:right] = True
        boxes = (Box("thing", left, top, right, bottom), Box("dot", 0, 0, 3, 3))
        return Sample("s", image, {}, masks={"thing": mask}, boxes=boxes)

    # -- the tests ---------------------------------------------------------------------

    def test_it_has_a_name_and_says_what_it_does_in_a_line(self) -> None:
        relation = self._made()
        assert_line(relation.name)
        assert "\n" not in relation.about
        assert relation.describe is None or isinstance(relation.describe, str)

    def test_severities_are_whole_numbers_that_rise(self) -> None:
        severities = self._made().severities
        assert len(severities) > 0
        assert all(isinstance(severity, int) for severity in severities)
        assert list(severities) == sorted(set(severities))

    def test_follow_ups_are_images(self) -> None:
        relation = self._made()
        for shape in self.shapes:
            for severity in relation.severities:
                after = self._image_after(relation, self.image(shape), severity)
                assert after.dtype == np.uint8
                assert after.ndim == 3
                assert after.size > 0
                assert not self.keeps_shape or after.shape == shape

    def test_sources_are_left_alone(self) -> None:
        relation, image = self._made(), self.image(self.shapes[-1])
        for severity in relation.severities:
            sample = self.sample(image.copy())
            made = relation.apply(sample, severity, generator(0, "contract"))
            assert sample.image is not None
            assert np.array_equal(sample.image, image)
            assert made.image is None or not np.shares_memory(made.image, sample.image)

    def test_follow_ups_depend_on_the_arguments_alone(self) -> None:
        image = self.image(self.shapes[-1])
        for severity in self._made().severities:
            np.random.seed(1)  # noqa: NPY002 - the very thing that must not matter
            first = self._image_after(self._made(), image, severity)
            np.random.seed(2)  # noqa: NPY002
            again = self._image_after(self._made(), image, severity)
            assert np.array_equal(first, again)

    def test_memory_layout_of_the_source_makes_no_difference(self) -> None:
        relation, image = self._made(), self.image(self.shapes[-1])
        severity = relation.severities[-1]
        expected = self._image_after(relation, image, severity)
        for layout in (np.asfortranarray(image), np.repeat(image, 2, axis=1)[:, ::2]):
            assert np.array_equal(self._image_after(relation, layout, severity), expected)

    def test_expected_answers_are_answers(self) -> None:
        relation = self._made()
        for severity in relation.severities:
            made = self._follow_up(relation, self.image(self.shapes[-1]), severity)
            for truth in (0, 1):
                expected = relation.expect(truth, made)
                assert expected in (0, 1)
                assert not isinstance(relation, LabelPreserving) or expected == truth

    def test_expected_masks_are_masks_of_the_follow_up(self) -> None:
        relation, image = self._made(), self.image(self.shapes[-1])
        if not self.keeps_shape:
            return
        for severity in relation.severities:
            made = self._follow_up(relation, image, severity)
            mask: Mask = self.sample(image).masks["thing"]
            before = mask.copy()
            expected = relation.expect_mask(mask, made)
            assert made.image is not None
            assert expected.shape == made.image.shape[:2]
            assert expected.dtype == np.bool_
            assert np.array_equal(mask, before)

    def test_without_an_image_there_is_a_follow_up_without_one(self) -> None:
        relation = self._made()
        assert self._follow_up(relation, None, relation.severities[-1]).image is None

    def test_it_says_which_concepts_it_applies_to(self) -> None:
        assert self._made().applies("any concept") in (True, False)

    def test_a_severity_that_does_not_exist_is_refused_by_name(self) -> None:
        relation = self._made()
        if not isinstance(relation, LabelPreserving):
            return
        wrong, image = max(relation.severities) + 1, self.image(self.shapes[-1])
        said = error_of(InputError, lambda: self._follow_up(relation, image, wrong))
        assert relation.name in said
        assert str(wrong) in said

    # -- what they are made of ---------------------------------------------------------

    def _made(self) -> RelationDefaults:
        return adapted_relation(self.make())

    def _follow_up(self, relation: RelationDefaults, image: Any, severity: int) -> FollowUp:
        return relation.apply(self.sample(image), severity, generator(0, "contract"))

    def _image_after(self, relation: RelationDefaults, image: Image, severity: int) -> Image:
        after = self._follow_up(relation, image, severity).image
        assert after is not None, "expected a follow-up image of a source with one"
        return after
