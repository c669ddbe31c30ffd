"""REIC's follow-ups by the audited model's own captions: each asked for once, and before them."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace, Versus, rejudge
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Answer
from adaptive_vtt.oracles import Consistency, ReducedCaptions
from adaptive_vtt.oracles.captions.detectors import Detected
from adaptive_vtt.oracles.captions.recorded import OwnNaming, RecordedNaming
from adaptive_vtt.relations import reic
from adaptive_vtt.types import IDENTITY, Box, Image, Received

COUNT, EACH = 6, len(reic.KINDS) * 2
"""Images, and follow-ups of each."""
SAID = ("A dog.", "A cat.", "A dog and a cat.", "A cat and a zebra.", "A zebra.", "Two bicycles.")


class Three:
    """Finds the same three things everywhere."""

    fingerprint = "three"

    def detect(self, image: Image) -> tuple[Box, ...]:
        names = {"dog": (2, 2, 20, 16), "cat": (30, 6, 58, 36), "thing": (4, 22, 24, 38)}
        return tuple(Box(name, *edges) for name, edges in names.items())


PICTURES = np.random.default_rng(0).integers(0, 256, (COUNT, 40, 60, 3), dtype=np.uint8)
IMAGES = Detected(from_table(PICTURES, pd.DataFrame({"c": [0, 1] * (COUNT // 2)})), Three())


def captioner(seed: int = 0) -> Callable[[list[Image]], list[str]]:
    """Says of a picture what its pixels decide."""

    def captions(images: list[Image]) -> list[str]:
        return [SAID[crc32(image.tobytes(), seed) % len(SAID)] for image in images]

    return captions


def space(naming: RecordedNaming | None = None, **options: Any) -> QuestionSpace:
    relations = reic.relations(follow_ups=2, naming=naming or OwnNaming())
    return QuestionSpace(IMAGES, relations, oracle=ReducedCaptions(most_boxes=3, **options))


def detected() -> QuestionSpace:
    return QuestionSpace(IMAGES, reic.relations(follow_ups=2), oracle=ReducedCaptions(most_boxes=3))


def audit(model: Any = None, over: QuestionSpace | None = None, **options: Any) -> Audit:
    model, options = model or captioner(), {"budget": 90, "strategy": "random", **options}
    return Audit(over or space(), model, **options)


def reductions(made: Audit) -> dict[int, str]:
    """By question what was done to its source."""
    rows = [row for call in made.journal.calls() for row in call.answers]
    return {row.question: (row.details or {})["reduction"] for row in rows}


def losses(made: Audit) -> dict[int, float | None]:
    return {row.question: row.loss for call in made.journal.calls() for row in call.answers}


@pytest.fixture(scope="module")
def done() -> Audit:
    made = audit(seed=1)
    made.run()
    return made


def test_follow_ups_are_those_of_the_same_captions_recorded_beforehand(done: Audit) -> None:
    captions = dict[str, Received]()
    rows = {row.source: row.answers[0] for row in done.journal.sources()}
    for source in (number for number in rows if number < COUNT):
        hidden = {n // COUNT - 1: rows[n] for n in rows if n > source and n % COUNT == source}
        captions[IMAGES.sample_id(source)] = Received(rows[source], hidden)
    assert any(one.versions for one in captions.values())
    before, result = space(RecordedNaming(captions)), reductions(done)
    assert len(result) > 20
    assert result == {q: str(before.follow_up(q).details["reduction"]) for q in result}
    assert result != {q: str(detected().follow_up(q).details["reduction"]) for q in result}


@pytest.mark.parametrize(
    "options",
    [{"seed": 3, "batch": 4}, {"strategy": "certify", "half_width": 0.1, "surrogate": False}],
)
def test_what_is_drawn_changes_no_follow_up_and_no_loss(
    done: Audit, options: dict[str, Any]
) -> None:
    """The table of losses is that of the model and the images, whatever was drawn of it, when, and
    with what."""
    other = audit(**options)
    other.run()
    shared = losses(done).keys() & losses(other).keys()
    assert len(shared) > 10
    for of in (losses, reductions):
        mine, theirs = of(done), of(other)
        assert {q: mine[q] for q in shared} == {q: theirs[q] for q in shared}
    assert list(losses(done)) != list(losses(other))


def test_each_image_is_captioned_once_and_before_its_follow_ups() -> None:
    asked = list[tuple[str, str]]()
    made = audit(batch=3)
    while calls := made.ask(3):
        asked += [(call.prompt.sample_id, call.prompt.relation) for call in calls]
        captions = captioner()(
            [call.prompt.image for call in calls if call.prompt.image is not None]
        )
        for call, caption in reversed([*zip(calls, captions, strict=True)]):
            made.tell(call, Answer((caption,)))
    sources = [sample for sample, relation in asked if relation == IDENTITY]
    assert sorted(sources) == sorted(set(sources))
    for sample in sources:
        of_it = [relation.partition("/")[0] for name, relation in asked if name == sample]
        hidden = of_it.count("hidden")
        assert of_it[: 1 + hidden] == [IDENTITY] + ["hidden"] * hidden
        assert set(of_it[1 + hidden :]) <= {"reic"}
    assert {"hidden/blur", "reic/crop"} <= {relation for _, relation in asked}


def test_a_census_asks_about_images_first(done: Audit) -> None:
    made = Audit(space(), captioner(), strategy="everything")
    result = made.run()
    assert result.questions == COUNT * EACH
    assert (
        (made.space.follow_up(3).details["reduction"])
        == done.space.follow_up(3).details["reduction"]
    )


def test_the_second_way_to_hide_a_box_waits_for_the_first() -> None:
    oracle = ReducedCaptions(most_boxes=3)
    first = oracle.versions(IMAGES.sample(0), Received("A zebra.", {}))
    assert [*first] == [0, 3, 6]
    then = oracle.versions(IMAGES.sample(0), Received("A zebra.", {0: "A dog.", 3: "A zebra."}))
    assert [*then] == [0, 1, 3, 6]


def test_there_are_no_follow_ups_before_all_that_has_to_be_heard_of_a_source() -> None:
    """Nothing bears the name of a zebra, so that captions without each box are needed."""
    judge = Judge(space(), "one")
    judge.sources.keep(judge.sources.row(0, Answer(("A zebra.",)), 0.0))
    assert judge.sources.missing(0)
    with pytest.raises(InputError, match=r"own caption .*, got none"):
        judge.prompt(0)
    while missing := judge.sources.missing(0):
        judge.sources.keep(judge.sources.row(missing[0], Answer(("A dog.",)), 0.0))
    assert judge.prompt(0).image is not None


def test_what_needs_follow_ups_beforehand_is_refused_in_a_sentence(done: Audit) -> None:
    with pytest.raises(InputError, match=r"versus: expected follow-ups that are the same for both"):
        Versus(space(), captioner(), captioner(1), budget=90).run()
    with pytest.raises(
        InputError, match=r"proxy 'other': expected a table of answers, got a model"
    ):
        audit(half_width=0.2, proxies={"other": lambda images: [Answer((0.5,)) for _ in images]})
    with pytest.raises(InputError, match=r"space\.captions: expected an oracle of captions with"):
        QuestionSpace(IMAGES, reic.relations(naming=OwnNaming()), oracle=Consistency())
    with pytest.raises(
        InputError, match=r"rejudge: memory: expected follow-ups that were chosen b"
    ):
        rejudge(done.journal, space())
