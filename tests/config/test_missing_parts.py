"""What is not there is named where it is first missed, in one sentence."""

import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import InspectModel
from adaptive_vtt.relations.medtest.scene import Scene, cheapest
from adaptive_vtt.results.export.inspect_task import inspect_task
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.types import FollowUp, Sample
from adaptive_vtt.utils.image_codec import png

BARE = Sample("frame 7", None, {"polyp": 1})


def test_a_sample_without_image_is_named() -> None:
    message = r"sample 'frame 7': expected a source image, got none"
    for asked in (BARE.require_image, lambda: Scene.of(BARE, None)):
        with pytest.raises(InputError, match=message):
            asked()
    with pytest.raises(InputError, match="expected a follow-up image, got none"):
        FollowUp(None).require_image()


def test_inspect_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("inspect_ai", "inspect_ai.model"):
        monkeypatch.setitem(sys.modules, module, None)
    space = QuestionSpace(tiny_dataset(4))
    for asked in (lambda: InspectModel("mockllm/model"), lambda: inspect_task(space)):
        with pytest.raises(InputError, match=r"needs inspect-ai: pip install '?.*inspect"):
            asked()


def test_the_first_free_thing_ends_the_search() -> None:
    def tries() -> Iterator[tuple[float, str]]:
        yield 2.0, "dear"
        yield 0.0, "free"
        raise AssertionError("nothing is made after a thing of cost 0")

    assert cheapest(tries()) == "free"
    assert cheapest([(3.0, "a"), (1.0, "b"), (1.0, "c"), (2.0, "d")]) == "b"


def test_an_image_of_two_channels_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected H x W .* got \(4, 4, 2\) of uint8"):
        png(np.zeros((4, 4, 2), np.uint8))


def test_a_belief_of_an_audit_that_explores_has_no_needs() -> None:
    dataset = from_table(None, pd.DataFrame({"polyp": [0, 1]}, index=["a", "b"]))
    belief = Belief(QuestionSpace(dataset), seed=0)
    with pytest.raises(InputError, match="expected an audit with half_width or at_most"):
        _ = belief.certifying
