"""Oracles of segmentation, which compare masks with the truth or with the source image's mask.

Source: MedTest, chapter on segmentation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from ..datasets.base import Dataset
from ..datasets.view import View
from ..errors import InputError, check_known, unexpected
from ..types import UNKNOWN, Mask, Outcome, Question, Sample, Unanswered, Value
from ..utils.options import Option, check_options
from .base import OracleDefaults, Premise, UnansweredLoss
from .labels import Agreement

ROUNDING = 1e-9
"""Tolerance of the relative drop of a score: a drop of exactly the threshold t does not exceed it,
and must not do so by rounding."""
METRICS = {"dice": "Dice", "iou": "IoU"}
"""Metric -> its name in words."""
SCORE, SOURCE = "score", "source score"
"""Keys, in the details of an excluded outcome, of the scores of the answer and of its source."""
DROP = " drop > "
"""Separator of the segmented concept and the threshold in the names of this oracle's concepts."""
Metric = Literal["dice", "iou"]
MetricOption = Annotated[Metric, Option("overlap of masks")]
ThresholdOption = Annotated[float, Option("least overlap", gt=0, le=1)]


@dataclass(frozen=True)
class TrueMask:
    """The true mask of a concept, H x W, and the pixels that scores ignore; None: none."""

    inside: Mask
    ignored: Mask | None = None

    @classmethod
    def of(cls, sample: Sample, concept: str) -> "TrueMask | None":
        """Return the true mask of a concept, None if the sample has none."""
        inside = sample.masks.get(concept)
        return None if inside is None else cls(inside, sample.ignored)

    def moved(self, premise: Premise) -> "TrueMask":
        """Return the mask after the same movement that the relation applies to the image."""
        move, ignored = premise.relation.expect_mask, self.ignored
        moved = None if ignored is None else move(ignored, premise.follow_up)
        return TrueMask(move(self.inside, premise.follow_up), moved)

    def score(self, answer: Mask, metric: "Metric") -> float:
        """Return the overlap of an answer with the mask, over the pixels that count."""
        counted = np.True_ if self.ignored is None else ~self.ignored
        return overlap(answer & counted, self.inside & counted, metric)


def overlap(one: Mask, other: Mask, metric: Metric = "dice") -> float:
    """Return Dice, 2 |A and B| / (|A| + |B|), or IoU, |A and B| / |A or B|; 1 for two empty masks.

    Args:
        one: A mask, H x W.
        other: A mask of the same size.
        metric: "dice" or "iou".

    Returns:
        The overlap, in [0, 1].
    """
    both, each = np.count_nonzero(one & other), np.count_nonzero(one) + np.count_nonzero(other)
    if each == 0:
        return 1.0
    return 2 * both / each if metric == "dice" else both / (each - both)


def below(score: float, threshold: float) -> Outcome:
    """Return the outcome of a score, whose loss is 1 if it is below a threshold."""
    margin = score - threshold
    return Outcome(float(margin < 0), (score + 1) / 2, score, margin=margin)


class Scored(OracleDefaults):
    """Base of oracles that compare an answer with the true mask, unless it is a score already."""

    judges_masks = True
    judges_scores = True
    metric: Metric

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        return self.score(value, TrueMask.of(sample, concept), sample.id)

    def score(self, answer: Any, mask: TrueMask | None, sample_id: str) -> float | None:
        """Return the score of an answer, a mask or a score; None without an answer."""
        if answer is None or isinstance(answer, Unanswered):
            return None
        if isinstance(answer, float):
            return answer
        if mask is None:
            raise unexpected(f"sample {sample_id!r}", "a true mask to score the model's by", "none")
        return mask.score(answer, self.metric)


class MaskScore(Scored):
    """Oracle whose loss is 1 - the overlap with the true mask, for concepts with a mask."""

    def __init__(self, metric: Metric, unanswered_loss: float) -> None:
        self.metric, self.unanswered_loss = metric, unanswered_loss
        self.rates = MappingProxyType({f"1 - {metric}": 1})

    def view(self, dataset: Dataset) -> Dataset:
        return View(dataset, dataset.concepts, range(len(dataset.concepts)), (UNKNOWN, UNKNOWN, 1))

    def expect(self, premise: Premise) -> TrueMask | None:
        mask = TrueMask.of(premise.sample, premise.question.concept)
        return None if mask is None else mask.moved(premise)

    def judge(
        self, question: Question, answer: Any, expected: TrueMask | None, source_answer: Any = None
    ) -> Outcome:
        score = self.score(answer, expected, question.sample_id)
        return Outcome(self.unanswered_loss) if score is None else self.outcome(score)

    def outcome(self, score: float) -> Outcome:
        """Return the outcome of an answer with a score."""
        return Outcome(1 - score, (score + 1) / 2, score)


