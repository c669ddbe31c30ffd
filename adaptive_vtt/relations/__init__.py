"""Relations by name: what spans the question space besides the samples themselves."""

from collections.abc import Iterable

from ..errors import InputError, unknown
from .base import FollowUp, LabelPreserving, Relation
from .graded import GRADED, Graded, Identity

__all__ = ["FollowUp", "Graded", "Identity", "LabelPreserving", "Relation", "get", "names"]

_BUILT_IN: tuple[Relation, ...] = (Identity(), *GRADED)
_REGISTRY: dict[str, Relation] = {r.name: r for r in _BUILT_IN}


def names() -> list[str]:
    """The names of all built-in relations, identity first."""
    return list(_REGISTRY)


def get(name: str) -> Relation:
    """The built-in relation called ``name``; raises InputError naming the nearest one."""
    if name not in _REGISTRY:
        raise unknown("relation", name, _REGISTRY)
    return _REGISTRY[name]


def resolve(relations: Iterable[str | Relation]) -> list[Relation]:
    """Names and relations, as relations; raises InputError for unknown or repeated names."""
    found = [get(r) if isinstance(r, str) else r for r in relations]
    seen: set[str] = set()
    for relation in found:
        if relation.name in seen:
            raise InputError(f"relations: {relation.name!r} stands twice")
        seen.add(relation.name)
    return found
