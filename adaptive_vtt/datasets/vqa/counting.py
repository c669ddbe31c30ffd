"""How many of each concept samples show, and the counting questions that all of them allow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...types import Sample
from .marked import is_boxed, places
from .question_making import AS, MANY, Plan, as_text, least_apart


@dataclass(frozen=True)
class Number:
    """How many of a concept a sample shows; ``there``: its label says that it shows some;
    ``exact``: they were counted, where a mask's pieces are told apart up to six."""

    concept: str
    number: int
    there: bool
    exact: bool


def numbers_in(sample: Sample, plan: Plan) -> list[Number]:
    """The numbers that are known of a sample, of concepts that can be counted.

    Raises InputError for a column of numbers that is not there, or holds no whole number.
    """
    return [
        Number(c, count(sample, c, plan), truth == 1, c in plan.counts or c not in sample.masks)
        for c in plan.concepts
        if (truth := sample.truth.get(c)) is not None
        and plan.role(c).counting
        and _is_counted(sample, c, plan)
    ]


def large_numbers(numbers: Iterable[Number]) -> dict[str, tuple[int, ...]]:
    """Concept -> the numbers that occur, where most images that show it show more than four."""
    exact: dict[str, list[int]] = {}
    for one in numbers:
        if one.there and one.exact:
            exact.setdefault(one.concept, []).append(one.number)
    most = len(MANY) - 2
    return {c: tuple(sorted(set(n) - {0})) for c, n in exact.items() if np.median(n) > most}


def counting_subjects(found: Sequence[tuple[int, Number]], plan: Plan) -> list[tuple[int, str]]:
    """The (sample, subject) of counting questions; the right answer belongs to the subject.

    ``found``: samples and their numbers; ``plan``: with its large numbers. There is none about a
    concept whose number is only known to be 0, nor without a wrong number.
    """
    countable = {one.concept for _, one in found if one.there} | set(plan.counts)
    return [
        (index, f"{one.concept}{AS}{_option(one.number, one.concept, plan)}")
        for index, one in found
        if one.concept in countable and _has_wrong(one, plan)
    ]


def _has_wrong(one: Number, plan: Plan) -> bool:
    large = plan.numbers.get(one.concept)
    return large is None or any(abs(n - one.number) >= least_apart(one.number) for n in large)


def _is_counted(sample: Sample, concept: str, plan: Plan) -> bool:
    """Whether the number is known: an empty cell says that nobody counted."""
    if concept in plan.counts:
        column = plan.counts[concept]
        return column not in sample.metadata or as_text(sample.metadata[column]) != ""
    marked = concept in sample.masks or is_boxed(sample, concept)
    return marked or sample.truth.get(concept) == 0


def count(sample: Sample, concept: str, plan: Plan) -> int:
    """How many there are: as a column says, else boxes, else connected pieces of the mask.

    Raises InputError for a column that is not there, or holds no whole number.
    """
    if concept in plan.counts:
        column = plan.counts[concept]
        if column not in sample.metadata:
            raise InputError(f"build: sample {sample.id!r} has no metadata column {column!r}")
        value = sample.metadata[column]
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = -1
        if number < 0:
            raise InputError(
                f"build: sample {sample.id!r}, column {column!r}: expected a whole number of "
                f"{concept!r}, 0 or more, got {value!r}"
            )
        return number
    return 0 if sample.truth.get(concept) == 0 else len(places(sample, concept))


def _option(number: int, concept: str, plan: Plan) -> str:
    return str(number) if concept in plan.numbers else MANY[min(number, len(MANY) - 1)]
