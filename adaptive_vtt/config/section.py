"""Base of all sections of a SPEC.toml, and of those that come in kinds."""

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

from ..utils.options import arguments, options_of, parameters_of
from ..utils.other_code import is_target
from ..utils.registry import Registry, first_line


class Section(BaseModel):
    """Section whose fields are checked strictly; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _set(cls, table: Any) -> Any:
        """Drop null, which journals hold for fields that were not set."""
        if isinstance(table, dict):
            return {name: value for name, value in table.items() if value is not None}
        return table

    def given(self, *apart: str) -> dict[str, Any]:
        """Return the fields that are set, without ``kind`` and those of ``apart``."""
        return self.model_dump(exclude={"kind", *apart}, exclude_none=True)


class PlugIn(Section):
    """Part of an installed package, or of a file of your own."""

    kind: str = Field(
        description="the name that a package declares (see 'avtt list'), 'file.py:name' or "
        "'package.module:name'"
    )
    options: dict[str, Any] = Field(
        {}, description="arguments of the class or function of that name"
    )
    registry: ClassVar[Registry]

    def made(self, base: Path, **_: Any) -> Any:
        """Import the code that the name stands for, and call it with the options."""
        return self.registry.checked(self.registry.make(self.kind, self.options, base), self.kind)


class Kinds(Section):
    """Section that comes in kinds. A subclass has the fields of all kinds; the fields of one kind
    are the options of the registry's entry of that name."""

    registry: ClassVar[Registry]
    default: ClassVar[str]
    """The kind of a table that names none."""
    plug_in: ClassVar[type["Kinds"] | None] = None
    """The class of kinds that are other people's code, if they need one of their own."""

    kind: Any

    @classmethod
    def base_of(cls, made: Any) -> type["Kinds"]:
        """Return the base class of the kind whose parts the function or class ``made`` makes."""
        return cls

    @classmethod
    def of(cls, kind: str) -> type[Self]:
        """Return the class of a kind."""
        return _kind(cls, kind)

    @classmethod
    def kinds(cls) -> list[type["Kinds"]]:
        """Return the classes of all kinds, the default first, that of other people's code last."""
        names = sorted(cls.registry.built_in, key=lambda name: name != cls.default)
        return [*map(cls.of, names), _plug_in(cls)]

    @model_validator(mode="wrap")
    @classmethod
    def _chosen(cls, table: Any, handler: Callable[[Any], Self]) -> Self:
        """Validate a table of the family as the kind that it names."""
        if Kinds not in cls.__bases__ or not isinstance(table, dict):
            return handler(table)
        name = table.get("kind") or cls.default
        if isinstance(name, str) and not cls.registry.is_code(name):
            return cls.of(name).model_validate(table)
        if isinstance(name, str) and not is_target(name) and not cls.registry.package_of(name):
            raise PydanticCustomError("unknown_kind", "unknown", {"tag": name})
        return cast("Self", _plug_in(cls).model_validate(table))

    def made(self, base: Path, **context: Any) -> Any:
        """Call the registry's entry of this kind with the options that are set, and with ``base``
        and ``context`` as far as it takes them."""
        made = self.registry.get(self.kind)
        taken = parameters_of(made)
        context = {n: v for n, v in {"base": base, **context}.items() if n in taken}
        return made(**{**context, **arguments(made, self.values(), base)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a table of the family: the classes of kinds are made in each process."""
        family = next(each for each in type(self).__mro__ if Kinds in each.__bases__)
        return cast("type[Kinds]", family).model_validate, (self.model_dump(exclude_none=True),)

    def values(self) -> dict[str, Any]:
        """Return all fields."""
        return {name: getattr(self, name) for name in type(self).model_fields}


@cache
def _kind(family: type[Any], kind: str) -> type[Any]:
    """Return the class of a kind; options that are not set keep their defaults."""
    made = family.registry.get(kind)
    fields: dict[str, Any] = {"kind": (Literal[kind], kind)}
    for each in options_of(made):
        if each.name in family.model_fields:
            continue
        type_ = each.option.type or in_toml(each.annotation)
        about: dict[str, Any] = {"description": each.option.about, **each.option.limits}
        fields[each.name] = type_, Field(**about)
        if each.default is not Parameter.empty:
            default = None if "(default" in each.option.about else plain(each.default)
            shown = None if default is None else {"default": default}
            fields[each.name] = type_ | None, Field(None, json_schema_extra=shown, **about)
    name, base = f"{family.__name__}: {kind}", family.base_of(made)
    return create_model(name, __base__=base, __doc__=first_line(made), **fields)


@cache
def _plug_in(family: type[Any]) -> type[Any]:
    """Return the class of a family's kinds that are other people's code."""
    if family.plug_in is not None:
        return family.plug_in
    about = f"A {family.registry.kind} of a package or file of your own."
    return create_model(f"{family.__name__}: code", __base__=(PlugIn, family), __doc__=about)


def option(made: Callable[..., Any], name: str, *, set_here: bool = True) -> Any:
    """Return the field for the option ``name`` of ``made``, for a section that is written by hand.

    ``set_here``: False for a field without a default: if it is left out, that of ``made`` applies,
    or ``made`` is not called.
    """
    each = next(each for each in options_of(made) if each.name == name)
    needed = each.default is Parameter.empty
    default = None if not set_here else ... if needed else plain(each.default)
    about: dict[str, Any] = {"description": each.option.about, **each.option.limits}
    return Field(default, **about)


def fields_of(
    made: Callable[..., Any], *, set_here: bool = True, **types: Any
) -> dict[str, tuple[Any, Any]]:
    """Return all options of ``made`` as fields. ``types``: types of options that differ in TOML;
    ``set_here``: as for ``option``."""
    fields = {}
    for each in options_of(made):
        kind = types.get(each.name) or each.option.type or in_toml(each.annotation)
        field = option(made, each.name, set_here=set_here)
        fields[each.name] = (kind | None if field.default is None else kind), field
    return fields


def made_of(*fields: Mapping[str, tuple[Any, Any]]) -> Any:
    """Return a section with these fields, to inherit from."""
    named = {name: field for each in fields for name, field in each.items()}
    return create_model("Options", __base__=Section, **named)  # type: ignore[call-overload]


def plain(value: Any) -> Any:
    """Return a default as TOML writes it; None if it cannot."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | list) else None


def in_toml(annotation: Any) -> Any:
    """Return the type that TOML holds for an argument of this type."""
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
    """Return the default of a field; None if it depends on others, or there is none."""
    if isinstance(field.json_schema_extra, dict):
        return field.json_schema_extra["default"]
    return field.get_default(call_default_factory=True)


def described(section: type[Section], name: str) -> str:
    """Return the description of a field, and its default, as a sentence."""
    field = section.model_fields[name]
    default = f" (default: {json.dumps(field.default)})" if field.default else ""
    words = f"{field.description}{default}."
    return words[0].upper() + words[1:]


def classes_in(annotation: Any) -> list[type[Section]]:
    """Return the sections that an annotation names, a family as itself."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Section) else []
    parts = get_args(annotation)
    parts = parts[:1] if hasattr(annotation, "__metadata__") else parts
    return [each for part in parts for each in classes_in(part)]


def kinds_of(annotation: Any) -> list[type[Section]]:
    """Return the sections of an annotation, a family as its kinds, the default kind first."""
    kinds: list[type[Section]] = []
    for each in classes_in(annotation):
        kinds += each.kinds() if issubclass(each, Kinds) else [each]
    return kinds


def kind_name(section: type[Section]) -> str | None:
    """Return the kind that a class is for; None for plug-ins and for sections without kinds."""
    field = section.model_fields.get("kind")
    words = () if field is None else get_args(field.annotation)
    return words[0] if words else None
