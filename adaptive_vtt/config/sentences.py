"""Errors of a SPEC.toml, each as one sentence."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..errors import InputError, unexpected, unknown
from .models import NOT_HERE
from .section import Kinds, Section, classes_in, kind_name, kinds_of

Whole = TypeVar("Whole", bound=Section)
PERCENT = 100
_PLAINLY = {"a valid boolean": "true or false", "valid list": "list", "valid tuple": "list"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_SIDES = ("bool", "int", "float", "str")
_TABLES = ("model_type", "model_attributes_type")
"""pydantic's names for a value that is no section."""
_MAY_HOLD_KEYS = ("url", "key", "headers", "options", "request")
"""Fields of [model] whose values no message repeats."""


def validated(
    spec: type[Whole], table: Mapping[str, Any], where: str, called: Mapping[str, str] | None = None
) -> Whole:
    """Return a table as a section.

    Args:
        spec: The class of the section.
        table: Its fields.
        where: The file, for messages.
        called: Field -> option that set it.

    Raises:
        InputError: A field is wrong.
    """
    try:
        return spec.model_validate(table)
    except ValidationError as error:
        raise _sentence(error, where, spec, table, called) from None


def _sentence(
    error: ValidationError,
    where: str,
    spec: type[Section],
    table: Mapping[str, Any],
    called: Mapping[str, str] | None,
) -> InputError:
    """Return the first error, with the field and, for unknown names, the nearest one. Missing
    fields come last."""
    first = min(error.errors(), key=lambda each: each["type"] == "missing")
    path, got = [str(part) for part in first["loc"]], first["input"]
    kind, field = _kind(path[0], spec, table), ".".join(p for p in path if not _is_side(p))
    if (wrong := _wrong_name(first, path, kind, where, spec)) is not None:
        return wrong
    about = None
    if len(path) > 1 and path[0] in spec.model_fields:
        about = _class(spec, path[0], kind).model_fields.get(path[1])
    if first["type"] == "missing":
        return InputError(f"{where}: {field}: expected {_missing(path, kind, about)}")
    expected = _expected(first)
    if _is_side(path[-1]):
        sides = [e for e in error.errors() if e["loc"][:-1] == first["loc"][:-1]]
        expected = " or ".join(dict.fromkeys(map(_expected, sides)))
    lists = first["type"] in ("list_type", "too_long", "too_short")
    if lists and about is not None and "str" not in str(about.annotation):
        expected += f" ({about.description})"
    text = f"{got!r}{_remedy(first)}"
    if path[:1] == ["model"] and path[1:2] and path[1] in _MAY_HOLD_KEYS:
        text = f"{type(got).__name__}, not repeated as it may hold a key"
    return unexpected((called or {}).get(field, f"{where}: {field}"), expected, text)


def _missing(path: list[str], kind: str | None, field: FieldInfo | None) -> str:
    """Return the description of a missing field."""
    if kind is None:
        return "this section or field, got nothing; 'avtt init DIR' writes a SPEC.toml that has it"
    choices = [] if field is None else [w for w in get_args(field.annotation) if isinstance(w, str)]
    about = (None if field is None else field.description) or "a value"
    words = f" ({', '.join(map(repr, choices))})" if choices else ""
    return f"{about}{words}, got nothing; kind {kind!r} needs {path[-1]} = ... in [{path[0]}]"


def _is_side(part: str) -> bool:
    """Return whether a part of a path is pydantic's name for one side of a union, such as "a
    boolean or a word"."""
    return part in _SIDES or part.startswith(("constrained-", "list[", "literal["))


def _remedy(wrong: Any) -> str:
    """Return advice on what to write, if the input suggests it; else ""."""
    kind, got = wrong["type"], wrong["input"]
    if kind == "list_type" and isinstance(got, str) and not got[:1].isdecimal():
        return f"; write [{json.dumps(got)}]"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(got, str):
        plain = got in ("true", "false") or _NUMBER.fullmatch(got)
        return "; write it without quotes" if plain else ""
    if kind == "string_type" and isinstance(got, int | float):
        return f'; write "{got}"'
    bound = wrong["ctx"].get("lt", wrong["ctx"].get("le")) if "less_than" in kind else 0
    if round(bound, 5) == 1 and 1 < got <= PERCENT:
        return f"; it is a share: write {got / PERCENT:g} for {got:g} %"
    return "; leave the field out for its default" if kind == "too_short" and not got else ""


def _expected(wrong: Any) -> str:
    kind = wrong["type"]
    if kind in ("too_short", "too_long"):
        count = wrong["ctx"]["min_length" if kind == "too_short" else "max_length"]
        least = "least" if kind == "too_short" else "most"
        return f"at {least} {count} item{'s' * (count != 1)}"
    if kind == "string_pattern_mismatch":  # the only one is that of currencies
        return "three capitals, as in 'EUR'"
    if kind in _TABLES:
        return f"a table of fields ([{'.'.join(map(str, wrong['loc'][:1]))}] once)"
    words: str = wrong["msg"].removeprefix("Input should be ").lower()
    for word, plain in _PLAINLY.items():
        words = words.replace(word, plain)
    return words


def _wrong_name(
    first: Any, path: list[str], kind: str | None, where: str, spec: type[Section]
) -> InputError | None:
    """Return the error for a field, a kind or a word that does not exist; else None."""
    field = ".".join(path)
    if first["type"] == "extra_forbidden":
        *section, name = path
        having = [
            s for s in spec.model_fields if any(name in k.model_fields for k in _kinds(spec, s))
        ]
        if kind is not None and section[0] in having:
            remedy = NOT_HERE if name == "workers" else ""
            return InputError(f"{where}: {field}: is no field of kind {kind!r}{remedy}")
        known = _class(spec, section[0], kind) if section else spec
        place = f"{where}: {'.'.join(section) or 'top level'}"
        error = unknown("field", name, known.model_fields, place)
        return InputError(f"{error}; it belongs to [{having[0]}]") if having else error
    if first["type"] == "unknown_kind":
        kinds = [tag for each in _kinds(spec, path[0]) if (tag := kind_name(each))]
        error = unknown("value", str(first["ctx"]["tag"]), kinds, f"{where}: {field}.kind")
        return InputError(f"{error}; 'avtt list {field}s' describes them")
    if first["type"] == "literal_error":
        choices = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return unknown("value", str(first["input"]), choices, f"{where}: {field}")
    return None


def _kind(section: str, spec: type[Section], table: Mapping[str, Any]) -> str | None:
    """Return the kind of a section in a table; None for sections without kinds."""
    given, field = table.get(section), spec.model_fields.get(section)
    for each in classes_in(field.annotation) if field else []:
        if issubclass(each, Kinds):
            named = given.get("kind") if isinstance(given, dict) else getattr(given, "kind", None)
            return str(named or each.default)
    return None


def _kinds(spec: type[Section], section: str) -> list[type[Section]]:
    return kinds_of(spec.model_fields[section].annotation)


def _class(spec: type[Section], section: str, kind: str | None) -> type[Section]:
    kinds = _kinds(spec, section)
    return next((each for each in kinds if kind_name(each) == kind), kinds[-1])
