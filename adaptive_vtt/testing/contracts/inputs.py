"""What every dataset and every relation promises."""

from itertools import product
from typing import Any

import numpy as np

from ...datasets.base import CompleteDataset, Dataset, adapted_dataset
from ...errors import InputError
from ...relations.base import LabelPreserving, Relation, RelationDefaults, adapted_relation
from ...types import UNKNOWN, Box, FollowUp, Image, Mask, Sample, Truths
from ...utils.random_streams import generator
from .checks import assert_image, assert_line, error_of

MAX = 20


class DatasetContract:
    """``make``: the dataset, best one of a few samples: no more than MAX are decoded."""

    def make(self) -> Dataset:
        raise TypeError(f"{type(self).__name__} defines no make")

    # -- the tests ---------------------------------------------------------------------

    def test_it_has_a_name_samples_and_concepts(self) -> None:
        dataset = self._made()
        assert_line(dataset.name)
        assert len(dataset) > 0
        assert len(dataset.concepts) > 0
        assert len(set(dataset.concepts)) == len(dataset.concepts)
        for concept in dataset.concepts:
            assert_line(concept)

    def test_ids_are_unique_and_known_without_decoding(self) -> None:
        dataset = self._made()
        ids = [dataset.sample_id(index) for index in range(len(dataset))]
        assert len(set(ids)) == len(ids)
        assert all(dataset.sample(index).id == ids[index] for index in self._some(dataset))

    def test_samples_are_what_they_are_said_to_be(self) -> None:
        dataset, table = self._made(), self._table(self._made())
        for index in self._some(dataset):
            sample = dataset.sample(index)
            truths = dict(zip(dataset.concepts, table[index], strict=True))
            assert dict(sample.truth) == {c: t for c, t in truths.items() if t != UNKNOWN}
            self._assert_image(sample, dataset.has_images)
            self._assert_words(sample, dataset.concepts)
            assert dict(dataset.asks(index)) == dict(sample.asks)

    def test_a_sample_looked_at_again_is_the_same(self) -> None:
        dataset, again = self._made(), self._made()
        for index in self._some(dataset):
            one = dataset.sample(index)
            for same in (again.sample(index), dataset.sample(index)):
                assert (one.id, one.truth, one.boxes) == (same.id, same.truth, same.boxes)
                assert np.array_equal(one.image, same.image)  # type: ignore[arg-type]

    def test_truths_are_0_1_or_unknown_and_counted_exactly(self) -> None:
        dataset = self._made()
        table = self._table(dataset)
        assert set(np.unique(table)) <= {0, 1, UNKNOWN}
        counted = np.stack([(table == side).sum(axis=0) for side in (0, 1)], axis=1)
        assert np.array_equal(dataset.counts, counted)

    def test_members_of_a_side_are_found_by_rank(self) -> None:
        dataset = self._made()
        table = self._table(dataset)
        for concept, side in product(range(table.shape[1]), (0, 1)):
            count = int((table[:, concept] == side).sum())
            members = dataset.members(concept, side, np.arange(count)) if count else np.zeros(0)
            assert sorted(members.tolist()) == np.flatnonzero(table[:, concept] == side).tolist()

    def test_the_profile_counts_every_row_of_truths(self) -> None:
        dataset = self._made()
        rows, copies = dataset.profile
        places = dataset.profile_row(np.arange(len(dataset)))
        assert np.array_equal(rows[places], self._table(dataset))
        assert np.array_equal(np.bincount(places, minlength=len(rows)), copies)

    def test_the_reference_is_some_samples_with_their_truths(self) -> None:
        dataset = self._made()
        for most in (1, len(dataset), len(dataset) + 5):
            samples, truths = dataset.reference(most, generator(0, "contract"))
            assert 0 < len(samples) <= most
            assert (np.diff(samples) > 0).all()
            assert np.array_equal(truths, self._table(dataset)[samples])
            again, _ = self._made().reference(most, generator(0, "contract"))
            assert np.array_equal(samples, again)

    def test_its_fingerprint_follows_from_what_it_is_made_of(self) -> None:
        assert_line(self._made().fingerprint)
        assert self._made().fingerprint == self._made().fingerprint

    def test_a_column_of_metadata_that_is_not_there_is_refused(self) -> None:
        dataset = self._made()
        said = error_of(InputError, lambda: dataset.metadata_values("no such column"))
        assert "no such column" in said

    def test_what_it_adds_for_predictions_fits_its_samples(self) -> None:
        dataset = self._made()
        if dataset.features is not None:
            features = np.asarray(dataset.features, float)
            assert (features.ndim, len(features)) == (2, len(dataset))
            assert np.isfinite(features).all()
        if dataset.guessing is not None:
            assert dataset.guessing.shape == (len(dataset), len(dataset.concepts))
            assert ((dataset.guessing >= 0) & (dataset.guessing <= 1)).all()
        if dataset.most_boxes is not None:
            found = [len(dataset.sample(index).boxes) for index in self._some(dataset)]
            assert max(found) <= dataset.most_boxes

    # -- what they are made of ---------------------------------------------------------

    def _made(self) -> CompleteDataset:
        return adapted_dataset(self.make())

    @staticmethod
    def _some(dataset: Dataset) -> list[int]:
        """The samples that are decoded, evenly spaced."""
        return np.linspace(0, len(dataset) - 1, min(MAX, len(dataset))).astype(int).tolist()

    @staticmethod
    def _table(dataset: Dataset) -> Truths:
        samples, concepts = np.arange(len(dataset)), np.arange(len(dataset.concepts))
        return dataset.truth(samples[:, None], concepts[None, :])

    @staticmethod
    def _assert_image(sample: Sample, there: bool) -> None:
        image = sample.image
        assert (image is not None) == there
        if image is None:
            return
        assert_image(image)
        for mask in sample.masks.values():
            assert mask.dtype == np.bool_
            assert mask.shape == image.shape[:2]
        for box in sample.boxes:
            assert 0 <= box.left < box.right <= image.shape[1]
            assert 0 <= box.top < box.bottom <= image.shape[0]
            assert 0 <= box.score <= 1

    @staticmethod
    def _assert_words(sample: Sample, concepts: tuple[str, ...]) -> None:
        assert set(sample.asks) <= set(concepts)
        assert set(sample.answers) <= set(concepts)
        for ask in sample.asks.values():
            assert ask.text.strip()
        assert all(answers for answers in sample.answers.values())


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
        assert relation.fingerprint is None or isinstance(relation.fingerprint, str)

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
                assert_image(after)
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
            assert expected.dtype == np.bool_
            assert expected.shape == made.image.shape[:2]
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
        assert all(part in said for part in (relation.name, str(wrong)))

    # -- what they are made of ---------------------------------------------------------

    def _made(self) -> RelationDefaults:
        return adapted_relation(self.make())

    def _follow_up(self, relation: RelationDefaults, image: Any, severity: int) -> FollowUp:
        return relation.apply(self.sample(image), severity, generator(0, "contract"))

    def _image_after(self, relation: RelationDefaults, image: Image, severity: int) -> Image:
        after = self._follow_up(relation, image, severity).image
        assert after is not None, "expected a follow-up image of a source with one"
        return after
