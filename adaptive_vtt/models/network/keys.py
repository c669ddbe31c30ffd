"""API keys: read them from the environment, and keep them out of everything stored or shown."""

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
"""The two characters that base64 replaces in URLs -> pattern of both forms."""
_SHORTEST = 4
"""Minimum length of a key that is removed from texts: a shorter one is a placeholder, which also
occurs in other words."""
_unset: ContextVar[list[str] | None] = ContextVar("unset", default=None)
"""Variables that are not set, collected while ``needing_no_key``; None outside."""


class Key:
    """A secret, which only ``reveal`` returns: it is in no repr and in no vars()."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Key(...)"


@contextmanager
def needing_no_key() -> Iterator[list[str]]:
    """Let models be made without their keys, for plans that call no model.

    Inside the block a variable that is not set is added to the list, and a placeholder is its key.
    """
    unset: list[str] = []
    before = _unset.set(unset)
    try:
        yield unset
    finally:
        _unset.reset(before)


def is_planning() -> bool:
    """Return whether models are made for a plan, within ``needing_no_key``."""
    return _unset.get() is not None


def from_environment(variable: str, where: str) -> Key:
    """Return the key in an environment variable.

    Args:
        variable: Name of the variable.
        where: The option that names it, for errors.

    Raises:
        InputError: The variable is unset or empty, except within ``needing_no_key``; or the text is
            no name of a variable. It may then be a key, so the message does not repeat it.
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
    """Replace each ``$VARIABLE`` in a text by its value from the environment.

    Returns:
        The whole text, and the value of each variable.
    """
    keys = {name: from_environment(name, where) for name in _VARIABLE.findall(text)}
    filled = _VARIABLE.sub(lambda match: keys[match.group(1)].reveal(), text)
    return Key(filled), list(keys.values())


def scrubbed(text: str, keys: Iterable[Key]) -> str:
    """Replace keys in a text, plain or encoded as in ``_forms``, by "[key]"."""
    for key in keys:
        if len(key.reveal()) >= _SHORTEST:
            text = _forms(key.reveal()).sub("[key]", text)
    return text


@lru_cache(maxsize=32)
def _forms(secret: str) -> re.Pattern[str]:
    """Return a pattern of a key: plain, percent-encoded, escaped for JSON or HTML, hex or base64.

    Each character may be escaped or plain. Base64 may encode a longer text with the key inside, so
    the pattern has the characters that depend on the key alone, at each of three alignments.
    """
    data = secret.encode()
    in_base64 = {_base64_of(data, before) for before in range(3)}
    patterns = [re.sub(r"[+/]", lambda m: _EITHER[m.group()], text) for text in in_base64]
    return re.compile("|".join(("".join(map(_character, secret)), f"(?i:{data.hex()})", *patterns)))


def _character(character: str) -> str:
    """Return a pattern of a character, plain or escaped."""
    number, percent = ord(character), "".join(f"%{byte:02x}" for byte in character.encode())
    plain = r"\\?/" if character == "/" else re.escape(character)  # JSON may escape the slash
    return rf"(?:{plain}|(?i:{percent}|\\u{number:04x}|&\#x0*{number:x};)|&\#0*{number};)"


def _base64_of(data: bytes, before: int) -> str:
    """Return the base64 characters that depend on ``data`` alone, after ``before`` other bytes.

    A character encodes 6 bits, so the first and last ones may contain bits of other bytes.
    """
    text = base64.b64encode(bytes(before) + data).decode()
    first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
    return text[first:end]


def shows(error: BaseException, keys: Iterable[Key]) -> bool:
    """Return whether the traceback of an exception, or of one of its causes, contains a key."""
    text = "".join(traceback.format_exception(error))
    return scrubbed(text, keys) != text


# A text is suspected to be a key by its place in the request, its name, its prefix, or its random
# look. A SPEC.toml with such a text is refused (``config.secrets``). In Python the text is
# accepted, and removed from answers and errors like a key (``written_out``).
Place = Literal["header", "query", "body", "payload"]
"""Part of the request in which a text is sent. Most long texts in a header or query are keys. In
"payload", which may contain images, long texts are common; in "body", the ``extra_body`` of a chat,
they are rare."""

