"""FLEET.toml: several audits under one cap, each a SPEC.toml with what differs from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ..audit.fleet.broker import Caps
from ..errors import InputError
from ..models.checking import one_currency
from ..utils.figures import USD
from ..utils.files import Table, near_file, read_toml, toml_of
from . import Spec, parse_spec, read_spec
from .section import Section, told
from .sentences import sentence

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
DEFAULT_CONFIDENCE = 0.95
"""That all intervals of all members hold, where that is promised."""
_SHAPE = "a FLEET.toml has [fleet] with max_cost = ..., and [[member]] with spec = ... per audit"


class FleetSpec(Section):
    """What the members share."""

    max_cost: float | None = told(Caps, "max_cost")
    max_calls: int | None = told(Caps, "max_calls")
    at_a_time: int = told(Caps, "at_a_time")
    guarantee: Literal["each", "all"] = told(Caps, "guarantee")
    confidence: float | None = told(Caps, "confidence")


class MemberSpec(Section):
    """One audit of the fleet."""

    spec: str = Field(description="its SPEC.toml, starting at the folder of the FLEET.toml")
    name: str | None = Field(
        None,
        description="its folder in the fleet's (default: the spec's name, or that of its folder)",
    )
    set: dict[str, Table] = Field(
        {}, description="fields that differ from its spec: section -> field -> value"
    )


@dataclass(frozen=True)
class FleetMember:
    """One audit: its folder's name, its spec, and the folder that the spec's paths start at.

    ``budget`` and ``max_cost`` in the spec are its own limits, or the fleet's where those are less.
    """

    name: str
    spec: Spec
    base: Path


@dataclass(frozen=True)
class Fleet:
    """A FLEET.toml, read and checked."""

    caps: Caps
    members: tuple[FleetMember, ...]


def read_fleet(path: Path, *, max_cost: float | None = None, max_calls: int | None = None) -> Fleet:
    """The fleet at ``path``, under other caps where these are given.

    Raises InputError naming file and field for anything wrong there or in a member's spec.
    """
    table = read_toml(path, "a FLEET.toml", lambda path: near_file(path) or f"; {_SHAPE}")
    if "model" in table:
        raise InputError(
            f"{path}: expected a FLEET.toml, got a SPEC.toml, which 'avtt audit' takes"
        )
    for name in table:
        if name not in ("fleet", "member"):
            raise InputError(f"{path}: unknown section {name!r}; expected [fleet] and [[member]]")
    given = {"max_cost": max_cost, "max_calls": max_calls}
    caps = {n: v for n, v in given.items() if v is not None}
    shared = _parsed(FleetSpec, {**_section(table, path), **caps}, f"{path}: fleet")
    _check_caps(shared, path)
    found = [
        _member(row, f"{path}: member {place}", path.parent)
        for place, row in enumerate(_members(table, path), 1)
    ]
    _check_names([member.name for member in found], path)
    members = tuple(_limited(member, shared, len(found), path) for member in found)
    sure = (shared.confidence or DEFAULT_CONFIDENCE) if shared.guarantee == "all" else None
    agreed = {**shared.model_dump(), "confidence": sure, "currency": _currency(members, path)}
    return Fleet(Caps(**agreed), members)


def _currency(members: Sequence[FleetMember], path: Path) -> str:
    """Of all members that pay; raises InputError where they pay in several, as they share a cap."""
    paid = [
        (getattr(member.spec.model, "currency", None) or USD, member.name)
        for member in members
        if member.spec.model.costs_money
    ]
    return one_currency(paid, f"{path}: member: model") or USD


def _check_caps(shared: FleetSpec, path: Path) -> None:
    if shared.max_cost is None and shared.max_calls is None:
        raise InputError(
            f"{path}: fleet: expected max_cost (money), max_calls, or both, as a fleet shares a "
            "cap; got neither"
        )
    if shared.confidence is not None and shared.guarantee == "each":
        raise InputError(
            f'{path}: fleet.confidence: expected none where the guarantee is "each", as every '
            f'member has its own; got {shared.confidence}; write guarantee = "all", or give '
            "confidence under set.certify of a member"
        )


def _section(table: Mapping[str, Any], path: Path) -> Table:
    found = table.get("fleet", {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: fleet: expected a section [fleet], got {found!r}")
    return found


def _members(table: Mapping[str, Any], path: Path) -> list[Any]:
    rows = table.get("member", [])
    if isinstance(rows, dict):
        raise InputError(f"{path}: member: expected [[member]], in double brackets, got [member]")
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: member: expected one [[member]] per audit, got none")
    return rows


def _parsed(section: type[Any], table: Any, where: str) -> Any:
    try:
        return section.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "missing":
            missing = ".".join(map(str, first["loc"]))
            raise InputError(f"{where}: {missing}: expected the path of a SPEC.toml") from None
        raise sentence(error, where, section, {}) from None


def _member(row: Any, where: str, folder: Path) -> FleetMember:
    given: MemberSpec = _parsed(MemberSpec, row, where)
    path = folder / given.spec
    if not path.is_file():
        raise InputError(f"{where}: spec: {path}: no such file{near_file(path) or ''}")
    read_spec(path)  # says what is wrong there under its own name
    table = toml_of(path.read_text(encoding="utf-8"))
    for section, fields in given.set.items():
        table[section] = {**table.get(section, {}), **fields}
    name = given.name or (path.stem if path.stem.upper() != "SPEC" else path.parent.resolve().name)
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{where}: name: expected letters, digits, '_', '-' and '.', as it names a folder, got "
            f"{name!r}"
        )
    spec = parse_spec(table, f"{where} ({name}), set" if given.set else str(path))
    return FleetMember(name, spec, path.parent)


def _check_names(names: list[str], path: Path) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"{path}: member.name: expected another name for each, got {twice!r} twice; give "
            "name = ... to each"
        )


def _limited(member: FleetMember, shared: FleetSpec, count: int, path: Path) -> FleetMember:
    """The member under the fleet's caps, and with its part of what may go wrong."""
    audit, certify = member.spec.audit, member.spec.certify
    limits = {
        "max_cost": _least(audit.max_cost, shared.max_cost),
        "budget": _least(audit.budget, shared.max_calls),
    }
    spec = member.spec.model_copy(update={"audit": audit.model_copy(update=limits)})
    if shared.guarantee == "all" and certify.certifies:
        if certify.guarantee == "each":
            raise InputError(
                f'{path}: fleet.guarantee: expected members with guarantee = "all" where all '
                f'are to hold at once, got "each" of member {member.name!r}'
            )
        sure = 1 - (1 - (shared.confidence or DEFAULT_CONFIDENCE)) / count
        part = certify.model_copy(update={"confidence": sure})
        spec = spec.model_copy(update={"certify": part})
    return replace(member, spec=spec)


def _least(own: Any, cap: Any) -> Any:
    given = [limit for limit in (own, cap) if limit is not None]
    return min(given, default=None)
