"""Oracles for answers that are numbers: by the truth, by the answer about the source, or as losses.

``margin`` returns how far an answer is on the correct side.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from ..datasets.base import Dataset
from ..datasets.view import View
from ..relations.base import truth_after
from ..types import UNKNOWN, Ask, Case, Outcome, Question, Unanswered, Value
from ..utils.options import Option
from .base import OracleDefaults, Premise, UnansweredLoss
from .choice import in_words

# -- one concept by its truth ----------------------------------------------------------------------


class _YesFrom(OracleDefaults):
    """Base of oracles with a threshold of P(yes)."""

    def __init__(
        self,
        threshold: Annotated[float, Option("Yes from this on", gt=0, le=1)] = 0.5,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        self.threshold, self.unanswered_loss = threshold, unanswered_loss


class Correctness(_YesFrom):
    """Loss 1 if P(yes) is on the wrong side of a threshold; the coordinate is (P(yes) + truth) / 2.

    Source: Concept-centric VTT, section 2.1, equation 2.

    Args:
        threshold: P(yes) from which on the answer is Yes, in (0, 1].
        unanswered_loss: Loss of a question without answer.
    """

    concepts_are = "labels"

    def judge(
        self, question: Question, answer: Any, expected: int, source_answer: Any = None
    ) -> Outcome:
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        yes = answer >= self.threshold
        return Outcome(float(yes != bool(expected)), (answer + expected) / 2)


# -- one class per image: the answer is the most probable class ------------------------------------


class _Likeliest(OracleDefaults):
    """Base of oracles that compare the answers to all concepts of a call.

    Args:
        unanswered_loss: Loss of a question without answer.
    """

    whole_call = True

    def __init__(self, unanswered_loss: UnansweredLoss = 1.0) -> None:
        self.unanswered_loss = unanswered_loss

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        top, outcomes = likeliest(values), []
        for case in cases:
            outcome = Outcome(self.unanswered_loss)
            if top is not None and isinstance(case.answer, float):
                loss = self.loss(case, top, len(values))
                outcome = Outcome(loss, (case.answer + case.expected) / 2)
            outcomes.append(outcome)
        return outcomes

    def loss(self, case: Case, top: int, classes: int) -> float:
        """Return the loss of a concept.

        Args:
            case: The question.
            top: Index of the most probable class.
            classes: Number of classes.
        """
        raise TypeError(f"{type(self).__name__} defines no loss")


class TopClass(_Likeliest):
    """Loss 1 for the true class if another one is most probable, and for that other class.

    Of equal probabilities the first is the largest. The miss rate of a class is 1 - its recall;
    precision, F1 and Cohen's kappa follow from miss and false-alarm rates.
    """

    concepts_are = "classes"

    def loss(self, case: Case, top: int, classes: int) -> float:
        return float((case.place == top) != bool(case.expected))


class Ordinal(_Likeliest):
    """Loss k / (C - 1) for C ordered classes, where the most probable is k steps from the true one.

    Only the true class of an image is judged.
    """

    rates = MappingProxyType({"mean distance": 1})

    def view(self, dataset: Dataset) -> Dataset:
        columns = range(len(dataset.concepts))
        return View(dataset, dataset.concepts, columns, (UNKNOWN, UNKNOWN, 1))

    def loss(self, case: Case, top: int, classes: int) -> float:
        return abs(case.place - top) / max(1, classes - 1)


def likeliest(values: Sequence[Value]) -> int | None:
    """Return the index of the largest answer; None if no answer is a number."""
    numbers = [v if isinstance(v, float) else -1.0 for v in values]
    return numbers.index(max(numbers)) if max(numbers) >= 0 else None


# -- comparison with the answer about the source image; no label is needed -------------------------


VIOLATIONS = MappingProxyType({"violation rate": 1})


class Agreement(OracleDefaults):
    """Base of oracles whose truth is the answer about the source, so that all samples count."""

    needs_source = True
    rates = VIOLATIONS

    def view(self, dataset: Dataset) -> Dataset:
        return View(dataset, dataset.concepts, range(len(dataset.concepts)), (1, 1, 1))


class Consistency(_YesFrom, Agreement):
    """Loss 1 if the answer changes between Yes and No, unless the relation implies that it does.

    All samples count, labelled or not. Truth 1 means "as expected by the answer about the source",
    and the coordinate is that of the probability of this answer. A follow-up whose source was not
    answered is excluded.

    Args:
        threshold: P(yes) from which on the answer is Yes, in (0, 1].
        unanswered_loss: Loss of a question without answer.
    """

    def expect(self, premise: Premise) -> int | None:
        source = premise.source_answer
        if not isinstance(source, float):
            return None
        return truth_after(premise.relation, int(source >= self.threshold), premise.follow_up)

    def judge(
        self, question: Question, answer: Any, expected: int | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not answered")
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        agrees = (answer >= self.threshold) == bool(expected)
        p_expected = answer if expected else 1 - answer
        return Outcome(float(not agrees), (p_expected + 1) / 2)


# -- answers that are losses -----------------------------------------------------------------------


class GivenLosses(OracleDefaults):
    """Oracle for answers that are losses in [0, 1], of the items of a pool.

    The details of an outcome contain the words of its item.

    Args:
        unanswered_loss: Loss of a question without answer.
    """

    tells_losses = True
    rates = MappingProxyType({"mean loss": 0})

    def __init__(self, unanswered_loss: float = 1.0) -> None:
        self.unanswered_loss = unanswered_loss

    def expect(self, premise: Premise) -> Ask | None:
        """Return the words of the item."""
        return premise.sample.asks.get(premise.question.concept)

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        loss = self.unanswered_loss if isinstance(answer, Unanswered) else float(answer)
        ask = expected if isinstance(expected, Ask) else None
        return Outcome(loss, details=in_words(ask, ()))


# -- margins ---------------------------------------------------------------------------------------


MARGIN = "margin"
"""Key, in an answer's details, of a margin that its oracle defines."""
SUREST = 8.0
"""Maximum absolute value of a margin that is a logit, which is that of .9997."""
MIN = 1 / (1 + math.exp(SUREST))
"""The probability whose logit is -SUREST."""


def margin(truth: int, coordinate: float | None, details: Mapping[str, Any] | None) -> float | None:
    """Return how far an answer is on the correct side, negative for a wrong one; None without one.

    It is the oracle's margin, else the logit of the probability of the truth, clipped to +-SUREST.
    It follows from the journal alone, so that a resumed audit learns the same.

    Args:
        truth: The truth, 0 or 1.
        coordinate: (P(yes) + truth) / 2; None: no answer.
        details: The outcome's details.
    """
    if details is not None and MARGIN in details:
        return float(details[MARGIN])
    if coordinate is None:
        return None
    p_yes = 2 * coordinate - truth
    p_truth = min(max(p_yes if truth else 1 - p_yes, MIN), 1 - MIN)
    return math.log(p_truth / (1 - p_truth))
