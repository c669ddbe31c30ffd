"""TOML of which every value can be used: no deeper, and no larger, than a specification needs."""

import tomllib
from collections.abc import Mapping
from typing import Any

MAX_DEEP = 50
"""Most tables and lists within each other."""
MAX_INTEGER = 2**63
"""What integers stay below, as TOML says; larger ones fit no database and may not be printed."""


def toml_of(text: str) -> dict[str, Any]:
    """The tables of a TOML text; raises tomllib.TOMLDecodeError for what is none."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_too_deep()) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's own limit of digits
        raise tomllib.TOMLDecodeError(_too_large()) from None
    level: list[Any] = [found]
    for _ in range(MAX_DEEP + 1):
        level = [value for each in level for value in _within(each)]
    if level:
        raise tomllib.TOMLDecodeError(_too_deep())
    return found


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` with the values of ``changes`` in place of its own, table by table."""
    return {**table, **{name: _merged(table.get(name), new) for name, new in changes.items()}}


def _merged(old: Any, new: Any) -> Any:
    return merged(old or {}, new) if isinstance(new, dict) and isinstance(old, dict | None) else new


def _within(value: Any) -> list[Any]:
    """What a table or list holds; raises for an integer that is too large."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise tomllib.TOMLDecodeError(_too_large())
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _too_deep() -> str:
    return f"expected at most {MAX_DEEP} tables or lists within each other, got more"


def _too_large() -> str:
    return "expected integers of 64 bits (19 digits), got a larger one"
