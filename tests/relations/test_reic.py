"""REIC's selection of follow-ups and its three rules, against the paper's definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.caption_rules import check, comparable
from adaptive_vtt.oracles.captions.localising import Located, by_detection
from adaptive_vtt.relations import reic, resolve
from adaptive_vtt.relations.reduction import Crop, Rotate, Stretch, crops, rotations, stretches
from adaptive_vtt.relations.reic import ambiguity, differences, select, spans, statuses
from adaptive_vtt.types import Box, Sample, mask_of

DOG, CAT, TREE = Box("dog", 5, 5, 25, 25), Box("cat", 60, 40, 90, 60), Box("tree", 10, 10, 20, 20)


def same(one: str, other: str) -> bool:
    return one == other


# -- scores ----------------------------------------------------------------------------


def test_shares_at_the_thresholds_are_not_ambiguous() -> None:
    assert statuses(np.array([0.9, 0.8999, 0.2001, 0.2, 1.0, 0.0])).tolist() == [1, 0, 0, -1, 1, -1]


def test_ambiguity_is_disappeared_less_ambiguous_and_leaves_out_retained() -> None:
    shares = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.1], [0.95, 0.5, 0.0]])  # 3 objects x 3
    assert ambiguity(shares).tolist() == [0, -1, 3]


@settings(max_examples=10, deadline=None)
@given(st.integers(20, 60), st.integers(20, 60), st.integers(0, 2**32))
def test_differences_are_those_of_the_visible_masks(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = [
        *rng.choice(np.array(crops(height, width, rng), object), 3),
        *rng.choice(np.array(stretches(height, width, rng), object), 3),
        *rng.choice(np.array(rotations(), object), 3),
    ]
    result = spans(every, height, width)
    masks = np.array([reduction.visible(height, width) for reduction in every])
    for one in range(len(every)):
        both = (masks & masks[one]).sum(axis=(1, 2))
        union = (masks | masks[one]).sum(axis=(1, 2))
        assert np.allclose(differences(result, result[one]), 1 - both / union)


def test_the_first_has_the_highest_ambiguity_score_and_the_next_are_far_from_it() -> None:
    every = spans([Crop(0, 0, 10, 10), Crop(0, 0, 11, 10), Crop(90, 50, 100, 60)], 60, 100)
    assert select(np.array([2.0, 1.9, 1.0]), every, 3) == [0, 2, 1]
    assert select(np.array([2.0, 1.9, 1.0]), every, 3, by_diversity=False) == [0, 1, 2]


def test_without_the_ambiguity_score_the_first_is_random_and_later_ones_are_diverse() -> None:
    every = spans([Crop(0, 0, 10, 10), Crop(0, 0, 11, 10), Crop(90, 50, 100, 60)], 60, 100)
    firsts = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, second, _ = select(np.zeros(3), every, 3, by_ambiguity=False, rng=rng)
        firsts.add(first)
        assert second == (2 if first < 2 else 0)
    assert firsts == {0, 1, 2}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.integers(1, 15))
def test_each_candidate_is_selected_once_at_most(scores: list[float], k: int) -> None:
    every = spans([Rotate(d) for d in range(1, len(scores) + 1)], 40, 50)
    chosen = select(np.array(scores), every, k)
    assert len(chosen) == len(set(chosen)) == min(k, len(scores))


# -- the relations ---------------------------------------------------------------------


def sample(boxes: tuple[Box, ...] = (DOG, CAT), name: str = "a") -> Sample:
    image = np.random.default_rng(0).integers(0, 255, (80, 120, 3), dtype=np.uint8)
    return Sample(name, image, {}, boxes=boxes)


@pytest.mark.parametrize("relation", resolve(["reic"]), ids=lambda r: r.name)
def test_a_severity_is_a_candidate_of_its_own(relation: reic.Reduced) -> None:
    result = relation.candidates(sample())
    assert len(set(result)) == len(relation.severities) == reic.FOLLOW_UPS
    rng = np.random.default_rng(0)
    for severity in relation.severities:
        follow_up = relation.apply(sample(), severity, rng)
        assert follow_up.details["reduction"] == result[severity - 1]


def test_only_captions_are_asked_about() -> None:
    assert all(r.applies("caption") and not r.applies("polyp") for r in resolve(["reic"]))


def test_crops_are_larger_than_the_mean_box_and_stretches_keep_six_tenths() -> None:
    crop, stretch, _ = resolve(["reic"])
    mean = (DOG.area + CAT.area) / 2
    for one in crop.candidates(sample()):
        assert (one.right - one.left) * (one.bottom - one.top) > mean
    for one in stretch.candidates(sample()):
        assert isinstance(one, Stretch)
        assert (one.stop - one.start) >= 0.6 * (80, 120)[one.axis]


def test_crops_are_as_the_paper_has_them_where_no_least_share_is_asked_for() -> None:
    ours, papers = reic.relations()[0], reic.relations(min_crop=0, follow_ups=60)[0]
    assert isinstance(papers, reic.Reduced)
    areas = [(c.right - c.left) * (c.bottom - c.top) for c in papers.candidates(sample())]
    assert (DOG.area + CAT.area) / 2 < min(areas) < reic.MIN_CROP * 80 * 120
    assert (ours.fingerprint or "", papers.fingerprint) == (
        "Reduced(kind='crop', follow_ups=12, by_ambiguity=True, by_diversity=True)",
        "Reduced(kind='crop', follow_ups=60, by_ambiguity=True, by_diversity=True), crops from 0",
    )
    with pytest.raises(
        InputError,
        match=r"reic: min_crop: expected a number of at least 0 and at most 0\.7, got 0\.8",
    ):
        reic.relations(min_crop=0.8)


def test_the_first_crop_makes_more_disappear_than_it_makes_ambiguous() -> None:
    crop = reic.Reduced("crop", follow_ups=3)
    first = crop.candidates(sample())[0]
    shares = [
        mask_of([box], 80, 120)[first.visible(80, 120)].sum() / box.area for box in (DOG, CAT)
    ]
    assert all(share <= 0.2 or share >= 0.9 for share in shares)


def test_candidates_follow_from_the_image_alone() -> None:
    crop = reic.Reduced("crop")
    assert crop.candidates(sample()) == crop.candidates(sample())
    assert crop.candidates(sample()) != crop.candidates(sample(name="b"))


def test_more_follow_ups_than_rotations_are_refused() -> None:
    with pytest.raises(
        InputError, match="follow_ups: expected a whole number of at least 1 and at most 60, got 61"
    ):
        reic.relations(follow_ups=61)


# -- localisation ----------------------------------------------------------------------


def test_detection_takes_every_box_of_the_name() -> None:
    other = Box("dog", 50, 50, 60, 60)
    dog, bird = by_detection(["dog", "bird"], [DOG, CAT, other], same)
    assert dog.boxes == (DOG, other)
    assert bird.boxes == ()


def test_masks_hold_the_pixels_whose_centres_are_inside() -> None:
    mask = mask_of([Box("", 0.5, 0.6, 2.5, 2.4), Box("", 3, 0, 4, 1)], 3, 4)
    assert mask.astype(int).tolist() == [[0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]]


# -- rules -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "named", "broken"),
    [
        ("dog in view", "dog", {}),
        ("dog in view", "", {"dog": (1, "2.2")}),
        ("dog ambiguous", "", {}),  # nothing is expected of it
        ("dog ambiguous", "dog", {}),
        ("dog unlocated", "", {}),
        ("dog unlocated", "dog", {}),
        ("dog in view, cat in view", "dog cat bird", {"bird": (3, "2.1")}),
        ("dog in view, cat ambiguous", "dog bird", {}),  # rule 3 needs all objects in view
        ("dog in view, cat disappeared", "dog bird", {}),
        ("dog in view, cat unlocated", "dog bird", {}),
        ("", "bird", {}),  # a caption without objects breaks no rule
    ],
)
def test_rules_of_what_is_named_in_the_follow_up(
    status: str, named: str, broken: dict[str, tuple[int, str]]
) -> None:
    states = [one.split(" ", 1) for one in status.split(", ") if one]
    located = [
        Located(name, (), status="retained" if state == "in view" else state)
        for name, state in states
    ]
    findings = check(located, named.split(), (), same)
    assert {f.name for f in findings} >= {*named.split()}
    assert {f.name: (f.rule, f.error) for f in findings if f.rule or f.error} == broken


def test_the_detector_tells_which_caption_misnamed_a_thing() -> None:
    in_source = check([Located("wolf", (DOG,), 1.0, "retained")], ["dog"], (DOG,), same)
    assert [(f.name, f.error) for f in in_source] == [("wolf", "1.1"), ("dog", "1.1")]
    in_follow_up = check([Located("dog", (DOG,), status="retained")], ["wolf"], (DOG,), same)
    expected = [("dog", 1, "1.2"), ("wolf", 3, "1.2")]
    assert [(f.name, f.rule, f.error) for f in in_follow_up] == expected


def test_a_follow_up_with_nothing_to_check_is_told_apart() -> None:
    assert not comparable(check([Located("dog", (), 0.5, "ambiguous")], ["dog"], (), same))
    assert comparable(check([Located("dog", (), 0.0, "disappeared")], [], (), same))
