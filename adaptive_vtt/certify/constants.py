"""Baselines: the loss of a constant answer to every question, computed from the labels alone."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from ..journal.facts import Constant
from ..population import Population
from ..types import JsonObject
from .targets import Target, count


def constants(space: Population, targets: Sequence[Target]) -> list[Constant | None]:
    """Return each target's best constant answer and its loss.

    It is always the commonest class, always Yes or No, or always the same letter. It is None for
    targets about one truth of a concept, and where answers are none of these.
    """
    letters = _right_letters(space) if space.oracle.concepts_are == "choices" else None
    return [_best(space, target, letters) for target in targets]


def _best(
    space: Population, target: Target, letters: npt.NDArray[np.str_] | None
) -> Constant | None:
    kind, sides = space.oracle.concepts_are, target.sides.tolist()
    answers: Sequence[str] = ()
    right = np.zeros(0, np.int64)  # how often each answer is right
    if kind == "classes" and sides == [False, True] and target.concepts.sum() > 1:
        answers, right = space.concepts, count(space, target)
    elif kind == "labels" and all(sides):
        answers = "No", "Yes"
        halves = [replace(target, sides=side) for side in np.eye(2, dtype=bool)]
        right = np.array([count(space, half).sum() for half in halves])
    elif letters is not None:
        times = target.concepts * space.applicable[target.variants].sum(axis=0)
        if target.rows is not None:
            rows = space.dataset.profile_row(np.arange(len(letters)))
            letters = letters[target.rows[rows]]
        answers = sorted({*np.unique(letters).tolist()} - {""})
        right = np.array([((letters == answer) * times).sum() for answer in answers])
    if not right.any():
        return None
    place = int(right.argmax())
    return Constant(str(answers[place]), 1 - float(right[place] / right.sum()))


def _right_letters(space: Population) -> npt.NDArray[np.str_]:
    """Return the right letter of each question, samples x concepts; "" without one."""
    right = np.full((len(space.dataset), len(space.concepts)), "", "U1")
    columns = {concept: column for column, concept in enumerate(space.concepts)}
    for row in range(len(right)):
        for concept, letters in space.dataset.answers(row).items():
            right[row, columns[concept]] = letters[0]
    return right


def constants_of(space: Population, targets: Sequence[Target]) -> list[JsonObject | None]:
    """Return ``constants`` as the journal keeps them."""
    return [None if one is None else asdict(one) for one in constants(space, targets)]
