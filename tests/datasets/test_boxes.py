"""Boxes: annotated in COCO's and VOC's formats, detected by networks, or proposed as regions."""

from dataclasses import astuple, dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adaptive_vtt.datasets import UNKNOWN
from adaptive_vtt.datasets.formats.coco import from_coco, mask
from adaptive_vtt.datasets.formats.voc import from_voc
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.detectors import Detected
from adaptive_vtt.oracles.captions.regions import Regions
from adaptive_vtt.types import Box, Image
from tests.helpers.annotated import SIZE, coco, voc
from tests.helpers.small_datasets import truths

# -- COCO ----------------------------------------------------------------------------------


def test_coco_annotations_are_boxes_and_their_categories_concepts(tmp_path):
    dataset = from_coco(*coco(tmp_path))
    assert dataset.concepts == ("dog", "person")  # nobody annotated a kite
    assert truths(dataset) == [[1, 1], [0, 0]]
    assert [dataset.sample_id(k) for k in range(2)] == ["7", "9"]
    assert dataset.sample(0).boxes == (Box("dog", 2, 4, 12, 14),)
    assert dataset.sample(1).boxes == ()


def test_coco_crowds_have_boxes_when_asked_for(tmp_path):
    plain, crowded = (from_coco(*coco(tmp_path), crowds=c) for c in (False, True))
    assert crowded.sample(0).boxes[1] == Box("person", 0, 0, 30, 20)
    assert crowded.fingerprint != plain.fingerprint
    assert plain.fingerprint == from_coco(*coco(tmp_path)).fingerprint


def test_coco_outlines_are_masks(tmp_path):
    masks = from_coco(*coco(tmp_path), outlines=True).sample(0).masks
    dog, people = masks["dog"], masks["person"]
    assert np.array_equal(np.argwhere(dog)[[0, -1]], [[4, 2], [13, 11]])
    assert dog.sum() == 100
    assert np.argwhere(people).tolist() == [[0, 2], [1, 2], [2, 2], [3, 2], [4, 2]]


@pytest.mark.parametrize(
    ("size", "counts"),
    [((4, 5), "5220003"), ((40, 50), "Rc0d0d000000000000000000000000000000000000000000000000V<")],
)
def test_run_lengths_as_text(size, counts):
    """As the pycocotools 2.0 encode these two rectangles."""
    inside = {(4, 5): np.s_[1:3, 1:4], (40, 50): np.s_[10:30, 15:40]}[size]
    expected = np.zeros(size, bool)
    expected[inside] = True
    assert np.array_equal(mask({"size": list(size), "counts": counts}, *size), expected)


