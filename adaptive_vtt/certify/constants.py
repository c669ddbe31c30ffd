"""Baselines: the loss of a constant answer to every question, computed from the labels alone."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from ..journal.facts import Constant
from ..population import Population
from ..types import Indices, JsonObject
from .targets import Target, count


def constants(space: Population, targets: Sequence[Target]) -> list[Constant | None]:
    """Return each target's best constant answer and its loss.

    It is always the commonest class, always Yes or No, or always the same letter. It is None for
    targets about one truth of a concept, and where answers are none of these.
    """
    kind = space.oracle.concepts_are
    if kind == "choices":
        right = _right_letters(space)
        return [_letter(space, target, right) for target in targets]
    best = {"classes": _class, "labels": _label}.get(kind)
    return [None if best is None else best(space, target) for target in targets]


def _class(space: Population, target: Target) -> Constant | None:
    if target.sides.tolist() != [False, True] or target.concepts.sum() < 2:
        return None
    return _best(space.concepts, count(space, target))


def _label(space: Population, target: Target) -> Constant | None:
    if not target.sides.all():
        return None
    sides = (np.array([True, False]), np.array([False, True]))
    right = [count(space, replace(target, sides=side)).sum() for side in sides]
    return _best(("No", "Yes"), np.array(right))


def _right_letters(space: Population) -> npt.NDArray[np.str_]:
    """Return the right letter of each question, samples x concepts; "" without one."""
    right = np.full((len(space.dataset), len(space.concepts)), "", "U1")
    columns = {concept: column for column, concept in enumerate(space.concepts)}
    for row in range(len(right)):
        for concept, letters in space.dataset.answers(row).items():
            right[row, columns[concept]] = letters[0]
    return right


def _letter(space: Population, target: Target, right: npt.NDArray[np.str_]) -> Constant | None:
    times = target.concepts * space.applicable[target.variants].sum(axis=0)
    if target.rows is not None:
        right = right[target.rows[space.dataset.profile_row(np.arange(len(right)))]]
    letters = sorted({*np.unique(right).tolist()} - {""})
    return _best(letters, np.array([((right == letter) * times).sum() for letter in letters]))


def _best(answers: Sequence[str], right: Indices) -> Constant | None:
    """Return the answer that is right most often; ``right``: how often each is right."""
    if not right.any():
        return None
    place = int(right.argmax())
    return Constant(str(answers[place]), 1 - float(right[place] / right.sum()))


def constants_of(space: Population, targets: Sequence[Target]) -> list[JsonObject | None]:
    """Return ``constants`` as the journal keeps them."""
    return [None if one is None else asdict(one) for one in constants(space, targets)]
