"""The template captioner: it sees all there is, errs as set, and owns up to every fault."""

from functools import cache
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.scene_plan import KINDS
from adaptive_vtt.experiments.reic.seeing import ColourSight, Sighting
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.experiments.reic.vocabulary import EMPTY, EVERYDAY, Item, compose
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.relations.reduction import crops, rotations, stretches
from adaptive_vtt.types import Ask, Image, Sample
from tests.helpers.endpoint import DemoServer
from tests.helpers.endpoint.fake_models import FakeCaptioner
from tests.helpers.twins import slowly

DATA = scenes(40, seed=21)
FAULTLESS: dict[str, Any] = {
    "omission": 0,
    "misclassification": 0,
    "fabrication": 0,
    "synonyms": 0,
    "setting": 0,
}
CHANCE = 1e-6
"""A correct captioner fails a test of its rates with this probability, were seeds drawn anew."""


@cache
def sample(index: int) -> Sample:
    return DATA.sample(index)


def image(index: int) -> Image:
    found = sample(index).image
    assert found is not None
    return found


def kinds(picture: Image) -> set[str]:
    return {sighting.kind for sighting in ColourSight().see(picture)}


# -- seeing --------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(0, 40, 2))
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


@pytest.mark.slow
@pytest.mark.parametrize("way", ["crop", *slowly("stretch", "rotate")])
def test_what_stays_in_view_is_seen_and_what_does_not_is_not(way: str) -> None:
    rng = np.random.default_rng(0)
    right = wrong = invented = 0
    for index in range(24):
        height, width = image(index).shape[:2]
        ways = {"crop": crops, "stretch": stretches}
        found: Any = ways[way](height, width, rng) if way in ways else rotations()
        for reduction in [found[k] for k in rng.permutation(len(found))[:6]]:
            seen, visible = kinds(reduction.image(image(index))), reduction.visible(height, width)
            invented += len(seen - set(sample(index).masks))
            for kind, mask in sample(index).masks.items():
                share = mask[visible].sum() / mask.sum()
                if share == 0 or share >= 0.9:
                    right += (kind in seen) == (share > 0)
                    wrong += (kind in seen) != (share > 0)
    assert invented == 0
    assert right > 100
    assert wrong <= 0.02 * right


@pytest.mark.parametrize("version", ["blur", "black", "inpaint"])
@pytest.mark.slow
def test_what_is_covered_is_not_seen_and_the_rest_still_is(version: str) -> None:
    for index in range(12):
        for box in sample(index).boxes:
            x1, y1, x2, y2 = (int(side) for side in (box.left, box.top, box.right, box.bottom))
            hidden = np.zeros(image(index).shape[:2], np.uint8)
            hidden[max(y1 - 3, 0) : y2 + 3, max(x1 - 3, 0) : x2 + 3] = 1
            covered = image(index).copy()
            if version == "inpaint":
                covered = cv2.inpaint(covered, hidden, 3, cv2.INPAINT_TELEA)
            elif version == "black":
                covered[hidden > 0] = 0
            else:
                soft = cv2.GaussianBlur(covered[y1:y2, x1:x2], (0, 0), 0.25 * min(x2 - x1, y2 - y1))
                covered[y1:y2, x1:x2] = soft
            left = {k: (m & (hidden == 0)).sum() / m.sum() for k, m in sample(index).masks.items()}
            seen = kinds(covered)
            assert all(
                (k in seen) == (share > 0) for k, share in left.items() if not 0 < share < 0.9
            )


@pytest.mark.parametrize("name", ["dog", "car", "tree", "umbrella", "cup"])
def test_a_sliver_at_the_edge_is_not_recognised(name: str) -> None:
    index = next(k for k in range(40) if [b.label for b in sample(k).boxes].count(name) == 1)
    box = next(box for box in sample(index).boxes if box.label == name)
    cut = int(box.left + 0.12 * (box.right - box.left))
    assert name not in kinds(image(index)[:, :cut])
    assert name in kinds(image(index)[:, : int(box.right)])


def test_pictures_without_colour_or_of_one_pixel_show_nothing() -> None:
    grey = cv2.cvtColor(image(0), cv2.COLOR_RGB2GRAY)
    assert kinds(grey[:, :, None]) == kinds(cv2.merge([grey] * 3)) == set()
    assert kinds(np.zeros((1, 1, 3), np.uint8)) == set()


