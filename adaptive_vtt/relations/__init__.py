"""Relations by name: what spans the question space besides the samples themselves.

A name is that of one relation ("rotation", "medtest/blood") or of a family ("medtest"),
which stands for all its relations. Families are imported when first asked for.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from ..errors import InputError, unknown
from ..types import FollowUp
from .base import LabelPreserving, Relation, RelationDefaults, adapted_relation
from .graded import GRADED, Graded, Identity

__all__ = [
    "FollowUp", "Graded", "Identity", "LabelPreserving", "Relation",
    "RelationDefaults", "adapted_relation", "families", "get", "names", "resolve",
]  # fmt: skip

_BUILT_IN: tuple[RelationDefaults, ...] = (Identity(), *GRADED)

_MEDMNIST = (
    "pathmnist", "bloodmnist", "dermamnist", "retinamnist", "tissuemnist", "octmnist",
    "breastmnist", "chestmnist", "pneumoniamnist", "organamnist", "organcmnist", "organsmnist",
)  # fmt: skip

_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"medmnistc/{flag}": (".medmnistc", (flag,)) for flag in _MEDMNIST},
    "imagenet-c": (".imagenet_c", ()),
    "medtest": (".medtest", ()),
    "medtest/classification": (".medtest", ("classification",)),
    "reduction": (".reduction", ()),
    "reic": (".reic", ()),
    "prompt": (".prompts", ()),
}
"""Family -> the module whose ``relations(*arguments)`` lists it, and the arguments."""


def names() -> list[str]:
    """The names of all built-in relations, identity first."""
    return [*_by_name()]


def families() -> list[str]:
    """The names that stand for several relations."""
    return [*_FAMILIES]


def get(name: str) -> RelationDefaults:
    """The built-in relation called ``name``; raises InputError naming the nearest one."""
    family = name.rpartition("/")[0]
    near = [*_BUILT_IN, *(_family(family) if family in _FAMILIES else ())]
    for relation in near:  # without importing any other family
        if relation.name == name:
            return relation
    raise unknown("relation", name, [*(r.name for r in near), *_FAMILIES])


def resolve(relations: Iterable[str | Relation]) -> list[RelationDefaults]:
    """Names, families and relations, as relations.

    Raises InputError for unknown or repeated names.
    """
    found: list[RelationDefaults] = []
    for relation in relations:
        if not isinstance(relation, str):
            found.append(adapted_relation(relation))
        elif relation in _FAMILIES:
            found += _family(relation)
        else:
            found.append(get(relation))
    seen: set[str] = set()
    for each in found:
        if each.name in seen:
            raise InputError(f"relations: {each.name!r} stands twice")
        seen.add(each.name)
    return found


@cache
def _family(name: str) -> tuple[RelationDefaults, ...]:
    module, arguments = _FAMILIES[name]
    return tuple(import_module(module, __package__).relations(*arguments))


@cache
def _by_name() -> dict[str, RelationDefaults]:
    listed = [*_BUILT_IN, *(r for family in _FAMILIES for r in _family(family))]
    return {relation.name: relation for relation in listed}
