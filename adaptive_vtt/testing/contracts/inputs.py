"""Contract suites of datasets and of relations."""

from itertools import product
from typing import Any

import numpy as np

from ...datasets.base import CompleteDataset, Dataset, adapted_dataset
from ...errors import InputError
from ...relations.base import LabelPreserving, RelationDefaults, adapted_relation
from ...types import UNKNOWN, Box, FollowUp, Image, Sample, Truths
from ...utils.random_streams import generator
from .checks import Contract, assert_image, assert_line, error_of

MAX = 20
"""Maximum number of samples that are decoded."""


class DatasetContract(Contract):
    """Tests of a dataset, which ``make`` returns; one with few samples is enough."""

    # -- the tests ---------------------------------------------------------------------

    def test_it_has_a_name_samples_concepts_and_a_fingerprint(self) -> None:
        dataset = self._made()
        for text in (dataset.name, dataset.fingerprint, *dataset.concepts):
            assert_line(text)
        assert len(dataset) > 0
        assert len(set(dataset.concepts)) == len(dataset.concepts) > 0
        assert dataset.fingerprint == self._made().fingerprint

    def test_ids_are_unique_and_known_without_decoding(self) -> None:
        dataset = self._made()
        ids = [dataset.sample_id(index) for index in range(len(dataset))]
        assert len(set(ids)) == len(ids)
        assert all(dataset.sample(index).id == ids[index] for index in self._some(dataset))

    def test_samples_have_the_truths_images_and_words_that_are_promised(self) -> None:
        dataset, table = self._made(), self._table(self._made())
        concepts = set(dataset.concepts)
        for index in self._some(dataset):
            sample = dataset.sample(index)
            truths = dict(zip(dataset.concepts, table[index], strict=True))
            assert dict(sample.truth) == {c: t for c, t in truths.items() if t != UNKNOWN}
            assert (sample.image is not None) == dataset.has_images
            if sample.image is not None:
                assert_image(sample.image)
                height, width = sample.image.shape[:2]
                for mask in sample.masks.values():
                    assert mask.dtype == np.bool_
                    assert mask.shape == (height, width)
                for box in sample.boxes:
                    assert 0 <= box.left < box.right <= width
                    assert 0 <= box.top < box.bottom <= height
                    assert 0 <= box.score <= 1
            assert sample.asks.keys() | sample.answers.keys() <= concepts
            assert all(ask.text.strip() for ask in sample.asks.values())
            assert all(sample.answers.values())
            assert dict(dataset.asks(index)) == dict(sample.asks)

    def test_a_sample_looked_at_again_is_the_same(self) -> None:
        dataset, again = self._made(), self._made()
        for index in self._some(dataset):
            one = dataset.sample(index)
            for same in (again.sample(index), dataset.sample(index)):
                assert (one.id, one.truth, one.boxes) == (same.id, same.truth, same.boxes)
                assert np.array_equal(one.image, same.image)  # type: ignore[arg-type]

    def test_truths_are_0_1_or_unknown_counted_and_listed_exactly(self) -> None:
        dataset = self._made()
        table = self._table(dataset)
        assert set(np.unique(table)) <= {0, 1, UNKNOWN}
        for concept, side in product(range(table.shape[1]), (0, 1)):
            places = np.flatnonzero(table[:, concept] == side)
            assert dataset.counts[concept][side] == len(places)
            if len(places):
                members = dataset.members(concept, side, np.arange(len(places)))
                assert sorted(members.tolist()) == places.tolist()

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

    def test_a_column_of_metadata_that_is_not_there_is_refused(self) -> None:
        dataset = self._made()
        message = error_of(InputError, lambda: dataset.metadata_values("no such column"))
        assert "no such column" in message

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
            boxes = [len(dataset.sample(index).boxes) for index in self._some(dataset)]
            assert max(boxes) <= dataset.most_boxes

    def _made(self) -> CompleteDataset:
        return adapted_dataset(self.make())

    @staticmethod
    def _some(dataset: Dataset) -> list[int]:
        """Return the indices of up to MAX evenly spaced samples."""
        return np.linspace(0, len(dataset) - 1, min(MAX, len(dataset))).astype(int).tolist()

    @staticmethod
    def _table(dataset: Dataset) -> Truths:
        samples, concepts = np.arange(len(dataset)), np.arange(len(dataset.concepts))
        return dataset.truth(samples[:, None], concepts[None, :])


