"""What is wrong with a SPEC.toml, in one sentence."""

import json
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ..errors import InputError, unknown
from .models import NOT_HERE
from .section import Kinds, Section, classes_in, kind_name, kinds_of

PERCENT = 100
_PLAINLY = {"a valid boolean": "true or false", "valid list": "list", "valid tuple": "list"}
_SIDES = ("bool", "int", "float", "str")
_TABLES = ("model_type", "model_attributes_type")
"""pydantic's names for what is no section."""
_MAY_HOLD_KEYS = ("url", "key", "headers", "options", "request")
"""Fields of [model] whose values no message repeats."""


def sentence(
    error: ValidationError,
    where: str,
    spec: type[Section],
    table: Mapping[str, Any],
    called: Mapping[str, str] | None = None,
) -> InputError:
    """The first thing wrong, with the field and, for names, the nearest one; what is missing
    comes last. ``spec``: the class that was validated, ``table``: what it was to hold; ``called``:
    what options gave fields."""
    first = min(error.errors(), key=lambda each: each["type"] == "missing")
    path = [str(part) for part in first["loc"]]
    kind = _kind(path[0], spec, table)
    field = ".".join(part for part in path if not _is_side(part))
    found = _wrong_name(first, path, kind, where, spec)
    if found is not None:
        return found
    if first["type"] == "missing":
        return InputError(f"{where}: {field}: expected {_missing(path, kind, spec)}")
    expected = _expected(first)
    if _is_side(path[-1]):
        sides = [e for e in error.errors() if e["loc"][:-1] == first["loc"][:-1]]
        expected = " or ".join(dict.fromkeys(map(_expected, sides)))
    expected += _held(first, _field(path, kind, spec))
    got = f"{first['input']!r}{_remedy(first)}"
    if path[:1] == ["model"] and path[1:2] and path[1] in _MAY_HOLD_KEYS:
        got = f"{type(first['input']).__name__}, not repeated as it may hold a key"
    return InputError(
        f"{(called or {}).get(field, f'{where}: {field}')}: expected {expected}, got {got}"
    )


def _missing(path: list[str], kind: str | None, spec: type[Section]) -> str:
    """What was expected where nothing stands, in the words of the field's description."""
    if kind is None:
        return "this section or field, got nothing; 'avtt init DIR' writes a SPEC.toml that has it"
    field = _field(path, kind, spec)
    choices = [] if field is None else [w for w in get_args(field.annotation) if isinstance(w, str)]
    about = (None if field is None else field.description) or "a value"
    words = f" ({', '.join(map(repr, choices))})" if choices else ""
    return f"{about}{words}, got nothing; kind {kind!r} needs {path[-1]} = ... in [{path[0]}]"


def _field(path: list[str], kind: str | None, spec: type[Section]) -> FieldInfo | None:
    """The field of a section that a path leads to, or into; None where it is not found."""
    if len(path) < 2 or path[0] not in spec.model_fields:
        return None
    return _class(spec, path[0], kind).model_fields.get(path[1])


def _is_side(part: str) -> bool:
    """Whether a part of a place is pydantic's name for one side of a union, such as "a boolean or
    a word"."""
    return part in _SIDES or part.startswith(("constrained-", "list[", "literal["))


def _held(wrong: Any, field: FieldInfo | None) -> str:
    """Of a list of numbers what it holds, in the words of the field's description."""
    lists = wrong["type"] in ("list_type", "too_long", "too_short")
    if not lists or field is None or "str" in str(field.annotation):
        return ""
    return f" ({field.description})"


def _remedy(wrong: Any) -> str:
    """What to write instead, where what was written tells."""
    kind, got = wrong["type"], wrong["input"]
    if kind == "list_type" and isinstance(got, str) and not got[:1].isdecimal():
        return f"; write [{json.dumps(got)}]"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(got, str):
        return "; write it without quotes" if _is_plain(got) else ""
    if kind == "string_type" and isinstance(got, int | float):
        return f'; write "{got}"'
    bound = wrong["ctx"].get("lt", wrong["ctx"].get("le")) if "less_than" in kind else 0
    if round(bound, 5) == 1 and 1 < got <= PERCENT:
        return f"; it is a share: write {got / PERCENT:g} for {got:g} %"
    if kind == "too_short" and not got:
        return "; leave the field out for its default"
    return ""


def _is_plain(text: str) -> bool:
    try:
        return text in ("true", "false") or float(text) is not None
    except ValueError:
        return False


def _expected(wrong: Any) -> str:
    if wrong["type"] in ("too_short", "too_long"):
        few = wrong["type"] == "too_short"
        count = wrong["ctx"]["min_length" if few else "max_length"]
        return f"at {'least' if few else 'most'} {count} item{'s' * (count != 1)}"
    if wrong["type"] == "string_pattern_mismatch":  # the only one is that of currencies
        return "three capitals, as in 'EUR'"
    if wrong["type"] in _TABLES:
        return f"a table of fields ([{'.'.join(map(str, wrong['loc'][:1]))}] once)"
    words: str = wrong["msg"].removeprefix("Input should be ").lower()
    for said, plainly in _PLAINLY.items():
        words = words.replace(said, plainly)
    return words


def _wrong_name(
    first: Any, path: list[str], kind: str | None, where: str, spec: type[Section]
) -> InputError | None:
    """The sentence where a field, a kind or a word does not exist; else None."""
    field = ".".join(path)
    if first["type"] == "extra_forbidden":
        *section, name = path
        if kind is not None and any(name in k.model_fields for k in _kinds(spec, section[0])):
            remedy = NOT_HERE if name == "workers" else ""
            return InputError(f"{where}: {field}: is no field of kind {kind!r}{remedy}")
        place = f"{where}: {'.'.join(section) or 'top level'}"
        error = unknown("field", name, _fields(spec, section, kind), place)
        others = [
            s for s in spec.model_fields if any(name in k.model_fields for k in _kinds(spec, s))
        ]
        return InputError(f"{error}; it stands in [{others[0]}]") if others else error
    if first["type"] == "unknown_kind":
        kinds = [tag for each in _kinds(spec, path[0]) if (tag := kind_name(each))]
        error = unknown("value", str(first["ctx"]["tag"]), kinds, f"{where}: {field}.kind")
        return InputError(f"{error}; 'avtt list {field}s' describes them")
    if first["type"] == "literal_error":
        choices = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return unknown("value", str(first["input"]), choices, f"{where}: {field}")
    return None


def _kind(section: str, spec: type[Section], table: Mapping[str, Any]) -> str | None:
    if section not in spec.model_fields:
        return None
    given = table.get(section)
    for each in classes_in(spec.model_fields[section].annotation):
        if issubclass(each, Kinds):
            named = given.get("kind") if isinstance(given, dict) else getattr(given, "kind", None)
            return str(named or each.default)
    return None


def _kinds(spec: type[Section], section: str) -> list[type[Section]]:
    return kinds_of(spec.model_fields[section].annotation)


def _fields(spec: type[Section], path: list[str], kind: str | None) -> list[str]:
    if not path:
        return list(spec.model_fields)
    return list(_class(spec, path[0], kind).model_fields)


def _class(spec: type[Section], section: str, kind: str | None) -> type[Section]:
    kinds = _kinds(spec, section)
    return next((each for each in kinds if kind_name(each) == kind), kinds[-1])