# -- words ---------------------------------------------------------------------------------


def test_every_kind_has_words_a_confusion_and_company() -> None:
    assert set(EVERYDAY.taken_for) == set(EVERYDAY.goes_with) == set(KINDS) <= set(EVERYDAY.words)
    assert set(EVERYDAY.taken_for.values()) <= set(EVERYDAY.words)
    for kind in KINDS:
        assert EVERYDAY.taken_for[kind] != kind
        assert len({kind, *EVERYDAY.goes_with[kind]}) == 4
        assert set(EVERYDAY.goes_with[kind]) <= set(KINDS)


@pytest.mark.parametrize(
    ("item", "phrase"),
    [
        (Item("apple", 1), "an apple"),
        (Item("sheep", 3), "three sheep"),
        (Item("bus", 2), "two buses"),
        (Item("person", 7), "several people"),
        (Item("person", 2, 2), "two women"),
        (Item("dog", 2, 1), "two puppies"),
        (Item("bench", 4), "four benches"),
        (Item("ball", 1, 1), "a beach ball"),
    ],
)
def test_names_get_articles_numbers_and_plurals(item: Item, phrase: str) -> None:
    assert item.phrase == phrase


@given(
    names=st.lists(st.sampled_from([*EVERYDAY.words]), max_size=6, unique=True),
    counts=st.lists(st.integers(1, 6), min_size=6, max_size=6),
    seed=st.integers(0, 99),
)
def test_a_sentence_names_everything_once(names: list[str], counts: list[int], seed: int) -> None:
    items = [Item(name, count) for name, count in zip(names, counts, strict=False)]
    sentence, words = compose(items, np.random.default_rng(seed), 1.0)
    assert words == tuple(item.worded for item in items)
    assert sentence[0].isupper()
    assert sentence[-1] == "."
    for item in items:
        assert sentence.lower().count(item.phrase) >= 1
    assert (sentence == EMPTY) == (not items)
    if items:
        places = ("room", "house", "street", "city", "park", "lawn", "beach", "sea")
        assert sentence.endswith(tuple(f" {place}." for place in places))


# -- captions ------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), index=st.integers(0, 39))
def test_a_caption_is_accounted_for_word_by_word(seed: int, index: int) -> None:
    captioner = TemplateCaptioner(omission=0.3, misclassification=0.3, fabrication=0.5, seed=seed)
    told = captioner.explain(image(index))
    assert told == TemplateCaptioner(
        omission=0.3, misclassification=0.3, fabrication=0.5, seed=seed
    ).explain(image(index).copy())
    seen = {s.kind for s in told.seen}
    named = {kind for _, kind in told.named if kind is not None}
    assert named | set(told.omitted) == seen
    assert named.isdisjoint(told.omitted)
    assert seen.isdisjoint(told.fabricated)
    assert set(told.misclassified) <= named
    for word, kind in told.named:
        assert word in told.caption.lower()
        if kind is not None:
            called = EVERYDAY.words[told.misclassified.get(kind, kind)]
            assert word in {*called.others, called.singular, called.plural} | {
                form for forms in called.others for form in forms
            }
    assert sum(kind is None for _, kind in told.named) == len(told.fabricated)


def test_a_captioner_without_faults_names_what_is_there() -> None:
    captioner = TemplateCaptioner(**FAULTLESS)
    for index in range(40):
        told = captioner.explain(image(index))
        assert {kind for _, kind in told.named} == set(sample(index).masks)
        assert len(told.omitted) + len(told.misclassified) + len(told.fabricated) == 0
        assert not any(place in told.caption for place in ("room", "street", "park", "beach "))


@pytest.mark.parametrize("fault", ["omission", "misclassification", "fabrication"])
def test_a_rate_of_one_is_always(fault: str) -> None:
    told = TemplateCaptioner(**{**FAULTLESS, fault: 1.0}, even=True).explain(image(0))
    there = set(sample(0).masks)
    assert set(told.omitted) == (there if fault == "omission" else set())
    assert set(told.misclassified) == (there if fault == "misclassification" else set())
    assert len(told.fabricated) == (fault == "fabrication")
    assert (told.caption == EMPTY) == (fault == "omission")