class RelationContract(Contract):
    """Tests of a relation, which ``make`` returns, on images of ``image`` and ``shapes``."""

    shapes: tuple[tuple[int, int, int], ...] = ((28, 28, 1), (24, 20, 3))
    """Height, width and channels of the images."""
    keeps_shape = True
    """True if follow-ups have the size of their sources."""

    def image(self, shape: tuple[int, int, int]) -> Image:
        """Return an image H x W x C of uint8: noise; overridden if it must show something."""
        return generator(0, "contract").integers(0, 256, shape, dtype=np.uint8)

    def sample(self, image: Image | None) -> Sample:
        """Return a sample with an object in the middle, its mask and box, and another box."""
        if image is None:
            return Sample("s", None, {})
        height, width = image.shape[:2]
        mask = np.zeros((height, width), bool)
        top, left, bottom, right = 2 * height // 5, 2 * width // 5, 3 * height // 5, 3 * width // 5
        mask[top:bottom, left:right] = True
        boxes = (Box("thing", left, top, right, bottom), Box("dot", 0, 0, 3, 3))
        return Sample("s", image, {}, masks={"thing": mask}, boxes=boxes)

    # -- the tests ---------------------------------------------------------------------

    def test_it_has_a_name_a_line_about_it_and_rising_severities(self) -> None:
        relation = self._made()
        assert_line(relation.name)
        assert "\n" not in relation.about
        assert relation.fingerprint is None or isinstance(relation.fingerprint, str)
        assert relation.applies("any concept") in (True, False)
        severities = [*relation.severities]
        assert all(isinstance(severity, int) for severity in severities)
        assert severities == sorted(set(severities)) != []

    def test_follow_ups_are_images_that_leave_their_sources_alone(self) -> None:
        for shape, severity in product(self.shapes, self._made().severities):
            image = self.image(shape)
            before = image.copy()
            after = self._image_after(image, severity)
            assert after is not None, "expected a follow-up image of a source with one"
            assert_image(after)
            assert not self.keeps_shape or after.shape == shape
            assert np.array_equal(image, before)
            assert not np.shares_memory(after, image)

    def test_follow_ups_depend_on_the_arguments_alone(self) -> None:
        image = self.image(self.shapes[-1])
        for severity in self._made().severities:
            np.random.seed(1)  # noqa: NPY002 - the global state must not matter
            first = self._image_after(image, severity)
            np.random.seed(2)  # noqa: NPY002
            assert np.array_equal(first, self._image_after(image, severity))

    def test_memory_layout_of_the_source_makes_no_difference(self) -> None:
        image, severity = self.image(self.shapes[-1]), self._made().severities[-1]
        expected = self._image_after(image, severity)
        for layout in (np.asfortranarray(image), np.repeat(image, 2, axis=1)[:, ::2]):
            assert np.array_equal(self._image_after(layout, severity), expected)

    def test_expected_answers_and_masks_are_those_of_the_follow_up(self) -> None:
        relation, image = self._made(), self.image(self.shapes[-1])
        for severity in relation.severities:
            follow_up = self._follow_up(relation, image, severity)
            for truth in (0, 1):
                expected = relation.expect(truth, follow_up)
                assert expected in (0, 1)
                assert not isinstance(relation, LabelPreserving) or expected == truth
            if self.keeps_shape:
                mask = self.sample(image).masks["thing"]
                before, after = mask.copy(), relation.expect_mask(mask, follow_up)
                assert follow_up.image is not None
                assert after.dtype == np.bool_
                assert after.shape == follow_up.image.shape[:2]
                assert np.array_equal(mask, before)

    def test_without_an_image_there_is_a_follow_up_without_one(self) -> None:
        assert self._image_after(None, self._made().severities[-1]) is None

    def test_a_severity_that_does_not_exist_is_refused_by_name(self) -> None:
        relation = self._made()
        if isinstance(relation, LabelPreserving):
            wrong, image = max(relation.severities) + 1, self.image(self.shapes[-1])
            message = error_of(InputError, lambda: self._follow_up(relation, image, wrong))
            assert all(part in message for part in (relation.name, str(wrong)))

    def _made(self) -> RelationDefaults:
        return adapted_relation(self.make())

    def _follow_up(
        self, relation: RelationDefaults, image: Image | None, severity: int
    ) -> FollowUp:
        return relation.apply(self.sample(image), severity, generator(0, "contract"))

    def _image_after(self, image: Image | None, severity: int) -> Any:
        return self._follow_up(self._made(), image, severity).image
