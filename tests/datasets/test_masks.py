"""Masks: found next to a table or in a folder, and what their values mean."""

import json

import cv2
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from adaptive_vtt import QuestionSpace, datasets
from adaptive_vtt.datasets import UNKNOWN, from_masks, from_table
from adaptive_vtt.datasets.base import adapted_dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.masks import MaskDrop, TrueMask
from adaptive_vtt.utils.mask_values import two_sides
from tests.helpers.small_datasets import ids, mask, picture, truths

INDEX = np.zeros((40, 40), np.uint8)
INDEX[5:20, 5:20], INDEX[22:30, 22:30], INDEX[35:38, 2:10] = 1, 5, 255
RED, GREEN = (255, 0, 0), (0, 255, 0)


def drawn(*values, thin=False):
    """A mask of 64 x 64 with a square, or a line, of each value."""
    mask = np.zeros((64, 64), np.uint8)
    for k, value in enumerate(values):
        mask[3 + 8 * k : 4 + 8 * k + 5 * (not thin), 8:50] = value
    return mask


def jpeg(mask, quality):
    data = cv2.imencode(".jpg", mask, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE))


def folder(root, *masks, ending=".png"):
    """Images, and masks given as arrays or PIL images."""
    for k, shown in enumerate(masks):
        whole = shown if isinstance(shown, Image.Image) else Image.fromarray(np.asarray(shown))
        picture(root / "images" / f"{k}.png", whole.height, whole.width)
        (root / "masks").mkdir(exist_ok=True)
        whole.save(root / "masks" / f"{k}{ending}")
    return root


@pytest.mark.parametrize(
    "mask",
    [
        *[jpeg(drawn(255, 255), quality) for quality in (10, 30, 50, 75, 90, 95, 100)],
        drawn(255),
        drawn(1) * 255,
        drawn(200),
        cv2.resize(drawn(255, 255), (640, 640), interpolation=cv2.INTER_LINEAR),
        np.where(drawn(255) > 0, 250, 5).astype(np.uint8),
    ],
)
def test_two_values_far_apart_are_a_mask(mask):
    inside = two_sides(mask)
    assert inside is not None
    assert (inside == (mask > 127)).all()


def test_a_mask_of_0_and_1_is_one_and_so_is_an_empty_one():
    for shown in (drawn(1), drawn()):
        assert np.array_equal(two_sides(shown), shown == 1)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(
    "values",
    [(1, 5, 255), (1, 255), (1, 2), (2,), (128, 255), (38, 75, 113), (250, 255), (85, 170, 255)],
)
def test_numbers_of_classes_are_refused(values, thin):
    assert two_sides(drawn(*values, thin=thin)) is None


def test_values_that_nobody_explained_are_named_with_the_options(tmp_path):
    expected = r"got 0, 1, 5, 255; say .* inside = \[1\], ignore = \[255\], or classes = \{ name"
    with pytest.raises(InputError, match=expected):
        from_masks(folder(tmp_path, INDEX, INDEX))


def test_masks_that_have_two_values_each_but_not_the_same_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"all masks together: .* got 0, 1, 255"):
        from_masks(folder(tmp_path, drawn(1), drawn(255)))


def area(dataset, concept):
    return int(dataset.sample(0).masks[concept].sum())


def test_options_say_what_values_mean(tmp_path):
    root = folder(tmp_path, INDEX, INDEX)
    one = from_masks(root, "thing", inside=[1, 5], ignore=[255])
    assert (area(one, "thing"), one.concepts) == (225 + 64, ("thing",))
    assert int(one.sample(0).ignored.sum()) == 24
    two = from_masks(root, classes={"a": 1, "b": [5], "c": 7}, ignore=[255])
    assert (area(two, "a"), area(two, "b")) == (225, 64)
    assert truths(two) == [[1, 1, 0]] * 2
    assert area(from_masks(root, inside=["nonzero"], ignore=[255]), "polyp") == 225 + 64
    part = from_masks(root, classes={"a": 1}, ignore=[255])
    text = adapted_dataset(part).remarks["values of masks"]
    assert text == "outside, as no option names them: 5 (in 2)"
    assert (
        area(from_masks(folder(tmp_path / "j", jpeg(drawn(255), 75)), inside=[0]), "polyp") > 3000
    )


