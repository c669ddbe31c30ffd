"""REIC's scheme, what is really wrong with captions, and the tables that lay both side by side."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.caption_detectors import Fallible
from adaptive_vtt.experiments.reic.caption_truth import KINDS_OF_WORDS, Unit, truth
from adaptive_vtt.experiments.reic.caption_verdicts import confusion, place, verdicts
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.reic_scheme import (
    Selection,
    Step,
    captions_of,
    distinct,
    locate,
    scheme,
)
from adaptive_vtt.experiments.reic.template_captioner import Explanation, TemplateCaptioner
from adaptive_vtt.experiments.reic.vocabulary import EVERYDAY
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reduction import Rotate, visible_shares
from adaptive_vtt.relations.reic import KINDS, ambiguity
from adaptive_vtt.types import Image, Outcome, Received, mask_of

SIZE = (96, 128)


class Counting:
    """Keeps every picture it was asked about."""

    def __init__(self, says: str | None = None) -> None:
        self.captioner, self.says = TemplateCaptioner(misclassification=0.3), says
        self.seen: list[bytes] = []

    def caption(self, image: Image) -> str:
        self.seen.append(str(image.shape).encode() + image.tobytes())
        return self.captioner.caption(image) if self.says is None else self.says


# -- the scheme ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run() -> tuple[list[Step], Counting]:
    """Two scenes without a detector's names, so that boxes have to be hidden."""
    captioner, steps = Counting(), []
    for step in scheme(scenes(2, size=SIZE), captioner, ReducedCaptions(detection=False)):
        assert step.paid == len(captioner.seen)
        steps.append(step)
    return steps, captioner


def test_three_follow_ups_of_every_relation_and_image(run: tuple[list[Step], Counting]) -> None:
    places = [(step.sample, step.kind, step.rank) for step in run[0]]
    order = list(dict.fromkeys(sample for sample, _, _ in places))
    assert places == [(s, kind, rank) for s in order for kind in KINDS for rank in (1, 2, 3)]
    assert sorted(order) == [0, 1]


def test_no_picture_is_paid_for_twice(run: tuple[list[Step], Counting]) -> None:
    steps, captioner = run
    assert len(captioner.seen) == len(set(captioner.seen))
    versions = {step.sample: len(step.received.versions) for step in steps}
    assert sum(versions.values()) > 0
    assert len(captioner.seen) == len(steps) + sum(1 + n for n in versions.values())


def test_all_versions_that_the_oracle_needs_are_received(run: tuple[list[Step], Counting]) -> None:
    oracle, dataset = ReducedCaptions(detection=False), scenes(2, size=SIZE)
    for step in run[0]:
        needed = oracle.versions(dataset.sample(step.sample), step.received)
        assert set(needed) <= set(step.received.versions)


def test_follow_ups_below_one_and_samples_without_an_image_are_refused() -> None:
    with pytest.raises(InputError, match="expected follow_ups of at least 1, got 0"):
        next(scheme(scenes(1, size=SIZE), Counting(), ReducedCaptions(), follow_ups=0))
    table = TableDataset(None, np.ones((1, 1), np.int8), ["a"], ("dog",))
    with pytest.raises(InputError, match="expected an image of sample 'a', got none"):
        next(scheme(table, Counting(), ReducedCaptions()))


# -- selection -------------------------------------------------------------------------