PLAIN_HEADERS = frozenset((
    "accept", "accept-charset", "accept-encoding", "accept-language", "anthropic-version",
    "cache-control", "content-type", "http-referer", "openai-beta", "user-agent", "x-title",
))  # fmt: skip
"""Headers whose values are no keys, so that they may be written out."""
PLAIN_PARAMETERS = frozenset((
    "alt", "api-version", "api_version", "format", "lang", "model", "output", "version",
))  # fmt: skip
"""Parameters of a query whose values may be written out."""
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
"""Last words of names of options that say where a key is, and do not contain it."""
_ISSUED = re.compile(
    r"\b(?:[spr]k-[\w/+=.-]{16,}|[spr]k_(?:live|test)_\w{10,}|gh[pousr]_\w{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]*)"
)
"""Matches keys by the prefixes that well-known providers give them."""
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
    """A text that is sent to a server.

    Attributes:
        field: Path of the text in its section of SPEC.toml, for errors.
        name: Name of the innermost field that contains it.
        text: The text.
        place: Part of the request in which it is sent.
    """

    field: str
    name: str
    text: str
    place: Place


def names_secret(name: str) -> bool:
    """Return whether a field of this name is likely to contain a key."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _POINTERS or "cache" in words:
        return False
    return any(_SECRET_WORD.fullmatch(word) for word in words)


def is_issued(text: str) -> bool:
    """Return whether a text contains a key with the prefix of a well-known provider."""
    return bool(_ISSUED.search(text))


def is_random(text: str) -> bool:
    """Return whether a text contains a word of at least 16 letters mixed with digits."""
    return bool(_RANDOM.search(text))


def is_plain(sent: Sent) -> bool:
    """Return whether a text may be written out, by its name and place."""
    if sent.place in ("payload", "body"):
        return not names_secret(sent.name)
    known = PLAIN_HEADERS if sent.place == "header" else PLAIN_PARAMETERS
    return sent.name.lower() in known


def looks_like_key(sent: Sent) -> bool:
    """Return whether a text looks like a key, by its characters and place."""
    if is_issued(sent.text):
        return True
    return sent.place != "payload" and bool(_SCHEME.match(sent.text) or is_random(sent.text))


def texts(value: Any, field: str, name: str, place: Place) -> Iterator[Sent]:
    """Yield each text within a value, with the name of the innermost field that contains it."""
    if isinstance(value, str):
        yield Sent(field, name, value, place)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(inner, f"{field}.{key}", str(key), place)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from texts(inner, f"{field}[{number}]", name, place)


def texts_of_options(options: Mapping[str, Any], field: str = "options") -> Iterator[Sent]:
    """Yield each text that options of a client library send."""
    for name, value in options.items():
        yield from texts(value, f"{field}.{name}", name, _PLACES.get(name, "payload"))


def texts_of_query(url: str, field: str = "url") -> Iterator[Sent]:
    """Yield each value in the query of a URL, decoded; nothing if the URL is malformed."""
    try:
        query = urlsplit(url).query
    except ValueError:
        return
    for name, text in parse_qsl(query, keep_blank_values=True):
        yield Sent(f"{field}: {name}", name, text, "query")


def written_out(sent: Iterable[Sent]) -> list[Key]:
    """Return the words of sent texts that may be keys: a server may repeat them in its reply."""
    suspects = [s.text for s in sent if s.text and (not is_plain(s) or looks_like_key(s))]
    words = [word for text in suspects for word in text.split()]
    return [Key(word) for word in words if word.lower() not in SCHEMES]


def written_in(*options: Mapping[str, Any] | None, url: str = "") -> list[Key]:
    """Return words that may be keys in options of a client library, and in the query of a URL."""
    sent = [text for table in options for text in texts_of_options(table or {})]
    return written_out([*sent, *texts_of_query(url)])
