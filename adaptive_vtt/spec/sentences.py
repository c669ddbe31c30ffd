"""What is wrong with a SPEC.toml, in one sentence."""

from typing import Any

from pydantic import ValidationError

from ..errors import InputError, unknown
from .section import PLUG_IN, Section, kind_name, kinds_of

_MAY_HOLD_KEYS = ("url", "key", "headers", "options", "request", "command")
"""Fields of [model] whose values no message repeats."""


def sentence(error: ValidationError, where: str, spec: type[Section]) -> InputError:
    """The first thing wrong, with the field and, for names, the nearest one; what is missing
    comes last. ``spec``: the class that was validated."""
    first = min(error.errors(), key=lambda each: each["type"] == "missing")
    path, kind = _without_kind([str(part) for part in first["loc"]], spec)
    field = ".".join(path)
    found = _wrong_name(first, path, kind, where, spec)
    if found is not None:
        return found
    if first["type"] == "missing":
        what = "this section or field" if kind is None else "a value for this kind"
        return InputError(f"{where}: {field}: expected {what}, got nothing")
    expected = _expected(first)
    if path[-1] == "bool":  # pydantic's name for one side of "a boolean or a word"
        sides = [e for e in error.errors() if e["loc"][:-1] == first["loc"][:-1]]
        field, expected = ".".join(path[:-1]), " or ".join(map(_expected, sides))
    got = repr(first["input"])
    if path[:1] == ["model"] and path[1:2] and path[1] in _MAY_HOLD_KEYS:
        got = f"{type(first['input']).__name__}, not repeated as it may hold a key"
    return InputError(f"{where}: {field}: expected {expected}, got {got}")


def _expected(wrong: Any) -> str:
    words = wrong["msg"].removeprefix("Input should be ").lower()
    return str(words.replace("a valid boolean", "true or false"))


def _wrong_name(
    first: Any, path: list[str], kind: str | None, where: str, spec: type[Section]
) -> InputError | None:
    """The sentence where a field, a kind or a word does not exist; else None."""
    field = ".".join(path)
    if first["type"] == "extra_forbidden":
        *section, name = path
        if kind is not None and any(name in k.model_fields for k in _kinds(spec, section[0])):
            return InputError(f"{where}: {field}: is no field of kind {kind!r}")
        place = f"{where}: {'.'.join(section) or 'top level'}"
        return unknown("field", name, _fields(spec, section, kind), place)
    if first["type"] == "union_tag_invalid":
        kinds = [tag for each in _kinds(spec, path[0]) if (tag := kind_name(each))]
        return unknown("value", str(first["ctx"]["tag"]), kinds, f"{where}: {field}.kind")
    if first["type"] == "literal_error":
        choices = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return unknown("value", str(first["input"]), choices, f"{where}: {field}")
    return None


def _without_kind(path: list[str], spec: type[Section]) -> tuple[list[str], str | None]:
    """A place as the user wrote it, and the kind of its section, which pydantic puts in."""
    if len(path) > 1 and path[0] in spec.model_fields and len(_kinds(spec, path[0])) > 1:
        return [path[0], *path[2:]], path[1]
    return path, None


def _kinds(spec: type[Section], section: str) -> list[type[Section]]:
    return kinds_of(spec.model_fields[section].annotation)


def _fields(spec: type[Section], path: list[str], kind: str | None) -> list[str]:
    """The fields that there are at a place."""
    if not path:
        return list(spec.model_fields)
    kinds = _kinds(spec, path[0])
    wanted = None if kind == PLUG_IN else kind
    chosen = next((each for each in kinds if kind_name(each) == wanted), kinds[0])
    return list(chosen.model_fields)