def chosen(kind: str, **options: Any) -> tuple[list[int], Any]:
    """Places of the chosen among the candidates of a scene, and the scores of these."""
    sample, oracle, captioner = scenes(1, size=SIZE).sample(0), ReducedCaptions(), Counting()
    located = locate(oracle, sample, captions_of(oracle, captioner, sample))
    selection = Selection(**options)
    every = list(selection.candidates(kind, sample))
    masks = [mask_of(one.boxes, *SIZE) for one in located if one.boxes]
    places = [every.index(one) for one in selection.choose(kind, sample, located, oracle)]
    return places, ambiguity(visible_shares(masks, every))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_follow_up_has_the_highest_ambiguity_score(kind: str) -> None:
    places, score = chosen(kind)
    assert score[places[0]] == score.max()
    assert len(set(places)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_without_diversity_the_best_scores_are_taken(kind: str) -> None:
    places, score = chosen(kind, by_diversity=False, follow_ups=5)
    assert sorted(score[places]) == sorted(np.sort(score)[-5:])


# -- distinct violations ---------------------------------------------------------------


def step(sample: int, findings: Sequence[dict[str, Any]], rank: int = 1) -> Step:
    outcome = Outcome(0.0, details={"objects": findings})
    return Step(1, sample, "rotate", rank, Rotate(1), "", Received("", {}), outcome)


def finding(name: str, rule: int | None, status: str = "retained") -> dict[str, Any]:
    return {"name": name, "rule": rule, "status": status, "type": "2.2" if rule else None}


def test_a_violation_of_an_object_counts_once_an_image() -> None:
    steps = [
        step(0, [finding("dog", 1), finding("cat", None)]),
        step(0, [finding("dogs", 1), finding("cat", 3)]),
        step(1, [finding("dog", 2)]),
    ]
    new = [names for _, names in distinct(steps, lambda a, b: a.rstrip("s") == b.rstrip("s"))]
    assert new == [("dog",), ("cat",), ("dog",)]


# -- the truth -------------------------------------------------------------------------


def told(*named: tuple[str, str | None]) -> Explanation:
    """A caption that calls things so: (word, kind); None: nothing is there."""
    taken = {
        kind: KINDS_OF_WORDS[word] for word, kind in named if kind and KINDS_OF_WORDS[word] != kind
    }
    return Explanation("", (), named, (), MappingProxyType(taken), ())


DOG, CAT = ("dog", "dog"), ("cat", "cat")


@pytest.mark.parametrize(
    ("source", "follow_up", "share", "name", "error", "violation"),
    [
        ([DOG], [DOG], 1.0, "dog", None, False),
        ([DOG], [("puppy", "dog")], 1.0, "dog", None, False),  # in other words
        ([DOG], [], 0.9, "dog", "2.2", True),
        ([DOG], [("cat", "dog")], 1.0, "dog", "1.2", True),
        ([DOG], [], 0.5, "dog", None, False),  # half in view
        ([DOG], [], 0.0, "dog", None, False),  # gone
        ([DOG], [("dog", None)], 0.2, "dog", "3", True),
        ([DOG], [("dog", "cat")], 0.0, "dog", "1.2", True),
        ([("cat", "dog")], [DOG], 1.0, "cat", "1.1", True),
        ([("cat", "dog")], [("cat", "dog")], 1.0, "cat", "1.1", False),  # wrong in both
        ([DOG, ("ball", None)], [DOG], 1.0, "ball", "3", True),
        ([DOG, ("ball", None)], [DOG, ("ball", None)], 1.0, "ball", "3", False),
    ],
)
def test_names_of_the_source(
    source: list[tuple[str, str | None]],
    follow_up: list[tuple[str, str | None]],
    share: float,
    name: str,
    error: str | None,
    violation: bool,
) -> None:
    units = truth(told(*source), told(*follow_up), {"dog": share, "cat": 1.0})
    (unit,) = [each for each in units if each.name == name and not each.new]
    assert (unit.error, unit.violation) == (error, violation)


@pytest.mark.parametrize(
    ("source", "new", "error"),
    [
        ([DOG], ("cat", "cat"), "2.1"),
        ([DOG, ("bird", "cat")], ("cat", "cat"), "1.1"),
        ([DOG], ("cat", "dog"), "1.2"),
        ([DOG], ("cat", None), "3"),
    ],
)
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_names_of_the_follow_up_alone(
    source: list[tuple[str, str | None]], new: tuple[str, str | None], error: str, share: float
) -> None:
    before = replace(told(*source), misclassified={"cat": "bird"} if len(source) > 1 else {})
    units = truth(before, told(DOG, new), {"dog": share, "cat": 1.0})
    (unit,) = [each for each in units if each.new]
    assert (unit.name, unit.error) == ("cat", error)
    assert unit.violation == (share == 1.0)  # only where all that the source names is in view


# -- verdicts --------------------------------------------------------------------------


def test_reports_are_right_where_there_is_an_error_and_silence_where_there_is_no_violation() -> (
    None
):
    told_of = step(
        0,
        [
            finding("dog", 1),
            finding("cat", 1),
            finding("kite", 1),
            finding("room", 1),
            finding("bus", 2),
            finding("tree", None),
        ],
    )
    units = [
        Unit("dog", False, False, "2.2", True),
        Unit("cat", False, False, "1.1", False),
        Unit("kite", False),
        Unit("bus", False),
        Unit("tree", False, False, "2.2", True),
        Unit("tree", True),  # a name of both captions' own is another one
        Unit("boat", False, True, "1.1", False),
    ]
    frame = verdicts([told_of], {place(told_of): units})
    assert confusion(frame) | {"accuracy": 0} == {
        "TP": 2,
        "FN": 1,
        "FP": 3,
        "TN": 2,
        "accuracy": 0,
        "precision": 40.0,
        "recall": 66.7,
        "F1": 50.0,
    }
    causes = frame.set_index("name")["cause"]
    assert causes[["kite", "room", "bus"]].tolist() == [
        "other words",
        "place named",
        "still to be seen",
    ]


def test_a_fallible_detector_misses_and_mislabels_at_its_rates() -> None:
    dataset = scenes(16, size=SIZE)
    exact = [dataset.sample(index).boxes for index in range(16)]

    def seen(missed: float, mislabelled: float, seed: int = 0) -> list[Any]:
        view = Fallible(dataset, missed, mislabelled, seed)
        return [view.sample(index).boxes for index in range(16)]

    assert seen(0, 0) == exact
    assert not any(seen(1, 0))
    assert [[b.label for b in boxes] for boxes in seen(0, 1)] == [
        [EVERYDAY.taken_for[b.label] for b in boxes] for boxes in exact
    ]
    assert seen(0.3, 0.3) == seen(0.3, 0.3) != seen(0.3, 0.3, seed=1)
    left = sum(map(len, seen(0.3, 0))) / sum(map(len, exact))
    assert left == pytest.approx(0.7, abs=0.12)
