"""What a question is itself: its relation, its severity, its concept, and the truth."""

from ...space import QuestionSpace
from .atoms import Atom, by_values

NAME = "cells"


def atoms(space: QuestionSpace) -> list[Atom]:
    """One atom per relation, severity, concept and truth, of those that there are several of."""
    relations = dict.fromkeys(v.relation.name for v in space.variants)
    severities = sorted({v.severity for v in space.variants})
    sides = [side for side in (0, 1) if space.cell_counts[:, side].any()]
    named = {0: "absent", 1: "present"} if space.oracle.concepts_are == "labels" else {}
    choices: dict[str, list[tuple[object, str]]] = {
        "relation": [(name, f"relation {name}") for name in relations],
        "severity": [(level, f"severity {level}") for level in severities],
        "concept": [(concept, str(concept)) for concept in space.concepts],
        "truth": [(side, named.get(side, f"truth {side}")) for side in sides],
    }
    return [
        by_values(space, NAME, field, [value], words)
        for field, values in choices.items()
        if len(values) > 1
        for value, words in values
    ]
