"""API keys: from the environment only, and into nothing that is kept or shown."""

import base64
import os
import re
import traceback
from collections.abc import Iterable
from functools import lru_cache

from ...errors import InputError

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_EITHER = {"+": "[+-]", "/": "[/_]"}
"""The two characters that base64 writes in another way in addresses."""
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
            f"{where}: expected the key in the environment variable {variable}, which is not set; "
            f"'export {variable}=...' sets it, key = \"NAME\" in [model] names another"
        )
    return Key(value)


def fill(text: str, where: str) -> tuple[Key, list[Key]]:
    """``text`` with every ``$VARIABLE`` replaced from the environment, and those values."""
    found = {name: from_environment(name, where) for name in _VARIABLE.findall(text)}
    filled = _VARIABLE.sub(lambda match: found[match.group(1)].reveal(), text)
    return Key(filled), list(found.values())


def scrubbed(text: str, keys: Iterable[Key]) -> str:
    """``text`` without the keys, in plain text or in any encoding of ``_forms``."""
    for key in keys:
        if len(key.reveal()) >= _SHORTEST:
            text = _forms(key.reveal()).sub("[key]", text)
    return text


@lru_cache(maxsize=32)
def _forms(secret: str) -> re.Pattern[str]:
    """Finds a key: plain, percent-encoded, with escapes of JSON or HTML, in hex or in base64.

    Any of its characters may be escaped and others not. In base64 the key may be a part of
    what was encoded; the characters found are those that it alone determines.
    """
    data = secret.encode()
    encoded = {_base64_of(data, before) for before in range(3)}
    either = [re.sub(r"[+/]", lambda m: _EITHER[m.group()], text) for text in encoded]
    return re.compile("|".join(("".join(map(_character, secret)), f"(?i:{data.hex()})", *either)))


def _character(one: str) -> str:
    """A pattern for a character and its escapes."""
    number, octets = ord(one), one.encode()
    percent = "".join(f"%{octet:02x}" for octet in octets)
    escapes = (
        rf"(?i:{percent})",
        rf"(?i:\\u{number:04x})",
        rf"(?i:&\#x0*{number:x};)",
        rf"&\#0*{number};",
    )
    plain = r"\\?/" if one == "/" else re.escape(one)  # JSON may escape it
    return f"(?:{'|'.join((plain, *escapes))})"


def _base64_of(data: bytes, before: int) -> str:
    """The characters of base64 that ``data`` determines where ``before`` bytes precede it."""
    text = base64.b64encode(bytes(before) + data).decode()
    first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
    return text[first:end]


def shows(error: BaseException, keys: Iterable[Key]) -> bool:
    """Whether an exception, or any that it came from, has a key in its text."""
    text = "".join(traceback.format_exception(error))
    return scrubbed(text, keys) != text
