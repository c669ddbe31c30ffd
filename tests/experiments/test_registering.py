"""Registered sight: pictures made from known ones are recognised, and what is left is seen."""

from dataclasses import replace
from functools import cache
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.medtest.phantoms import Phantom
from adaptive_vtt.experiments.reic.scene_plan import lab
from adaptive_vtt.experiments.reic.seeing import Register, RegisteredSight, Sighting
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.experiments.reic.vocabulary import ENDOSCOPY, EVERYDAY, Item, Vocabulary, compose
from adaptive_vtt.oracles.captions import language
from adaptive_vtt.oracles.captions.localising import VERSIONS, occluded, pixels
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations import resolve
from adaptive_vtt.relations.reduction import Crop, Rotate, Stretch
from adaptive_vtt.types import Box, Image, Sample
from tests.helpers.twins import slowly

DATA = phantoms.frames(8, seed=3, instrument=0.5, blood=0.4)
REIC = ("crop", "stretch", "rotate")


@cache
def register() -> Register:
    return Register(DATA)


@cache
def sight() -> RegisteredSight:
    return RegisteredSight(DATA)


@cache
def sample(index: int) -> Sample:
    return DATA.sample(index)


def image(index: int) -> Image:
    found = sample(index).image
    assert found is not None
    return found


def there(index: int) -> dict[str, Any]:
    return {kind: mask for kind, mask in sample(index).masks.items() if mask.any()}


def kinds(picture: Image) -> set[str]:
    return {sighting.kind for sighting in sight().see(picture)}


# -- recognising ---------------------------------------------------------------------------


