"""What REIC's rules make of two captions, and the types of error that they guess."""

from dataclasses import replace

import numpy as np
import pytest

from adaptive_vtt.experiments.reic.reic_scheme import judge
from adaptive_vtt.oracles.caption_rules import Finding, check
from adaptive_vtt.oracles.captions.localising import Located, by_detection
from adaptive_vtt.oracles.reduced_captions import ReducedCaptions
from adaptive_vtt.relations.reduction import Crop
from adaptive_vtt.types import Box, Received, Sample

DOG, CAT, BALL = (
    Box(name, 10 * k, 0, 10 * k + 9, 9) for k, name in enumerate(("dog", "cat", "ball"))
)
NAMELESS = Box("", 40, 0, 49, 9)


def same(one: str, other: str) -> bool:
    return one.rstrip("s") == other.rstrip("s")


def result(
    source: list[str],
    follow_up: list[str],
    detected: list[Box],
    received: tuple[str, ...] = (),
    status: str = "retained",
    located: list[Located] | None = None,
) -> dict[str, Finding]:
    """The findings by name, where all that the source names is in view."""
    objects = by_detection(source, detected, same) if located is None else located
    objects = [replace(one, visible=1.0, status=status) for one in objects]
    findings = check(objects, follow_up, detected, same, received)
    return {each.name: each for each in findings}


@pytest.mark.parametrize(
    ("detected", "received", "error"),
    [
        ([DOG, CAT], (), "2.1"),  # the detector saw it: the source left it out
        ([DOG], (), "3"),  # nobody saw it, and all that was seen has its name
        ([DOG], ("cats",), "2.1"),  # another caption of the source names it
        ([DOG], ("dog", "ball"), "3"),
        ([DOG, BALL], (), "1.2"),  # it may be the ball, which nobody names
        ([DOG, DOG], (), "3"),
        ([NAMELESS], (), "2.1"),  # a detector without names is no witness
    ],
)
def test_why_a_thing_is_named_in_the_follow_up_alone(
    detected: list[Box], received: tuple[str, ...], error: str
) -> None:
    located = [Located("dog", (detected[0],))]
    findings = result(["dog"], ["dog", "cat"], detected, received, located=located)
    assert (findings["dog"].rule, findings["dog"].error) == (None, None)
    assert (findings["cat"].status, findings["cat"].rule) == ("new", 3)
    assert findings["cat"].error == error


def test_a_box_found_by_hiding_belongs_to_what_it_was_found_for() -> None:
    """What the source calls a statue, and the detector a ball, is not without a name."""
    located = [Located("dog", (DOG,)), Located("statue", (BALL,))]
    findings = result([], ["dog", "statue", "cat"], [DOG, BALL], located=located)
    assert findings["cat"].error == "3"


def test_what_is_out_of_view_and_named_all_the_same_is_made_up() -> None:
    findings = result(["dog"], ["dog"], [DOG], status="disappeared")
    assert (findings["dog"].rule, findings["dog"].error) == (2, "3")


@pytest.mark.parametrize(("versions", "error"), [({}, "3"), ({0: "A dog and a cat."}, "2.1")])
def test_the_oracle_listens_to_what_was_said_of_hidden_boxes(
    versions: dict[int, str], error: str
) -> None:
    sample = Sample("a", np.zeros((20, 40, 3), np.uint8), {}, {}, boxes=(DOG,))
    received = Received("A dog.", versions)
    outcome = judge(ReducedCaptions(), sample, received, Crop(0, 0, 39, 20), "A dog and a cat.")
    assert outcome.details is not None
    types = {each["name"]: each["type"] for each in outcome.details["objects"]}
    assert types == {"dog": None, "cat": error}
