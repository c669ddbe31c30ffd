"""What all sections of a SPEC.toml have in common, and those that come in kinds."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from inspect import Parameter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from ..utils.options import Told, arguments, options_of, parameters_of
from ..utils.other_code import is_target
from ..utils.registry import Registry, first_line


class Section(BaseModel):
    """Fields are checked strictly; one that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _set(cls, table: Any) -> Any:
        """Journals hold null where nothing was set, which is as good as not being there."""
        if not isinstance(table, dict):
            return table
        return {name: value for name, value in table.items() if value is not None}

    def given(self, *apart: str) -> dict[str, Any]:
        """The fields that are set, without ``kind`` and those named."""
        return self.model_dump(exclude={"kind", *apart}, exclude_none=True)


class PlugIn(Section):
    """A part that is not built in: of an installed package, or of a file."""

    kind: str = Field(
        description="the name that a package declares (see 'avtt list'), 'file.py:name' or "
        "'package.module:name'"
    )
    options: dict[str, Any] = Field(
        {}, description="arguments of the class or function of that name"
    )
    registry: ClassVar[Registry]

    def made(self, base: Path, **_: Any) -> Any:
        """What the name stands for, called with the options; its code is imported."""
        return self.registry.checked(self.registry.make(self.kind, self.options, base), self.kind)


class Kinds(Section):
    """A section that comes in kinds: a class that inherits from this names what all of them have,
    and each kind's own fields are the options of what its registry has under that name."""

    registry: ClassVar[Registry]
    default: ClassVar[str]
    """The kind of a table that names none."""
    plug_in: ClassVar[type["Kinds"] | None] = None
    """The class of kinds that are other people's code, where those need one of their own."""

    kind: Any

    @classmethod
    def base_of(cls, made: Any) -> type["Kinds"]:
        """Return what the class of a kind inherits from, whose parts ``made`` makes."""
        return cls

    @classmethod
    def of(cls, kind: str) -> type[Self]:
        return _kind(cls, kind)

    @classmethod
    def kinds(cls) -> list[type["Kinds"]]:
        """The classes of all kinds, the default first, that of other people's code last."""
        names = sorted(cls.registry.built_in, key=lambda name: name != cls.default)
        return [*map(cls.of, names), _plug_in(cls)]

    @model_validator(mode="wrap")
    @classmethod
    def _chosen(cls, table: Any, handler: Callable[[Any], Self]) -> Self:
        """A table of the family's is one of the kind that it names."""
        if Kinds not in cls.__bases__ or not isinstance(table, dict):
            return handler(table)
        name = table.get("kind") or cls.default
        if not isinstance(name, str) or cls.registry.is_code(name):
            if isinstance(name, str) and not is_target(name) and not cls.registry.package_of(name):
                raise PydanticCustomError("unknown_kind", "unknown", {"tag": name})
            return cast("Self", _plug_in(cls).model_validate(table))
        return cls.of(name).model_validate(table)

    def made(self, base: Path, **context: Any) -> Any:
        """What the registry has under this kind, called with the options that are set, and with
        those of ``base`` and ``context`` that it takes."""
        made = self.registry.get(self.kind)
        taken = parameters_of(made)
        context = {n: v for n, v in {"base": base, **context}.items() if n in taken}
        return made(**{**context, **arguments(made, self.values(), base)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as a table of the family: the classes of kinds are made in each process."""
        family = next(each for each in type(self).__mro__ if Kinds in each.__bases__)
        return cast("type[Kinds]", family).model_validate, (self.model_dump(exclude_none=True),)

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).model_fields}


@cache
def _kind(family: type[Any], kind: str) -> type[Any]:
    """The class of a kind; its options are left to their own defaults where they are not set."""
    made = family.registry.get(kind)
    base = family.base_of(made)
    fields: dict[str, Any] = {"kind": (Literal[kind], kind)}
    for told in options_of(made):
        if told.name not in family.model_fields:
            fields[told.name] = _field(told)
    about = first_line(made)
    return create_model(f"{family.__name__}: {kind}", __base__=base, __doc__=about, **fields)


@cache
def _plug_in(family: type[Any]) -> type[Any]:
    """The class of a family's kinds that are other people's code."""
    if family.plug_in is not None:
        return family.plug_in
    about = f"A {family.registry.kind} of a package or file of your own."
    return create_model(f"{family.__name__}: code", __base__=(PlugIn, family), __doc__=about)


def _field(told: Told) -> tuple[Any, Any]:
    kind = told.option.type or in_toml(told.annotation)
    about: dict[str, Any] = {"description": told.option.about, **told.option.limits}
    if told.default is Parameter.empty:
        return kind, Field(**about)
    default = None if "(default" in told.option.about else plain(told.default)
    shown = None if default is None else {"default": default}
    return kind | None, Field(None, json_schema_extra=shown, **about)


def told(made: Callable[..., Any], name: str, *, set_here: bool = True) -> Any:
    """The field that the option ``name`` of ``made`` is in a section that is written by hand.

    ``set_here``: False for a field that may be left out, and then is left to ``made``, or ``made``
    is not called at all: of sections that several share.
    """
    option = next(each for each in options_of(made) if each.name == name)
    about: dict[str, Any] = {"description": option.option.about, **option.option.limits}
    if not set_here:
        return Field(None, **about)
    return (
        Field(**about)
        if option.default is Parameter.empty
        else Field(plain(option.default), **about)
    )


def plain(value: Any) -> Any:
    """A default as TOML writes it; None where it cannot."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | list) else None


def in_toml(annotation: Any) -> Any:
    """The type of what TOML holds for an argument of this type."""
    if annotation is Path:
        return str
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return in_toml(parts[0])
    if origin in (Union, UnionType):
        kinds = dict.fromkeys(in_toml(part) for part in parts if part is not NoneType)
        return Union[tuple(kinds)]  # noqa: UP007 - of a number that is not known
    if origin in (list, tuple, Sequence, Iterable):
        return list[in_toml(parts[0])]  # type: ignore[misc]  # a type that is made here
    if origin in (dict, Mapping):
        return dict[str, in_toml(parts[1])]  # type: ignore[misc]  # a type that is made here
    return annotation


def shown_default(field: FieldInfo) -> Any:
    """What a field is where it is not set; None where that depends, or nothing is."""
    if isinstance(field.json_schema_extra, dict):
        return field.json_schema_extra["default"]
    return field.get_default(call_default_factory=True)


def described(section: type[Section], name: str) -> str:
    """What a field is, and its default, in a sentence."""
    field = section.model_fields[name]
    default = f" (default: {json.dumps(field.default)})" if field.default else ""
    words = f"{field.description}{default}."
    return words[0].upper() + words[1:]


def classes_in(annotation: Any) -> list[type[Section]]:
    """The sections that an annotation names, a family by itself."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Section) else []
    parts = get_args(annotation)
    parts = parts[:1] if hasattr(annotation, "__metadata__") else parts
    return [found for part in parts for found in classes_in(part)]


def kinds_of(annotation: Any) -> list[type[Section]]:
    """The same with each family's kinds in its place, the default kind first."""
    found: list[type[Section]] = []
    for each in classes_in(annotation):
        found += each.kinds() if issubclass(each, Kinds) else [each]
    return found


def kind_name(section: type[Section]) -> str | None:
    """The kind that a class is for; None for plug-ins and for sections without kinds."""
    field = section.model_fields.get("kind")
    words = () if field is None else get_args(field.annotation)
    return words[0] if words else None
