"""The options of a part, written once: at its constructor.

    def from_table(
        labels: Annotated[Path | str, Option("CSV of labels", reads=at_base)],
        *,
        id_column: Annotated[str, Option("column of sample ids")] = "id",
    )

Fields of SPEC.toml, its reference and messages follow from these annotations. A parameter that is
not annotated so is for callers in Python alone.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, isclass, signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from ..errors import InputError, check_known

_NUMBERS = {bool: "true or false", int: "a whole number", float: "a number"}
_LIMITS = {
    "gt": ("above", operator.gt),
    "ge": ("at least", operator.ge),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}


def at_base(value: str, base: Path) -> Path:
    """Return a path of a SPEC.toml, which starts at the file's folder."""
    return base / value


class Option:
    """Description of a parameter, and the values it takes.

    ``reads``: makes the argument of a value in a SPEC.toml and of its folder. ``name``: of the
    field there, where it is not the parameter's. ``type``: its type there, where it is not what
    the parameter's makes in TOML. ``limits``: ``ge``, ``gt``, ``le``, ``lt``, ``min_length``,
    ``max_length``, ``pattern`` (of currencies).
    """

    def __init__(
        self,
        about: str,
        *,
        reads: Callable[[Any, Path], Any] | None = None,
        name: str | None = None,
        type: Any = None,
        **limits: float | str,
    ) -> None:
        self.about, self.reads, self.name, self.type, self.limits = about, reads, name, type, limits


@dataclass(frozen=True)
class Group:
    """Marks a parameter that takes what ``made`` makes, whose options join the others, or a
    ``**options`` that ``made`` takes. ``defaults`` take the place of the dataclass's."""

    made: Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PartOption:
    """One option of a part: ``name`` of its field, the parameter that takes it, and its group's
    parameter and marker, where it is in one. ``default``: Parameter.empty where it is needed."""

    name: str
    parameter: str
    annotation: Any
    default: Any
    option: Option
    group: tuple[str, Group] | None = None


def options_of(made: Callable[..., Any]) -> list[PartOption]:
    """Return the options of a function, or of a class and of those that its ``**options`` go to."""
    options: dict[str, PartOption] = {}
    for function in _constructors(made):
        for parameter in signature(function).parameters.values():
            for option in _options(parameter):
                options.setdefault(option.name, option)
    return list(options.values())


def parameters_of(made: Callable[..., Any]) -> set[str]:
    """Return the names of all parameters, those that ``**options`` stand for among them."""
    return {name for function in _constructors(made) for name in signature(function).parameters}


def arguments(made: Callable[..., Any], values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the arguments of ``made`` for the fields of a SPEC.toml in the folder ``base``; those
    that are None are left to their defaults."""
    taken: dict[str, Any] = {}
    groups: dict[str, tuple[Group, dict[str, Any]]] = {}
    for each in options_of(made):
        value = values.get(each.name)
        if value is None:
            continue
        argument = value if each.option.reads is None else each.option.reads(value, base)
        if each.group is None:
            taken[each.parameter] = argument
        else:
            name, group = each.group
            groups.setdefault(name, (group, {**group.defaults}))[1][each.parameter] = argument
    return taken | {name: group.made(**own) for name, (group, own) in groups.items()}


def check_options(made: Callable[..., Any], values: Mapping[str, Any], where: str = "") -> None:
    """Check arguments of ``made`` whose options take words or numbers; None is always taken.

    Raises:
        InputError: An argument is none of its option's words, no number, or out of range.
    """
    for each in options_of(made):
        value = values.get(each.parameter)
        if value is not None and each.group is None:
            _check(each, value, where)


def _check(option: PartOption, value: Any, where: str) -> None:
    union = get_origin(option.annotation) in (Union, UnionType)
    sides = get_args(option.annotation) if union else (option.annotation,)
    words = [word for side in sides if get_origin(side) is Literal for word in get_args(side)]
    kinds = [side for side in sides if side is not NoneType and get_origin(side) is not Literal]
    if words and not kinds:
        check_known(option.name, str(value), words, where)
        return
    if value in words or not all(kind in _NUMBERS for kind in kinds):
        return
    limits = {n: limit for n, limit in option.option.limits.items() if n in _LIMITS}
    within = (_LIMITS[name][1](value, limit) for name, limit in limits.items())
    if any(_is(value, kind) for kind in kinds) and all(within):
        return
    bounds = " and ".join(f"{_LIMITS[n][0]} {limits[n]:.10g}" for n in _LIMITS if n in limits)
    bounds = f" of {bounds}" if bounds.startswith("at ") else f" {bounds}".rstrip()
    infinite = isinstance(value, float) and math.isinf(value)
    names = {**_NUMBERS, float: "a finite number"} if infinite else _NUMBERS
    expected = " or ".join([*(names[kind] + bounds for kind in kinds), *map(repr, words)])
    place = f"{where}: " if where else ""
    raise InputError(f"{place}{option.name}: expected {expected}, got {value!r}")


def _is(value: Any, kind: Any) -> bool:
    """Return whether a value is a finite number of this kind; truth values are 0 and 1 alone."""
    if kind is bool:
        return isinstance(value, Integral | np.bool_) and value in (0, 1)
    number = Integral if kind is int else Real
    return isinstance(value, number) and not isinstance(value, bool) and math.isfinite(value)


def _constructors(made: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    if not isclass(made):
        yield made
        return
    for kind in made.__mro__:
        if (function := vars(kind).get("__init__")) is not None:
            yield function
            parameters = signature(function).parameters.values()
            if all(each.kind is not Parameter.VAR_KEYWORD for each in parameters):
                return


def _options(parameter: Parameter) -> Iterator[PartOption]:
    for mark in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(mark, Option):
            kind = get_args(parameter.annotation)[0]
            name = mark.name or parameter.name
            yield PartOption(name, parameter.name, kind, parameter.default, mark)
        for each in options_of(mark.made) if isinstance(mark, Group) else ():
            if parameter.kind is Parameter.VAR_KEYWORD:  # arguments of their own
                yield each
            else:
                default = mark.defaults.get(each.parameter, each.default)
                yield replace(each, default=default, group=(parameter.name, mark))