@settings(max_examples=40)
@given(drawn=arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_run_lengths_as_numbers(drawn):
    flat = drawn.T.ravel()
    ends = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    counts = [0] * bool(flat[0]) + np.diff(ends).tolist()
    outline = {"size": list(drawn.shape), "counts": counts}
    assert np.array_equal(mask(outline, *drawn.shape), drawn)


@pytest.mark.parametrize(
    ("outline", "message"),
    [
        ([[1, 2, 3]], r"segmentation of 'dog': expected polygons or run lengths, got \[\[1, 2"),
        (None, "expected polygons or run lengths, got None"),
        ({"size": [3, 3], "counts": [9]}, r"run lengths of size \[20, 30\], got \[3, 3\]"),
        ({"size": [20, 30], "counts": [9]}, "run lengths of 600 pixels together, got 9"),
        ({"size": [20, 30], "counts": [601, -1]}, "run lengths as numbers or text, got"),
    ],
)
def test_outlines_that_are_none_are_named(tmp_path, outline, message):
    dataset = from_coco(
        *coco(tmp_path, lambda c: c["annotations"][0].update(segmentation=outline)), outlines=True
    )
    with pytest.raises(InputError, match=message):
        dataset.sample(0).masks["dog"]


def first(part, **changes):
    return lambda content: content[part][0].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first("annotations", category_id=5), r"annotation 70: its category_id 5 is that of no"),
        (first("annotations", image_id=5), r"annotation 70: its image_id 5 is that of no image"),
        (first("annotations", bbox=[2, 4, 0, 5]), r"annotation 70, bbox: .* an area, got .* 0 x 5"),
        (first("annotations", bbox=[25, 0, 9, 5]), r"bbox: expected a box within .* right 34"),
        (first("annotations", bbox=[1, 2, 3]), r"annotation 70: expected bbox \[x, y, width"),
        (first("annotations", bbox=[1, 2, 3, float("nan")]), r"bbox: .* of finite numbers"),
        (first("images", file_name="c.png"), r"image 7: its file_name '.*c\.png' does not exist"),
        (first("images", width="30"), r"image 7: expected a field 'width' of type int, got '30'"),
        (first("images", id=9), r"image 9: its id stands twice"),
        (lambda c: c.pop("categories"), r"expected lists .* got no list 'categories'"),
        (lambda c: c["annotations"].clear(), r"instances.json: expected images with masks or"),
        (lambda c: c["annotations"].append(3), r"annotations\[2\]: expected an object with 'id'"),
    ],
)
def test_coco_files_that_do_not_fit_are_named(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        from_coco(*coco(tmp_path, change))


def test_coco_parts_that_cannot_be_used_may_be_left_out(tmp_path):
    def change(content):
        content["annotations"].append(dict(content["annotations"][0], id=72, bbox=[2, 4, 0, 5]))
        content["images"] += [dict(content["images"][0], id=k, file_name=f"{k}.png") for k in "cd"]
        content["annotations"].append(dict(content["annotations"][0], id=73, image_id="c"))

    parts = coco(tmp_path, change)
    (tmp_path / "images" / "d.png").write_text("no image")
    dataset = from_coco(*parts, broken="skip")
    assert [dataset.sample_id(k) for k in range(len(dataset))] == ["7", "9"]
    assert len(dataset.sample(0).boxes) == 1
    reasons = ["image c: its file_name", "annotation 72, bbox: expected", "d.png"]
    assert all(part in text for part, text in zip(reasons, dataset.skipped, strict=True))


@pytest.mark.parametrize("x", [-0.6, 20.7])
def test_boxes_that_jut_out_by_rounding_are_clipped(tmp_path, x):
    dataset = from_coco(*coco(tmp_path, first("annotations", bbox=[x, 4, 10, 16.2])))
    box = dataset.sample(0).boxes[0]
    assert astuple(box)[1:5] == (max(0, x), 4, min(30, x + 10), 20)


def test_an_image_of_another_size_than_annotated_is_named(tmp_path):
    dataset = from_coco(*coco(tmp_path, first("images", width=31)))
    with pytest.raises(InputError, match=r"sample '7': .* 20 x 31 .* as annotated, got 20 x 30"):
        dataset.sample(0)


# -- VOC -----------------------------------------------------------------------------------


def test_voc_boxes_count_from_one_and_difficult_classes_are_unknown(tmp_path):
    voc(tmp_path, "1", ("dog", 0, 1, 1, 30, 20), ("cat", 1, 2, 3, 4, 5))
    voc(tmp_path, "2", ("cat", 0, 2, 3, 4, 5), ("cat", 1, 2, 3, 9, 9))
    dataset = from_voc(tmp_path)
    assert dataset.concepts == ("cat", "dog")
    assert truths(dataset) == [[UNKNOWN, 1], [1, 0]]
    assert dataset.sample(0).boxes == (Box("dog", 0, 0, 30, 20),)
    everything = from_voc(tmp_path, difficult=True)
    assert truths(everything) == [[1, 1], [1, 0]]
    assert everything.sample(1).boxes == (Box("cat", 1, 2, 4, 5), Box("cat", 1, 2, 9, 9))


def test_voc_splits_are_lists_of_names(tmp_path):
    for name in ("1", "2"):
        voc(tmp_path, name, ("dog", 0, 1, 1, 9, 9))
    lists = tmp_path / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    for name, lines in {"val": "2\n", "dog_val": "2  1\n", "twice": "2\n1\n2\n"}.items():
        (lists / f"{name}.txt").write_text(lines)
    dataset = from_voc(tmp_path, split="val")
    assert [dataset.sample_id(k) for k in range(len(dataset))] == ["2"]
    with pytest.raises(InputError, match=r"unknown split 'vol'; did you mean 'val'"):
        from_voc(tmp_path, split="vol")
    with pytest.raises(InputError, match=r"dog_val\.txt, line 1: expected one image name, got"):
        from_voc(tmp_path, split="dog_val")
    with pytest.raises(InputError, match=r"twice\.txt: the image '2' stands twice"):
        from_voc(tmp_path, split="twice")


@pytest.mark.parametrize(
    ("things", "text", "message"),
    [
        ((), "<annotation>", r"1\.xml: cannot read it as XML: no element found"),
        (
            (),
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>',
            r"1\.xml: cannot read it as XML: a document type is not allowed",
        ),
        ((), "<annotation/>", r"1\.xml: expected a number in <size/height>, got None"),
        ((), SIZE.join(("<a>", "</a>")), r"expected images with masks or boxes, got none"),
        ([("dog", 0, 1, 1, 32, 9)], None, r"1\.xml, object 1, bndbox: .* within .* right 32"),
        ([("dog", 0, 1, 1, "inf", 9)], None, r"expected a number in <bndbox/xmax>, got 'inf'"),
        ([("dog", 0, 1, 1, 9, 9), ("", 0, 1, 1, 9, 9)], None, r"object 2: expected a class in <na"),
    ],
)
def test_voc_files_that_do_not_fit_are_named(tmp_path, things, text, message):
    with pytest.raises(InputError, match=message):
        from_voc(voc(tmp_path, "1", *things, text=text))


def test_voc_files_that_are_missing_are_named(tmp_path):
    voc(tmp_path, "1", ("dog", 0, 1, 1, 9, 9))
    (tmp_path / "JPEGImages" / "1.jpg").unlink()
    with pytest.raises(InputError, match=r"1\.xml: its image file '.*1\.jpg' does not exist"):
        from_voc(tmp_path)
    voc(tmp_path, "2", ("dog", 0, 1, 1, 9, 9), ("cat", 0, 3, 3, 90, 90))
    dataset = from_voc(tmp_path, broken="skip")
    assert (len(dataset), dataset.concepts, len(dataset.skipped)) == (1, ("cat", "dog"), 2)


# -- detectors -----------------------------------------------------------------------------


@dataclass
class Fixed:
    """Finds the same every time, and counts how often it was asked."""

    boxes: tuple[Box, ...]
    fingerprint: str = "fixed"
    asked: list[Image] = field(default_factory=list)

    def detect(self, image):
        self.asked.append(image)
        return self.boxes


def test_detected_boxes_replace_annotated_ones_and_are_found_once(tmp_path):
    dataset = from_coco(*coco(tmp_path))
    detector = Fixed((Box("cat", 0, 0, 3, 3, 0.7),))
    result = Detected(dataset, detector)
    plain = dataset.sample(0)
    for _ in range(2):
        sample = result.sample(0)
        assert sample.boxes == detector.boxes
        assert (sample.id, sample.truth) == (plain.id, plain.truth)
    assert len(detector.asked) == 1
    assert (result.concepts, truths(result)) == (dataset.concepts, truths(dataset))
    other = Detected(dataset, Fixed(detector.boxes, "another"))
    assert len({dataset.fingerprint, result.fingerprint, other.fingerprint}) == 3
    assert result.fingerprint == Detected(dataset, Fixed(())).fingerprint


# -- regions -------------------------------------------------------------------------------


def overlap(one, other):
    wide = min(one.right, other.right) - max(one.left, other.left)
    tall = min(one.bottom, other.bottom) - max(one.top, other.top)
    shared = max(0.0, wide) * max(0.0, tall)
    return shared / (one.area + other.area - shared)


IMAGES = arrays(
    np.uint8, st.tuples(st.integers(1, 24), st.integers(1, 24), st.sampled_from([1, 3]))
)


@given(image=IMAGES, most=st.integers(1, 5))
@settings(max_examples=20)
def test_regions_keep_to_their_limits_for_any_image(image, most):
    before = image.copy()
    regions = Regions(most=most, smallest=0.05, largest=0.4, overlap=0.3)
    boxes = regions.detect(image)
    assert boxes == regions.detect(image)
    assert np.array_equal(image, before)
    assert len(boxes) <= most
    for k, box in enumerate(boxes):
        assert 0 <= box.left < box.right <= image.shape[1]
        assert 0 <= box.top < box.bottom <= image.shape[0]
        assert 0.05 <= box.area / (image.shape[0] * image.shape[1]) <= 0.4
        assert box.label == ""
        assert 0 <= box.score <= (boxes[k - 1].score if k else 1)
        assert all(overlap(box, other) <= 0.3 + 1e-6 for other in boxes[:k])


@pytest.mark.parametrize(
    ("change", "dog", "person"),
    [
        ({"bbox": [5, 5, 8, 0.0]}, UNKNOWN, 0),
        ({"bbox": None}, UNKNOWN, 0),
        ({"bbox": [500, 5, 8, 8]}, UNKNOWN, 0),
        ({"category_id": 99}, UNKNOWN, UNKNOWN),
        ({"category_id": None}, UNKNOWN, UNKNOWN),
    ],
)
def test_coco(tmp_path, change, dog, person):
    def more(content):
        broken = {"id": 72, "image_id": 9, "category_id": 3, "bbox": [1, 1, 5, 5], **change}
        content["annotations"].append(broken)

    dataset = from_coco(*coco(tmp_path, more), broken="skip")
    assert dataset.concepts == ("dog", "person")
    assert truths(dataset) == [[1, 1], [dog, person]]


def test_a_class_that_loses_all_its_boxes_stays_a_concept(tmp_path):
    def flatten(content):
        content["annotations"][0]["bbox"][3] = 0

    dataset = from_coco(*coco(tmp_path, flatten), broken="skip")
    assert dataset.concepts == ("dog", "person")
    assert truths(dataset) == [[UNKNOWN, 1], [0, 0]]


@pytest.mark.parametrize(
    ("thing", "dog", "cat"),
    [
        (("cat", 0, 5, 5, 5, 4), 0, UNKNOWN),
        (("cat", 0, 5, 5, "x", 9), 0, UNKNOWN),
        (("", 0, 5, 5, 9, 9), UNKNOWN, UNKNOWN),
    ],
)
def test_voc(tmp_path, thing, dog, cat):
    voc(tmp_path, "a", ("dog", 0, 1, 1, 9, 9), ("cat", 0, 1, 1, 9, 9))
    voc(tmp_path, "b", thing)
    dataset = from_voc(tmp_path, broken="skip")
    assert dataset.concepts == ("cat", "dog")
    assert truths(dataset) == [[1, 1], [cat, dog]]
