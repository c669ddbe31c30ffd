"""The template captioner: it sees all there is, errs as set, and owns up to every fault."""

from functools import cache

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.recognition import ColourSight
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.experiments.reic.vocabulary import EVERYDAY
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.types import Ask, Image, Sample
from tests.helpers.captioned import faultless

DATA = scenes(40, seed=21)


@cache
def sample(index: int) -> Sample:
    return DATA.sample(index)


def image(index: int) -> Image:
    picture = sample(index).image
    assert picture is not None
    return picture


# -- recognition --------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(0, 40, 4))
def test_exactly_what_is_there_is_seen(index: int) -> None:
    seen = ColourSight().see(image(index))
    assert {s.kind for s in seen} == set(sample(index).masks)
    assert [s.share for s in seen] == sorted((s.share for s in seen), reverse=True)
    for s in seen:
        mask = sample(index).masks[s.kind]
        x1, y1, x2, y2 = s.box
        assert 0.35 * mask.mean() < s.share < mask.mean()
        assert not (cv2.dilate(mask.astype(np.uint8), np.ones((3, 3)))[y1:y2, x1:x2] == 0).all()
        assert s.count >= 1


# -- captions ------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), index=st.integers(0, 39))
def test_a_caption_is_accounted_for_word_by_word(seed: int, index: int) -> None:
    captioner = TemplateCaptioner(omission=0.3, misclassification=0.3, fabrication=0.5, seed=seed)
    explained = captioner.explain(image(index))
    assert explained == TemplateCaptioner(
        omission=0.3, misclassification=0.3, fabrication=0.5, seed=seed
    ).explain(image(index).copy())
    seen = {s.kind for s in explained.seen}
    named = {kind for _, kind in explained.named if kind is not None}
    assert named | set(explained.omitted) == seen
    assert named.isdisjoint(explained.omitted)
    assert seen.isdisjoint(explained.fabricated)
    assert set(explained.misclassified) <= named
    for word, kind in explained.named:
        assert word in explained.caption.lower()
        if kind is not None:
            called = EVERYDAY.words[explained.misclassified.get(kind, kind)]
            assert word in {*called.others, called.singular, called.plural} | {
                form for forms in called.others for form in forms
            }
    assert sum(kind is None for _, kind in explained.named) == len(explained.fabricated)


def test_a_captioner_without_faults_names_what_is_there() -> None:
    captioner = faultless()
    for index in range(0, 40, 4):
        explained = captioner.explain(image(index))
        assert {kind for _, kind in explained.named} == set(sample(index).masks)
        assert (
            len(explained.omitted) + len(explained.misclassified) + len(explained.fabricated) == 0
        )
        assert not any(place in explained.caption for place in ("room", "street", "park", "beach "))


def test_as_a_model_it_answers_words_and_asks_its_price() -> None:
    captioner = TemplateCaptioner(price=0.01)
    ask = (Ask("Describe this image in one sentence."),)
    prompts = [
        Prompt(picture, ("caption",), "a", "identity", 0, ask) for picture in (image(3), None)
    ]
    kept = image(3).copy()
    described, refused = checked(captioner, prompts)
    assert described == Answer((captioner.caption(image(3)),), 0.01)
    assert isinstance(refused, Unanswered)
    assert captioner.most_cost == 0.01
    assert np.array_equal(image(3), kept)
