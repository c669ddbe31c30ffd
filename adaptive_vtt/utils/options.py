"""What a part can be told, written once: at its constructor.

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
_LIMITS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
_HOLDS = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}


def at_base(value: str, base: Path) -> Path:
    """A path of a SPEC.toml, which starts at the file's folder."""
    return base / value


class Option:
    """What a parameter is, in words, and which values it takes.

    ``reads``: makes the argument of what a SPEC.toml says and of its folder. ``name``: of the
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
    """Marks a parameter that takes what ``made`` makes, whose options stand beside the others, or a
    ``**options`` that ``made`` takes.

    ``defaults``: what they are here, where that is not the dataclass's.
    """

    made: Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """One option of a part: ``name`` of its field, the parameter that takes it, and its group's
    parameter and marker, where it is in one. ``default``: Parameter.empty where it is needed."""

    name: str
    parameter: str
    annotation: Any
    default: Any
    option: Option
    group: tuple[str, Group] | None = None


def options_of(made: Callable[..., Any]) -> list[Told]:
    """The options of a function, or of a class and of those that its ``**options`` go to."""
    found: dict[str, Told] = {}
    for function in _constructors(made):
        for parameter in signature(function).parameters.values():
            for told in _told(parameter):
                found.setdefault(told.name, told)
    return list(found.values())


def parameters_of(made: Callable[..., Any]) -> set[str]:
    """The names of all parameters, those that ``**options`` stand for among them."""
    return {name for function in _constructors(made) for name in signature(function).parameters}


def arguments(made: Callable[..., Any], values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The arguments of ``made`` for the fields of a SPEC.toml in the folder ``base``; those that
    are None are left to their defaults."""
    found: dict[str, Any] = {}
    groups: dict[str, tuple[Group, dict[str, Any]]] = {}
    for told in options_of(made):
        value = values.get(told.name)
        if value is None:
            continue
        argument = value if told.option.reads is None else told.option.reads(value, base)
        if told.group is None:
            found[told.parameter] = argument
        else:
            name, group = told.group
            groups.setdefault(name, (group, {**group.defaults}))[1][told.parameter] = argument
    return found | {name: group.made(**own) for name, (group, own) in groups.items()}


def check_options(made: Callable[..., Any], values: Mapping[str, Any], where: str = "") -> None:
    """Raises InputError for the first of the arguments ``values`` of ``made`` that is none of its
    option's words, no number where one is expected, or one outside of its range.

    Options of other types are checked by what takes them; None leaves an option to its default.
    """
    for told in options_of(made):
        value = values.get(told.parameter)
        if value is not None and told.group is None:
            _check(told, value, where)


def _check(told: Told, value: Any, where: str) -> None:
    kinds = [kind for kind in _sides(told.annotation) if kind is not NoneType]
    words = [word for kind in kinds for word in get_args(kind) if get_origin(kind) is Literal]
    numbers = [kind for kind in kinds if get_origin(kind) is not Literal]
    if words and not numbers:
        check_known(told.name, str(value), words, where)
        return
    if value in words or not all(kind in _NUMBERS for kind in numbers):
        return
    limits = {name: told.option.limits[name] for name in _HOLDS if name in told.option.limits}
    is_number = any(_is(value, kind) for kind in numbers)
    if is_number and all(_HOLDS[name](value, limit) for name, limit in limits.items()):
        return
    place = f"{where}: " if where else ""
    infinite = isinstance(value, float) and math.isinf(value)
    names = {**_NUMBERS, float: "a finite number"} if infinite else _NUMBERS
    expected = [names[kind] + _range(limits) for kind in numbers] + [*map(repr, words)]
    raise InputError(f"{place}{told.name}: expected {' or '.join(expected)}, got {value!r}")


def _sides(annotation: Any) -> tuple[Any, ...]:
    """The sides of a union; another type by itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is a finite number of this kind; truth values are 0 and 1 alone."""
    if kind is bool:
        return isinstance(value, Integral | np.bool_) and value in (0, 1)
    number = Integral if kind is int else Real
    return isinstance(value, number) and not isinstance(value, bool) and math.isfinite(value)


def _range(limits: Mapping[str, Any]) -> str:
    """A range in words, after what is in it."""
    said = " and ".join(f"{_LIMITS[name]} {limit:.10g}" for name, limit in limits.items())
    return f" of {said}" if said.startswith("at ") else f" {said}" * bool(said)


def _constructors(made: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    if not isclass(made):
        yield made
        return
    for kind in made.__mro__:
        if (function := vars(kind).get("__init__")) is not None:
            yield function
            taken = signature(function).parameters.values()
            if all(each.kind is not Parameter.VAR_KEYWORD for each in taken):
                return


def _told(parameter: Parameter) -> Iterator[Told]:
    inner, *marks = get_args(parameter.annotation) or (None,)
    if not hasattr(parameter.annotation, "__metadata__"):
        return
    for mark in marks:
        if isinstance(mark, Option):
            name = mark.name or parameter.name
            yield Told(name, parameter.name, inner, parameter.default, mark)
        if isinstance(mark, Group):
            yield from _grouped(parameter, mark)


def _grouped(parameter: Parameter, mark: Group) -> Iterator[Told]:
    """The options of a group; those of a marked ``**options`` are arguments of their own."""
    for told in options_of(mark.made):
        if parameter.kind is Parameter.VAR_KEYWORD:
            yield told
        else:
            default = mark.defaults.get(told.parameter, told.default)
            yield replace(told, default=default, group=(parameter.name, mark))