@pytest.mark.slow
def test_even_faults_come_at_the_set_rates() -> None:
    things = captions = 0
    faults = np.zeros(3, int)
    for seed in range(5):
        captioner = TemplateCaptioner(
            omission=0.2,
            misclassification=0.1,
            fabrication=0.15,
            even=True,
            persistence=0,
            seed=seed,
        )
        for index in range(40):
            told = captioner.explain(image(index))
            things, captions = things + len(told.seen), captions + 1
            faults += len(told.omitted), len(told.misclassified), len(told.fabricated)
    named = things - faults[0]
    for count, tries, rate in zip(faults, (things, named, captions), (0.2, 0.1, 0.15), strict=True):
        chance = min(binom.cdf(count, tries, rate), binom.sf(count - 1, tries, rate))
        assert chance > CHANCE / 2


def test_uneven_rates_differ_by_kind_with_the_set_mean_and_by_size() -> None:
    captioner = TemplateCaptioner(omission=0.1, misclassification=0.05, seed=5)
    for fault, mean in (("omission", 0.1), ("misclassification", 0.05)):
        rates = np.array([captioner.rate(fault, kind) for kind in KINDS])
        assert rates.mean() == pytest.approx(mean, rel=1e-3)
        assert rates.min() >= 0.2 * mean * 0.999
        assert rates.max() <= 3 * mean * 1.001
        assert rates.std() > 0.3 * mean
    by_size = [captioner.rate("omission", "dog", share) for share in (0.002, 0.01, 0.05, 0.3)]
    assert by_size == sorted(by_size, reverse=True)
    assert by_size[0] > 3 * by_size[-1]
    even = TemplateCaptioner(omission=0.1, even=True)
    assert {even.rate("omission", kind, 0.01) for kind in KINDS} == {0.1}


@pytest.mark.parametrize(("persistence", "least", "most"), [(1.0, 0.9, 1.0), (0.0, 0.05, 0.6)])
@pytest.mark.slow
def test_lasting_faults_last_and_others_do_not(
    persistence: float, least: float, most: float
) -> None:
    """Of what is omitted in a picture, how much is again when the picture is turned a little."""
    captioner = TemplateCaptioner(omission=0.3, even=True, persistence=persistence, seed=2)
    again = before = 0
    turn = rotations()[31]  # 2 degrees
    for index in range(40):
        first = captioner.explain(image(index))
        second = captioner.explain(turn.image(image(index)))
        before += len(first.omitted)
        again += len(set(first.omitted) & set(second.omitted))
    assert before > 15
    assert least <= again / before <= most


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


class Elsewhere:
    def see(self, image: Image) -> tuple[Sighting, ...]:
        return (Sighting("dgo", 0.1, (0, 0, 1, 1), 1, (50, 0, 0)),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"omission": 1.2}, r"TemplateCaptioner: expected omission in 0..1, got 1.2"),
        ({"persistence": -1}, r"TemplateCaptioner: expected persistence in 0..1, got -1"),
        ({"price": -1}, r"TemplateCaptioner: expected a price of at least 0, got -1"),
        ({"sight": Elsewhere()}, r"TemplateCaptioner: unknown kind 'dgo'.*did you mean 'dog'"),
    ],
)
def test_what_cannot_be_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TemplateCaptioner(**options).caption(image(0))


# -- served --------------------------------------------------------------------------------


def test_an_openai_client_gets_the_captions_said_without_http() -> None:
    pytest.importorskip("openai")
    from adaptive_vtt.models import OpenAIChat

    captioner = TemplateCaptioner(seed=4)
    ask = (Ask("Describe this image in one sentence."),)
    with DemoServer(FakeCaptioner(captioner), model="captioner") as server:
        model = OpenAIChat("captioner", base_url=server.url + "/v1")
        prompts = [Prompt(image(k), ("caption",), f"s{k}", "identity", 0, ask) for k in range(3)]
        said = [answer.values for answer in model.ask(prompts) if isinstance(answer, Answer)]
        assert server.statistics.answered == 3
    assert said == [(captioner.caption(image(k)),) for k in range(3)]
