"""Segmentation: masks against the truth, or against the source image's mask.

Source: MedTest, chapter on segmentation; Dice and IoU as usual.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from ..datasets.base import Dataset
from ..datasets.view import View
from ..errors import InputError, check_known
from ..types import UNKNOWN, Mask, Outcome, Question, Sample, Unanswered, Value
from ..utils.options import Option, check_options
from .base import OracleDefaults, Premise, UnansweredLoss
from .labels import Agreement

ROUNDING = 1e-9
"""Slack in the relative drop of a score: a drop of exactly the threshold t is not above it, and
rounding of floats must not make it so."""
METRICS = ("dice", "iou")
DROP = " drop > "
"""Between a concept and a threshold in the names of what is asked."""
Metric = Literal["dice", "iou"]
MetricOption = Annotated[Metric, Option("overlap of masks")]


def overlap(one: Mask, other: Mask, metric: Metric = "dice") -> float:
    """Dice, 2 |A and B| / (|A| + |B|), or IoU, |A and B| / |A or B|; 1 where both are empty."""
    both, each = np.count_nonzero(one & other), np.count_nonzero(one) + np.count_nonzero(other)
    if each == 0:
        return 1.0
    return 2 * both / each if metric == "dice" else both / (each - both)


class MaskDrop(OracleDefaults):
    """Loss 1 where the score fell by more than a share t of the source image's.

    (score(source) - score(follow-up)) / score(source) > t, scores being ``metric`` against
    the true mask. Every concept with a mask is asked about once per threshold, in one call.
    A source that scores 0 excludes its follow-ups. The mean loss is MedTest's error finding
    rate (EFR). An answer that is a number is taken to be a score.
    """

    needs_source = True
    judges_masks = True
    judges_scores = True
    rates = MappingProxyType({"EFR": 1})

    def __init__(
        self,
        metric: MetricOption = "dice",
        thresholds: Annotated[
            Sequence[float],
            Option("relative drops of the score above these are failures", min_length=1),
        ] = (0.25, 0.5),
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        check_known("metric", metric, METRICS, "mask drop")
        if not thresholds or not all(0 < t < 1 for t in thresholds):
            raise InputError(
                f"mask drop: expected thresholds between 0 and 1, got {list(thresholds)}"
            )
        self.metric: Metric = metric
        self.thresholds = tuple(thresholds)
        self.unanswered_loss = unanswered_loss

    def view(self, dataset: Dataset) -> Dataset:
        pairs = [(k, t) for k in range(len(dataset.concepts)) for t in self.thresholds]
        names = [f"{dataset.concepts[k]}{DROP}{t:g}" for k, t in pairs]
        return View(dataset, names, [k for k, _ in pairs], (UNKNOWN, UNKNOWN, 1))

    def expect(self, given: Premise) -> tuple[Mask | None, float | None]:
        """The true mask of the follow-up, and the score of the source's."""
        mask = given.sample.masks.get(given.question.concept.rpartition(DROP)[0])
        expected = None if mask is None else given.relation.expect_mask(mask, given.follow_up)
        return expected, self._score(given.source_answer, mask, given.sample.id)

    def judge(
        self,
        question: Question,
        answer: Any,
        expected: tuple[Mask | None, float | None],
        source_answer: Any = None,
    ) -> Outcome:
        mask, before = expected
        if before is None:
            return Outcome(0.0, excluded="the source image was not answered")
        if before == 0:
            return Outcome(0.0, excluded="the source image scores 0")
        after = self._score(answer, mask, question.sample_id)
        if after is None:
            return Outcome(self.unanswered_loss)
        limit = float(question.concept.rpartition(DROP)[2])
        dropped = before - after > limit * before + ROUNDING
        margin = after - (1 - limit) * before
        return Outcome(float(dropped), (after + 1) / 2, after, margin=margin)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        return self._score(value, sample.masks.get(concept), sample.id)

    def _score(self, answer: Any, mask: Mask | None, sample_id: str) -> float | None:
        if answer is None or isinstance(answer, Unanswered):
            return None
        if isinstance(answer, float):
            return answer
        if mask is None:
            raise InputError(
                f"sample {sample_id!r}: expected a true mask to score the model's by, got none"
            )
        return overlap(answer, mask, self.metric)


class MaskConsistency(Agreement):
    """Loss 1 where the follow-up's mask overlaps that of the source by less than ``threshold``.

    The source's mask is first moved as the relation moves the image. No label is needed.
    """

    judges_masks = True

    def __init__(
        self,
        metric: Metric = "dice",
        threshold: Annotated[float, Option("least overlap", gt=0, le=1)] = 0.75,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        check_known("metric", metric, METRICS, "mask consistency")
        check_options(MaskConsistency, {"threshold": threshold}, "mask consistency")
        self.metric: Metric = metric
        self.threshold = threshold
        self.unanswered_loss = unanswered_loss

    def expect(self, given: Premise) -> Mask | None:
        mask = given.source_answer
        if not isinstance(mask, np.ndarray):
            return None
        return given.relation.expect_mask(mask, given.follow_up)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        raise InputError(
            "mask consistency: answers cannot be recorded, as masks are compared with each other; "
            "compare strategies on a mask-drop audit"
        )

    def judge(
        self, question: Question, answer: Any, expected: Mask | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not answered with a mask")
        if not isinstance(answer, np.ndarray):
            return Outcome(self.unanswered_loss)
        score = overlap(answer, expected, self.metric)
        margin = score - self.threshold
        return Outcome(float(margin < 0), (score + 1) / 2, score, margin=margin)