def turned(degrees: float, shown: tuple[int, int]) -> np.ndarray:
    """From a picture turned counter-clockwise, of this height and width, to its source."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    back = np.array([[c, -s], [s, c]])
    middle = np.array([shown[1] - 1, shown[0] - 1]) / 2
    return np.column_stack([back, np.array([127.5, 127.5]) - back @ middle])


@pytest.mark.parametrize("index", [0, 3, 6])
@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        (Crop(40, 60, 200, 190), np.array([[1, 0, 40], [0, 1, 60]])),
        (Stretch(0, 50, 210), np.array([[1, 0, 0], [0, 0.625, 49.8125]])),
        (Stretch(1, 0, 160), np.array([[0.625, 0, -0.1875], [0, 1, 0]])),
        (Rotate(17), None),
        (Rotate(-30), None),
    ],
    ids=str,
)
def test_source_and_map_are_found_to_a_pixel(index: int, reduction: Any, expected: Any) -> None:
    picture = reduction.image(image(index))
    found = register().find(picture)
    assert found is not None
    assert found.index == index
    if expected is None:
        expected = turned(reduction.degrees, picture.shape[:2])
    height, width = picture.shape[:2]
    corners = np.array([[0, width, 0, width], [0, 0, height, height], [1, 1, 1, 1]])
    assert np.abs((found.to_source - expected) @ corners).max() < 1.5


def test_other_pictures_are_not_recognised() -> None:
    rng = np.random.default_rng(0)
    strange = phantoms.frames(3, seed=77, text=0)
    others = [strange.sample(k).image for k in range(3)]
    others += [rng.integers(0, 256, (80, 90, 3), dtype=np.uint8), np.zeros((64, 64, 3), np.uint8)]
    others += [np.full(shape, 90, np.uint8) for shape in ((1, 1, 3), (1, 40, 3), (1, 1, 1))]
    for other in others:
        assert other is not None
        assert sight().see(other) == ()


def test_another_number_of_channels_shows_nothing() -> None:
    index = next(k for k in range(8) if there(k))
    assert kinds(image(index))
    assert kinds(image(index)[:, :, :1]) == set()


class Grey(Phantom):
    def sample(self, index: int) -> Sample:
        found = super().sample(index)
        assert found.image is not None
        return replace(found, image=cv2.cvtColor(found.image, cv2.COLOR_RGB2GRAY)[:, :, None])


def test_grey_sources_will_do() -> None:
    grey = Grey(3, 256, 3, DATA.prevalence, DATA.concepts)
    for index in range(3):
        picture = grey.sample(index).image
        assert picture is not None
        assert {s.kind for s in RegisteredSight(grey).see(picture)} == set(there(index))


# -- seeing --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("index", range(8))
def test_the_source_shows_all_that_has_a_mask(index: int) -> None:
    kept = image(index).copy()
    seen = sight().see(image(index))
    assert np.array_equal(image(index), kept)
    assert {s.kind for s in seen} == set(there(index))
    assert [s.share for s in seen] == sorted((s.share for s in seen), reverse=True)
    for s in seen:
        mask = there(index)[s.kind]
        assert s.share == pytest.approx(mask.mean(), rel=0.02)
        assert s.colour == pytest.approx(lab(np.median(image(index)[mask], axis=0)).tolist())
        assert s.count >= 1
        x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
        assert s.box == pytest.approx((x, y, x + width, y + height), abs=2)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [REIC[0], *slowly(*REIC[1:])])
def test_what_stays_in_view_is_seen_and_what_does_not_is_not(relation: str) -> None:
    (reduced,) = resolve([f"reic/{relation}"])
    right = wrong = 0
    for index in range(8):
        for reduction in reduced.candidates(sample(index))[:3]:
            seen = kinds(reduction.image(image(index)))
            assert seen <= set(there(index))
            visible = reduction.visible(256, 256)
            for kind, mask in there(index).items():
                share = mask[visible].sum() / mask.sum()
                if share <= 0.3 or share >= 0.5:
                    right += (kind in seen) == (share >= 0.5)
                    wrong += (kind in seen) != (share >= 0.5)
    assert right > 30
    assert wrong <= 0.01 * right


@pytest.mark.parametrize("version", [VERSIONS[0], *slowly(*VERSIONS[1:])])
@pytest.mark.slow
def test_what_is_covered_is_not_seen_and_the_rest_still_is(version: str) -> None:
    for index in range(8):
        for box in sample(index).boxes:
            left, top, right, bottom = pixels(box, 256, 256)
            open_ = np.ones((256, 256), bool)
            open_[top:bottom, left:right] = False
            seen = kinds(occluded(image(index), box, version))
            for kind, mask in there(index).items():
                share = mask[open_].sum() / mask.sum()
                if share <= 0.2 or share >= 0.6:
                    assert (kind in seen) == (share >= 0.6), (index, box.label, kind)


def test_a_glimpse_decides_how_much_must_be_left() -> None:
    index = next(k for k in range(8) if "instrument" in there(k))
    eager = RegisteredSight(DATA, glimpse=0.1)
    mask = there(index)["instrument"]
    columns = np.cumsum(mask.sum(axis=0)) / mask.sum()
    cut = max(int(np.searchsorted(columns, 0.25)), 1)
    crop = np.concatenate([image(index)[:, :cut], np.zeros((256, 256 - cut, 3), np.uint8)], axis=1)
    assert "instrument" not in kinds(crop)
    assert "instrument" in {s.kind for s in eager.see(crop)}


def test_a_thing_keeps_its_colour_in_every_picture() -> None:
    index = next(k for k in range(8) if "polyp" in there(k))

    def polyp(picture: Image) -> Sighting:
        return next(s for s in sight().see(picture) if s.kind == "polyp")

    box = next(b for b in sample(index).boxes if b.label == "polyp")
    half = image(index)[:, : int(box.left + 0.7 * (box.right - box.left))]
    assert polyp(half).colour == polyp(image(index)).colour


# -- the phantom's boxes -------------------------------------------------------------------


def test_boxes_are_tight_around_polyps_and_other_masks() -> None:
    for index in range(8):
        boxes = sample(index).boxes
        assert {box.label for box in boxes} == set(there(index))
        assert [b for b in boxes if b.label == "polyp"] == [
            Box("polyp", *around) for around in DATA.boxes(index)
        ]
        for box in (b for b in boxes if b.label != "polyp"):
            x, y, width, height = cv2.boundingRect(there(index)[box.label].astype(np.uint8))
            assert box == Box(box.label, x, y, x + width, y + height)
    few = phantoms.frames(8, seed=3, concepts=["text"])
    assert {box.label for k in range(8) for box in few.sample(k).boxes} == {"text"}


# -- words ---------------------------------------------------------------------------------


def test_the_phantom_can_be_told_in_words() -> None:
    with_masks = {kind for kind in DATA.concepts if kind in sample(0).masks}
    assert set(ENDOSCOPY.taken_for) == set(ENDOSCOPY.goes_with) == with_masks
    for kind, other in ENDOSCOPY.taken_for.items():
        assert not language.same()(kind, other)
    assert Item("blood", 3, vocabulary=ENDOSCOPY).phrase == "some blood"
    assert Item("polyp", 2, 1, ENDOSCOPY).phrase == "two colon polyps"


def test_every_name_is_read_from_a_sentence_as_it_was_written() -> None:
    rng, reader = np.random.default_rng(1), language.reader()
    for _ in range(100):
        names = rng.permutation([*ENDOSCOPY.words])[: rng.integers(1, 5)].tolist()
        items = [Item(n, int(rng.integers(1, 4)), 0, ENDOSCOPY) for n in names]
        sentence, written = compose(items, rng, 0.0)
        assert set(reader.objects(sentence)) - {"picture"} == set(written), sentence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"taken_for": {"dog": "cta"}}, r"vocabulary: unknown name 'cta'.*did you mean 'cat'"),
        ({"taken_for": {"dgo": "cat"}}, r"vocabulary: unknown name 'dgo'.*did you mean 'dog'"),
        ({"goes_with": {"cat": ("dog",)}}, r"goes_with: unknown kind '.*': expected one of cat"),
    ],
)
def test_a_vocabulary_with_gaps_is_refused(change: dict[str, Any], message: str) -> None:
    parts = {name: getattr(EVERYDAY, name) for name in ("words", "taken_for", "goes_with")}
    with pytest.raises(InputError, match=message):
        Vocabulary(**{**parts, "settings": EVERYDAY.settings, **change})


# -- audits --------------------------------------------------------------------------------

FAULTLESS: dict[str, Any] = {
    "vocabulary": ENDOSCOPY,
    "omission": 0,
    "misclassification": 0,
    "fabrication": 0,
    "setting": 0,
}


def test_a_captioner_without_faults_names_what_is_there() -> None:
    captioner = TemplateCaptioner(sight(), **FAULTLESS)
    for index in range(8):
        told = captioner.explain(image(index))
        assert {kind for _, kind in told.named} == set(there(index))


@pytest.mark.slow
@pytest.mark.parametrize(("omission", "least", "most"), [(0.0, 0.0, 0.0), (0.5, 0.1, 1.0)])
def test_reic_finds_faults_on_the_phantom_where_there_are_any(
    omission: float, least: float, most: float
) -> None:
    data = phantoms.frames(
        4, polyps="always", instrument=0.9, blood=0, preparation=(0, 0, 0, 1), seed=1
    )
    faults = {**FAULTLESS, "omission": omission, "even": True, "persistence": 0}
    captioner = TemplateCaptioner(RegisteredSight(data), **faults)
    space = avtt.QuestionSpace(data, ["reic"], oracle=ReducedCaptions())
    result = avtt.Audit(space, captioner, strategy="random", budget=40, surrogate=False).run()
    assert result.questions > 8
    assert least <= result.targets["estimate"].iloc[0] <= most


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: RegisteredSight(DATA, glimpse=0), r"RegisteredSight: expected glimpse in 0\.\.1"),
        (
            lambda: Register(from_table(None, pd.DataFrame({"polyp": [0, 1]}))),
            r"register: expected a dataset with images, .* has none",
        ),
    ],
)
def test_what_cannot_be_is_named(attempt: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attempt()