def test_colours_palettes_and_instances(tmp_path):
    colours = np.zeros((40, 40, 3), np.uint8)
    colours[INDEX == 1], colours[INDEX == 5] = RED, GREEN
    with pytest.raises(InputError, match=r"got #000000, #00ff00, #ff0000; .* inside = \[\"#00ff00"):
        from_masks(folder(tmp_path / "c", colours))
    named = from_masks(tmp_path / "c", classes={"a": "#ff0000", "b": [0, 255, 0]})
    assert (area(named, "a"), area(named, "b")) == (225, 64)
    palette = Image.fromarray(INDEX % 255)
    palette.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0, 9, 9, 9, 9, 0, 0, 200])
    numbered = from_masks(folder(tmp_path / "p", palette), classes={"a": 1, "b": 5})
    assert (area(numbered, "a"), area(numbered, "b")) == (225, 64)
    instances = from_masks(
        folder(tmp_path / "i", INDEX.astype(np.uint16) * 300), inside=["nonzero"]
    )
    assert area(instances, "polyp") == 225 + 64 + 24


def test_ignored_pixels_leave_the_score(tmp_path):
    dataset = from_masks(folder(tmp_path, INDEX), inside=[1], ignore=[255])
    truth = TrueMask.of(dataset.sample(0), "polyp")
    assert truth is not None
    answer = (INDEX == 1) | (INDEX == 255)
    assert truth.score(answer, "dice") == 1
    assert TrueMask(truth.inside).score(answer, "dice") < 1
    assert MaskDrop().record(answer, dataset.sample(0), "polyp") == 1
    assert QuestionSpace(dataset, ["identity", "rotation"], oracle=MaskDrop()).size > 0


def test_black_on_white_is_asked_about(tmp_path):
    dataset = from_masks(folder(tmp_path, 255 - drawn(255), 255 - drawn(255, 255)))
    text = adapted_dataset(dataset).remarks["masks"]
    assert text.startswith("2 of 2 cover more than half of their image: are they black on white?")
    assert "masks" not in from_masks(folder(tmp_path / "b", drawn(255))).remarks


@pytest.mark.parametrize("above", [True, False])
def test_splits_with_masks_are_splits(tmp_path, above):
    for name in ("train", "test"):
        root = folder(tmp_path / name, drawn(255), drawn(255))
        if not above:
            for part in ("images", "masks"):
                (tmp_path / part).mkdir(exist_ok=True)
                (root / part).rename(tmp_path / part / name)
    dataset = from_masks(tmp_path)
    assert truths(dataset) == [[1]] * 4
    assert dataset.metadata_values("split").tolist() == ["test"] * 2 + ["train"] * 2
    assert dataset.remarks["splits"].startswith("test (2 images), train (2 images); split =")
    chosen = from_masks(tmp_path, split="test")
    assert (len(chosen), chosen.remarks["splits"]) == (2, "test (2 images)")
    with pytest.raises(InputError, match="unknown split 'tets'; did you mean 'test'"):
        from_masks(tmp_path, split="tets")
    assert UNKNOWN not in np.ravel(truths(dataset))


# -- masks in tables -----------------------------------------------------------------------


