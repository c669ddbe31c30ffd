"""API keys: from the environment only, and into nothing that is kept or shown."""

import base64
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ...errors import InputError

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_EITHER = {"+": "[+-]", "/": "[/_]"}
"""The two characters that base64 writes differently in addresses."""
_SHORTEST = 4  # shorter "keys" are placeholders, and hide nothing but other words
_unset: ContextVar[list[str] | None] = ContextVar("unset", default=None)


class Key:
    """A secret that shows itself only to who calls ``reveal``."""

    __slots__ = ("_value",)  # not in vars()

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Key(...)"


@contextmanager
def needing_no_key() -> Iterator[list[str]]:
    """Inside, models are made to plan with, and are asked nothing: a variable that is not set is
    noted in the list, and a word that is no key stands in its place."""
    unset: list[str] = []
    before = _unset.set(unset)
    try:
        yield unset
    finally:
        _unset.reset(before)


def from_environment(variable: str, where: str) -> Key:
    """Return the key in an environment variable; raise InputError if that is unset or empty, unless
    no key is needed (``needing_no_key``).

    A text that is no name of a variable may be a key, and is not repeated.
    """
    if not _NAME.fullmatch(variable):
        expected = "the name of an environment variable that holds the key"
        raise InputError(f"{where}: expected {expected}, got something that is no such name")
    value = os.environ.get(variable, "").strip()
    if not value and (unset := _unset.get()) is not None:
        unset.append(variable)
        return Key("not-set")
    if not value:
        raise InputError(
            f"{where}: expected the key in the environment variable {variable}, which is not set; "
            f"'export {variable}=...' sets it, key = \"NAME\" in [model] names another"
        )
    return Key(value)


def fill(text: str, where: str) -> tuple[Key, list[Key]]:
    """Return ``text`` with every ``$VARIABLE`` from the environment, and those values."""
    keys = {name: from_environment(name, where) for name in _VARIABLE.findall(text)}
    filled = _VARIABLE.sub(lambda match: keys[match.group(1)].reveal(), text)
    return Key(filled), list(keys.values())


def scrubbed(text: str, keys: Iterable[Key]) -> str:
    """Return ``text`` without the keys, in plain text or in any encoding of ``_forms``."""
    for key in keys:
        if len(key.reveal()) >= _SHORTEST:
            text = _forms(key.reveal()).sub("[key]", text)
    return text


@lru_cache(maxsize=32)
def _forms(secret: str) -> re.Pattern[str]:
    """Return a pattern of a key: plain, percent-encoded, escaped for JSON or HTML, hex or base64.

    Any of its characters may be escaped and others not. In base64 the key may be a part of
    what was encoded; the pattern has the characters that it alone determines.
    """
    data = secret.encode()
    encoded = {_base64_of(data, before) for before in range(3)}
    either = [re.sub(r"[+/]", lambda m: _EITHER[m.group()], text) for text in encoded]
    return re.compile("|".join(("".join(map(_character, secret)), f"(?i:{data.hex()})", *either)))


def _character(one: str) -> str:
    number, percent = ord(one), "".join(f"%{octet:02x}" for octet in one.encode())
    plain = r"\\?/" if one == "/" else re.escape(one)  # JSON may escape it
    return rf"(?:{plain}|(?i:{percent}|\\u{number:04x}|&\#x0*{number:x};)|&\#0*{number};)"


def _base64_of(data: bytes, before: int) -> str:
    """Return the characters of base64 that ``data`` determines, behind so many bytes ``before``."""
    text = base64.b64encode(bytes(before) + data).decode()
    first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
    return text[first:end]


def shows(error: BaseException, keys: Iterable[Key]) -> bool:
    """Return whether an exception, or any that it came from, has a key in its text."""
    text = "".join(traceback.format_exception(error))
    return scrubbed(text, keys) != text


# What gives a key away: where it stands, the name it goes under, how it begins, how it looks. A
# spec that writes one out is refused (``config.secrets``); what a user of Python writes out is
# taken for a key wherever an answer or an error may repeat it (``written_out``).
Place = Literal["header", "query", "body", "payload"]
"""Where a text is sent, which decides how suspicious it is. Most long texts in a header or query
are keys. In "payload", which may hold images, long texts are common; in "body", the ``extra_body``
of a chat, which holds none, they are rare."""

