"""Oracles for answers that are numbers: by the truth, by the source's answer, or as losses.

``margin`` returns by how much such an answer was right.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from ..datasets.base import Dataset
from ..datasets.view import View
from ..types import UNKNOWN, Ask, Case, Outcome, Question, Unanswered, Value
from ..utils.options import Option
from .base import OracleDefaults, Premise, UnansweredLoss
from .choice import in_words

# -- one concept by its truth ----------------------------------------------------------------------


class _YesFrom(OracleDefaults):
    def __init__(
        self,
        threshold: Annotated[float, Option("Yes from this on", gt=0, le=1)] = 0.5,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        self.threshold, self.unanswered_loss = threshold, unanswered_loss


class Correctness(_YesFrom):
    """Loss 1 where the answer lies on the wrong side of ``threshold``; a = (f + truth) / 2.

    An unanswered question counts as ``unanswered_loss`` (1 by default).
    Source: Concept-centric VTT, section 2.1, equation 2.
    """

    concepts_are = "labels"

    def judge(
        self, question: Question, answer: Any, expected: int, source_answer: Any = None
    ) -> Outcome:
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        says_yes = answer >= self.threshold
        return Outcome(float(says_yes != bool(expected)), (answer + expected) / 2)


# -- classes of which every image has one: the likeliest is the answer -----------------------------


class _Likeliest(OracleDefaults):
    """Looks at all concepts of a call at once, so calls have to answer all of them."""

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
        """Return the loss of a concept, given the place of the likeliest of all."""
        raise TypeError(f"{type(self).__name__} defines no loss")


class TopClass(_Likeliest):
    """Loss 1 for the true class where another is likelier, and for another that is likeliest.

    The first of equals counts as the likeliest. The miss rate of a class is 1 - its recall;
    with the false-alarm rates they give precision, F1 and Cohen's kappa.
    """

    concepts_are = "classes"

    def loss(self, case: Case, top: int, classes: int) -> float:
        return float((case.place == top) != bool(case.expected))


class Ordinal(_Likeliest):
    """Classes in order: the distance of the likeliest from the true one, over the largest.

    Only the true class of an image is asked about; losses are k / (C - 1).
    """

    rates = MappingProxyType({"mean distance": 1})

    def view(self, dataset: Dataset) -> Dataset:
        columns = range(len(dataset.concepts))
        return View(dataset, dataset.concepts, columns, (UNKNOWN, UNKNOWN, 1))

    def loss(self, case: Case, top: int, classes: int) -> float:
        return abs(case.place - top) / max(1, classes - 1)


def likeliest(values: Sequence[Value]) -> int | None:
    """Return the place of the largest answer; None if there is none."""
    numbers = [v if isinstance(v, float) else -1.0 for v in values]
    return numbers.index(max(numbers)) if max(numbers) >= 0 else None


# -- the follow-up's answer against the source image's; no label is needed -------------------------


VIOLATIONS = MappingProxyType({"violation rate": 1})


class Agreement(OracleDefaults):
    """Base of oracles for which the source's answer is the truth, of every sample."""

    needs_source = True
    rates = VIOLATIONS

    def view(self, dataset: Dataset) -> Dataset:
        return View(dataset, dataset.concepts, range(len(dataset.concepts)), (1, 1, 1))


class Consistency(_YesFrom, Agreement):
    """Loss 1 where Yes became No or No became Yes without the relation saying so.

    Every sample counts, labelled or not. Truth 1 means "as expected after the source's answer", and
    the coordinate is that of its probability. A follow-up whose source was not answered is
    excluded.
    """

    def expect(self, given: Premise) -> int | None:
        source = given.source_answer
        if not isinstance(source, float):
            return None
        return given.relation.expect(int(source >= self.threshold), given.follow_up)

    def judge(
        self, question: Question, answer: Any, expected: int | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not answered")
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        agrees = (answer >= self.threshold) == bool(expected)
        likely = answer if expected else 1 - answer
        return Outcome(float(not agrees), (likely + 1) / 2)


# -- answers that are losses -----------------------------------------------------------------------


class Told(OracleDefaults):
    """The answer, in [0, 1], is the loss. An outcome's details hold the words of its item.

    Args:
        unanswered_loss: Loss of a question without answer.
    """

    tells_losses = True
    rates = MappingProxyType({"mean loss": 0})

    def __init__(self, unanswered_loss: float = 1.0) -> None:
        self.unanswered_loss = unanswered_loss

    def expect(self, given: Premise) -> Ask | None:
        """Return the words of the item."""
        return given.sample.asks.get(given.question.concept)

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        loss = self.unanswered_loss if isinstance(answer, Unanswered) else float(answer)
        ask = expected if isinstance(expected, Ask) else None
        return Outcome(loss, details=in_words(ask, ()))


# -- by how much an answer was right ---------------------------------------------------------------


MARGIN = "margin"
"""The key of a margin in an answer's details, if its oracle gave one."""
SUREST = 8.0
"""Largest size of a margin that is a logit: a probability of .9997."""
MIN = 1 / (1 + math.exp(SUREST))
"""The probability whose logit is -SUREST."""


def margin(truth: int, coordinate: float | None, details: Mapping[str, Any] | None) -> float | None:
    """Return by how much an answer was right; None if nothing was answered.

    It is the oracle's margin, else the logit of the answer's probability of the truth, from -SUREST
    to SUREST. It follows from the journal alone, so that a resumed audit learns the same.
    """
    if details is not None and MARGIN in details:
        return float(details[MARGIN])
    if coordinate is None:
        return None
    yes = 2 * coordinate - truth
    right = min(max(yes if truth else 1 - yes, MIN), 1 - MIN)
    return math.log(right / (1 - right))
