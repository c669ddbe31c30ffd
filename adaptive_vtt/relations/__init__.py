"""Metamorphic relations by name; samples, concepts and relations span the question space.

A name stands for one relation ("rotation", "medtest/blood"), for all relations of a family
("medtest"), or for users' code (see ``utils.registry``). Families are imported on first use.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any

from ..errors import InputError, unexpected, unknown
from ..types import FollowUp
from ..utils.other_code import is_target, name_of
from ..utils.registry import Registry
from .base import LabelPreserving, Relation, RelationDefaults, adapted_relation
from .graded import GRADED, Graded, Identity
from .transformed import Transformed, transformed

__all__ = [
    "REGISTRY", "FollowUp", "Graded", "Identity", "LabelPreserving", "Relation",
    "RelationDefaults", "Transformed", "adapted_relation", "families", "get", "make", "names",
    "resolve", "transformed",
]  # fmt: skip

_BUILT_IN: tuple[RelationDefaults, ...] = (Identity(), *GRADED)

_MEDMNIST = (
    *("path", "blood", "derma", "retina", "tissue", "oct", "breast", "chest", "pneumonia"),
    *("organa", "organc", "organs"),
)
"""Data sets of MedMNIST-C, without their suffix "mnist"."""

_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"medmnistc/{name}mnist": ("medmnistc", (f"{name}mnist",)) for name in _MEDMNIST},
    "imagenet-c": ("imagenet_c", ()),
    "medtest": ("medtest", ()),
    "medtest/classification": ("medtest", ("classification",)),
    "reduction": ("reduction", ()),
    "reic": ("reic", ()),
    "prompt": ("visual_prompts", ()),
}
"""Family -> the module whose ``relations(*arguments)`` returns its relations, and the arguments."""


class _Relations(Registry):
    function = "name a function of an image in [[space.transforms]], or in Transformed(name, [it])"

    def is_code(self, name: str) -> bool:
        member = name.rpartition("/")[0] in _FAMILIES
        return is_target(name) or (super().is_code(name) and not member)

    def checked(self, part: Any, name: str) -> Any:
        levels = super().checked(part, name).severities
        if isinstance(part, LabelPreserving):
            self.check_method(part, name, "transform(image, severity, rng")
        whole = isinstance(levels, Sequence) and all(isinstance(n, Integral) for n in levels)
        if not (whole and levels and isinstance(part.name, str)):
            got = f"{part.name!r:.40} and {levels!r:.40}"
            raise unexpected(f"relation {name!r}", "a text as name, numbers as severities", got)
        return part


REGISTRY = _Relations(
    "relation",
    "relations",
    (
        "name",
        "severities",
        "apply(sample, severity, rng)",
        "expect(truth, follow_up)?",
        "applies(concept)?",
    ),
    {
        **{relation.name: relation for relation in _BUILT_IN},
        **{family: f"{__name__}.{module}:relations" for family, (module, _) in _FAMILIES.items()},
    },
)
"""Registry of all relations and families."""


def names() -> list[str]:
    """Return the names of all built-in relations, identity first."""
    return [*_by_name()]


def families() -> list[str]:
    """Return the names of all families."""
    return [*_FAMILIES]


def get(name: str) -> RelationDefaults:
    """Return a built-in relation.

    Args:
        name: Full name, such as "rotation" or "medtest/blood".

    Returns:
        The relation.

    Raises:
        InputError: The name is unknown; the message has the nearest known name.
    """
    family = name.rpartition("/")[0]
    near = [*_BUILT_IN, *(_family(family) if family in _FAMILIES else ())]
    for relation in near:  # without importing any other family
        if relation.name == name:
            return relation
    known = [*(r.name for r in near), *REGISTRY.built_in]
    raise unknown("relation", name, known, every="avtt list relations")


def make(
    name: str, options: Mapping[str, Any] | None = None, base: Path | None = None
) -> list[RelationDefaults]:
    """Return the relations that a name stands for.

    Args:
        name: Name of a relation or family, or of users' code.
        options: Options by name of a family or of users' code.
        base: Folder of relative files of users' code.

    Raises:
        InputError: The name is unknown, or does not take the options.
    """
    if name in _FAMILIES and not options:
        return [*_family(name)]
    if name in _FAMILIES:
        family = partial(REGISTRY.get(name), *_FAMILIES[name][1])
        made = REGISTRY.called(family, name, options or {}, base)
    elif name in REGISTRY.built_in or is_plug_in(name):
        made = REGISTRY.make(name, options or {}, base)
    else:
        made = get(name)
        if options:
            raise InputError(f"relation {name!r}: takes no options, got {sorted(options)}")
    relations = list(made) if isinstance(made, list | tuple) else [made]
    return [adapted_relation(REGISTRY.checked(relation, name)) for relation in relations]


def is_plug_in(name: str) -> bool:
    """Return whether a name stands for users' code, without importing it."""
    return REGISTRY.is_code(name) and (is_target(name) or REGISTRY.package_of(name) is not None)


def resolve(relations: Iterable[str | Relation]) -> list[RelationDefaults]:
    """Return relations from objects and names of relations or families.

    Args:
        relations: Names of relations or families, and Relation objects.

    Returns:
        All relations, in order.

    Raises:
        InputError: A name is unknown or repeats.
    """
    resolved: list[RelationDefaults] = []
    for part in relations:
        made = make(part) if isinstance(part, str) else [REGISTRY.checked(part, name_of(part))]
        resolved += map(adapted_relation, made)
    names = [relation.name for relation in resolved]
    if again := [name for k, name in enumerate(names) if name in names[:k]]:
        raise InputError(f"relations: {again[0]!r} stands twice")
    return resolved


@cache
def _family(name: str) -> tuple[RelationDefaults, ...]:
    return tuple(REGISTRY.get(name)(*_FAMILIES[name][1]))


@cache
def _by_name() -> dict[str, RelationDefaults]:
    listed = [*_BUILT_IN, *(r for family in _FAMILIES for r in _family(family))]
    return {relation.name: relation for relation in listed}