class MaskBelow(MaskScore):
    """Loss 1 if the overlap with the true mask is below a threshold.

    Each concept with a true mask is asked about, in original images, too. An answer that is a
    number is a score.

    Args:
        metric: "dice" or "iou".
        threshold: Minimum overlap, in (0, 1].
        unanswered_loss: Loss of a question without answer.

    Raises:
        InputError: The metric is unknown, or the threshold is out of range.
    """

    def __init__(
        self,
        metric: MetricOption = "dice",
        threshold: ThresholdOption = 0.7,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        check_options(MaskBelow, {"metric": metric, "threshold": threshold}, "mask below")
        super().__init__(metric, unanswered_loss)
        self.threshold = threshold
        self.rates = MappingProxyType({f"{METRICS[metric]} below {threshold:g}": 1})

    def outcome(self, score: float) -> Outcome:
        return below(score, self.threshold)


class MaskDrop(Scored):
    """Loss 1 if the overlap with the true mask drops by more than a share t of the source's.

    That is, (score(source) - score(follow-up)) / score(source) > t. Each concept with a mask is
    asked about once per threshold t, in one call. Follow-ups of a source with score 0 are excluded.
    The mean loss is MedTest's error finding rate (EFR). An answer that is a number is a score.

    Args:
        metric: "dice" or "iou".
        thresholds: Relative drops t, each in (0, 1).
        unanswered_loss: Loss of a question without answer.

    Raises:
        InputError: The metric is unknown, or a threshold is out of range.
    """

    needs_source = True
    rates = MappingProxyType({"EFR": 1})

    def __init__(
        self,
        metric: MetricOption = "dice",
        thresholds: Annotated[
            Sequence[float], Option("relative drops of the score that are failures", min_length=1)
        ] = (0.25, 0.5),
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        check_known("metric", metric, METRICS, "mask drop")
        if not thresholds or not all(0 < t < 1 for t in thresholds):
            raise unexpected("mask drop", "thresholds between 0 and 1", list(thresholds))
        # journals and audit keys have the options in this order
        self.metric, self.thresholds = metric, tuple(thresholds)
        self.unanswered_loss = unanswered_loss

    def alone(self) -> MaskScore:
        return MaskScore(self.metric, self.unanswered_loss)

    def view(self, dataset: Dataset) -> Dataset:
        pairs = [(k, t) for k in range(len(dataset.concepts)) for t in self.thresholds]
        names = [f"{dataset.concepts[k]}{DROP}{t:g}" for k, t in pairs]
        return View(dataset, names, [k for k, _ in pairs], (UNKNOWN, UNKNOWN, 1))

    def expect(self, premise: Premise) -> tuple[TrueMask | None, float | None]:
        """Return the true mask of the follow-up, and the score of the source."""
        mask = TrueMask.of(premise.sample, premise.question.concept.rpartition(DROP)[0])
        expected = None if mask is None else mask.moved(premise)
        return expected, self.score(premise.source_answer, mask, premise.sample.id)

    def judge(
        self,
        question: Question,
        answer: Any,
        expected: tuple[TrueMask | None, float | None],
        source_answer: Any = None,
    ) -> Outcome:
        mask, before = expected
        after = self.score(answer, mask, question.sample_id)
        if not before:  # excluded; the details are for the mean scores of a census
            why = "was not answered" if before is None else "scores 0"
            details = {n: v for n, v in ((SCORE, after), (SOURCE, before)) if v is not None}
            return Outcome(0.0, excluded=f"the source image {why}", details=details or None)
        if after is None:
            return Outcome(self.unanswered_loss)
        limit = float(question.concept.rpartition(DROP)[2])
        dropped = before - after > limit * before + ROUNDING
        margin = after - (1 - limit) * before
        return Outcome(float(dropped), (after + 1) / 2, after, margin=margin)


class MaskConsistency(Agreement):
    """Loss 1 if the overlap of the follow-up's mask with the source's is below a threshold.

    The source's mask is first moved as the relation moves the image. No label is needed.

    Args:
        metric: "dice" or "iou".
        threshold: Minimum overlap, in (0, 1].
        unanswered_loss: Loss of a question without answer.

    Raises:
        InputError: The metric is unknown, or the threshold is out of range.
    """

    judges_masks = True

    def __init__(
        self,
        metric: MetricOption = "dice",
        threshold: ThresholdOption = 0.75,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        options = {"metric": metric, "threshold": threshold}
        check_options(MaskConsistency, options, "mask consistency")
        self.metric, self.threshold, self.unanswered_loss = metric, threshold, unanswered_loss

    def expect(self, premise: Premise) -> TrueMask | None:
        mask = premise.source_answer
        if not isinstance(mask, np.ndarray):
            return None
        return TrueMask(mask, premise.sample.ignored).moved(premise)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        reason = "as masks are compared with each other; compare strategies on a mask-drop audit"
        raise InputError(f"mask consistency: answers cannot be recorded, {reason}")

    def judge(
        self, question: Question, answer: Any, expected: TrueMask | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not answered with a mask")
        if not isinstance(answer, np.ndarray):
            return Outcome(self.unanswered_loss)
        return below(expected.score(answer, self.metric), self.threshold)
