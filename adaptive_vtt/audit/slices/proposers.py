"""Who proposes what questions may have in common: a file each."""

from collections.abc import Callable, Sequence

from ...errors import unknown
from ...space import QuestionSpace
from . import cells, clusters, metadata, words
from .atoms import Atom

Proposer = Callable[[QuestionSpace], list[Atom]]

PROPOSERS: dict[str, Proposer] = {
    "metadata": metadata.atoms,
    "cells": cells.atoms,
    "clusters": clusters.atoms,
    "words": words.atoms,
}
"""By name; a new one is a file and its line here."""


def atoms_of(space: QuestionSpace, by: Sequence[str]) -> list[Atom]:
    """All atoms of the proposers named. Raises InputError for an unknown name."""
    for name in by:
        if name not in PROPOSERS:
            raise unknown("proposer", name, PROPOSERS, "discover_by")
    return [atom for name in dict.fromkeys(by) for atom in PROPOSERS[name](space)]
