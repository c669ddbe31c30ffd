"""What an outcome is: of masks, of classes, and against the answer about the source."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, calls_of
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Answer, Prompt, PythonModel, Recorded, Unanswered
from adaptive_vtt.oracles import (
    REGISTRY,
    Consistency,
    GivenLosses,
    MaskBelow,
    MaskConsistency,
    MaskDrop,
    Ordinal,
    TopClass,
    overlap,
)
from adaptive_vtt.relations import FollowUp, LabelPreserving, Transformed, get
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Case, Question
from tests.helpers.source_spaces import Negative, space

# -- what an outcome is ---------------------------------------------------------------------


def test_consistency_needs_no_label_and_compares_with_the_source() -> None:
    labels = pd.DataFrame({"c": [np.nan, np.nan]}, index=["a", "b"])
    images = np.stack([np.full((8, 8, 3), 40, np.uint8), np.full((8, 8, 3), 220, np.uint8)])
    relations = [get("identity"), Negative(), get("brightness_down")]
    made = QuestionSpace(
        from_table(images, labels), relations, severities=[1], oracle=Consistency()
    )
    assert made.size == 4  # two images, two relations; the sources are no questions
    bright = PythonModel(lambda batch: np.array([[image.mean() / 255] for image in batch]))
    audit = Audit(made, bright)
    audit.run()
    table = outcomes(audit.journal).set_index(["sample", "relation"])
    assert table["loss"].to_dict() == {
        ("a", "negative"): 0,
        ("b", "negative"): 0,
        ("a", "brightness_down"): 0,
        ("b", "brightness_down"): 0,
    }
    stubborn = Audit(made, PythonModel(lambda batch: np.ones((len(batch), 1))))
    stubborn.run()
    assert outcomes(stubborn.journal).groupby("relation")["loss"].mean().to_dict() == {
        "negative": 1,
        "brightness_down": 0,
    }


class Silent(ScriptedModel):
    """Sure of a Yes; refuses to speak of one source image."""

    def __init__(self, refused: str = "s0") -> None:
        super().__init__()
        self._refused = refused

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        if prompt.sample_id == self._refused and prompt.relation == "identity":
            return Unanswered("refused")
        return Answer((0.9,) * len(prompt.concepts))


def test_a_source_without_answer_excludes_its_follow_ups_both_ways() -> None:
    audit = Audit(space(samples=4), Silent(), half_width=0.01, targets=["overall"])
    result = audit.run()
    table = outcomes(audit.journal)
    out = table[table["sample"] == "s0"]
    assert set(out["unanswered"]) == {"excluded: the source image was not answered"}
    assert out["answer"].isna().all()
    # a quarter of the questions does not count; all others are right
    row = result.targets.iloc[0]
    assert (row["lower"], row["upper"]) == (0, 0)
    assert [i.upper for i in verify(audit.journal)] == [0]


def test_questions_that_turn_out_not_to_count_are_counted() -> None:
    options: dict[str, Any] = {"half_width": 0.01, "targets": ["overall"], "surrogate": False}
    audit = Audit(space(samples=4), Silent(), **options)
    result = audit.run()
    excluded = int(outcomes(audit.journal)["unanswered"].notna().sum())
    assert result.targets["excluded"].tolist() == [excluded] != [0]
    assert any(f"not to count: {excluded} of " in warning for warning in result.warnings)
    result = Audit(space(samples=4), Silent(refused=""), **options).run()
    assert result.targets["excluded"].tolist() == [0]
    assert not any("not to count" in warning for warning in result.warnings)


QUESTION = Question(0, "s", "r", 1, "polyp drop > 0.25", 1)


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [(0.8, 0.61, 0), (0.8, 0.6, 0), (0.8, 0.59, 1), (0.4, 0.8, 0), (1.0, 0.0, 1)],
)
def test_a_mask_fails_where_its_score_drops_by_more_than_the_share(
    before: float, after: float, loss: float
) -> None:
    outcome = MaskDrop().judge(QUESTION, after, (None, before))
    assert (outcome.loss, outcome.score) == (loss, after)


def test_overlap_of_masks() -> None:
    one, other = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
    assert overlap(one, other) == overlap(one, other, "iou") == 1
    one[:2], other[1:3] = True, True
    assert overlap(one, other) == 0.5
    assert overlap(one, other, "iou") == pytest.approx(1 / 3)


def masked(count: int = 6) -> Dataset:
    """White squares on black; the last one of a sample that has none."""
    images = np.zeros((count, 16, 16, 1), np.uint8)
    for k in range(count - 1):
        images[k, 2 + k : 8 + k, 3:9] = 255
    masks = [image[:, :, 0] > 0 for image in images]
    labels = pd.DataFrame({"square": [1] * (count - 1) + [0]})
    return from_table(images, labels, masks={"square": [*masks[:-1], None]})


class Shift(LabelPreserving):
    """Moves the image, and masks with it, two pixels down."""

    name = "shift"
    severities = (1,)

    def transform(self, image: Any, severity: int, rng: Any) -> Any:
        return np.roll(image, 2, axis=0)

    def expect_mask(self, mask: Any, follow_up: FollowUp) -> Any:
        return np.roll(mask, 2, axis=0)


def halved(image: Any) -> Any:
    """Black where the left half of the square is."""
    changed = image.copy()
    changed[:, :6] = 0
    return changed


HALF = Transformed("half", (halved,), moves=False)


def segmenter(images: list[Any]) -> Any:
    return [image[None, :, :, 0] > 128 for image in images]


def test_a_segmenter_is_audited_at_every_threshold_in_one_call() -> None:
    made = QuestionSpace(
        masked(), ["identity", Shift(), HALF], oracle=MaskDrop(thresholds=(0.25, 0.5))
    )
    assert made.concepts == ("square drop > 0.25", "square drop > 0.5")
    assert made.asked == ("square",)
    assert made.size == 5 * 2 * 2  # without the sample that has no square
    audit = Audit(made, PythonModel(segmenter), half_width=0.01, targets=["concepts", "relations"])
    result = audit.run()
    table = outcomes(audit.journal)
    assert (table[table["relation"] == "shift"]["answer"] == 1).all()
    half = table[table["relation"] == "half"]
    assert np.allclose(half["answer"], 2 / 3)  # Dice of half a square
    assert half.groupby("concept")["loss"].mean().to_dict() == {
        "square drop > 0.25": 1,
        "square drop > 0.5": 0,
    }
    assert result.calls == 5 + 10
    assert result.targets["target"].tolist()[:2] == [
        "square drop > 0.25: EFR",
        "square drop > 0.5: EFR",
    ]
    verify(audit.journal)


def test_answers_of_a_segmenter_replay_as_their_scores() -> None:
    made = QuestionSpace(masked(), ["identity", Shift(), HALF], oracle=MaskDrop())
    kept = Recorded(all_answers(made, PythonModel(segmenter)))
    again, losses = all_losses(made, kept)
    assert losses.tolist() == all_losses(made, PythonModel(segmenter))[1].tolist()
    assert len(again) == made.size
    assert calls_of(made, kept) == 5 + 10


@pytest.mark.parametrize(
    ("options", "name", "wrong"),
    [
        ({"threshold": 0.6}, "Dice below 0.6", 0),  # half a square has Dice 2/3, IoU 1/2
        ({}, "Dice below 0.7", 1),
        ({"metric": "iou", "threshold": 0.5}, "IoU below 0.5", 0),
        ({"metric": "iou", "threshold": 0.51}, "IoU below 0.51", 1),
    ],
)
def test_a_mask_is_wrong_below_the_threshold(
    options: dict[str, Any], name: str, wrong: int
) -> None:
    made = QuestionSpace(masked(), ["identity", Shift(), HALF], oracle=MaskBelow(**options))
    audit = Audit(made, PythonModel(segmenter), budget=made.size, half_width=0.1)
    result = audit.run()
    losses = outcomes(audit.journal).groupby("relation")["loss"].mean()
    assert losses.to_dict() == {"identity": 0, "shift": 0, "half": wrong}
    assert result.targets["target"].iloc[0] == f"square: {name}"


def test_masks_agree_without_any_true_mask() -> None:
    images = np.zeros((3, 16, 16, 1), np.uint8)
    images[:, 4:10, 3:9] = 255
    dataset = from_table(images, pd.DataFrame({"square": [np.nan] * 3}))
    made = QuestionSpace(dataset, ["identity", Shift(), HALF], oracle=MaskConsistency())
    audit = Audit(made, PythonModel(segmenter))
    audit.run()
    losses = outcomes(audit.journal).groupby("relation")["loss"].mean()
    assert losses.to_dict() == {"shift": 0, "half": 1}


# -- classes --------------------------------------------------------------------------------


def classes(own: bool = False) -> QuestionSpace:
    """Image k shows class k % 4."""
    labels = pd.DataFrame(np.eye(4, dtype=int)[np.arange(8) % 4], columns=list("abcd"))
    return QuestionSpace(from_table(None, labels), oracle=Ordinal() if own else TopClass())


class Next(ScriptedModel):
    """Says the class after the true one, of the last the last."""

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        choice = min(int(prompt.sample_id) % 4 + 1, 3)
        return Answer(tuple(0.4 if k == choice else 0.2 for k in range(4)))


def test_the_likeliest_class_counts_however_unlikely() -> None:
    audit = Audit(classes(), Next())
    audit.run()
    table = outcomes(audit.journal)
    misses = table[table["truth"] == 1].groupby("concept")["loss"].mean()
    alarms = table[table["truth"] == 0].groupby("concept")["loss"].mean()
    assert misses.to_dict() == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert alarms.to_dict() == pytest.approx({"a": 0, "b": 1 / 3, "c": 1 / 3, "d": 1 / 3})


def test_the_first_of_equal_classes_wins_and_silence_is_a_loss() -> None:
    oracle = TopClass()
    cases = [
        Case(Question(k, "s", "identity", 0, c, int(k == 0)), k, 0.5, int(k == 0), None)
        for k, c in enumerate("ab")
    ]
    assert [o.loss for o in oracle.judge_call(cases, (0.5, 0.5))] == [0, 0]
    silent = (Unanswered("x"), Unanswered("x"))
    assert [o.loss for o in oracle.judge_call(cases, silent)] == [1, 1]


def test_grades_are_judged_by_their_distance() -> None:
    audit = Audit(classes(own=True), Next())
    audit.run()
    table = outcomes(audit.journal)
    assert len(table) == 8
    assert table.groupby("concept")["loss"].mean().to_dict() == pytest.approx(
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3, "d": 0}
    )


def test_classes_need_a_model_that_answers_all_of_them() -> None:
    with pytest.raises(InputError, match=r"TopClass: needs a model that answers all concepts"):
        Audit(classes(), ScriptedModel(answers="one"))
    made = QuestionSpace(masked(), ["identity", Shift()], oracle=MaskDrop())
    with pytest.raises(InputError, match="MaskDrop: needs a model that answers all concepts"):
        Audit(made, ScriptedModel(answers="one"))


def test_names_that_audit_keys_depend_on_are_fixed() -> None:
    """A class that is renamed keeps its ``journal_name``, or the draws of all its audits change."""
    own = [REGISTRY.get(entry.name) for entry in REGISTRY.entries() if entry.package is None]
    assert {oracle.__new__(oracle).journal_name for oracle in [*own, GivenLosses]} == {
        *("Correctness", "TopClass", "Ordinal", "Consistency", "MaskBelow", "MaskDrop"),
        *("MaskConsistency", "MultipleChoice", "ContainsTruth", "ReducedCaptions", "GivenLosses"),
    }
