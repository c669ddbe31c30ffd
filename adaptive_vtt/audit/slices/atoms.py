"""What questions may have in common, in words and as a set of questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...certify.targets import Target, common, selected
from ...space import QuestionSpace
from ...types import Bools, TargetId

Where = dict[str, list[object]]


@dataclass(frozen=True)
class Atom:
    """One thing that questions have in common.

    ``field``: what is said of them; a conjunction says no field twice. ``words``: what is said.
    ``found_by``: its proposer. ``where``: the same as a filter, field -> values, or None where no
    filter says it. ``target``: the questions.
    """

    field: str
    words: str
    found_by: str
    where: Mapping[str, Sequence[object]] | None
    target: Target


def by_values(
    space: QuestionSpace, found_by: str, field: str, values: Sequence[object], words: str
) -> Atom:
    """The questions whose field of a filter has one of ``values``."""
    about = selected(space, TargetId("slice", filter=words), **{field: values})
    return Atom(field, words, found_by, {field: values}, about)


def by_rows(space: QuestionSpace, found_by: str, field: str, rows: Bools, words: str) -> Atom:
    """The questions about samples whose profile rows ``rows`` (r,) marks."""
    every = selected(space, TargetId("slice", filter=words))
    return Atom(field, words, found_by, None, replace(every, rows=rows))


def joined(atoms: Sequence[Atom]) -> Target:
    """The questions that have all of them in common."""
    words = ", ".join(atom.words for atom in atoms)
    return common(TargetId("slice", filter=words), [atom.target for atom in atoms])


def where_of(atoms: Sequence[Atom]) -> Where | None:
    """The conjunction as a filter, field -> values; None where no filter says it."""
    found: Where = {}
    for atom in atoms:
        if atom.where is None:
            return None
        for field, values in atom.where.items():
            found[field] = [v for v in values if v in found.get(field, values)]
    return found