PLAIN_HEADERS = frozenset((
    "accept", "accept-charset", "accept-encoding", "accept-language", "anthropic-version",
    "cache-control", "content-type", "http-referer", "openai-beta", "user-agent", "x-title",
))  # fmt: skip
"""Headers that may be written out: their values are no keys."""
PLAIN_PARAMETERS = frozenset((
    "alt", "api-version", "api_version", "format", "lang", "model", "output", "version",
))  # fmt: skip
"""Parameters of a query that may be written out."""
_PLACES: Mapping[str, Place] = {
    "extra_headers": "header", "extra_query": "query", "extra_body": "body",
}  # fmt: skip
SCHEMES = frozenset(("bearer", "basic", "token", "digest", "apikey"))
"""Words before a key in a header."""

_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORD = re.compile(
    r"(api|app|access|auth|client|private|session|refresh|user)?"
    r"(key|token|secret|pass|passwd|password|passphrase|pwd)"
    r"|auth|authorization|authentication|credentials?|sig|signature|cookie|bearer|jwt|sas"
)
_POINTERS = frozenset(("env", "file", "path", "name", "var", "variable", "type"))
"""Last words of names that say where a key is, and do not hold it."""
_ISSUED = re.compile(
    r"\b(?:[spr]k-[\w/+=.-]{16,}|[spr]k_(?:live|test)_\w{10,}|gh[pousr]_\w{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]*)"
)
"""How keys begin at those who issue them."""
_SCHEME = re.compile(rf"\s*(?:{'|'.join(sorted(SCHEMES))})\s+\S{{4,}}.*", re.IGNORECASE)
_RANDOM = re.compile(r"(?=[A-Za-z0-9]*[A-Za-z])(?=[A-Za-z0-9]*[0-9])[A-Za-z0-9]{16,}")

FILLED = "${NAME} in a text is read from the environment"
HEADERS = (
    "name -> value, ${NAME} in it is read from the environment; only accept, accept-*, "
    "content-type, user-agent, cache-control, http-referer, x-title, anthropic-version and "
    "openai-beta may be written out"
)
QUERY = (
    "${NAME} in it is read from the environment; of a query only api-version, version, format, "
    "output, lang, model and alt may be written out"
)


class Sent(NamedTuple):
    """A text that goes to a server: its path in the section, the name it goes under, its place."""

    field: str
    name: str
    text: str
    place: Place


def names_secret(name: str) -> bool:
    """Return whether what goes under this name is likely to be a key."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _POINTERS or "cache" in words:
        return False
    return any(_SECRET_WORD.fullmatch(word) for word in words)


def is_issued(text: str) -> bool:
    """Return whether a text holds what those who issue keys would issue."""
    return bool(_ISSUED.search(text))


def is_random(text: str) -> bool:
    """Return whether a text holds what looks drawn at random."""
    return bool(_RANDOM.search(text))


def is_plain(sent: Sent) -> bool:
    """Return whether a text may be written out in its place, judged by its name alone."""
    if sent.place in ("payload", "body"):
        return not names_secret(sent.name)
    known = PLAIN_HEADERS if sent.place == "header" else PLAIN_PARAMETERS
    return sent.name.lower() in known


def looks_like_key(sent: Sent) -> bool:
    """Return whether a text looks like a key, judged by the text and its place alone."""
    if is_issued(sent.text):
        return True
    return sent.place != "payload" and bool(_SCHEME.match(sent.text) or is_random(sent.text))


def texts(value: Any, field: str, name: str, place: Place) -> Iterator[Sent]:
    """Yield every text within ``value``, under the name that is nearest to it."""
    if isinstance(value, str):
        yield Sent(field, name, value, place)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(inner, f"{field}.{key}", str(key), place)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from texts(inner, f"{field}[{number}]", name, place)


def texts_of_options(options: Mapping[str, Any], field: str = "options") -> Iterator[Sent]:
    """Yield every text that options of the openai library send."""
    for name, value in options.items():
        yield from texts(value, f"{field}.{name}", name, _PLACES.get(name, "payload"))


def texts_of_query(url: str, field: str = "url") -> Iterator[Sent]:
    """Yield every value in the query of a URL, decoded; nothing if it is no URL."""
    try:
        query = urlsplit(url).query
    except ValueError:
        return
    for name, text in parse_qsl(query, keep_blank_values=True):
        yield Sent(f"{field}: {name}", name, text, "query")


def written_out(sent: Iterable[Sent]) -> list[Key]:
    """Return the words of sent texts that may be a key, as a server may repeat them."""
    suspect = [one.text for one in sent if one.text and (not is_plain(one) or looks_like_key(one))]
    words = [word for text in suspect for word in text.split() if word.lower() not in SCHEMES]
    return [Key(word) for word in words]


def written_in(*options: Mapping[str, Any] | None, url: str = "") -> list[Key]:
    """Return ``written_out`` of options of the openai library, and of the query of a URL."""
    sent = [text for given in options for text in texts_of_options(given or {})]
    return written_out([*sent, *texts_of_query(url)])
