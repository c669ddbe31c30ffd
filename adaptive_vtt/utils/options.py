"""The options of a part, which are annotated at its constructor.

    def from_table(
        labels: Annotated[Path | str, Option("CSV of labels", reads=at_base)],
        *,
        id_column: Annotated[str, Option("column of sample ids")] = "id",
    )

Fields of SPEC.toml, its reference and error messages follow from these annotations. A parameter
without an ``Option`` is available in Python only.
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

from ..errors import check_known, unexpected

_NUMBERS = {bool: "true or false", int: "a whole number", float: "a number"}
_LIMITS = {
    "gt": ("above", operator.gt),
    "ge": ("at least", operator.ge),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}


def at_base(value: str, base: Path) -> Path:
    """Return a path in a SPEC.toml, which is relative to the file's folder."""
    return base / value


class Option:
    """Description of a parameter, and of its values.

    Args:
        about: A text about the parameter.
        reads: Function from a value in SPEC.toml, and the file's folder, to the argument. Default
            None: the value is the argument.
        name: Name of the field in SPEC.toml. Default None: that of the parameter.
        type: Type of the field in SPEC.toml. Default None: that of the parameter.
        **limits: ``ge``, ``gt``, ``le``, ``lt``, ``min_length``, ``max_length``, ``pattern`` (of
            currencies).
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
    """Mark of a parameter whose argument ``made`` makes from options that join the others.

    It also marks ``**options`` that are arguments of ``made``.

    Attributes:
        made: A dataclass or function.
        defaults: Parameter -> default, in place of that of ``made``.
    """

    made: Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PartOption:
    """One option of a part.

    Attributes:
        name: Name of the field in SPEC.toml.
        parameter: Name of the parameter.
        annotation: Type of the parameter.
        default: Its default; Parameter.empty: it is required.
        option: Its description.
        group: Parameter and mark of its group; None: it is in none.
    """

    name: str
    parameter: str
    annotation: Any
    default: Any
    option: Option
    group: tuple[str, Group] | None = None


def options_of(made: Callable[..., Any]) -> list[PartOption]:
    """Return the options of a function, or of a class and its bases that get ``**options``."""
    options: dict[str, PartOption] = {}
    for function in _constructors(made):
        for parameter in signature(function).parameters.values():
            for option in _options(parameter):
                options.setdefault(option.name, option)
    return list(options.values())


def parameters_of(made: Callable[..., Any]) -> set[str]:
    """Return the names of all parameters, including those of bases that get ``**options``."""
    return {name for function in _constructors(made) for name in signature(function).parameters}


def arguments(made: Callable[..., Any], values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the arguments of a function for the fields of a SPEC.toml.

    Args:
        made: The function or class.
        values: Field -> value; a field of None gets its default.
        base: The folder of the file.
    """
    single: dict[str, Any] = {}
    groups: dict[str, tuple[Group, dict[str, Any]]] = {}
    for option in options_of(made):
        value = values.get(option.name)
        if value is None:
            continue
        argument = value if option.option.reads is None else option.option.reads(value, base)
        if option.group is None:
            single[option.parameter] = argument
        else:
            name, group = option.group
            groups.setdefault(name, (group, {**group.defaults}))[1][option.parameter] = argument
    return single | {name: group.made(**fields) for name, (group, fields) in groups.items()}


def check_options(made: Callable[..., Any], values: Mapping[str, Any], where: str = "") -> None:
    """Check arguments that are words or numbers; None is always valid.

    Args:
        made: The function or class with the options.
        values: Parameter -> argument; other names are ignored.
        where: The part, for errors.

    Raises:
        InputError: An argument is an unknown word, no number, or out of range.
    """
    for option in options_of(made):
        value = values.get(option.parameter)
        if value is not None and option.group is None:
            _check(option, value, where)


def _check(option: PartOption, value: Any, where: str) -> None:
    """Raise InputError unless a value is one of an option's words, or a number within its limits.

    Options of other types are not checked.
    """
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
    raise unexpected(f"{where}: {option.name}" if where else option.name, expected, repr(value))


def _is(value: Any, kind: Any) -> bool:
    """Return whether a value is a finite number of this type; for bool, 0 and 1 count, too."""
    if kind is bool:
        return isinstance(value, Integral | np.bool_) and value in (0, 1)
    number = Integral if kind is int else Real
    return isinstance(value, number) and not isinstance(value, bool) and math.isfinite(value)


def _constructors(made: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield a function, or the constructors of a class and of its bases that get ``**options``."""
    if not isclass(made):
        yield made
        return
    for kind in made.__mro__:
        if (function := vars(kind).get("__init__")) is not None:
            yield function
            parameters = signature(function).parameters.values()
            if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in parameters):
                return


def _options(parameter: Parameter) -> Iterator[PartOption]:
    """Yield the options that the annotation of a parameter describes."""
    for mark in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(mark, Option):
            kind = get_args(parameter.annotation)[0]
            name = mark.name or parameter.name
            yield PartOption(name, parameter.name, kind, parameter.default, mark)
        for option in options_of(mark.made) if isinstance(mark, Group) else ():
            if parameter.kind is Parameter.VAR_KEYWORD:  # each is an argument itself
                yield option
            else:
                default = mark.defaults.get(option.parameter, option.default)
                yield replace(option, default=default, group=(parameter.name, mark))