def test_masks_are_decoded_only_when_asked_for(tmp_path):
    mask(tmp_path / "m.png")
    images = [np.zeros((8, 10), np.uint8)] * 2
    labels = pd.DataFrame({"polyp": [1, 0], "stool": [1, 1]}, index=["a", "b"])
    stool = [np.ones((8, 10), bool), None]
    dataset = from_table(
        images, labels, masks={"polyp": [tmp_path / "m.png", None], "stool": stool}
    )
    first, second = dataset.sample(0), dataset.sample(1)
    assert set(first.masks) == {"polyp", "stool"}
    assert len(second.masks) == 0
    (tmp_path / "m.png").write_bytes(b"no longer")
    assert first.masks["stool"].all()
    with pytest.raises(InputError, match=r"sample 'a', mask of 'polyp': '.*m\.png' is not an im"):
        first.masks["polyp"]


def test_masks_change_the_fingerprint_and_their_absence_does_not():
    labels = pd.DataFrame({"polyp": [1]}, index=["a"])
    bare = from_table(None, labels)
    assert bare.fingerprint == "5407f149b99d943b9d0de2fc"  # audits begun before masks go on
    assert from_table(None, labels, masks={"polyp": [np.ones((2, 2), bool)]}).fingerprint != (
        bare.fingerprint
    )


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"polyps": [None]}, r"masks: unknown concept 'polyps'.*did you mean 'polyp'"),
        ({"polyp": [None, None]}, r"masks of 'polyp': expected 1 \(one per row.*got 2"),
        ({"polyp": ["gone.png"]}, r"sample 'a': mask file 'gone\.png' does not exist"),
    ],
)
def test_masks_that_do_not_fit_are_named(masks, message):
    with pytest.raises(InputError, match=message):
        from_table(None, pd.DataFrame({"polyp": [1]}, index=["a"]), masks=masks)


# -- image and mask folders ----------------------------------------------------------------


def test_layout_of_a_mask_folder_is_recognised(tmp_path):
    for name in ("1", "2", "10"):
        picture(tmp_path / "images" / f"{name}.jpg")
        mask(tmp_path / "masks" / f"{name}.png")
    (tmp_path / "kavsir_bboxes.json").write_text(json.dumps({}))
    dataset = datasets.from_masks(tmp_path)
    assert ids(dataset) == ["1", "2", "10"]
    assert dataset.concepts == ("polyp",)
    assert truths(dataset) == [[1], [1], [1]]
    sample = dataset.sample(2)
    shown = sample.masks["polyp"]
    assert shown.shape == sample.image.shape[:2]
    assert shown[2, 3]
    assert not shown[7, 9]


def test_mask_and_image_of_different_size_are_named(tmp_path):
    picture(tmp_path / "images" / "a.png", 8, 10)
    mask(tmp_path / "masks" / "a.png", 8, 9)
    message = r"masks.a\.png': expected a mask as large as its image, 8 x 10 .*, got 8 x 9$"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(tmp_path)


def test_an_empty_mask_is_refused_skipped_by_name_or_means_absent(tmp_path):
    for name in ("a", "b", "c"):
        picture(tmp_path / "images" / f"{name}.png")
        mask(tmp_path / "masks" / f"{name}.png", inside=name != "b")
    message = r"masks.b\.png': expected a mask with something inside.*empty one; 1 of 3 are"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(tmp_path)
    left = datasets.from_masks(tmp_path, empty="skip")
    assert ids(left) == ["a", "c"]
    assert left.skipped == (str(tmp_path / "masks" / "b.png"),)
    absent = datasets.from_masks(tmp_path, empty="absent")
    assert truths(absent) == [[1], [0], [1]]
    assert len(absent.sample(1).masks) == 0
    assert absent.skipped == ()


def test_folder_without_a_known_layout_is_named(tmp_path):
    with pytest.raises(InputError, match=r"got none of 'images' and 'masks', "):
        datasets.from_masks(tmp_path)
    with pytest.raises(InputError, match=r"both images= and masks= or neither, got images= alone"):
        datasets.from_masks(tmp_path, images="frames")
    with pytest.raises(
        InputError, match=r"frames: expected a folder of images, got nothing: it does"
    ):
        datasets.from_masks(tmp_path, images="frames", masks="tools")
