"""API keys: from the environment only, and into nothing that is kept or shown."""

import os
import re
import traceback
from collections.abc import Iterable

from ..errors import InputError

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SHORTEST = 4  # shorter "keys" are placeholders, and hide nothing but other words


class Key:
    """A secret that shows itself only to who calls ``reveal``."""

    __slots__ = ("_value",)  # not in vars()

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Key(...)"


def from_environment(variable: str, where: str) -> Key:
    """The key in an environment variable; raises InputError where that is unset or empty.

    What is no name of a variable may be a key, and is not repeated.
    """
    if not _NAME.fullmatch(variable):
        raise InputError(
            f"{where}: expected the name of an environment variable that holds the key, got "
            "something that is no such name"
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(
            f"{where}: expected the key in the environment variable {variable}, which is not set"
        )
    return Key(value)


def fill(text: str, where: str) -> tuple[Key, list[Key]]:
    """``text`` with every ``$VARIABLE`` replaced from the environment, and those values."""
    found = {name: from_environment(name, where) for name in _VARIABLE.findall(text)}
    filled = _VARIABLE.sub(lambda match: found[match.group(1)].reveal(), text)
    return Key(filled), list(found.values())


def scrubbed(text: str, keys: Iterable[Key]) -> str:
    """``text`` without the keys."""
    for key in keys:
        if len(key.reveal()) >= _SHORTEST:
            text = text.replace(key.reveal(), "[key]")
    return text


def shows(error: BaseException, keys: Iterable[Key]) -> bool:
    """Whether an exception, or any that it came from, has a key in its text."""
    text = "".join(traceback.format_exception(error))
    return scrubbed(text, keys) != text
