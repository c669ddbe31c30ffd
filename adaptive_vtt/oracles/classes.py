"""Concepts that are classes of which every image has one: the likeliest is the answer."""

from collections.abc import Sequence
from types import MappingProxyType

from ..datasets.base import Dataset
from ..datasets.view import View
from ..types import UNKNOWN, Case, Outcome, Value
from .base import OracleDefaults, UnansweredLoss


class _Likeliest(OracleDefaults):
    """Looks at all concepts of a call at once, so calls have to answer all of them."""

    whole_call = True

    def __init__(self, unanswered_loss: UnansweredLoss = 1.0) -> None:
        self.unanswered_loss = unanswered_loss

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        said = likeliest(values)
        return [self._judge(case, said, len(values)) for case in cases]

    def _judge(self, case: Case, said: int | None, classes: int) -> Outcome:
        if said is None or not isinstance(case.answer, float):
            return Outcome(self.unanswered_loss)
        return Outcome(self._loss(case, said, classes), (case.answer + case.expected) / 2)

    def _loss(self, case: Case, said: int, classes: int) -> float:
        raise TypeError(f"{type(self).__name__} defines no loss")


class TopClass(_Likeliest):
    """Loss 1 for the true class where another is likelier, and for another that is likeliest.

    The first of equals counts as the likeliest. The miss rate of a class is 1 - its recall;
    with the false-alarm rates they give precision, F1 and Cohen's kappa.
    """

    concepts_are = "classes"

    def _loss(self, case: Case, said: int, classes: int) -> float:
        return float((case.place == said) != bool(case.expected))


class Ordinal(_Likeliest):
    """Classes in order: the distance of the likeliest from the true one, over the largest.

    Only the true class of an image is asked about; losses are k / (C - 1).
    """

    rates = MappingProxyType({"mean distance": 1})

    def view(self, dataset: Dataset) -> Dataset:
        every = range(len(dataset.concepts))
        return View(dataset, dataset.concepts, every, (UNKNOWN, UNKNOWN, 1))

    def _loss(self, case: Case, said: int, classes: int) -> float:
        return abs(case.place - said) / max(1, classes - 1)


def likeliest(values: Sequence[Value]) -> int | None:
    """The place of the largest of the answers there are; None where there is none."""
    numbers = [v if isinstance(v, float) else -1.0 for v in values]
    return numbers.index(max(numbers)) if max(numbers) >= 0 else None
